"""Experiences of the original, with their states; their evidence is looked up in the turns that came over.

The original took the model's word for how far a lesson is to be believed. Here that is only its claim: code
looks the quote up and computes the credibility, as for any lesson. Without its turns a quote is unverified.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator

from django.db import transaction

from conversations.adoption import adopt_session
from conversations.models import ConversationMessage, Session
from conversations.records.sessions import fitting_session_id
from conversations.selectors import find_session, turns_of
from mirix.moments import set_moments
from mirix.tenants.owners import Owner
from mirix.text import clean_json, shorten, truncate
from skills.distillation.evidence import ground
from skills.distillation.types import Lesson, TranscriptTurn
from skills.interop.original.people import TWICE, People, Place, Skip
from skills.interop.original.report import TableReport
from skills.interop.original.source import Source, batched
from skills.interop.original.values import Row, digest, json_value, moment, reference, text, unit
from skills.models import ExperienceStatus, ExperienceType, SignalType, SkillExperience
from skills.models.experiences import MAX_CONTENT_CHARS, MAX_QUOTE_CHARS, MAX_TITLE_CHARS

TABLE = "skill_experience"
COLUMNS = (
    *("id", "organization_id", "user_id", "agent_id", "session_id", "experience_type", "title", "content"),
    *("importance", "credibility", "evidence", "status", "consumed_by", "influenced_skill_ids"),
    *("created_at", "is_deleted", "_created_by_id"),
)
ORDER = ("organization_id", "user_id", "session_id", "created_at", "id")
QUOTE = re.compile(r'\s*\{\s*"quote"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)
UNTITLED = "Untitled lesson"
TRANSCRIPT = list(TranscriptTurn.__dataclass_fields__)


def generation_of(source: Source) -> str:
    """Return which generation the experiences are, as far as it can be told."""
    is_attributed = source.has(TABLE, "_created_by_id") and source.holds_any(TABLE, "_created_by_id")
    return "G6" if is_attributed else "G5 or G6"


def import_experiences(
    source: Source, people: People, report: TableReport, advance: Callable[[int], None]
) -> Iterator[None]:
    """Bring the experiences a batch at a time, and yield between batches."""
    for batch in batched(source.rows(TABLE, COLUMNS, order=ORDER)):
        with transaction.atomic():
            _bring(batch, people, report)
        advance(len(batch))
        yield


def _bring(batch: tuple[Row, ...], people: People, report: TableReport) -> None:
    places: dict[str, tuple[Row, Place]] = {}
    for row in batch:
        report.rows += 1
        try:
            # The older ones name no client; then it is that which made their agent.
            client_id = row.get("_created_by_id") or people.agents.get(reference(row.get("agent_id")))
            place = people.place(row, client_id=client_id)
            _choice(row, "experience_type", ExperienceType.values)
        except Skip as reason:
            report.skipped[str(reason)] += 1
            continue
        parts = (place.organization.id, place.organization.created_at, TABLE, row["id"] or "")
        pk = f"sexp-{digest(*parts)}"
        if pk in places:  # a table without its key
            report.skipped[TWICE] += 1
            continue
        places[pk] = row, place
    here = set(SkillExperience.objects.filter(pk__in=places).values_list("pk", flat=True))
    report.unchanged += len(here)
    made = []
    last_key, found = None, None
    for pk, (row, place) in places.items():
        if pk in here:
            continue
        owner = people.owner(place)
        key = (owner.end_user.pk, fitting_session_id(text(row.get("session_id"))))
        if found is None or key != last_key:  # they come session by session, which may be long
            last_key, found = key, _transcript(owner, key[1], report.notes)
        made.append(_experience(pk, row, place, people, found, report.notes))
    SkillExperience.objects.bulk_create(made)
    moments = [(row.pk, moment(places[row.pk][0].get("created_at"))) for row in made]
    set_moments(SkillExperience, ["created_at"], moments)
    report.imported += len(made)


def _transcript(
    owner: Owner, session_id: str, notes: Counter[str]
) -> tuple[Session, list[ConversationMessage]]:
    """Return the session and its turns; one whose turns are gone is made for what it taught."""
    session = find_session(owner=owner, session_id=session_id)
    if session is None:
        session = adopt_session(owner=owner, session_id=session_id, turns=[]).session
        notes["sessions whose turns are gone"] += 1
    return session, list(turns_of(session=session))


def _experience(
    pk: str,
    row: Row,
    place: Place,
    people: People,
    found: tuple[Session, list[ConversationMessage]],
    notes: Counter[str],
) -> SkillExperience:
    session, turns = found
    quote, signal_type = _evidence(row, notes)
    claimed = _score(row, "credibility", notes)
    content, is_cut = truncate(text(row.get("content")), MAX_CONTENT_CHARS)
    if is_cut:
        notes["content cut at the limit"] += 1
    lesson = Lesson(
        experience_type=row["experience_type"] or "",
        title=shorten(text(row.get("title")), MAX_TITLE_CHARS) or shorten(content, 80) or UNTITLED,
        content=content,
        topic="",
        details={"original": _origin(row)},
        importance=_score(row, "importance", notes),
        credibility=claimed,
        signal_type=signal_type,
        quote=quote,
        turn_seq=None,
    )
    proof = ground(
        lesson, [TranscriptTurn(**{name: getattr(turn, name) for name in TRANSCRIPT}) for turn in turns]
    )
    turn = next((turn for turn in turns if proof.verified and turn.seq == proof.turn_seq), None)
    if not proof.verified:
        notes["quote found in no turn: unverified"] += 1
    kept = proof.quote[:MAX_QUOTE_CHARS]
    return SkillExperience(
        id=pk,
        organization_id=session.organization_id,
        end_user_id=session.end_user_id,
        session=session,
        client_id=people.client(place).pk if turn is None else turn.client_id,
        experience_type=lesson.experience_type,
        title=lesson.title,
        content=lesson.content,
        details=lesson.details,
        importance=lesson.importance,
        credibility=proof.credibility,
        model_credibility=claimed,
        signal_type=signal_type,
        quote=kept,
        quote_hash=hashlib.sha256(kept.encode()).hexdigest() if kept else "",
        turn=turn,
        turn_seq=proof.turn_seq,
        turn_role=turn.role if turn else "",
        verified=proof.verified,
        status=_status(row, notes),
        filter_tags=session.filter_tags,
    )


def _origin(row: Row) -> dict[str, object]:
    """Return what the original says of an experience's fate, for people: run and skills are known there."""
    known: dict[str, object] = {"id": row["id"]}
    if row.get("consumed_by"):
        known["consumed_by"] = row["consumed_by"]
    if skills := json_value(row.get("influenced_skill_ids")):
        known["influenced_skill_ids"] = skills
    cleaned: dict[str, object] = clean_json(known)
    return cleaned


