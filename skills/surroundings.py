"""What a distiller is told beside a session's turns: which skills there are already, and what was served."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from conversations.models import Session
from mirix.redaction import redact
from mirix.tenants.owners import Owner
from skills.distillation.prompt import MAX_SKILLS
from skills.distillation.types import KnownSkill, Surroundings, TranscriptTurn
from skills.models import Skill
from skills.search.served import served_fingerprints
from skills.search.service import findable, search

MAX_END_CHARS = 1_000
"""How much is taken of a session's first words and of its last ones to find skills by."""
MAX_TOOLS = 20
SERVED_BEFORE = timedelta(days=1)
"""How long before its session begins an agent may have been served what it then repeats."""


def surroundings_of(
    *, owner: Owner, session: Session, turns: Sequence[TranscriptTurn], first_seq: int
) -> Surroundings:
    """Return what is known about a session of `owner` whose turns from `first_seq` on are new.

    Its skills are as many as a prompt names, however large the library is: those that search finds by what
    the session is about, and behind these the newest. Not within a transaction: search may ask an endpoint.
    """
    return Surroundings(
        skills=[
            KnownSkill(name=skill.name, description=skill.description)
            for skill in _related(owner, query_of(turns, first_seq=first_seq))
        ],
        served=served_fingerprints(
            owner=owner,
            since=(session.first_turn_at or session.created_at) - SERVED_BEFORE,
            before=session.last_turn_at or session.created_at,
        ),
    )


def query_of(turns: Sequence[TranscriptTurn], *, first_seq: int) -> str:
    """Return what to search by: the session's first words, the tools of its new turns, and the last words.

    Words are the user's, where there are any. Without passwords and keys, for an endpoint may be asked.
    """
    said = [turn.content for turn in turns if turn.role == "user" and turn.content.strip()]
    said = said or [turn.content for turn in turns if turn.content.strip()]
    tools = dict.fromkeys(turn.tool_name for turn in turns if turn.seq >= first_seq and turn.tool_name)
    parts = [
        *(redact(text)[:MAX_END_CHARS] for text in said[:1]),
        " ".join(list(tools)[:MAX_TOOLS]),
        *(redact(text)[-MAX_END_CHARS:] for text in said[1:][-1:]),
    ]
    return "\n".join(filter(None, parts))


def _related(owner: Owner, query: str) -> list[Skill]:
    found = search(
        organization=owner.organization, owner=owner, query=query, method="hybrid", limit=MAX_SKILLS
    )
    skills = [hit.skill for hit in found.hits]
    others = findable(owner.organization, owner).exclude(pk__in=[skill.pk for skill in skills])
    return [*skills, *others.order_by("-created_at", "-pk")[: MAX_SKILLS - len(skills)]]
