"""One hash for one turn, however its parts are spelled."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conversations.extraction.hashing import canonical_hash, turn_hash

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)


@given(
    role=st.sampled_from(["user", "assistant"]),
    text=st.text(),
    calls=st.lists(st.tuples(st.text(max_size=10), st.text(max_size=10), values).map(list), max_size=3),
    answers=st.text(max_size=5),
)
def test_a_turn_hashes_as_the_object_of_what_it_has(role: str, text: str, calls: list[Any], answers: str):
    turn = {"role": role, "content": text}
    turn |= {"calls": calls} if calls else {}
    turn |= {"answers": answers} if answers else {}
    assert turn_hash(role=role, text=text, calls=iter(calls), answers=answers) == canonical_hash(turn)


def test_a_result_that_is_json_hashes_as_the_value_that_it_is():
    spelled = turn_hash(role="tool", text='{"b": 2.0, "a": [1e3]}', answers="c1")
    assert spelled == turn_hash(role="tool", text='{"a":[1000],"b":2}', answers="c1")
    assert spelled == canonical_hash({"role": "tool", "content": {"a": [1000], "b": 2}, "answers": "c1"})
    assert turn_hash(role="user", text="{}") != turn_hash(role="user", text="{ }")
