"""The screen on which a proposal is decided: who may, what a GET never does, what comes next."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.history import rollback
from skills.review.publishing import approve, reject
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_proposal,
    make_session,
    make_skill,
    make_superuser,
)
from tests.skills.admin.conftest import as_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def proposal(owner) -> SkillRevision:
    revision = make_proposal(owner, make_content(name="pay-an-order"))
    revision.experiences.add(make_experience(owner))
    return revision


def page(revision) -> str:
    return reverse("admin:skills_skillrevision_change", args=[revision.pk])


def approve_url(revision) -> str:
    return reverse("admin:skills_skillrevision_approve", args=[revision.pk])


def reject_url(revision) -> str:
    return reverse("admin:skills_skillrevision_reject", args=[revision.pk])


QUEUE = "/admin/skills/skillrevision/"


def nothing_changed(revision) -> bool:
    revision.refresh_from_db()
    return (
        revision.state == "proposed"
        and not ReviewDecision.objects.exists()
        and not Skill.objects.filter(name=revision.name).exists()
        and not LogEntry.objects.exists()
    )


@pytest.mark.parametrize("role", ["reviewer", "administrator"])
def test_a_member_who_may_review_approves(role, owner, proposal):
    user = make_member(owner.organization, role, "rita")
    response = as_user(user).post(approve_url(proposal), follow=True)
    skill = Skill.objects.get(name="pay-an-order")
    assert (skill.version, skill.current_revision) == ("0.1.0", proposal)
    decision = ReviewDecision.objects.get()
    assert (decision.decision, decision.decided_by, decision.decided_by_kind) == ("approve", user, "human")
    assert LogEntry.objects.get().object_id == proposal.pk
    assert "Published" in response.content.decode()
    assert response.redirect_chain == [(QUEUE, 302)]


def test_a_superuser_approves(proposal):
    as_user(make_superuser()).post(approve_url(proposal))
    assert Skill.objects.get().name == "pay-an-order"


def test_a_reviewer_rejects_with_a_reason(reviewer, proposal):
    response = reviewer.post(reject_url(proposal), {"reason": "The desk does not take cards."}, follow=True)
    proposal.refresh_from_db()
    assert proposal.state == "rejected"
    assert ReviewDecision.objects.get().reason == "The desk does not take cards."
    assert not Skill.objects.exists()
    assert "Rejected pay-an-order." in response.content.decode()


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_rejection_without_a_reason_is_asked_for_one(reason, reviewer, proposal):
    response = reviewer.post(reject_url(proposal), {"reason": reason})
    assert response.status_code == 400
    assert "a rejection needs a reason" in response.content.decode()
    assert nothing_changed(proposal)


@pytest.mark.parametrize("url", [page, approve_url, reject_url])
@pytest.mark.parametrize("method", ["get", "head", "put", "delete"])
def test_nothing_but_a_post_decides(url, method, reviewer, proposal):
    response = getattr(reviewer, method)(url(proposal), {"reason": "because"} if method == "get" else None)
    expected = 200 if url is page and method in ("get", "head") else 405
    assert response.status_code == expected
    assert nothing_changed(proposal)


def test_a_post_to_the_page_itself_is_refused(reviewer, proposal):
    assert reviewer.post(page(proposal), {"state": "published", "name": "x"}).status_code == 405
    assert nothing_changed(proposal)


def test_a_post_without_a_csrf_token_is_refused(owner, proposal):
    browser = as_user(make_member(owner.organization), enforce_csrf_checks=True)
    assert browser.post(approve_url(proposal)).status_code == 403
    assert browser.post(reject_url(proposal), {"reason": "because"}).status_code == 403
    assert nothing_changed(proposal)


def test_an_operator_reads_and_does_not_decide(owner, proposal):
    operator = as_user(make_member(owner.organization, "operator"))
    text = operator.get(page(proposal)).content.decode()
    assert "You read here" in text
    assert approve_url(proposal) not in text
    assert operator.post(approve_url(proposal)).status_code == 403
    assert operator.post(reject_url(proposal), {"reason": "because"}).status_code == 403
    assert nothing_changed(proposal)


def test_a_reviewer_of_another_organization_finds_nothing(stranger, proposal):
    foreign = as_user(make_member(stranger.organization, "administrator"))
    assert foreign.get(page(proposal)).status_code == 404
    assert foreign.post(approve_url(proposal)).status_code == 404
    assert foreign.post(reject_url(proposal), {"reason": "because"}).status_code == 404
    assert nothing_changed(proposal)
    assert "pay-an-order" not in foreign.get(QUEUE).content.decode()
    assert "pay-an-order" not in foreign.get("/admin/").content.decode()


def test_who_is_not_logged_in_decides_nothing(proposal):
    assert Browser().post(approve_url(proposal))["Location"].startswith("/admin/login/")
    assert nothing_changed(proposal)


def test_after_a_decision_comes_the_next_of_the_queue(owner, reviewer):
    first, second, third = (make_proposal(owner) for _ in range(3))
    for revision, importance in ((first, 0.9), (second, 0.6), (third, 0.3)):
        revision.experiences.add(make_experience(owner, importance=importance))
    assert "Proposal 2 of 3" in reviewer.get(page(second)).content.decode()
    assert reviewer.post(approve_url(second))["Location"] == page(third)
    assert reviewer.post(reject_url(third), {"reason": "because"})["Location"] == page(first)
    assert reviewer.post(approve_url(first))["Location"] == QUEUE
    assert "Nothing waits for you" in reviewer.get(QUEUE).content.decode()


def test_the_queue_shows_what_waits_most_important_first(owner, reviewer):
    weak, strong, done = make_proposal(owner), make_proposal(owner), make_proposal(owner, state="rejected")
    weak.experiences.add(make_experience(owner, importance=0.2))
    strong.experiences.add(make_experience(owner, importance=0.9))
    text = reviewer.get(QUEUE).content.decode()
    assert text.index(strong.name) < text.index(weak.name)
    assert done.name not in text
    assert done.name in reviewer.get(QUEUE, {"state": "rejected"}).content.decode()
    everything = reviewer.get(QUEUE, {"state": "all"}).content.decode()
    assert all(revision.name in everything for revision in (weak, strong, done))


def test_the_queue_filters_by_what_there_is_to_watch(owner, reviewer):
    risky, plain = make_proposal(owner, risk_flags=["new_address"]), make_proposal(owner)
    some = reviewer.get(QUEUE, {"risk": "some"}).content.decode()
    assert risky.name in some
    assert "Names an outside address that was not there before" in some
    assert plain.name not in some
    assert plain.name in reviewer.get(QUEUE, {"risk": "none"}).content.decode()


def test_the_second_decision_is_told_and_changes_nothing(owner, reviewer, proposal):
    reject(revision=proposal, decided_by=make_member(owner.organization, username="bob"), reason="Too early.")
    response = reviewer.post(approve_url(proposal), follow=True)
    text = response.content.decode()
    assert "Nothing was changed" in text
    assert "Too early." in text
    assert "bob" in text
    assert not Skill.objects.exists()
    assert ReviewDecision.objects.count() == 1


def test_a_decision_that_comes_first_meanwhile_is_told_too(owner, reviewer, proposal, monkeypatch):
    """The other decision falls between the look at the state and the service's lock."""

    def too_late(**arguments):
        reject(revision=proposal, reason="Too early.")
        return approve(**arguments)

    monkeypatch.setattr("skills.admin.deciding.approve", too_late)
    response = reviewer.post(approve_url(proposal), follow=True)
    assert "Nothing was changed" in response.content.decode()
    assert not Skill.objects.exists()


