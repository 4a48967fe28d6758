"""Messages that the conversations' tests send, and what is stored of them."""

from __future__ import annotations

from conversations.models import Session
from conversations.selectors import turns_of

HELLO = {"role": "user", "content": "hello"}
HI = {"role": "assistant", "content": "hi"}
BYE = {"role": "user", "content": "bye"}
RULES = {"role": "system", "content": "be brief"}


def contents(session_id: str = "s-1") -> list[str]:
    return [turn.content for turn in turns_of(session=Session.objects.get(session_id=session_id))]
