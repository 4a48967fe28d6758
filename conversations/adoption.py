"""Sessions that come from elsewhere with a past: their turns are stored as they were, and known again by id.

What was learned from there is not learned again here. Retention begins with the day that they come.
"""

from __future__ import annotations

from collections.abc import Sequence
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


@transaction.atomic
def adopt_session(*, owner: Owner, session_id: str, turns: Sequence[PastTurn]) -> Adopted:
    """Store those turns of a session that are not there yet, in their order, and how far it was learned from.

    Without turns the session is one whose turns are gone, of which only what it taught is left. A session
    that has turns to learn from is open: it is sealed by the same rules as any other.
    """
    session, is_new = _locked(owner, session_id)
    known = dict(session.turns.exclude(message_id="").values_list("message_id", "seq"))
    new = [turn for turn in turns if turn.message_id not in known and not _was_pruned(turn, session)]
    is_behind = bool(new) and session.last_seq > 0 and not any(turn.message_id in known for turn in turns)
    before = session.last_seq
    rows = [_row(turn, seq, session) for seq, turn in enumerate(new, start=before + 1)]
    ConversationMessage.objects.bulk_create(rows)
    known |= {row.message_id: row.seq for row in rows}
    through = max((known.get(turn.message_id, 0) for turn in turns if turn.is_distilled), default=0)
    _bring_up(session, rows, through)
    if is_new:
        first = min((turn.occurred_at for turn in turns if turn.occurred_at), default=None)
        set_moments(Session, ["created_at"], [(session.pk, first)])
    return Adopted(session=session, new=len(rows), is_new=is_new, is_behind=is_behind)


def _locked(owner: Owner, session_id: str) -> tuple[Session, bool]:
    session = Session(organization=owner.organization, end_user=owner.end_user, session_id=session_id)
    Session.objects.bulk_create([session], ignore_conflicts=True)
    locked = Session.objects.for_owner(owner).select_for_update(no_key=True, of=("self",))
    found = locked.get(session_id=session_id)
    return found, found.pk == session.pk


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
    session.save()
