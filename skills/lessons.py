"""One session: what a distiller reads of it, what it answers, and how that is stored.

The three steps are apart because the middle one may take minutes and never happens inside a transaction:
`read` → `ask` → `record`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from django.conf import settings
from django.db import DataError, IntegrityError, transaction
from django.utils import timezone

from conversations.models import ConversationMessage, Session, SessionState
from mirix.ids import id_factory
from mirix.tenants.owners import Owner
from mirix.text import clean_json, clean_text, shorten, truncate
from skills.distillation.evidence import ground
from skills.distillation.trust import quarantine_reason
from skills.distillation.types import (
    ALONE,
    Distiller,
    DistillerReply,
    Lesson,
    Surroundings,
    TranscriptTurn,
)
from skills.models import DistillationAttempt, SkillExperience, Verdict
from skills.models.experiences import MAX_CONTENT_CHARS, MAX_QUOTE_CHARS, MAX_TITLE_CHARS
from skills.resting import asked_for, pause_after, rest_of
from skills.runs import RunClaim
from skills.superseding import supersede_retold
from skills.surroundings import surroundings_of

logger = logging.getLogger(__name__)

TURN_FIELDS = ("seq", "role", "content", "tool_calls", "tool_name", "tool_call_id", "is_error")
MAX_TOPIC_CHARS = 160
STORED_LATER = {"organization", "end_user", "session", "client", "attempt", "turn", "turn_seq"}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The turns of one session as they stood at one moment; those from `first_seq` on are new."""

    session: Session
    turns: list[TranscriptTurn]
    first_seq: int
    last_seq: int
    clients: dict[int, str]
    """The client id of each turn, by its sequence number."""
    surroundings: Surroundings = ALONE

    @property
    def characters(self) -> int:
        """How much was said in them."""
        return sum(len(turn.content) for turn in self.turns)

    @property
    def octets(self) -> int:
        """How much that is in UTF-8."""
        return sum(len(turn.content.encode()) for turn in self.turns)

    def client_of(self, seq: int | None) -> str:
        """Return the client of a turn; a lesson without a turn counts as the last turn's client's."""
        last = self.clients[self.last_seq]
        return last if seq is None else self.clients.get(seq, last)

    def input_hash(self, distiller: Distiller, reply: DistillerReply) -> str:
        """SHA-256 (hex) over all that decided the reply: the distiller, and what it sent or else read."""
        given = [
            distiller.name,
            distiller.model,
            distiller.prompt_version,
            self.first_seq,
            reply.prompt_hash or [asdict(turn) for turn in self.turns],
        ]
        return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a distiller made of a reading."""

    reply: DistillerReply
    experiences: list[SkillExperience] = field(default_factory=list)
    """Its lessons, checked against the turns; not saved, and without owner, session and client yet."""
    duration_ms: int = 0
    attempt_id: str = field(default_factory=id_factory("attempt"))
    """The id of the row that it becomes: whoever cannot tell whether it was stored may store it again."""

    @property
    def is_endpoints_fault(self) -> bool:
        """True where others need not be asked now."""
        return self.reply.verdict == "retry" and self.reply.fault == "endpoint"

    @property
    def is_doubtful(self) -> bool:
        """True where the endpoint failed, and only others can tell whether it does so at this one alone."""
        return self.reply.verdict == "retry" and self.reply.fault == "either"


@dataclass(frozen=True, kw_only=True)
class SessionOutcome:
    """How a run dealt with one session."""

    session_id: str
    verdict: str
    experiences: int
    error: str = ""
    tokens: int = 0


def read(owner: Owner, session_pk: str) -> Reading | None:
    """Return what there is to learn from a sealed session; None when it is not sealed any more.

    Also None for one that was erased since it was chosen.
    """
    session = Session.objects.for_owner(owner).filter(pk=session_pk, state=SessionState.SEALED).first()
    if session is None:
        return None
    rows = list(ConversationMessage.objects.filter(session=session).order_by("seq"))
    return Reading(
        session=session,
        turns=[TranscriptTurn(**{name: getattr(row, name) for name in TURN_FIELDS}) for row in rows],
        first_seq=session.distilled_through + 1,
        # Turns that arrive from here on have a higher number, and stay to be learned from.
        last_seq=rows[-1].seq if rows else session.last_seq,
        clients={row.seq: row.client_id for row in rows},
    )


def look_around(owner: Owner, reading: Reading) -> Reading:
    """Return a reading with the surroundings of its session. Not within a transaction."""
    around = surroundings_of(
        owner=owner, session=reading.session, turns=reading.turns, first_seq=reading.first_seq
    )
    return replace(reading, surroundings=around)


def ask(distiller: Distiller, reading: Reading) -> Answer:
    """Call the distiller and check its lessons. Touches no database; any thread may do it.

    Whatever goes wrong in here is a retry of this one session, recorded with its reason.
    """
    started = time.perf_counter()
    experiences: list[SkillExperience] = []
    try:
        reply = (
            distiller.distil(reading.turns, first_seq=reading.first_seq, surroundings=reading.surroundings)
            if reading.turns and reading.last_seq >= reading.first_seq
            else DistillerReply(verdict="empty")
        )
        if reply.verdict == "ok":
            seen = reply.seen if reply.seen is not None else reading.turns
            experiences = [_experience(lesson, seen, reading.turns) for lesson in reply.lessons]
    except Exception as error:
        logger.exception("Distilling session %s failed", reading.session.pk)
        reply = DistillerReply(verdict="retry", error=f"{type(error).__name__}: {error}")
    duration_ms = round((time.perf_counter() - started) * 1000)
    return Answer(reply=reply, experiences=experiences, duration_ms=duration_ms)


def record(
    *, claim: RunClaim, distiller: Distiller, reading: Reading, answer: Answer
) -> SessionOutcome | None:
    """Store attempt, experiences and session state in one transaction of the run.

    An answer that the database refuses is a retry, and one that is stored already stays as it is. None when
    the session was erased meanwhile. Raises `LostRun`, and then nothing is written.
    """
    try:
        return _record(claim, distiller, reading, answer)
    except (DataError, IntegrityError) as error:
        logger.exception("The lessons of session %s were refused", reading.session.pk)
        refused = replace(answer.reply, verdict="retry", error=f"The lessons could not be stored: {error}")
        return _record(claim, distiller, reading, replace(answer, reply=refused, experiences=[]))


@transaction.atomic
def _record(claim: RunClaim, distiller: Distiller, reading: Reading, answer: Answer) -> SessionOutcome | None:
    run = claim.hold()
    session = Session.objects.select_for_update(no_key=True).filter(pk=reading.session.pk).first()
    if session is None:
        return None
    stored = DistillationAttempt.objects.filter(pk=answer.attempt_id).first()
    if stored is not None:
        return _outcome(session, stored, answer)
    reply = answer.reply
    if reply.verdict == "retry":
        verdict = _put_off(session, reading, reply)
    else:
        verdict = Verdict.OK if answer.experiences else Verdict.EMPTY
        _stamp(session, reading)
    attempt = DistillationAttempt.objects.create(
        pk=answer.attempt_id,
        organization_id=session.organization_id,
        end_user_id=session.end_user_id,
        run=run,
        session=session,
        distiller=distiller.name,
        model=distiller.model,
        prompt_version=distiller.prompt_version,
        input_hash=reading.input_hash(distiller, reply),
        first_seq=reading.first_seq,
        last_seq=reading.last_seq,
        raw_reply=clean_text(reply.raw_reply),
        verdict=verdict,
        dropped=clean_json([asdict(part) for part in reply.dropped]),
        flags=clean_json(reply.flags),
        calls=reply.calls,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        duration_ms=answer.duration_ms,
        error=clean_text(reply.error),
    )
    _store(answer.experiences, attempt=attempt, session=session, reading=reading)
    return _outcome(session, attempt, answer)


def _outcome(session: Session, attempt: DistillationAttempt, answer: Answer) -> SessionOutcome:
    return SessionOutcome(
        session_id=session.session_id,
        verdict=attempt.verdict,
        experiences=len(answer.experiences),
        error=attempt.error,
        tokens=attempt.prompt_tokens + attempt.completion_tokens,
    )


def _stamp(session: Session, reading: Reading) -> None:
    """Mark what was read as learned from; turns that came meanwhile keep the session's own state."""
    session.distilled_through = reading.last_seq
    session.distilled_at = timezone.now()
    session.attempts = 0
    session.next_attempt_at = None
    session.last_error = ""
    if session.last_seq <= reading.last_seq:
        session.state = SessionState.DISTILLED
    session.save(
        update_fields=[
            "distilled_through", "distilled_at", "attempts", "next_attempt_at", "last_error", "state"
        ]
    )  # fmt: skip


