"""Evolving with a model: it is asked about one topic after the other, within what may be spent.

What of an answer is refused goes back once, with the reasons and the texts as they stand by then. Every
question leaves a row. An experience that the model was asked about and that stays pending is not asked about
again until a lesson of its topic is new; where there was no answer, or no room for it, it is.

A topic about which there was no answer several times is given up, but for those times at which the endpoint
was at fault. Where it fails in a way that may be its own or the question's, the other topics of the run tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from django.conf import settings
from django.db import transaction

from mirix.outages import through_outage
from mirix.tenants.owners import Owner
from mirix.tenants.usage import next_day
from mirix.text import clean_json, clean_text
from skills.asking import GLANCE_SECONDS, Stopped, slots
from skills.distillation.wording import number
from skills.evolution.clusters import Cluster
from skills.evolution.lapsing import Claim
from skills.evolution.library import Library
from skills.evolution.llm import Answer, Draft, LlmProposer
from skills.evolution.prompt import Turned
from skills.evolution.types import ExperienceView, Operation, Refusal, SkillView
from skills.models import ExperienceStatus, ProposerCall, SkillExperience, Verdict
from skills.review.errors import ReviewError
from skills.runs import stalled_after
from skills.spending import NoRoom, reserve, spend
from skills.superseding import NotSuperseded, supersede

MAX_TOPIC_CHARS = 160
FAILURES_TO_TELL = 2
"""Topics at which an endpoint must fail in one run, and answer about none, to count as down."""
FAILURES_TO_STOP = 3
"""Topics at which it must fail one after the other to count as down whatever it answered before: no more are
asked about."""


class Desk(Protocol):
    """The curator as a dialogue needs it: what there is to edit, and who writes."""

    owner: Owner
    claim: Claim
    library: Library
    refused: list[Refusal]
    consumed: list[str]

    def candidates(self, cluster: Cluster) -> list[SkillView]:
        """Return the texts that a topic's lessons may belong to, as they stand now."""
        ...

    def has_room(self, operation: Operation | None = None) -> bool:
        """Return whether the budget takes another operation."""
        ...

    def attempt(self, operation: Operation) -> Exception | None:
        """Write an operation; return why not, a `ReviewError` where the texts moved."""
        ...


def converse(
    desk: Desk, proposer: LlmProposer, batch: Sequence[Cluster], should_stop: Callable[[], bool]
) -> None:
    """Ask about each topic of the batch and write what comes of it; note what does not.

    Not inside a transaction. Raises `Stopped` between two topics where it is to stop.
    """
    doubts = _Doubts(desk)
    try:
        _ask_about_each(desk, proposer, batch, should_stop, doubts)
    except Stopped:
        doubts.judge()
        raise
    doubts.judge()


def _ask_about_each(
    desk: Desk,
    proposer: LlmProposer,
    batch: Sequence[Cluster],
    should_stop: Callable[[], bool],
    doubts: _Doubts,
) -> None:
    for place, cluster in enumerate(batch):
        if should_stop():
            raise Stopped
        waiting = len(batch) - place
        if not desk.has_room():
            reason = f"The budget is used up; not asked about: {number(waiting, 'topic')}."
            desk.refused.append(Refusal(reason=reason))
            return
        reason = doubts.reason or _Talk(desk, proposer, cluster, should_stop, doubts).hold()
        if reason:
            desk.refused.append(Refusal(reason=f"{reason} Not asked about: {number(waiting, 'topic')}."))
            return


@dataclass(frozen=True)
class _Doubt:
    """A question at which the endpoint failed, for a reason that may be its own."""

    talk: _Talk
    answer: Answer
    call_id: str


class _Doubts:
    """The questions at which the endpoint failed since its last answer."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._failed: list[_Doubt] = []
        self._is_answering = False

    def add(self, doubt: _Doubt) -> None:
        """Note a failure that may be the endpoint's."""
        self._failed.append(doubt)

    def clear(self) -> None:
        """Note that it answers: what failed before was of its own."""
        self._is_answering = True
        own, self._failed = self._failed, []
        for doubt in own:
            doubt.talk.fail(doubt.answer, doubt.call_id)

    @property
    def reason(self) -> str:
        """Why no more is to be asked; "" where nothing speaks against it."""
        if len(self._failed) < FAILURES_TO_STOP:
            return ""
        return f"The model's endpoint fails at one topic after the other: {self._failed[-1].answer.error}."

    def judge(self) -> None:
        """Hold it against no topic that the endpoint failed at several and answered about none since."""
        if len(self._failed) < (FAILURES_TO_STOP if self._is_answering else FAILURES_TO_TELL):
            self.clear()
            return
        with transaction.atomic():
            self._desk.claim.hold()
            ProposerCall.objects.for_owner(self._desk.owner).filter(
                pk__in=[doubt.call_id for doubt in self._failed]
            ).update(is_endpoints_fault=True)
        for doubt in self._failed:
            doubt.talk.note_no_answer(doubt.answer, "That is the endpoint's fault, and does not count.")


