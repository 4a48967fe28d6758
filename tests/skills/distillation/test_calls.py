"""Calls and results: matched by id to the latest waiting call, else by order and name."""

from __future__ import annotations

from typing import Any

from skills.distillation.calls import Call, pair_calls
from skills.distillation.types import TranscriptTurn


def asking(seq: int, *calls: tuple[str, str, Any]) -> TranscriptTurn:
    made = [{"id": call_id, "name": name, "arguments": arguments} for call_id, name, arguments in calls]
    return TranscriptTurn(seq=seq, role="assistant", content="", tool_calls=made)


def result(seq: int, content: str, call_id: str = "", name: str = "") -> TranscriptTurn:
    prefix = f"[{name}] " if name else ""
    return TranscriptTurn(
        seq=seq, role="tool", content=prefix + content, tool_name=name, tool_call_id=call_id
    )


def answers(*turns: TranscriptTurn) -> list[tuple[str, Any, int | None]]:
    """Tool, arguments and the seq of the result, of every call."""
    return [
        (call.tool, call.arguments, call.result.seq if call.result else None) for call in pair_calls(turns)
    ]


def test_an_id_that_repeats_means_the_latest_call_that_still_waits():
    assert answers(
        asking(1, ("x", "pay", {"n": 1})),
        result(2, "paid 1", "x", "pay"),
        asking(3, ("x", "pay", {"n": 2})),
        result(4, "paid 2", "x", "pay"),
    ) == [("pay", {"n": 1}, 2), ("pay", {"n": 2}, 4)]


def test_an_unanswered_call_does_not_swallow_the_result_of_a_later_one_with_its_id():
    assert answers(
        asking(1, ("x", "pay", {"n": 1})), asking(2, ("x", "pay", {"n": 2})), result(3, "paid", "x", "pay")
    ) == [("pay", {"n": 1}, None), ("pay", {"n": 2}, 3)]


def test_parallel_calls_with_one_id_are_answered_in_their_order_or_by_name():
    pair = asking(1, ("", "find", {"n": 1}), ("", "find", {"n": 2}))
    assert answers(pair, result(2, "one"), result(3, "two")) == [("find", {"n": 1}, 2), ("find", {"n": 2}, 3)]
    mixed = asking(1, ("x", "find", {}), ("x", "pay", {}))
    assert answers(mixed, result(2, "paid", "x", "pay"), result(3, "found", "x", "find")) == [
        ("find", {}, 3),
        ("pay", {}, 2),
    ]


def test_an_id_that_no_call_has_falls_back_to_the_name():
    assert answers(asking(1, ("a", "find", {}), ("b", "pay", {})), result(2, "paid", "unknown", "pay")) == [
        ("find", {}, None),
        ("pay", {}, 2),
    ]


def test_a_result_without_a_call_stands_for_one_with_unknown_arguments():
    assert answers(result(1, "Error: no", "x", "pay")) == [("pay", None, 1)]


def test_a_result_that_nothing_names_is_left_out():
    assert answers(result(1, "Error: no")) == []


def test_arguments_are_data_where_they_are_json_and_text_where_they_are_not():
    assert answers(
        asking(1, ("a", "f", '{"n": 1}'), ("b", "f", "{broken"), ("c", "f", ""), ("d", "f", None))
    ) == [("f", {"n": 1}, None), ("f", "{broken", None), ("f", {}, None), ("f", {}, None)]


def test_calls_that_ask_the_same_have_one_key_whatever_the_order_of_arguments():
    one, other = Call(1, "f", {"a": 1, "b": "1"}), Call(2, "f", {"b": "1", "a": 1})
    assert one.key == other.key
    assert one.key != Call(3, "f", {"a": "1", "b": "1"}).key
    assert one.key != Call(4, "g", {"a": 1, "b": "1"}).key


def test_arguments_that_nest_without_end_are_cut():
    deep: Any = "end"
    for _ in range(5_000):
        deep = [deep]
    assert pair_calls([asking(1, ("a", "f", deep), ("b", "f", "[" * 5_000))])[1].tool == "f"