def _put_off(session: Session, reading: Reading, reply: DistillerReply) -> Verdict:
    """Let the session rest before the next attempt, or give it up after the last one.

    An attempt that failed by the endpoint's fault does not count.
    """
    session.last_error = clean_text(reply.error)
    if reply.fault == "endpoint":
        session.next_attempt_at = timezone.now() + rest_of(reply)
        session.save(update_fields=["last_error", "next_attempt_at"])
        return Verdict.RETRY
    session.attempts += 1
    session.next_attempt_at = timezone.now() + max(pause_after(session.attempts), asked_for(reply))
    given_up = session.attempts >= settings.MIRIX_DISTILLER_MAX_ATTEMPTS
    if given_up and session.last_seq <= reading.last_seq:
        session.state = SessionState.DEAD
        session.next_attempt_at = None
    session.save(update_fields=["attempts", "last_error", "next_attempt_at", "state"])
    return Verdict.DEAD if session.state == SessionState.DEAD else Verdict.RETRY


def _store(
    experiences: list[SkillExperience],
    *,
    attempt: DistillationAttempt,
    session: Session,
    reading: Reading,
) -> None:
    # Read again: retention or erasure may have taken turns away while the distiller was at work.
    seqs = {experience.turn_seq for experience in experiences if experience.turn_seq is not None}
    turns = ConversationMessage.objects.filter(session=session, seq__in=seqs)
    turn_ids: dict[int | None, int] = dict(turns.values_list("seq", "pk"))
    for experience in experiences:
        experience.organization_id = session.organization_id
        experience.end_user_id = session.end_user_id
        experience.session = session
        experience.client_id = reading.client_of(experience.turn_seq)
        experience.attempt = attempt
        experience.turn_id = turn_ids.get(experience.turn_seq)
        experience.filter_tags = session.filter_tags
    SkillExperience.objects.bulk_create(experiences)
    if reading.first_seq > 1:
        supersede_retold(session=session, experiences=experiences)