class _Talk:
    """What is asked and answered about one topic."""

    def __init__(
        self,
        desk: Desk,
        proposer: LlmProposer,
        cluster: Cluster,
        should_stop: Callable[[], bool],
        doubts: _Doubts,
    ) -> None:
        self.desk, self.proposer, self.cluster, self.should_stop = desk, proposer, cluster, should_stop
        self.doubts = doubts
        self.ids = {lesson.id for lesson in cluster.experiences}
        self.is_settled = True
        """Whether asking the same again would be for nothing."""
        self.wrote = False
        self.superseded: set[str] = set()
        self.answered: set[str] = set()
        """The lessons that the answers speak of."""

    def hold(self) -> str:
        """Ask, write, and ask once more about what was refused; return why nobody can be asked now."""
        answer = self._ask([])
        if isinstance(answer, str):
            return answer
        turned = self._take(answer)
        if turned and self._left() and self.desk.has_room():
            again = self._ask([Turned(item=draft.item, reason=reason) for draft, reason in turned])
            if isinstance(again, str):
                self._note_all(turned)
                return again
            if not again.error:
                turned = self._take(again)
        self._note_all(turned)
        if self.is_settled:
            self._settle(answer)
        return ""

    def _left(self) -> list[ExperienceView]:
        """Return the lessons that were neither used up nor superseded by now."""
        gone = self.superseded.union(self.desk.consumed)
        return [lesson for lesson in self.cluster.experiences if lesson.id not in gone]

    def _texts(self) -> list[SkillView]:
        """Return the texts that the lessons may belong to, first those that others about the same taught."""
        taught = self.desk.library.taught(self.cluster.experiences)
        known = {view.key for view in taught}
        return [*taught, *(view for view in self.desk.candidates(self.cluster) if view.key not in known)]

    def _ask(self, refused: Sequence[Turned]) -> Answer | str:
        """Return the answer to one question; a text, why none can be asked now."""
        lessons, candidates = self._left(), self._texts()
        organization = self.desk.owner.organization
        tokens = self.proposer.estimate(lessons, candidates)
        claim = self.desk.claim
        try:
            kept = reserve(organization=organization, claim=claim, tokens=tokens)
        except NoRoom:
            return f"The day's tokens do not suffice until {next_day():%Y-%m-%d %H:%M %Z}."
        with self._slot():
            answer = self.proposer.ask(lessons, candidates, refused)
        # An answer is not lost because the database was restarted meanwhile: here that shows.
        through_outage(
            lambda: spend(
                organization=organization,
                claim=claim,
                reserved=kept,
                prompt=answer.prompt_tokens,
                completion=answer.completion_tokens,
                calls=answer.calls,
            ),
            patience=stalled_after().total_seconds(),
        )
        if not answer.error:
            self.doubts.clear()
            return answer
        self.is_settled = False
        call_id = self._keep(answer, Verdict.RETRY)
        match answer.fault:
            case "endpoint":
                return f"The model's endpoint cannot be asked now: {answer.error}."
            case "either":
                self.doubts.add(_Doubt(self, answer, call_id))
            case "session":
                self.doubts.clear()
                self.fail(answer, call_id)
        return answer

    def fail(self, answer: Answer, call_id: str) -> None:
        """Hold it against the topic that there was no answer; the last time, it is given up."""
        tries = self._tries(answer)
        if tries < settings.MIRIX_DISTILLER_MAX_ATTEMPTS:
            self.note_no_answer(answer)
            return
        with transaction.atomic():
            self.desk.claim.hold()
            ProposerCall.objects.for_owner(self.desk.owner).filter(pk=call_id).update(verdict=Verdict.DEAD)
            self._settle(answer)
        self.note_no_answer(answer, f"It was asked {number(tries, 'time')} and is given up.")

    def note_no_answer(self, answer: Answer, more: str = "") -> None:
        """Say in the run's notes that there is none."""
        self.desk.refused.append(
            Refusal(
                reason=f"There is no answer about this topic: {answer.error}. {more}".strip(),
                name=self.cluster.topic,
                experience_ids=tuple(lesson.id for lesson in answer.shown),
            )
        )

    def _tries(self, answer: Answer) -> int:
        """Return how often the same was asked without an answer, but for the endpoint's fault."""
        calls = ProposerCall.objects.for_owner(self.desk.owner).filter(input_hash=answer.input_hash)
        return calls.filter(verdict=Verdict.RETRY, is_endpoints_fault=False).count()

    @contextmanager
    def _slot(self) -> Iterator[None]:
        """Hold one of the process's slots; raises `Stopped` where it is to stop while it waits."""
        while not slots.take(patience=GLANCE_SECONDS):
            if self.should_stop():
                raise Stopped
        try:
            yield
        finally:
            slots.give_back()

    def _take(self, answer: Answer) -> list[tuple[Draft, str]]:
        """Write what an answer asks for; return what was refused, with the reason."""
        turned: list[tuple[Draft, str]] = []
        for draft in answer.drafts:
            self.answered.update(draft.experience_ids)
            if draft.operation is None:
                if draft.is_none:
                    self._supersede(draft)
                    self._note(f"Nothing is to be written: {draft.reason or 'no reason given'}", draft)
                else:
                    turned.append((draft, draft.reason))
            elif not self.desk.has_room(draft.operation):
                self.is_settled = False
                self._note("The budget is used up; it waits.", draft)
            elif refusal := self.desk.attempt(draft.operation):
                # A text that moved, or a budget that was used up, may be otherwise next time.
                self.is_settled &= not isinstance(refusal, ReviewError) and self.desk.has_room()
                turned.append((draft, str(refusal)))
            else:
                self._supersede(draft)
                self.wrote = True
        if not answer.error:
            self._keep(answer, Verdict.OK if answer.drafts else Verdict.EMPTY, turned)
        return turned

    def _supersede(self, draft: Draft) -> None:
        """Let newer lessons take the place of others, as an operation says that counts; note which do."""
        lessons = SkillExperience.objects.for_owner(self.desk.owner)
        for old, new in draft.superseded:
            with transaction.atomic():
                self.desk.claim.hold()
                found = lessons.in_bulk([old, new])
                if len(found) < 2:
                    continue  # erased meanwhile
                try:
                    supersede(experience=found[old], by=found[new])
                except NotSuperseded as refusal:
                    self._note(f"Not superseded: {refusal}", draft)
                    continue
            self.superseded.add(old)
            self._note(f"{new} took the place of {old}.", draft)

    def _note_all(self, turned: Sequence[tuple[Draft, str]]) -> None:
        for draft, reason in turned:
            self._note(reason, draft)

    def _note(self, reason: str, draft: Draft) -> None:
        self.desk.refused.append(
            Refusal(
                reason=clean_text(reason),
                name=draft.name or self.cluster.topic,
                experience_ids=tuple(item for item in draft.experience_ids if item in self.ids),
            )
        )

    def _keep(self, answer: Answer, verdict: Verdict, turned: Sequence[tuple[Draft, str]] = ()) -> str:
        """Store what was asked and answered; return the row's id."""
        owner = self.desk.owner
        with transaction.atomic():
            run = self.desk.claim.hold()
            call = ProposerCall.objects.create(
                organization=owner.organization,
                end_user=owner.end_user,
                run=run,
                topic=clean_text(self.cluster.topic)[:MAX_TOPIC_CHARS],
                model=self.proposer.model,
                prompt_version=self.proposer.prompt_version,
                input_hash=answer.input_hash,
                experience_ids=[lesson.id for lesson in answer.shown],
                verdict=verdict,
                is_endpoints_fault=bool(answer.error) and answer.fault == "endpoint",
                operations=sum(draft.operation is not None for draft in answer.drafts),
                refused=clean_json([{"reason": reason, "text": draft.item} for draft, reason in turned]),
                raw_reply=clean_text(answer.raw_reply),
                calls=answer.calls,
                prompt_tokens=answer.prompt_tokens,
                completion_tokens=answer.completion_tokens,
                duration_ms=answer.duration_ms,
                error=clean_text(answer.error),
            )
        return call.pk

    def _settle(self, answer: Answer) -> None:
        """Mark the lessons that were shown and stay pending.

        Where something was written, one that no answer speaks of may just have had no room in it.
        """
        shown = {lesson.id for lesson in answer.shown}
        with transaction.atomic():
            self.desk.claim.hold()
            SkillExperience.objects.for_owner(self.desk.owner).filter(
                pk__in=shown & self.answered if self.wrote else shown, status=ExperienceStatus.PENDING
            ).update(considered_by=self.proposer.stamp)
