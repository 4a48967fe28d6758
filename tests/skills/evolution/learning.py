"""Sessions to pending experiences in one step, for tests of what evolution makes of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from mirix.tenants.owners import Owner
from skills.distillation.evidence import Grounded, ground
from skills.distillation.offline import OfflineDistiller
from skills.distillation.types import Lesson, TranscriptTurn
from skills.evolution.types import ExperienceView
from skills.models import SkillExperience
from tests.data import records
from tests.factories import make_experience, make_session
from tests.skills.distillation.sessions import turns_of

Distilled = tuple[list[TranscriptTurn], list[tuple[Lesson, Grounded]]]


def distil(messages: list[dict[str, Any]]) -> Distilled:
    """The turns of a session and the lessons of the offline distiller, their evidence checked."""
    turns = turns_of(messages)
    lessons = OfflineDistiller().distil(turns, first_seq=1).lessons
    return turns, [(lesson, ground(lesson, turns)) for lesson in lessons]


@cache
def airline() -> dict[str, Distilled]:
    """The 40 sessions of the airline desk by id, distilled once."""
    return {
        record["session_id"]: distil(record["messages"]) for record in records("traj/tau_airline_dev.jsonl")
    }


def learn(owner: Owner, session_id: str, distilled: Distilled) -> list[SkillExperience]:
    """Store a session with its turns and its lessons, as a run would."""
    turns, lessons = distilled
    fields = ("role", "content", "tool_name", "is_error")
    session = make_session(
        owner, [{name: getattr(turn, name) for name in fields} for turn in turns], session_id=session_id
    )
    rows = {turn.seq: turn for turn in session.turns.all()}
    return [
        make_experience(
            owner,
            session,
            experience_type=lesson.experience_type,
            title=lesson.title,
            content=lesson.content,
            topic=lesson.topic,
            details=lesson.details,
            importance=lesson.importance,
            credibility=grounded.credibility,
            signal_type=lesson.signal_type,
            quote=grounded.quote,
            turn=rows.get(grounded.turn_seq or 0),
            turn_seq=grounded.turn_seq,
            verified=grounded.verified,
        )
        for lesson, grounded in lessons
    ]


def views(session_id: str, distilled: Distilled) -> list[ExperienceView]:
    """The lessons of a session as a proposer sees them, without a database."""
    return [
        ExperienceView(
            id=f"sexp-{session_id}-{number:02}",
            session_id=session_id,
            experience_type=lesson.experience_type,
            title=lesson.title,
            content=lesson.content,
            topic=lesson.topic,
            details=lesson.details,
            importance=lesson.importance,
            credibility=grounded.credibility,
            signal_type=lesson.signal_type,
            quote=grounded.quote,
            verified=grounded.verified,
        )
        for number, (lesson, grounded) in enumerate(distilled[1])
    ]
