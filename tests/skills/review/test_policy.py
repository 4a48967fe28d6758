"""What an organization demands before anything is published: sessions, and other eyes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from mirix.tenants.models import OrganizationSettings
from mirix.tenants.selectors import effective
from skills.evolution.curator import evolve
from skills.models import (
    AuthorKind,
    ReviewDecision,
    RevisionState,
    RunTrigger,
    Skill,
    SkillExperience,
    SkillRevision,
)
from skills.review.editing import BY_POLICY, edit_proposal, edit_skill
from skills.review.errors import AgainstPolicy, MayNotDecide
from skills.review.forecast import approval_of, with_what_decides
from skills.review.history import archive, rollback
from skills.review.proposals import propose
from skills.review.publishing import approve, reject
from skills.runs import claim
from skills.search.service import search
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_proposal,
    make_session,
    make_skill,
    make_superuser,
)
from tests.skills.evolution.test_curator import refused_call

pytestmark = pytest.mark.django_db


@pytest.fixture
def chosen(owner):
    """Choose settings for the owner's organization."""

    def choose(**fields) -> None:
        OrganizationSettings.objects.update_or_create(organization=owner.organization, defaults=fields)

    return choose


def found(owner) -> list[str]:
    result = search(organization=owner.organization, owner=owner, query="pay order")
    return [hit.skill.name for hit in result.hits]


def test_one_session_is_enough_where_nobody_chose(owner):
    proposal = make_proposal(owner)
    proposal.experiences.add(make_experience(owner, status="consumed"))

    assert approve(revision=proposal).version == "0.1.0"


@pytest.mark.parametrize("sessions", [1, 2, 3])
def test_as_many_sessions_as_the_organization_wants(owner, stranger, chosen, sessions):
    chosen(min_supporting_sessions=2)
    proposal = make_proposal(owner)
    lessons = [make_experience(owner, status="consumed") for _ in range(sessions)]
    same = make_experience(owner, lessons[0].session, status="consumed")
    proposal.experiences.add(same, *lessons)

    if sessions < 2:
        with pytest.raises(AgainstPolicy, match=r"is supported by 1 session; organization \d+ wants 2\.$"):
            approve(revision=proposal)
        proposal.refresh_from_db()
        assert (proposal.state, Skill.objects.count()) == (RevisionState.PROPOSED, 0)
    else:
        assert approve(revision=proposal).version == "0.1.0"
    elsewhere = make_proposal(stranger)
    elsewhere.experiences.add(make_experience(stranger, status="consumed"))
    approve(revision=elsewhere)


def copies(owner, number: int) -> list:
    """Experiences of sessions that say turn for turn the same."""
    sessions = [make_session(owner, history_hash="a" * 64) for _ in range(number)]
    return [make_experience(owner, session, status="consumed") for session in sessions]


def test_a_session_that_was_sent_again_is_no_second_one(owner, chosen):
    chosen(min_supporting_sessions=2)
    proposal = make_proposal(owner)
    proposal.experiences.add(*copies(owner, 3))

    def foreseen() -> str:
        [row] = with_what_decides(SkillRevision.objects.for_owner(owner).filter(state="proposed"))
        chosen = effective(owner.organization)
        return approval_of(row, decided_by=make_superuser(), chosen=chosen).refusal

    with pytest.raises(AgainstPolicy, match="is supported by 1 session; ") as refused:
        approve(revision=proposal)
    assert foreseen() == str(refused.value)
    aside = make_experience(owner, status="consumed", quarantined=True)
    proposal.experiences.add(aside)
    with pytest.raises(AgainstPolicy, match="is supported by 1 session; "):
        approve(revision=proposal)
    proposal.experiences.add(make_experience(owner, make_session(owner, history_hash="b" * 64)))
    assert foreseen() == ""
    assert approve(revision=proposal).version == "0.1.0"


