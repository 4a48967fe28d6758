"""Retention of what was learned: evidence waits for its proposal and outlives its turn; raw replies go."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection

from conversations.models import ConversationMessage, Session
from conversations.retention import prune
from mirix.tenants.models import OrganizationSettings
from mirix.tenants.owners import Owner
from skills import dream as dreaming
from skills.dream import dream
from skills.evolution.types import EvolutionReport
from skills.models import AutoDreamRun, DistillationAttempt, ProposerCall, SearchEvent, SkillExperience
from skills.review.proposals import propose
from skills.review.publishing import approve, reject
from skills.runs import claim
from tests.factories import (
    make_attempt,
    make_content,
    make_experience,
    make_proposal,
    make_proposer_call,
    make_run,
    make_search,
    make_session,
)

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
QUOTE = "use the other card"


@pytest.fixture
def day() -> Any:
    """Moves the clock to a day of the test, which begins on day 0."""
    with time_machine.travel(START, tick=False) as traveller:
        yield lambda number, **more: traveller.move_to(START + timedelta(days=number, **more), tick=False)


def taught(owner: Owner, *texts: str, **fields: Any) -> tuple[Session, SkillExperience]:
    """A distilled session of today and the experience that its first turn grounds."""
    texts = texts or (f"No, {QUOTE}.", "Done.")
    now = datetime.now(tz=UTC)
    session = make_session(
        owner,
        [{"role": "user", "content": text} for text in texts],
        state="distilled",
        distilled_through=len(texts),
        first_turn_at=now,
        last_turn_at=now,
        distilled_at=now,
        **fields,
    )
    digest = hashlib.sha256(QUOTE.encode()).hexdigest()
    return session, make_experience(owner, session, quote=QUOTE, quote_hash=digest)


def pruned(owner: Owner, kind: str = "distilled_turns", **options: Any) -> int:
    return prune(organization=owner.organization, **options).counts[kind]


def proposed(owner: Owner, experience: SkillExperience) -> Any:
    proposal = make_proposal(owner)
    proposal.experiences.set([experience])
    return proposal


class TestEvidence:
    def test_it_outlives_its_turn_and_says_when_that_went(self, owner, day):
        _, experience = taught(owner)
        day(31)
        assert pruned(owner) == 2
        experience.refresh_from_db()
        assert (experience.turn, experience.turn_seq, experience.turn_role) == (None, 1, "user")
        assert experience.turn_pruned_at == START + timedelta(days=31)
        assert hashlib.sha256(experience.quote.encode()).hexdigest() == experience.quote_hash
        assert (experience.verified, experience.credibility) == (True, 0.9)

    def test_the_session_stays_as_long_as_an_experience_refers_to_it(self, owner, day, settings):
        settings.MIRIX_UNDISTILLED_RETENTION_DAYS = 1
        session, _ = taught(owner)
        nothing = make_session(
            owner,
            [{"role": "user", "content": "x"}],
            distilled_through=1,
            first_turn_at=START,
            distilled_at=START,
        )
        make_attempt(make_run(owner), nothing, verdict="empty")
        day(31)
        assert pruned(owner) == 3
        day(3_000)
        assert pruned(owner, "sessions") == 1
        session.refresh_from_db()
        assert (session.turn_count, session.emptied_at) == (0, None)
        assert not DistillationAttempt.objects.exists()

    def test_cited_by_an_open_proposal_a_turn_waits_and_its_neighbours_do_not(self, owner, day):
        session, experience = taught(owner)
        proposed(owner, experience)
        day(31)
        assert pruned(owner, dry_run=True) == 1
        assert pruned(owner) == 1
        assert pruned(owner) == 0
        assert list(session.turns.values_list("seq", flat=True)) == [1]
        session.refresh_from_db()
        assert (session.turn_count, session.pruned_through) == (1, 0)

    @pytest.mark.parametrize("decide", [approve, lambda revision: reject(revision=revision, reason="no")])
    def test_it_goes_once_that_is_decided(self, owner, day, decide):
        session, experience = taught(owner)
        proposal = proposed(owner, experience)
        day(300)
        pruned(owner)
        decide(revision=proposal)
        assert pruned(owner) == 1
        session.refresh_from_db()
        assert (session.turn_count, session.pruned_through) == (0, 2)

    def test_an_amended_proposal_keeps_what_the_first_one_cited(self, owner, day):
        _, first = taught(owner)
        _, second = taught(owner)
        old = proposed(owner, first)
        propose(
            owner=owner,
            content=make_content(name=old.name),
            target_revision=old,
            action="create",
            author_kind="offline",
            experiences=[second],
            rationale="",
        )
        day(31)
        assert pruned(owner) == 2
        assert SkillExperience.objects.filter(turn__isnull=False).count() == 2

    def test_a_proposal_of_another_organization_holds_nothing(self, owner, stranger, day):
        taught(owner)
        _, other = taught(stranger)
        proposed(stranger, other)
        day(31)
        assert pruned(owner) == 2
        other.refresh_from_db()
        assert other.turn is not None
        assert ConversationMessage.objects.for_owner(stranger).count() == 2

    def test_many_held_turns_do_not_stop_what_is_behind_them(self, owner, day, monkeypatch):
        monkeypatch.setattr("conversations.pruning.TURNS_A_BATCH", 2)
        monkeypatch.setattr("conversations.pruning.SESSIONS_A_BATCH", 2)
        for _ in range(5):
            proposed(owner, taught(owner, f"No, {QUOTE}.")[1])
        taught(owner, "a", "b", "c")
        day(31)
        assert pruned(owner) == 3


class TestSessionsThatGoOn:
    def test_each_part_goes_30_days_after_it_was_learned_from(self, owner, day):
        session, _ = taught(owner, "one", "two")
        run = make_run(owner)
        make_attempt(run, session, first_seq=1, last_seq=2)
        day(20)
        ConversationMessage.objects.create(
            organization=owner.organization,
            end_user=owner.end_user,
            session=session,
            client=session.turns.first().client,
            seq=3,
            role="user",
            content="three",
            content_hash="0" * 64,
        )
        make_attempt(run, session, first_seq=3, last_seq=3, verdict="empty")
        Session.objects.update(
            distilled_at=datetime.now(tz=UTC), distilled_through=3, last_seq=3, turn_count=3
        )
        day(31)
        assert pruned(owner) == 2
        assert list(session.turns.values_list("seq", flat=True)) == [3]
        day(51)
        assert pruned(owner) == 1

    def test_an_attempt_that_failed_has_read_nothing(self, owner, day):
        session, _ = taught(owner, "one", "two")
        make_attempt(make_run(owner), session, verdict="retry")
        Session.objects.update(distilled_at=START + timedelta(days=20))
        day(31)
        assert pruned(owner) == 0


class TestRawReplies:
    def test_they_go_after_30_days_and_the_attempt_says_so(self, owner, stranger, day):
        for each in (owner, stranger):
            session, _ = taught(each)
            make_attempt(make_run(each), session, raw_reply="what somebody said")
            offline = make_attempt(make_run(each), session)
            offline.refresh_from_db()
        day(30)
        assert pruned(owner, "raw_replies") == 0
        day(30, seconds=1)
        assert pruned(owner, "raw_replies", dry_run=True) == 1
        assert pruned(owner, "raw_replies") == 1
        assert pruned(owner, "raw_replies") == 0
        ours = DistillationAttempt.objects.for_owner(owner)
        assert list(ours.exclude(pruned_at=None).values_list("raw_reply", "pruned_at")) == [
            ("", START + timedelta(days=30, seconds=1))
        ]
        theirs = DistillationAttempt.objects.for_owner(stranger).exclude(raw_reply="")
        assert list(theirs.values_list("raw_reply", "pruned_at")) == [("what somebody said", None)]

    def test_those_of_proposers_go_as_well(self, owner, stranger, day):
        for each in (owner, stranger):
            make_proposer_call(
                make_run(each), raw_reply="what a model wrote", refused=[{"reason": "r", "text": "t"}]
            )
            make_proposer_call(make_run(each))
        day(30)
        assert pruned(owner, "proposer_replies") == 0
        day(30, seconds=1)
        assert pruned(owner, "proposer_replies", dry_run=True) == 1
        assert pruned(owner, "proposer_replies") == 1
        assert pruned(owner, "proposer_replies") == 0
        gone = ProposerCall.objects.for_owner(owner).exclude(pruned_at=None)
        assert list(gone.values_list("raw_reply", "refused", "verdict")) == [("", [], "ok")]
        assert ProposerCall.objects.for_owner(stranger).exclude(raw_reply="").count() == 1

    def test_of_an_error_its_kind_stays_in_attempt_and_session(self, owner, day):
        session = make_session(owner, [{"role": "user", "content": "x"}], state="dead", first_turn_at=START)
        Session.objects.update(last_error="BadReply: “what somebody said” is no JSON")
        make_attempt(
            make_run(owner), session, verdict="dead", error="BadReply: “what somebody said” is no JSON"
        )
        make_attempt(make_run(owner), session, verdict="retry", error="Timeout")
        day(31)
        assert pruned(owner, "raw_replies") == 2
        session.refresh_from_db()
        assert session.last_error == "BadReply: the details were dropped after their time"
        assert list(DistillationAttempt.objects.order_by("verdict").values_list("error", flat=True)) == [
            "BadReply: the details were dropped after their time",
            "Timeout",
        ]

    def test_what_a_later_attempt_said_stays(self, owner, day):
        session = make_session(owner, [{"role": "user", "content": "x"}], first_turn_at=START)
        make_attempt(make_run(owner), session, verdict="retry", error="BadReply: one")
        day(20)
        make_attempt(make_run(owner), session, verdict="retry", error="BadReply: two")
        Session.objects.update(last_error="BadReply: two")
        day(31)
        assert pruned(owner, "raw_replies") == 1
        session.refresh_from_db()
        assert session.last_error == "BadReply: two"

    def test_0_keeps_for_ever(self, owner, day):
        OrganizationSettings.objects.create(organization=owner.organization, raw_retention_days=0)
        session, _ = taught(owner)
        make_attempt(make_run(owner), session, raw_reply="kept")
        day(3_000)
        assert pruned(owner, "raw_replies") == 0


class TestRuns:
    @pytest.fixture
    def run(self, monkeypatch) -> Callable[[Owner], AutoDreamRun]:
        monkeypatch.setattr(dreaming, "evolve", lambda **_: EvolutionReport())
        return lambda owner: dream(claim=claim(owner=owner, trigger="command"))

    def test_a_run_prunes_the_distilled_turns_of_its_owner_at_its_end(self, owner, stranger, day, run):
        taught(owner)
        taught(stranger)
        make_session(owner, [{"role": "user", "content": "x"}], state="open", first_turn_at=START)
        day(200)
        assert run(owner).state == "finished"
        assert ConversationMessage.objects.for_owner(owner).count() == 1
        assert ConversationMessage.objects.for_owner(stranger).count() == 2

    def test_what_fails_in_it_does_not_fail_the_run(self, owner, day, run, monkeypatch, caplog):
        def refuse(*_: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1/0")

        monkeypatch.setattr("conversations.pruning._delete_turns", refuse)
        session, _ = taught(owner)
        day(31)
        assert run(owner).state == "finished"
        assert session.turns.count() == 2
        assert "pruning after a run of" in caplog.text


class TestSearches:
    def test_they_go_after_their_time_and_not_before(self, owner, day):
        make_search(owner)
        make_search(owner, end_user=None)
        day(30)
        assert pruned(owner, "searches", dry_run=True) == 0
        assert pruned(owner, "searches") == 0
        kept = make_search(owner)
        day(30, seconds=1)
        assert pruned(owner, "searches", dry_run=True) == 2
        assert pruned(owner, "searches") == 2
        assert SearchEvent.objects.get() == kept

    def test_in_batches(self, owner, day, monkeypatch):
        monkeypatch.setattr("conversations.retention.ROWS_A_BATCH", 2)
        for _ in range(5):
            make_search(owner)
        day(31)
        batches: list[int] = []
        assert pruned(owner, "searches", watch=lambda kind, count: batches.append(count)) == 5
        assert batches == [2, 2, 1]

    @pytest.mark.parametrize(("days", "left"), [(None, 1), (0, 2), (40, 2), (5, 0)])
    def test_an_organization_has_its_own_limit(self, owner, day, days, left):
        OrganizationSettings.objects.create(organization=owner.organization, search_log_retention_days=days)
        make_search(owner)
        day(25)
        make_search(owner)
        day(31)
        pruned(owner, "searches")
        assert SearchEvent.objects.count() == left

    def test_of_one_owner_alone_and_never_of_a_stranger(self, owner, stranger, day):
        make_search(owner)
        kept = {make_search(owner, end_user=None), make_search(stranger)}
        day(31)
        assert prune(organization=owner.organization, owner=owner).counts["searches"] == 1
        assert set(SearchEvent.objects.all()) == kept
