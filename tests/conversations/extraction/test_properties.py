"""What holds for any input whatsoever."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conversations.extraction import Extraction, extract
from conversations.extraction.calls import MAX_CALLS_CHARS

TEXT = st.text(st.characters(exclude_categories=[])) | st.text()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=12,
)
KEYS = ["content", "tool_calls", "function_call", "tool_call_id", "tool_call_ids", "name", "id", "refusal"]
PART_TYPES = [
    "text",
    "image_url",
    "input_audio",
    "file",
    "refusal",
    "thinking",
    "document_url",
    "input_image",
]
PARTS = st.fixed_dictionaries(
    {"type": st.sampled_from(PART_TYPES) | JSON},
    optional=dict.fromkeys(("text", "image_url", "input_audio", "file", "refusal", "file_id"), JSON),
)
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "id": JSON,
        "function": JSON | st.fixed_dictionaries({"name": JSON, "arguments": JSON}),
        "name": JSON,
    },
)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "agent"])
        | JSON
    },
    optional=dict.fromkeys([*KEYS, "is_error", "error", "status", "audio"], JSON)
    | {"content": JSON | st.lists(PARTS, max_size=3), "tool_calls": JSON | st.lists(CALLS, max_size=3)},
)
SIBLING = {"role": "user", "content": "a well-formed sibling"}


def check(messages: Any, extraction: Extraction) -> None:
    count = len(messages) if isinstance(messages, list) else 1
    told = {turn.index for turn in extraction.turns}
    skipped = [item.index for item in extraction.skipped]
    assert sorted([*told, *skipped]) == list(range(count))
    assert not [item.reason for item in extraction.skipped if item.reason.startswith("reading it failed")]
    for turn in extraction.turns:
        assert turn.content.strip()
        assert len(turn.content) <= 65_536
        assert "\x00" not in turn.content
        turn.content.encode()  # no lone surrogate is left
        assert len(turn.tool_name) <= 256
        assert len(turn.tool_call_id) <= 256
        assert len(turn.message_id) <= 256
        assert len(str(turn.tool_calls)) <= 2 * MAX_CALLS_CHARS


@given(JSON)
def test_any_json_is_accounted_for_message_by_message(messages):
    check(messages, extract(messages))


@given(st.lists(MESSAGES | JSON, max_size=5), st.integers(0, 5))
def test_a_well_formed_sibling_is_never_lost(messages, position):
    messages.insert(position, SIBLING)
    extraction = extract(messages)
    check(messages, extraction)
    assert "a well-formed sibling" in [turn.content for turn in extraction.turns]


@given(st.lists(MESSAGES, max_size=5))
def test_the_same_messages_give_the_same_turns(messages):
    assert repr(extract(messages)) == repr(extract(messages))