def test_a_proposal_whose_skill_moved_on_is_never_published_over_it(owner, reviewer):
    skill = make_skill(owner)
    stale = make_proposal(owner, make_content(name=skill.name, instructions="Something old."), skill)
    stale.experiences.add(make_experience(owner))
    text = make_content(name=skill.name, instructions="Something new.")
    newer = make_proposal(owner, text, skill, state="published", version="0.1.1")
    skill.current_revision, skill.version = newer, "0.1.1"
    skill.save()
    assert "It cannot be approved over that" in reviewer.get(page(stale)).content.decode()
    response = reviewer.post(approve_url(stale), follow=True)
    assert "Nothing was changed" in response.content.decode()
    skill.refresh_from_db()
    assert (skill.version, skill.current_revision) == ("0.1.1", newer)


def test_an_amended_proposal_leads_to_the_latest(owner, reviewer, proposal):
    proposal.state = "superseded"
    proposal.save()
    latest = make_proposal(owner, make_content(name=proposal.name), supersedes=proposal)
    text = reviewer.get(page(proposal)).content.decode()
    assert page(latest) in text
    assert approve_url(proposal) not in text


def test_an_edit_is_shown_word_by_word(owner, reviewer):
    skill = make_skill(owner, make_content(name="pay", instructions="Ask for the card.\nCharge it."))
    edit = make_proposal(
        owner, make_content(name="pay", instructions="Ask for the stored card.\nCharge it."), skill
    )
    text = reviewer.get(page(edit)).content.decode()
    assert "Ask for the <ins>stored </ins>card." in text
    assert "Approve and publish 0.1.1" in text


