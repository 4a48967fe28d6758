"""JSON from outside: as the standard has it, each key once, and bounded in depth on every interpreter."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirix import strict_json
from mirix.text import clean_text

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)


def nested(depth: int) -> str:
    """Objects and lists in turn, `depth` of them in each other, beside a string full of brackets."""
    pairs = [('{"a": ', ', "b": "[[[{{{"}') if level % 2 else ("[", ", 1]") for level in range(depth)]
    return "".join(start for start, _ in pairs) + "0" + "".join(end for _, end in reversed(pairs))


KEYS = st.lists(st.text(), unique_by=clean_text)  # what becomes one key is refused


@given(
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner) | KEYS.flatmap(lambda keys: st.fixed_dictionaries(dict.fromkeys(keys, inner)))
        ),
        max_leaves=20,
    )
)
def test_what_json_writes_is_read_as_it_was(value):
    assert strict_json.loads(json.dumps(value)) == value


@pytest.mark.parametrize("depth", [1, 100, 500])
def test_up_to_500_levels_are_read(depth):
    assert strict_json.loads(nested(depth)) == json.loads(nested(depth))


@pytest.mark.parametrize("depth", [501, 5_000, 100_000])
def test_more_are_refused(depth):
    with pytest.raises(RecursionError):
        strict_json.loads(nested(depth))


def test_many_containers_side_by_side_are_no_depth():
    assert strict_json.loads(json.dumps([[{}]] * 2_000)) == [[{}]] * 2_000


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', '{"a": {"b": 1, "c": 2, "b": 1}}'])
def test_what_the_standard_does_not_know_is_refused(text):
    with pytest.raises(ValueError, match=r"is not JSON|stands twice in one object"):
        strict_json.loads(text)


@pytest.mark.parametrize("other", ["con\\u0000tent", "content\\u0000"])
def test_keys_that_only_cleaning_makes_one_are_refused(other):
    with pytest.raises(ValueError, match="the key 'content' stands twice in one object, in spellings"):
        strict_json.loads(f'{{"content": 1, "{other}": 2}}')


def test_spellings_of_one_letter_are_one_key():
    with pytest.raises(ValueError, match="stands twice"):
        strict_json.loads('{"\\u00e9": 1, "e\\u0301": 2}')
    assert strict_json.loads('{"\\u00e9": 1, "e": 2}') == {"\u00e9": 1, "e": 2}
