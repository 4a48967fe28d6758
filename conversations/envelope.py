"""What a caller hands over: the messages and what is said about them, checked and cleaned."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError

from conversations.extraction.hashing import canonical_hash
from conversations.models import SESSION_ID_PATTERN, History, SessionTag
from mirix.text import clean_json

MAX_TAGS_CHARS = 16_384
BAD_SESSION_ID = "May have 1 to 64 letters, digits, hyphens and underscores."


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """One request's messages and what its caller says about them; made by `checked`."""

    messages: list[Any]
    session_id: str = ""
    session_tag: str = ""
    filter_tags: dict[str, Any] = field(default_factory=dict)
    occurred_at: datetime | None = None
    history: str = ""

    def body_hash(self, *, end_user_id: str) -> str:
        """Return the hash that tells whether two requests are the same."""
        return canonical_hash(
            {
                "end_user": end_user_id,
                "messages": self.messages,
                "session_id": self.session_id,
                "session_tag": self.session_tag,
                "filter_tags": self.filter_tags,
                "occurred_at": self.occurred_at.isoformat() if self.occurred_at else None,
                "history": self.history,
            }
        )


def checked(
    *,
    messages: list[Any],
    session_id: str = "",
    session_tag: str = "",
    filter_tags: dict[str, Any] | None = None,
    occurred_at: datetime | None = None,
    history: str = "",
) -> Envelope:
    """Return the envelope with its messages cleaned; raises `ValidationError` that names every bad field."""
    tags = clean_json(filter_tags or {})
    errors = {
        name: [problem]
        for name, problem in {
            "messages": "" if messages else "May not be empty.",
            "session_id": "" if not session_id or is_session_id(session_id) else BAD_SESSION_ID,
            "session_tag": _not_among(session_tag, SessionTag.values),
            "history": _not_among(history, History.values),
            "filter_tags": _bad_tags(tags, session_id),
        }.items()
        if problem
    }
    if errors:
        raise ValidationError(errors)
    return Envelope(
        messages=clean_json(messages),
        session_id=session_id,
        session_tag=session_tag,
        filter_tags=tags,
        occurred_at=occurred_at,
        history=history,
    )


def is_session_id(text: str) -> bool:
    """Return whether a text may be a session's id; the whole text, so no line break at its end either."""
    return re.fullmatch(SESSION_ID_PATTERN.removesuffix("$"), text) is not None


def _not_among(value: str, values: list[str]) -> str:
    if not value or value in values:
        return ""
    return f"Must be one of {', '.join(item for item in values if item)}."


def _bad_tags(tags: dict[str, Any], session_id: str) -> str:
    if session_id and tags.get("session_id", session_id) != session_id:
        return "filter_tags.session_id must equal session_id."
    size = len(json.dumps(tags))
    return f"May have at most {MAX_TAGS_CHARS} characters as JSON." if size > MAX_TAGS_CHARS else ""
