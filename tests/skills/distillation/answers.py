"""What a model answers, for the tests of the distiller that asks one."""

from __future__ import annotations

import json
from typing import Any


def told(turn: int, quote: str, **fields: Any) -> dict[str, Any]:
    """A lesson as a model tells it; `signal` is the signal of its evidence."""
    signal = fields.pop("signal", "tool_error")
    defaults: dict[str, Any] = {
        "experience_type": "worth_avoiding",
        "title": "Do not cancel before the reason is known",
        "content": "The tool refuses a call without a reason.",
        "topic": "tool:cancel_order",
        "importance": 0.8,
        "credibility": 0.5,
        "evidence": {"turn": turn, "quote": quote, "signal_type": signal},
    }
    return defaults | fields


def answer(*items: Any) -> str:
    """The text of an answer with these lessons."""
    return json.dumps({"experiences": list(items)}, ensure_ascii=False)