def _evidence(row: Row, notes: Counter[str]) -> tuple[str, str]:
    """Return quote and kind of signal. The original cut the JSON text of both, so that it may end midway."""
    evidence = row.get("evidence") or ""
    if not evidence.strip():
        return "", SignalType.INFERRED
    try:
        value = json.loads(evidence)
    except (ValueError, RecursionError):
        notes["evidence that ends midway: kind of signal unknown"] += 1
        return _cut_quote(evidence), SignalType.INFERRED
    if not isinstance(value, dict):
        value = {"quote": value}
    quote, signal_type = value.get("quote"), value.get("signal_type")
    if not isinstance(signal_type, str) or signal_type not in SignalType.values:
        signal_type = SignalType.INFERRED
    return (text(quote) if isinstance(quote, str) else ""), signal_type


def _cut_quote(evidence: str) -> str:
    found = QUOTE.match(evidence)
    if found is None:
        return ""
    try:
        return text(json.loads(f'"{found.group(1)}"', strict=False))
    except ValueError:  # in the middle of \u….
        return text(found.group(1).rpartition("\\")[0])


def _score(row: Row, column: str, notes: Counter[str]) -> float:
    found = unit(row.get(column))
    if found is None:
        notes[f"{column} that is no number became 0"] += 1
        return 0.0
    return found


def _status(row: Row, notes: Counter[str]) -> str:
    try:
        return _choice(row, "status", ExperienceStatus.values)
    except Skip:
        notes["unknown status became superseded"] += 1
        return ExperienceStatus.SUPERSEDED


def _choice(row: Row, column: str, choices: list[str]) -> str:
    value = row.get(column) or ""
    if value not in choices:
        raise Skip(f"{column} {text(value)[:32] or '“”'}")
    return value
