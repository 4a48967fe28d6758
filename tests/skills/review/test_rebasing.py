"""Bringing a change onto a text that moved on, and approving a proposal that was made before that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from skills.content import Content
from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.editing import edit_proposal
from skills.review.errors import AlreadyDecided, BaseConflict, ProposalConflict
from skills.review.history import rollback
from skills.review.publishing import approve, reject
from skills.review.rebasing import merged, rebased
from tests.factories import make_content, make_experience, make_member, make_proposal

LINES = "1. Ask for the card.\n2. Charge it.\n3. Say thanks.\n4. Write it down.\n5. Sign.\n6. Close.\n"
TEXT = make_content(name="pay", description="Use when.", instructions="1. Ask.", triggers=["pay"])
LONG = replace(TEXT, instructions=LINES)


def edited(**fields) -> Content:
    return replace(TEXT, **fields)


def line(number: int, text: str, instructions: str = LINES) -> str:
    lines = instructions.splitlines(keepends=True)
    lines[number - 1] = text
    return "".join(lines)


def test_merging_takes_what_one_side_alone_changed():
    theirs = edited(description="Theirs.", instructions="1. Theirs.", triggers=["both"])
    mine = edited(instructions="1. Mine.", triggers=["both"], examples=[{"input": 1}])

    merge = merged(base=TEXT, theirs=theirs, mine=mine)

    assert merge.content == edited(
        description="Theirs.", instructions="1. Mine.", triggers=["both"], examples=[{"input": 1}]
    )
    assert merge.both == {"instructions"}


@pytest.mark.parametrize(
    ("theirs", "mine", "together"),
    [
        pytest.param(
            line(1, "1. Ask.\n"),
            line(4, "4. Log it.\n"),
            line(1, "1. Ask.\n", line(4, "4. Log it.\n")),
            id="other lines",
        ),
        pytest.param(
            line(2, "2. Charge it once.\n"),
            line(3, "3. Say goodbye.\n"),
            line(2, "2. Charge it once.\n", line(3, "3. Say goodbye.\n")),
            id="the next line",
        ),
        pytest.param(line(3, ""), line(1, ""), line(1, "", line(3, "")), id="two lines gone"),
        pytest.param(line(2, "2. No.\n"), line(2, "2. Yes.\n"), None, id="the same line"),
        pytest.param(line(2, ""), line(2, "2. Yes.\n"), None, id="a line that is gone"),
        pytest.param(LINES + "7. A.\n", LINES + "7. B.\n", None, id="both add at the end"),
        pytest.param(
            line(2, "2. Charge it.\n2b. Wait.\n"),
            line(2, "2. Charge it.\n2b. Wait.\n", line(6, "6. End.\n")),
            line(2, "2. Charge it.\n2b. Wait.\n", line(6, "6. End.\n")),
            id="both add the same",
        ),
        pytest.param("All new.", line(4, "4. Log it.\n"), None, id="another text"),
        pytest.param(LINES + LINES, line(4, "4. Log it.\n"), None, id="what it changes is there twice"),
    ],
)
def test_a_change_is_brought_onto_another_text_line_by_line(theirs, mine, together):
    found = rebased(
        base=LONG,
        theirs=replace(LONG, instructions=theirs, description="Theirs."),
        mine=replace(LONG, instructions=mine, triggers=["pay", "charge"]),
    )

    expected = {"instructions": together, "description": "Theirs.", "triggers": ["pay", "charge"]}
    assert found == (replace(LONG, **expected) if together is not None else None)


def test_of_lists_what_each_side_adds_and_takes_away_counts():
    base = edited(triggers=["a", "b", "c"], examples=[{"n": 1}, {"n": 2}])
    theirs = replace(base, triggers=["a", "c", "d"], examples=[{"n": 2}, {"n": True}])
    mine = replace(base, triggers=["b", "c", "e"], examples=[{"n": 1}, {"n": 2}, {"n": 3}])

    found = rebased(base=base, theirs=theirs, mine=mine)

    assert found == replace(base, triggers=["c", "d", "e"], examples=[{"n": 2}, {"n": True}, {"n": 3}])


def test_of_tags_the_pairs_that_both_have_stay():
    found = rebased(
        base=edited(filter_tags={"a": 1, "b": 1}),
        theirs=edited(filter_tags={"a": 1, "b": 1, "c": 1}),
        mine=edited(filter_tags={"a": 1}),
    )

    assert found == edited(filter_tags={"a": 1})


def test_two_kinds_or_names_are_for_a_person_to_choose_from():
    theirs, mine = edited(entry_type="guide"), edited(entry_type="script")

    assert rebased(base=TEXT, theirs=theirs, mine=mine) is None
    assert rebased(base=TEXT, theirs=theirs, mine=theirs) == theirs
    assert rebased(base=TEXT, theirs=edited(name="a"), mine=edited(name="b")) is None


TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "e"]), max_size=6).map("".join)


@given(base=TEXTS, theirs=TEXTS, mine=TEXTS)
def test_who_comes_first_makes_no_difference(base, theirs, mine):
    texts = [edited(instructions=text) for text in (base, theirs, mine)]
    before, other, own = texts

    found = rebased(base=before, theirs=other, mine=own)

    assert found == rebased(base=before, theirs=own, mine=other)
    assert rebased(base=before, theirs=before, mine=own) == own
    assert rebased(base=before, theirs=other, mine=before) == other
    assert rebased(base=before, theirs=own, mine=own) == own


# ---- Approving what was made before the version of today


@pytest.fixture
def rita(owner) -> User:
    return make_member(owner.organization, username="rita")


@pytest.fixture
def skill(owner) -> Skill:
    """Version 0.1.1 of a skill, whose last line was another one at 0.1.0."""
    before = replace(LONG, instructions=line(4, "4. Forget it.\n"))
    first = approve(revision=make_proposal(owner, before))
    return approve(revision=make_proposal(owner, LONG, first))


def waits(owner, skill: Skill, number: int, **fields) -> SkillRevision:
    """A proposal that changes one line of version 0.1.1, which is then rolled back."""
    text = replace(LONG, instructions=line(number, f"{number}. Mine.\n"))
    proposal = make_proposal(owner, text, skill, rationale="Seen twice.", **fields)
    proposal.experiences.add(make_experience(owner, status="consumed"))
    rollback(skill=skill, to=skill.revisions.get(version="0.1.0"), reason="No.")
    return proposal


def now(skill: Skill) -> Skill:
    return Skill.objects.get(pk=skill.pk)


def test_a_change_elsewhere_is_published_onto_what_the_skill_says_today(owner, skill, rita):
    proposal = waits(owner, skill, 1)

    approved = approve(revision=proposal, decided_by=rita, reason="Right.")

    both = line(1, "1. Mine.\n", line(4, "4. Forget it.\n"))
    assert (approved.version, approved.instructions, approved.pk) == ("0.1.3", both, skill.pk)
    version = now(skill).current_revision
    proposal.refresh_from_db()
    assert (proposal.state, version.supersedes, version.state) == ("superseded", proposal, "published")
    assert version.base == skill.revisions.get(version="0.1.2")
    assert (version.action, version.author_kind, version.rationale) == ("edit", "offline", "Seen twice.")
    assert list(version.experiences.all()) == list(proposal.experiences.all())
    decision = ReviewDecision.objects.get(revision=version)
    assert (decision.decided_by, decision.decision, decision.reason) == (rita, "approve", "Right.")
    assert not ReviewDecision.objects.filter(revision=proposal).exists()
    assert set(version.experiences.values_list("status", flat=True)) == {"consumed"}


def test_approving_it_again_changes_nothing(owner, skill):
    proposal = waits(owner, skill, 1)
    approve(revision=proposal)
    before = list(SkillRevision.objects.order_by("pk").values())

    assert approve(revision=proposal).version == "0.1.3"

    assert list(SkillRevision.objects.order_by("pk").values()) == before
    with pytest.raises(AlreadyDecided):
        reject(revision=proposal, reason="No.")


def test_a_change_of_the_same_line_is_a_conflict_and_lapses_when_rejected(owner, skill):
    proposal = waits(owner, skill, 4)

    with pytest.raises(BaseConflict, match=r"was made against version 0\.1\.1 of “pay”, which is at 0\.1\.2"):
        approve(revision=proposal)
    assert (now(skill).version, SkillRevision.objects.count()) == ("0.1.2", 4)

    assert reject(revision=proposal, reason="It moved on.").state == "superseded"
    assert set(proposal.experiences.values_list("status", flat=True)) == {"pending"}


def test_what_still_fits_is_rejected_for_good(owner, skill):
    proposal = waits(owner, skill, 1)

    assert reject(revision=proposal, reason="No.").state == "rejected"

    assert set(proposal.experiences.values_list("status", flat=True)) == {"consumed"}


def test_where_no_person_has_read_it_nothing_is_brought_together(owner, skill):
    proposal = waits(owner, skill, 1)

    with pytest.raises(BaseConflict):
        approve(revision=proposal, kind="offline")

    assert now(skill).version == "0.1.2"


def test_risks_are_judged_anew_against_the_text_of_today(owner, skill):
    proposal = waits(owner, skill, 1, risk_flags=["near_size_limit"])

    approve(revision=proposal)

    assert now(skill).current_revision.risk_flags == []


@pytest.mark.parametrize("publish", [True, False])
def test_an_edit_of_such_a_proposal_is_brought_onto_the_text_of_today_too(owner, skill, rita, publish):
    proposal = waits(owner, skill, 1)
    text = replace(Content.of(proposal), instructions=line(1, "1. Ours.\n"))

    revision = edit_proposal(proposal=proposal, content=text, author=rita, may_decide=True, publish=publish)

    both = line(1, "1. Ours.\n", line(4, "4. Forget it.\n"))
    assert (revision.instructions, revision.base) == (both, skill.revisions.get(version="0.1.2"))
    assert now(skill).version == ("0.1.3" if publish else "0.1.2")


def test_an_edit_of_one_that_does_not_fit_is_refused(owner, skill, rita):
    proposal = waits(owner, skill, 4)
    text = replace(Content.of(proposal), description="Mine.")

    with pytest.raises(ProposalConflict, match=r"was made before version 0\.1\.2"):
        edit_proposal(proposal=proposal, content=text, author=rita, may_decide=True)
