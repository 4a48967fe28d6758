"""Experiences as values, for tests without a database."""

from __future__ import annotations

from itertools import count
from typing import Any

from skills.content import Content
from skills.evolution.types import ExperienceView, SkillView

_number = count(1)


def view(**fields: Any) -> ExperienceView:
    """A verified experience with words alone; details make it one of the offline distiller's."""
    number = next(_number)
    defaults: dict[str, Any] = {
        "id": f"sexp-{number:06}",
        "session_id": f"s-{number}",
        "experience_type": "worth_learning",
        "title": "Ask which card to use",
        "content": "",
        "topic": "tool:pay_order",
        "details": {},
        "importance": 0.8,
        "credibility": 0.9,
        "signal_type": "tool_error",
        "quote": "",
        "verified": True,
    }
    return ExperienceView(**(defaults | fields))


def failed(error: str, *changes: tuple[Any, ...], tool: str = "pay_order", **details: Any) -> ExperienceView:
    """A failed call; each change is (argument, before, after), shorter where a value was not given."""
    pattern = "changed_arguments" if changes else "given_up"
    facts = {
        "pattern": pattern,
        "tool": tool,
        "error": error,
        "error_pattern": error,
        "changes": [_change(*change) for change in changes],
        "telling": [change[0] for change in changes],
    }
    kept = {key: value for key, value in (facts | details).items() if value}
    return view(topic=f"tool:{tool}", details=kept)


def corrected(said: str, *, topic: str, request: str = "", **fields: Any) -> ExperienceView:
    """A user's correction in words."""
    details = {"pattern": "user_correction", "said": said, "request": request}
    return view(
        experience_type="worth_avoiding",
        topic=topic,
        details={key: value for key, value in details.items() if value},
        signal_type="user_critique",
        quote=said,
        **fields,
    )


ABSENT = object()


def _change(argument: str, before: Any = ABSENT, after: Any = ABSENT) -> dict[str, Any]:
    values = {"before": before, "after": after}
    return {"argument": argument} | {key: value for key, value in values.items() if value is not ABSENT}


def skill(content: Content, **fields: Any) -> SkillView:
    defaults: dict[str, Any] = {"skill_id": "proc-1", "revision_id": None, "status": "active"}
    return SkillView(content=content, **(defaults | fields))
