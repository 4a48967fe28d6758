"""Sessions that come from elsewhere with a past: their turns are stored as they were, and known again by id.

What was learned from there is not learned again here. Retention begins with the day that they come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from conversations.extraction.errors import looks_like_error
from conversations.extraction.hashing import chain, turn_hash
from conversations.models import ConversationMessage, Session, SessionState, TurnRole
from mirix.moments import set_moments
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner
from mirix.text import truncate

MAX_CONTENT_CHARS = 65_536
BATCH = 500
BROUGHT_UP = (
    *("last_seq", "turn_count", "history_hash", "first_turn_at", "last_turn_at", "distilled_through"),
    *("distilled_at", "state", "emptied_at", "reopened_at"),
)


@dataclass(frozen=True, kw_only=True)
class PastTurn:
    """A turn as it was elsewhere, its texts cleaned."""

    message_id: str
    role: str
    content: str
    occurred_at: datetime | None
    is_distilled: bool
    """Whether it, and so every turn before it, was learned from."""
    client: Client
    tool_name: str = ""


@dataclass(frozen=True, kw_only=True)
class Adopted:
    """What became of a session that came."""

    session: Session
    new: int
    """How many of its turns are stored now."""
    is_new: bool
    is_behind: bool = False
    """Whether they stand behind turns that came otherwise."""


@dataclass(frozen=True, kw_only=True)
class PastSession:
    """A session as it was elsewhere; without turns it is one of which only what it taught is left."""

    owner: Owner
    session_id: str
    turns: Sequence[PastTurn]


def adopt_session(*, owner: Owner, session_id: str, turns: Sequence[PastTurn]) -> Adopted:
    """Do what `adopt_sessions` does for one."""
    return adopt_sessions(sessions=[PastSession(owner=owner, session_id=session_id, turns=turns)])[0]


@transaction.atomic
def adopt_sessions(*, sessions: Sequence[PastSession]) -> list[Adopted]:
    """Store those turns of sessions that are not there yet, in order, and how far each was learned from.

    No session may be among them twice. One that has turns to learn from is open: it is sealed by the same
    rules as any other.
    """
    found = _locked(sessions)
    known = _known_turns([session for session, _ in found])
    adopted, rows = [], []
    for past, (session, is_new) in zip(sessions, found, strict=True):
        made = _add(past, session, known[session.pk])
        rows += made
        is_behind = len(made) > 0 and made[0].seq > 1 and known[session.pk].keys().isdisjoint(_ids(past))
        adopted.append(Adopted(session=session, new=len(made), is_new=is_new, is_behind=is_behind))
    ConversationMessage.objects.bulk_create(rows, batch_size=BATCH)
    Session.objects.bulk_update([session for session, _ in found], BROUGHT_UP, batch_size=BATCH)
    began = [
        (one.session.pk, min((turn.occurred_at for turn in past.turns if turn.occurred_at), default=None))
        for past, one in zip(sessions, adopted, strict=True)
        if one.is_new
    ]
    set_moments(Session, ["created_at"], began)
    return adopted


def _locked(sessions: Sequence[PastSession]) -> list[tuple[Session, bool]]:
    """Return the session of each, locked, and whether it was made now."""
    made = [
        Session(
            organization=past.owner.organization, end_user=past.owner.end_user, session_id=past.session_id
        )
        for past in sessions
    ]
    Session.objects.bulk_create(made, ignore_conflicts=True, batch_size=BATCH)
    here = Session.objects.for_organizations({row.organization_id for row in made}).filter(
        end_user__in={row.end_user_id for row in made}, session_id__in={row.session_id for row in made}
    )
    locked = here.order_by("pk").select_for_update(no_key=True, of=("self",))
    found = {(row.end_user_id, row.session_id): row for row in locked}
    return [
        (found[row.end_user_id, row.session_id], found[row.end_user_id, row.session_id].pk == row.pk)
        for row in made
    ]


def _known_turns(sessions: Sequence[Session]) -> dict[str, dict[str, int]]:
    """Return the numbers of the turns that sessions have, by session and id of the turn."""
    known: dict[str, dict[str, int]] = {session.pk: {} for session in sessions}
    turns = ConversationMessage.objects.for_organizations({session.organization_id for session in sessions})
    named = turns.filter(session__in=known).exclude(message_id="")
    for pk, message_id, seq in named.values_list("session", "message_id", "seq"):
        known[pk][message_id] = seq
    return known


def _ids(past: PastSession) -> list[str]:
    return [turn.message_id for turn in past.turns]


def _add(past: PastSession, session: Session, known: Mapping[str, int]) -> list[ConversationMessage]:
    """Return the turns that are new to a session, and bring it up to them; nothing is stored yet."""
    new = [turn for turn in past.turns if turn.message_id not in known and not _was_pruned(turn, session)]
    rows = [_row(turn, seq, session) for seq, turn in enumerate(new, start=session.last_seq + 1)]
    numbers = {**known, **{row.message_id: row.seq for row in rows}}
    through = max((numbers.get(turn.message_id, 0) for turn in past.turns if turn.is_distilled), default=0)
    _bring_up(session, rows, through)
    return rows


def _was_pruned(turn: PastTurn, session: Session) -> bool:
    """Return whether a turn was here before and went after its time."""
    if not session.pruned_through or not session.last_turn_at or not turn.occurred_at:
        return False
    return turn.occurred_at <= session.last_turn_at


def _row(turn: PastTurn, seq: int, session: Session) -> ConversationMessage:
    content, is_cut = truncate(turn.content, MAX_CONTENT_CHARS)
    is_tool = turn.role == TurnRole.TOOL
    said = turn.content.removeprefix(f"[{turn.tool_name}]") if turn.tool_name else turn.content
    return ConversationMessage(
        organization_id=session.organization_id,
        end_user_id=session.end_user_id,
        session=session,
        client=turn.client,
        seq=seq,
        role=turn.role,
        content=content,
        content_hash=turn_hash(role=turn.role, text=turn.content),
        tool_name=turn.tool_name,
        is_error=is_tool and looks_like_error(said),
        truncated=is_cut,
        message_id=turn.message_id,
        occurred_at=turn.occurred_at,
    )


def _bring_up(session: Session, rows: Sequence[ConversationMessage], through: int) -> None:
    """Write down what the session is now that these turns are its last."""
    now = timezone.now()
    moments = [row.occurred_at or now for row in rows]
    session.last_seq += len(rows)
    session.turn_count += len(rows)
    session.history_hash = chain((row.content_hash for row in rows), session.history_hash)
    session.first_turn_at = min([*filter(None, [session.first_turn_at]), *moments], default=None)
    session.last_turn_at = max([*filter(None, [session.last_turn_at]), *moments], default=None)
    if through > session.distilled_through:
        session.distilled_through, session.distilled_at = through, now
    if session.distilled_through >= session.last_seq:
        session.state = SessionState.DISTILLED
    elif rows:
        session.state = SessionState.OPEN
        session.emptied_at = None
        if session.distilled_through:
            tail = [
                row.occurred_at for row in rows if row.seq > session.distilled_through and row.occurred_at
            ]
            session.reopened_at = min(tail, default=now)