def test_evidence_shows_its_quote_in_its_turn(owner, reviewer, proposal):
    session = make_session(
        owner,
        [{"role": "user", "content": "Hm."}, {"role": "user", "content": "No, use the other card. Thanks!"}],
    )
    proposal.experiences.set(
        [make_experience(owner, session, turn=session.turns.get(seq=2), turn_seq=2, title="Ask for the card")]
    )
    text = reviewer.get(page(proposal)).content.decode()
    assert "No, <mark>use the other card</mark>. Thanks!" in text
    assert reverse("admin:conversations_session_change", args=[session.pk]) + "#turn-2" in text


def test_evidence_whose_turn_is_pruned_keeps_its_quote(owner, reviewer, proposal):
    experience = proposal.experiences.get()
    experience.turn.delete()
    text = reviewer.get(page(proposal)).content.decode()
    assert "The turn is no longer kept" in text
    assert "<mark>use the other card</mark>" in text


def test_the_page_costs_as_many_queries_with_twenty_experiences_as_with_one(owner, reviewer, proposal):
    reviewer.get(page(proposal))
    with CaptureQueriesContext(connection) as one:
        reviewer.get(page(proposal))
    for _ in range(19):
        make_proposal(owner).experiences.add(make_experience(owner))
        proposal.experiences.add(make_experience(owner))
    with CaptureQueriesContext(connection) as twenty:
        reviewer.get(page(proposal))
    assert len(twenty) == len(one), "\n".join(query["sql"] for query in twenty.captured_queries)


HOSTILE = '<img src=x onerror="alert(1)"></textarea></script><script>alert(1)</script>'


def test_everything_that_a_model_wrote_is_text(owner, reviewer):
    content = make_content(
        name="hostile",
        description=HOSTILE,
        instructions=HOSTILE,
        triggers=[HOSTILE],
        examples=[{HOSTILE: HOSTILE}],
        filter_tags={HOSTILE: HOSTILE},
    )
    skill = make_skill(owner, content)
    create = make_proposal(
        owner,
        make_content(description=HOSTILE, triggers=[HOSTILE]),
        rationale=HOSTILE,
        risk_flags=[HOSTILE],
        unsupported=[HOSTILE],
    )
    edit = make_proposal(
        owner, make_content(name="hostile", instructions=f"new {HOSTILE}"), skill, rationale=HOSTILE
    )
    session = make_session(owner, [{"role": "user", "content": f"Look: {HOSTILE}!"}])
    experience = make_experience(owner, session, title=HOSTILE, content=HOSTILE, quote=HOSTILE, topic=HOSTILE)
    for revision in (create, edit):
        revision.experiences.add(experience)
    urls = [
        "/admin/",
        QUEUE,
        "/admin/skills/skill/",
        "/admin/skills/skillexperience/",
        page(create),
        page(edit),
        reverse("admin:skills_skill_change", args=[skill.pk]),
        reverse("admin:skills_skillexperience_change", args=[experience.pk]),
    ]
    for url in urls:
        text = reviewer.get(url).content.decode()
        assert "&lt;img src=x" in text, url
        assert "<img src=x" not in text, url
        assert "<script>alert" not in text, url
    response = reviewer.post(reject_url(create), {"reason": HOSTILE}, follow=True)
    assert "<img src=x" not in response.content.decode()
    assert "&lt;img src=x" in reviewer.get(page(create)).content.decode()


def test_a_proposal_that_fits_what_its_skill_says_by_now_shows_what_approving_makes_of_that(owner, reviewer):
    text = make_content(name="pay", instructions="1. Ask.\n2. Charge it.\n3. Say thanks.\n")
    skill = approve(revision=make_proposal(owner, text))
    newer = replace(text, instructions="1. Ask twice.\n2. Charge it.\n3. Say thanks.\n")
    skill = approve(revision=make_proposal(owner, newer, skill))
    late = replace(newer, instructions="1. Ask twice.\n2. Charge it.\n3. Say goodbye.\n")
    proposal = make_proposal(owner, late, skill)
    rollback(skill=skill, to=skill.revisions.get(version="0.1.0"), reason="No.")

    shown = reviewer.get(page(proposal)).content.decode()
    assert "what approving it makes of 0.1.2" in shown
    assert "Say <del>thanks</del><ins>goodbye</ins>." in shown
    assert "Ask twice" not in shown

    said = reviewer.post(approve_url(proposal), follow=True).content.decode()
    assert "Published" in said
    skill.refresh_from_db()
    assert (skill.version, skill.instructions) == ("0.1.3", "1. Ask.\n2. Charge it.\n3. Say goodbye.\n")
    assert "what was published as 0.1.3" in reviewer.get(page(proposal)).content.decode()
