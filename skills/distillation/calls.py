"""Tool calls with the results that answer them. Pure.

Ids of calls repeat within real sessions, are empty, or are missing on one side, so a result is matched by
id first, to the latest call that still waits, and else by order and name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from skills.distillation.errors import Failure, failure
from skills.distillation.types import TranscriptTurn

MAX_DEPTH = 12


@dataclass(eq=False)
class Call:
    """One tool call; `result` is None while nothing answers it."""

    seq: int
    tool: str
    arguments: Any
    """Usually an object; a string where it was no JSON; None where only the result is known."""
    id: str = ""
    result: TranscriptTurn | None = None
    failure: Failure | None = None
    position: int = 0
    """Its place among the calls of the session."""
    key: str = field(init=False)
    """Tool and arguments in one canonical string: equal for calls that ask the same."""

    def __post_init__(self) -> None:
        self.key = f"{self.tool} {canonical(self.arguments)}"

    @property
    def succeeded(self) -> bool:
        """Whether an answer came that is no failure."""
        return self.result is not None and self.failure is None

    @property
    def answered_at(self) -> int:
        """The seq of the result; of the call while there is none."""
        return self.result.seq if self.result else self.seq

    @property
    def message(self) -> str:
        """What the failure says; "" for a call that did not fail."""
        return self.failure.message if self.failure else ""


def canonical(value: Any) -> str:
    """Return JSON that is equal for equal values, whatever the order of their keys."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def pair_calls(turns: Sequence[TranscriptTurn]) -> list[Call]:
    """Return every call of the transcript in order, results attached.

    A result that answers no known call stands for a call with unknown arguments.
    """
    calls: list[Call] = []
    waiting: list[Call] = []
    for turn in turns:
        if turn.role == "assistant":
            made = list(_calls_of(turn))
            calls += made
            waiting += made
        elif turn.role == "tool":
            call = _answered(waiting, turn)
            if call is None:
                call = Call(turn.seq, turn.tool_name, None, turn.tool_call_id)
                calls.append(call)
            else:
                waiting.remove(call)
            call.result, call.failure = turn, failure(turn)
    named = [call for call in calls if call.tool]
    for position, call in enumerate(named):
        call.position = position
    return named


def _calls_of(turn: TranscriptTurn) -> Iterator[Call]:
    for raw in turn.tool_calls:
        if isinstance(raw, dict):
            yield Call(
                turn.seq,
                str(raw.get("name") or ""),
                bounded(parsed(raw.get("arguments"))),
                str(raw.get("id") or ""),
            )


def _answered(waiting: list[Call], turn: TranscriptTurn) -> Call | None:
    """Return the waiting call that a result answers."""
    if turn.tool_call_id:
        same_id = [call for call in waiting if call.id == turn.tool_call_id]
        if same_id:
            return _first_of_latest_turn(_named(same_id, turn.tool_name) or same_id)
    # An id that no call carries says nothing; a call with another id of its own may still be meant.
    if turn.tool_name:
        return _first_of_latest_turn(_named(waiting, turn.tool_name))
    return _first_of_latest_turn(waiting)


def _named(calls: list[Call], tool: str) -> list[Call]:
    return [call for call in calls if call.tool == tool]


def _first_of_latest_turn(calls: list[Call]) -> Call | None:
    """Parallel calls of one turn are answered in order; between turns the latest is meant."""
    return next((call for call in calls if call.seq == calls[-1].seq), None)


def parsed(arguments: Any) -> Any:
    """Return arguments as data: a string that holds JSON is read, any other stays as it is."""
    if arguments is None or arguments == "":
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict | list) else arguments


def bounded(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a copy of a JSON value, cut where it nests deeper than anyone would read."""
    if isinstance(value, dict):
        return {str(key): bounded(item, depth - 1) for key, item in value.items()} if depth else "…"
    if isinstance(value, list | tuple):
        return [bounded(item, depth - 1) for item in value] if depth else "…"
    return value