def _experience(
    lesson: Lesson, seen: Sequence[TranscriptTurn], turns: Sequence[TranscriptTurn]
) -> SkillExperience:
    """Return the lesson as a row, cleaned, cut and checked.

    Its evidence is looked up in the turns as the distiller saw them, and judged by what really stands there.
    """
    proof = ground(lesson, seen)
    grounds = next((turn for turn in turns if proof.verified and turn.seq == proof.turn_seq), None)
    doubt = quarantine_reason(lesson, grounds, turns)
    quote = proof.quote[:MAX_QUOTE_CHARS]
    experience = SkillExperience(
        experience_type=lesson.experience_type,
        title=shorten(clean_text(lesson.title), MAX_TITLE_CHARS),
        content=truncate(clean_text(lesson.content), MAX_CONTENT_CHARS)[0],
        topic=clean_text(lesson.topic)[:MAX_TOPIC_CHARS],
        details=clean_json(lesson.details),
        importance=lesson.importance,
        credibility=proof.credibility,
        model_credibility=lesson.credibility,
        signal_type=lesson.signal_type,
        quote=quote,
        quote_hash=hashlib.sha256(quote.encode()).hexdigest() if quote else "",
        turn_seq=proof.turn_seq,
        verified=proof.verified,
        quarantined=bool(doubt),
        quarantine_reason=doubt,
    )
    experience.clean_fields(exclude=STORED_LATER)
    return experience