def test_copies_of_one_failed_session_are_one_failure(owner):
    content = make_content(instructions="1. Never use `pay_order`; it does not work.")

    def flags(experiences) -> list[str]:
        for row in experiences:
            row.experience_type = "worth_avoiding"
            row.save()
        revision = propose(
            owner=owner, content=replace(content, name=f"pay-{len(experiences)}"), action="create",
            author_kind="offline", experiences=experiences, rationale="",
        )  # fmt: skip
        return revision.risk_flags

    assert "single_failure" in flags(copies(owner, 3))
    assert "single_failure" not in flags([make_experience(owner), make_experience(owner)])


def test_a_persons_own_text_needs_no_session(owner, chosen):
    chosen(min_supporting_sessions=2)

    assert approve(revision=make_proposal(owner, author_kind=AuthorKind.HUMAN)).version == "0.1.0"


def test_under_automatic_what_too_few_sessions_taught_waits(owner, chosen):
    chosen(review_policy="automatic", min_supporting_sessions=2)
    held = claim(owner=owner, trigger=RunTrigger.COMMAND)
    refused_call(owner)
    report = evolve(owner=owner, claim=held)
    assert (len(report.proposed), report.published, found(owner)) == (1, [], [])

    refused_call(owner, error="card has expired")
    report = evolve(owner=owner, claim=held)
    assert (report.proposed, len(report.published), found(owner)) == ([], 1, ["pay-order"])


def test_under_automatic_the_session_that_was_lacking_publishes_though_it_says_nothing_new(owner, chosen):
    chosen(review_policy="automatic", min_supporting_sessions=2)
    held = claim(owner=owner, trigger=RunTrigger.COMMAND)
    refused_call(owner)
    [waiting] = evolve(owner=owner, claim=held).proposed

    refused_call(owner)
    report = evolve(owner=owner, claim=held)

    assert (report.proposed, report.published, found(owner)) == ([], [waiting], ["pay-order"])
    revision = SkillRevision.objects.get()
    assert (revision.state, revision.experiences.count(), revision.decisions.count()) == ("published", 2, 1)
    refused_call(owner)
    report = evolve(owner=owner, claim=held)
    assert (report.proposed, report.published, SkillRevision.objects.count()) == ([], [], 1)


def test_under_automatic_support_that_is_a_risk_publishes_nothing(owner, chosen):
    chosen(review_policy="automatic", min_supporting_sessions=2)
    held = claim(owner=owner, trigger=RunTrigger.COMMAND)
    refused_call(owner)
    [waiting] = evolve(owner=owner, claim=held).proposed
    good, bad = refused_call(owner), refused_call(owner)
    SkillExperience.objects.filter(pk=bad.pk).update(verified=False, credibility=0.2)

    report = evolve(owner=owner, claim=held)

    assert {good.pk, bad.pk} == set(report.consumed)
    assert (report.proposed, report.published, found(owner)) == ([], [], [])
    assert SkillRevision.objects.get(pk=waiting).state == "proposed"


def test_with_four_eyes_nobody_approves_their_own_text(owner, chosen):
    chosen(four_eyes=True)
    rita, ben = (make_member(owner.organization, username=name, role="reviewer") for name in ("rita", "ben"))
    skill = make_skill(owner, make_content(name="pay-order"))

    mine = edit_skill(
        skill=skill,
        base=skill.current_revision,
        content=make_content(name="pay-order", instructions="1. Ask."),
        author=rita,
        may_decide=True,
    )

    assert mine.state == RevisionState.PROPOSED
    with pytest.raises(AgainstPolicy, match="is your own text: somebody else has to decide"):
        approve(revision=mine, decided_by=rita)
    with pytest.raises(AgainstPolicy, match="say who decides"):
        approve(revision=mine)
    assert approve(revision=mine, decided_by=ben).instructions == "1. Ask."


def test_with_four_eyes_whoever_edits_a_proposal_becomes_its_author(owner, chosen):
    chosen(four_eyes=True)
    rita = make_member(owner.organization, username="rita", role="reviewer")
    learned = make_proposal(owner)
    learned.experiences.add(make_experience(owner, status="consumed"))

    edited = edit_proposal(proposal=learned, content=make_content(), author=rita, may_decide=True)

    assert edited.state == RevisionState.PROPOSED
    with pytest.raises(AgainstPolicy):
        approve(revision=edited, decided_by=rita)


