"""The pages of a skill's past, and the forms that edit: who may, what a GET never does, two at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from skills.admin.forms import texts_of
from skills.content import Content
from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.history import archive
from skills.review.publishing import approve, reject
from tests.factories import make_content, make_member, make_owner, make_proposal, make_skill
from tests.skills.admin.conftest import as_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def skill(owner) -> Skill:
    first = approve(revision=make_proposal(owner, make_content(name="pay", instructions="1. Ask.")))
    return approve(
        revision=make_proposal(owner, replace(Content.of(first), instructions="1. Ask twice."), first)
    )


def url(row, act: str, query: str = "") -> str:
    return f"/admin/skills/{row._meta.model_name}/{row.pk}/{act}/{query}"


def now(skill: Skill) -> Skill:
    return Skill.objects.get(pk=skill.pk)


def form(base: SkillRevision, **fields: str) -> dict[str, str]:
    """What a browser sends: with its own line ends."""
    sent = texts_of(Content.of(base)) | {"seen": base.pk} | fields
    return {name: text.replace("\r\n", "\n").replace("\n", "\r\n") for name, text in sent.items()}


def test_the_page_shows_every_version_and_what_can_be_done(reviewer, skill):
    page = reviewer.get(url(skill, "change")).content.decode()

    first = skill.revisions.get(version="0.1.0")
    assert f'href="{url(skill, "rollback", f"?to={first.pk}")}"' in page
    assert f'href="{url(skill, "compare", f"?from={first.pk}")}"' in page
    for act in ("edit", "archive", "quarantine"):
        assert f'href="{url(skill, act)}"' in page
    for act in ("restore", "release"):
        assert url(skill, act) not in page


def test_an_operator_is_offered_the_form_alone(owner, skill):
    page = as_user(make_member(owner.organization, "operator")).get(url(skill, "change")).content.decode()

    assert url(skill, "edit") in page
    for act in ("archive", "quarantine", "rollback"):
        assert url(skill, act) not in page


def test_two_versions_are_compared_word_by_word(reviewer, skill):
    page = reviewer.get(url(skill, "compare", "?from=0.1.0&to=0.1.1")).content.decode()
    assert "1. Ask<ins> twice</ins>." in page

    back = reviewer.get(url(skill, "compare", "?from=0.1.1&to=0.1.0")).content.decode()
    assert "1. Ask<del> twice</del>." in back
    assert reviewer.get(url(skill, "compare")).status_code == 200
    assert reviewer.get(url(skill, "compare", "?from=9.9.9")).status_code == 404
    assert reviewer.get(url(skill, "compare", "?from=a%00")).status_code == 404
    assert reviewer.post(url(skill, "compare")).status_code == 405


def test_a_roll_back_is_shown_before_it_is_done(reviewer, skill):
    target = url(skill, "rollback", "?to=0.1.0")

    assert "1. Ask<del> twice</del>." in reviewer.get(target).content.decode()
    assert now(skill).version == "0.1.1"
    refused = reviewer.post(target, {"reason": " "})
    assert (refused.status_code, now(skill).version) == (400, "0.1.1")

    done = reviewer.post(target, {"reason": "Too much.", "seen": skill.current_revision_id}, follow=True)

    assert done.redirect_chain == [(url(skill, "change"), 302)]
    assert "pay says what 0.1.0 said." in done.content.decode()
    assert (now(skill).version, now(skill).instructions) == ("0.1.2", "1. Ask.")
    decision = ReviewDecision.objects.get(revision=now(skill).current_revision)
    assert (decision.decided_by_name, decision.reason) == ("rita", "Too much.")
    assert LogEntry.objects.get().change_message == "Roll back to 0.1.0"


@pytest.mark.parametrize(
    ("before", "act", "after"),
    [
        ("active", "archive", "archived"),
        ("archived", "restore", "active"),
        ("active", "quarantine", "quarantined"),
        ("quarantined", "release", "active"),
    ],
)
def test_taking_out_and_bringing_back_asks_why(reviewer, owner, before, act, after):
    skill = make_skill(owner, status=before)
    shown = reviewer.get(url(skill, act))
    assert (shown.status_code, now(skill).status) == (200, before)

    seen = shown.context["form"].initial["seen"]
    assert reviewer.post(url(skill, act), {"reason": "", "seen": seen}).status_code == 400
    for _ in range(2):  # a form that is sent twice
        assert reviewer.post(url(skill, act), {"reason": "So.", "seen": seen}).status_code == 302

    assert now(skill).status == after
    assert ReviewDecision.objects.get().reason == "So."
    seen = now(skill).current_revision_id
    assert reviewer.post(url(skill, act), {"reason": "Again.", "seen": seen}).status_code == 400


def test_what_changed_since_the_page_was_shown_is_left_alone(reviewer, skill):
    seen = skill.current_revision_id
    archive(skill=skill, reason="No.")

    answer = reviewer.post(url(skill, "rollback", "?to=0.1.0"), {"reason": "So.", "seen": seen})

    assert answer.status_code == 400
    assert "is at version 0.1.2 by now; look at it again." in answer.content.decode()
    assert now(skill).version == "0.1.2"


def seen_elsewhere(owner, named: str) -> dict[str, str]:
    """What a form says it showed: nothing, or the revision of another skill."""
    other = make_skill(owner, make_content(name="other")).current_revision_id
    return {"nothing": {}, "blank": {"seen": ""}, "another": {"seen": other}}[named]


UNNAMED = pytest.mark.parametrize("named", ["nothing", "blank", "another"])


@UNNAMED
@pytest.mark.parametrize(
    ("before", "act"),
    [
        ("active", "rollback"),
        ("active", "archive"),
        ("active", "quarantine"),
        ("archived", "restore"),
        ("quarantined", "release"),
    ],
)
def test_who_does_not_say_what_they_saw_changes_no_status(reviewer, owner, skill, named, before, act):
    Skill.objects.filter(pk=skill.pk).update(status=before)
    target = url(skill, act, "?to=0.1.0" if act == "rollback" else "")

    answer = reviewer.post(target, {"reason": "So."} | seen_elsewhere(owner, named))

    assert answer.status_code == 400
    assert "look" in answer.context["form"].non_field_errors()[0]
    assert (now(skill).status, now(skill).version, skill.revisions.count()) == (before, "0.1.1", 2)


@UNNAMED
def test_who_does_not_say_what_they_began_with_sees_what_is_there(reviewer, owner, skill, named):
    base = skill.current_revision
    theirs = approve(
        revision=make_proposal(owner, replace(Content.of(skill), instructions="1. Theirs."), now(skill))
    )
    sent = form(base, description="Mine.")
    del sent["seen"]

    answer = reviewer.post(url(skill, "edit"), sent | seen_elsewhere(owner, named))

    assert answer.status_code == 409
    assert "does not say which text of “pay” you began with" in answer.context["conflict"]
    assert answer.context["theirs"].pk == theirs.current_revision_id
    page = answer.content.decode()
    assert "Theirs is <a" in page
    assert "You began with" not in page
    assert (now(skill).version, now(skill).instructions) == ("0.1.2", "1. Theirs.")
    shown = answer.context["form"].initial
    assert (shown["description"], shown["instructions"]) == ("Mine.", "1. Ask twice.")
    assert shown["seen"] == theirs.current_revision_id

    again = {name: shown[name] for name in (*texts_of(Content.of(skill)), "seen")}
    assert reviewer.post(answer.context["action"], again).status_code == 302


@UNNAMED
def test_nor_does_a_proposal_give_way_to_who_does_not_say_it(reviewer, owner, named):
    proposal = make_proposal(owner, make_content(name="buy"))
    sent = form(proposal, instructions="1. Mine.")
    del sent["seen"]
    sent |= seen_elsewhere(owner, named)
    count = SkillRevision.objects.count()

    answer = reviewer.post(url(proposal, "edit"), sent)

    assert (answer.status_code, SkillRevision.objects.count()) == (409, count)
    assert answer.context["action"] == url(proposal, "edit")
    reject(revision=proposal, reason="No.")
    answer = reviewer.post(url(proposal, "edit"), sent)
    assert (answer.status_code, SkillRevision.objects.count()) == (400, count)
    assert "was rejected" in answer.context["form"].non_field_errors()[0]


def test_an_edit_publishes_and_leaves_the_rest_byte_for_byte(reviewer, owner):
    content = make_content(
        name="pay",
        instructions="1. Ask.\r\n2. Pay.",
        triggers=["two\nlines", "one"],
        examples=[{"input": "é", "n": 1.50}],
        filter_tags={"team": "billing"},
    )
    skill = make_skill(owner, content)
    assert reviewer.get(url(skill, "edit")).status_code == 200

    answer = reviewer.post(
        url(skill, "edit"), form(skill.current_revision, description="When paid.", reason="Short.")
    )

    assert (answer.status_code, answer["Location"]) == (302, url(skill, "change"))
    after = now(skill)
    assert Content.of(after) == replace(content, description="When paid.")
    assert (after.version, after.current_revision.author_kind) == ("0.1.1", "human")
    assert after.current_revision.author.username == "rita"


def test_an_operators_edit_waits(owner, skill):
    browser = as_user(make_member(owner.organization, "operator", "otto"))

    answer = browser.post(url(skill, "edit"), form(skill.current_revision, instructions="1. Wait."))

    waiting = SkillRevision.objects.get(state="proposed")
    assert answer["Location"] == url(waiting, "change")
    assert (waiting.instructions, waiting.author.username, now(skill).version) == (
        "1. Wait.",
        "otto",
        "0.1.1",
    )


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"description": "x" * 1_025}, "description", "At most 1,024 characters; this has 1,025."),
        ({"description": "  "}, "description", "Must not be blank."),
        ({"instructions": "x" * 65_537}, "instructions", "At most 65,536 characters; this has 65,537."),
        ({"triggers": "x" * 513}, "triggers", "Trigger 1 has 513 characters; at most 512."),
        ({"triggers": "x\n" * 51}, "triggers", "At most 50 triggers; there are 51."),
        ({"examples": "[1]"}, "examples", "Example 1 must be an object."),
        ({"examples": "{"}, "examples", "This is no JSON"),
        ({"examples": '[{"a": NaN}]'}, "examples", "NaN, infinities and numbers beyond a double"),
        ({"examples": '[{"a": 1e999}]'}, "examples", "NaN, infinities and numbers beyond a double"),
        (
            {"examples": '[{"a": ' + "[" * 99 + "]" * 99 + "}]"},
            "examples",
            "Nested too deep; at most 100 levels.",
        ),
        (
            {"examples": "[" * 200_000 + "]" * 200_000},
            "examples",
            "Nested too deep; at most 100 levels.",
        ),
        ({"examples": "[{}" + ",{}" * 50 + "]"}, "examples", "At most 50 examples; there are 51."),
        (
            {"examples": '[{"a": "' + "x" * 65_526 + '"}]'},
            "examples",
            "At most 65,536 characters as JSON; this has 65,537.",
        ),
        ({"entry_type": "tale"}, "entry_type", "Select a valid choice."),
    ],
)
def test_what_breaks_a_rule_is_said_at_its_field(reviewer, skill, fields, field, message):
    answer = reviewer.post(url(skill, "edit"), form(skill.current_revision, **fields))

    assert answer.status_code == 400
    [said] = answer.context["form"].errors[field]
    assert message in said
    assert (now(skill).version, SkillRevision.objects.count()) == ("0.1.1", 2)


def test_the_second_of_two_editors_sees_both_texts_and_goes_on_from_the_first(owner, reviewer, skill):
    other = as_user(make_member(owner.organization, "administrator", "anna"))
    base = skill.current_revision
    theirs = form(base, instructions="1. Ask the bank.", triggers="pay the bank")
    assert other.post(url(skill, "edit"), theirs).status_code == 302

    answer = reviewer.post(
        url(skill, "edit"), form(base, instructions="1. Ask the boss.", description="Mine.", reason="Why.")
    )

    page = answer.content.decode()
    assert (answer.status_code, now(skill).version) == (409, "0.1.2")
    assert now(skill).instructions == "1. Ask the bank."
    assert "“pay” was published anew as 0.1.2 while you wrote." in page
    assert "Both of you changed instructions" in page
    assert "<ins>the bank</ins>" in page
    assert "<ins>the boss</ins>" in page
    shown = answer.context["form"].initial
    assert (shown["description"], shown["instructions"]) == ("Mine.", "1. Ask the boss.")
    assert (shown["triggers"], shown["reason"]) == ("pay the bank", "Why.")
    assert shown["seen"] == now(skill).current_revision_id

    again = {name: shown[name] for name in (*texts_of(Content.of(skill)), "seen", "reason")}
    done = reviewer.post(answer.context["action"], again | {"instructions": "1. Ask bank and boss."})

    assert done.status_code == 302
    after = now(skill)
    assert (after.version, after.instructions, after.description, after.triggers) == (
        "0.1.3",
        "1. Ask bank and boss.",
        "Mine.",
        ["pay the bank"],
    )


def test_two_edit_one_proposal(owner, reviewer):
    proposal = make_proposal(owner, make_content(name="buy"))
    first = reviewer.post(url(proposal, "edit"), form(proposal, instructions="1. Theirs.") | {"wait": "1"})
    theirs = SkillRevision.objects.get(supersedes=proposal)
    assert first["Location"] == url(theirs, "change")

    second = reviewer.post(url(proposal, "edit"), form(proposal, instructions="1. Mine."))

    assert second.status_code == 409
    assert second.context["action"] == url(theirs, "edit")
    assert SkillRevision.objects.count() == 2

    approve(revision=theirs)
    third = reviewer.post(url(proposal, "edit"), form(proposal, instructions="1. Mine."))
    assert (third.status_code, third.context["action"]) == (409, url(Skill.objects.get(), "edit"))
    assert reviewer.get(url(proposal, "edit")).status_code == 302


def test_a_stranger_finds_none_of_it(stranger, skill):
    browser = as_user(make_member(stranger.organization, "administrator"))
    for act in ("edit", "compare", "rollback", "archive", "quarantine", "restore", "release"):
        foreign, missing = browser.get(url(skill, act)), browser.get(f"/admin/skills/skill/none/{act}/")
        assert (foreign.status_code, missing.status_code) == (404, 404)
        assert foreign.content == missing.content
    assert now(skill).version == "0.1.1"


@pytest.mark.parametrize("act", ["change", "edit", "compare", "archive"])
def test_a_longer_past_costs_no_more_queries(reviewer, owner, skill, act):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert reviewer.get(url(skill, act)).status_code == 200
        return len(captured)

    queries()
    few = queries()
    for number in range(19):
        edit = replace(Content.of(skill), instructions=f"1. Edit {number}.")
        approve(revision=make_proposal(owner, edit, now(skill)))
    assert queries() == few


def test_one_skill_is_merged_into_another_by_a_proposal(reviewer, owner, skill):
    other = make_skill(owner, make_content(name="settle", instructions="1. Look at the balance."))
    make_skill(owner, make_content(name="third"))
    make_skill(owner, make_content(name="gone"), status="archived")
    assert url(other, "merge") in reviewer.get(url(other, "change")).content.decode()
    asked = reviewer.get(url(other, "merge"))
    assert [label for _, label in asked.context["form"].fields["target"].choices] == [
        "Choose one",
        "pay 0.1.1",
        "third 0.1.0",
    ]

    done = reviewer.post(url(other, "merge"), {"target": skill.pk, "reason": "They are one."}, follow=True)

    proposal = skill.revisions.get(state="proposed")
    assert done.redirect_chain == [(url(proposal, "change"), 302)]
    shown = done.content.decode()
    assert "Approving it also archives" in shown
    assert url(other, "change") in shown
    assert (proposal.author.username, proposal.rationale) == ("rita", "They are one.")
    assert reviewer.post(url(proposal, "approve")).status_code == 302
    assert (now(other).status, now(skill).version) == ("archived", "0.1.2")
    assert "It takes in" in reviewer.get(url(proposal, "change")).content.decode()


def test_who_may_merge_and_with_what(owner, skill, stranger):
    other = make_skill(owner, make_content(name="settle"))
    foreign, mates = make_skill(stranger), make_skill(make_owner(owner.organization, "bob"))
    readers = {
        "operator": (make_member(owner.organization, "operator"), 200),
        "stranger": (make_member(stranger.organization, "reviewer"), 404),
    }
    for user, status in readers.values():
        assert as_user(user).get(url(other, "merge")).status_code == status
    operator = as_user(readers["operator"][0])
    for target in (foreign.pk, mates.pk, other.pk, "proc-no", "a\x00b", ""):
        assert operator.post(url(other, "merge"), {"target": target}).status_code == 400
    make_proposal(owner, make_content(name="pay", instructions="1. Wait."), skill)
    refused = operator.post(url(other, "merge"), {"target": skill.pk})
    assert refused.status_code == 400
    assert "is open; amend that one" in refused.content.decode()

    assert not SkillRevision.objects.filter(merged_from__isnull=False).exists()
