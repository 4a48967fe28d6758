"""Made-up sessions of an agent that uses tools, always the same for the same number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

WORDS = """
    the order was not found for this customer please check card refund address changed shipping is there any
    other way I can help you today an error policy allows only one return within days let me look that up
    first number does match our records could confirm your zip code thank flight reservation
""".split()  # noqa: SIM905  (a list of seventy strings is no easier to read)
TOOLS = ("get_order", "refund_order", "find_user", "update_address")


def messages(number: int, turns: int) -> list[dict[str, Any]]:
    """Return a session of `turns` messages in the OpenAI shape, each of which becomes one turn."""
    chance = Random(number)
    result: list[dict[str, Any]] = []
    while len(result) < turns:
        call = f"call_{number}_{len(result)}"
        arguments = {"order_id": f"#W{chance.randrange(10**7)}", "reason": _text(chance, 6)}
        function = {"name": chance.choice(TOOLS), "arguments": json.dumps(arguments)}
        result += [
            {"role": "user", "content": _text(chance, 30)},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call, "content": json.dumps(_record(chance))},
            {"role": "assistant", "content": _text(chance, 60)},
        ]
    return result[:turns]


def _text(chance: Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(words // 2, words * 3 // 2)))


def _record(chance: Random) -> dict[str, Any]:
    items = [{"name": _text(chance, 3), "price": chance.randrange(9_999) / 100} for _ in range(5)]
    return {"user": f"user_{chance.randrange(10_000)}", "status": chance.choice(WORDS), "items": items}


def lines(sessions: int, turns: int) -> Iterator[str]:
    """Yield sessions as `import_sessions` takes them, a line each."""
    for number in range(sessions):
        record = {"session_id": f"imported-{number}", "messages": messages(number, turns)}
        yield json.dumps(record) + "\n"