def test_with_four_eyes_a_text_without_risk_waits_under_automatic_too(owner, chosen):
    chosen(four_eyes=True, review_policy="automatic")
    writer = make_member(owner.organization, username="olga", role="operator")
    skill = make_skill(owner, make_content(name="pay-order"))

    mine = edit_skill(
        skill=skill,
        base=skill.current_revision,
        content=make_content(name="pay-order", instructions="1. Ask."),
        author=writer,
        may_decide=False,
    )

    assert mine.state == RevisionState.PROPOSED


def test_with_four_eyes_what_sessions_taught_needs_one_person(owner, chosen):
    chosen(four_eyes=True)
    rita = make_member(owner.organization, username="rita", role="reviewer")
    learned = make_proposal(owner)
    learned.experiences.add(make_experience(owner, status="consumed"))

    assert approve(revision=learned, decided_by=rita).version == "0.1.0"


def test_who_does_not_decide_in_the_organization_decides_nothing(owner, stranger, chosen):
    skill = make_skill(owner, make_content(name="pay-order"))
    waiting = make_proposal(owner, make_content(name="ship-order"))
    before = (SkillRevision.objects.count(), ReviewDecision.objects.count())
    acts = {
        "approve": lambda user: approve(revision=waiting, decided_by=user),
        "reject": lambda user: reject(revision=waiting, decided_by=user, reason="No."),
        "archive": lambda user: archive(skill=skill, decided_by=user, reason="No."),
        "rollback": lambda user: rollback(
            skill=skill, to=skill.current_revision, decided_by=user, reason="No."
        ),
    }
    olga = make_member(owner.organization, username="olga", role="operator")
    paul = make_member(stranger.organization, username="paul", role="administrator")
    gone = make_member(owner.organization, username="gone", role="administrator")
    gone.is_active = False
    for act, user in product(acts.values(), (olga, paul, gone)):
        with pytest.raises(MayNotDecide, match=f"^{user.username} does not decide in {owner.organization}"):
            act(user)
    assert (SkillRevision.objects.count(), ReviewDecision.objects.count()) == before


@pytest.mark.parametrize("where", ["chosen", "inherited"])
def test_an_organization_may_leave_decisions_to_administrators(owner, stranger, chosen, settings, where):
    if where == "chosen":
        chosen(deciding_role="administrator")
    else:
        settings.MIRIX_DECIDING_ROLE = "administrator"
    rita, ada = (make_member(owner.organization, role=role) for role in ("reviewer", "administrator"))
    proposal = make_proposal(owner)

    with pytest.raises(MayNotDecide):
        approve(revision=proposal, decided_by=rita)
    mine = edit_proposal(
        proposal=proposal, content=make_content(instructions="1. Ask."), author=rita, may_decide=False
    )
    assert mine.state == RevisionState.PROPOSED
    assert approve(revision=mine, decided_by=ada).version == "0.1.0"

    if where == "chosen":
        elsewhere = make_member(stranger.organization, role="reviewer")
        assert approve(revision=make_proposal(stranger), decided_by=elsewhere).version == "0.1.0"


def test_a_superuser_decides_everywhere(owner, chosen):
    chosen(deciding_role="administrator")

    assert approve(revision=make_proposal(owner), decided_by=make_superuser()).version == "0.1.0"


def test_what_the_policy_publishes_nobody_decided(owner, chosen):
    chosen(deciding_role="administrator", review_policy="automatic")
    olga = make_member(owner.organization, username="olga", role="operator")
    skill = make_skill(owner, make_content(name="pay-order"))

    mine = edit_skill(
        skill=skill,
        base=skill.current_revision,
        content=make_content(name="pay-order", instructions="1. Ask."),
        author=olga,
        may_decide=False,
    )

    decision = ReviewDecision.objects.get(revision=mine)
    assert (mine.state, mine.author) == (RevisionState.PUBLISHED, olga)
    assert (decision.decided_by, decision.reason) == (None, BY_POLICY)
