"""What holds for any input whatsoever."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conversations.extraction import Extraction, extract, pydantic_ai
from conversations.extraction.calls import MAX_CALLS_CHARS
from conversations.extraction.content import PARTS as PARTS_OF_TEXT
from conversations.extraction.families import FAMILIES
from conversations.extraction.gemini import STEPS
from conversations.extraction.mistral import ENTRIES

PAYLOAD = base64.b64encode(Random(1).randbytes(900)).decode()
DATA_URL = f"data:image/png;base64,{PAYLOAD}"
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
ROLES = ["system", "user", "assistant", "tool", "function", "model", "human"]
ELEMENT_KEYS = {
    *(
        "content",
        "parts",
        "toolInvocations",
        "experimental_attachments",
        "tool_calls",
        "executed_tools",
        "images",
    ),
    *("choices", "candidates", "output", "outputs", "steps", "message", "data", "error", "body", "text"),
    *(
        "call_id",
        "arguments",
        "action",
        "result",
        "results",
        "tools",
        "status",
        "name",
        "instructions",
        "info",
    ),
}
PART_KEYS = {
    *("text", "thought", "thinking", "id", "name", "input", "tool_use_id", "is_error", "content", "source"),
    *("toolCallId", "toolName", "state", "output", "errorText", "toolInvocation", "approval", "url", "file"),
    *(
        "value",
        "tool_name",
        "kind",
        "stdout",
        "stderr",
        "return_code",
        "lines",
        "tool_references",
        "error_code",
        "args",
        "response",
    ),
    *("parts", "data", "bytes", "encrypted_content", "title", "mimeType", "fileUri", "message", "delta"),
}


def _own(field: str) -> list[str]:
    """The types or keys of parts that the families name."""
    return sorted({name.replace("*", "x") for family in FAMILIES for name in getattr(family, field)})


PART_KINDS = st.sampled_from(sorted(pydantic_ai.PARTS))
PART_TYPES_OF_ALL = st.sampled_from(sorted({*_own("parts"), *PARTS_OF_TEXT, *ENTRIES, *STEPS}))
ANY_PART = st.dictionaries(
    st.sampled_from(sorted({*PART_KEYS, *_own("keys")})), st.deferred(lambda: INSIDE), max_size=4
).flatmap(
    lambda part: (
        st.just(part)
        | PART_TYPES_OF_ALL.map(lambda kind: part | {"type": kind})
        | PART_KINDS.map(lambda kind: part | {"part_kind": kind})
    )
)
INSIDE: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["", "text", "Error: x", PAYLOAD, DATA_URL])
    | st.deferred(lambda: st.lists(ANY_PART, max_size=2))
    | st.deferred(lambda: ANY_PART)
)
ANY_ELEMENT = st.dictionaries(
    st.sampled_from(sorted({*ELEMENT_KEYS, *PART_KEYS})), INSIDE, max_size=4
).flatmap(
    lambda element: (
        st.sampled_from(ROLES).map(lambda role: element | {"role": role})
        | PART_TYPES_OF_ALL.map(lambda kind: element | {"type": kind})
        | st.just(element)
    )
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


@given(st.lists(ANY_ELEMENT, max_size=3), st.integers(0, 3))
def test_what_families_know_filled_with_anything_costs_no_sibling_and_leaves_no_payload(messages, position):
    messages.insert(position, SIBLING)
    extraction = extract(messages)
    check(messages, extraction)
    assert "a well-formed sibling" in [turn.content for turn in extraction.turns]
    for turn in extraction.turns:
        assert PAYLOAD[300:400] not in turn.content
        assert PAYLOAD[300:400] not in json.dumps(turn.tool_calls)


@given(st.sampled_from(sorted({*ELEMENT_KEYS, *PART_KEYS})), JSON, ANY_ELEMENT)
def test_any_json_in_any_field_is_accounted_for(key, value, element):
    messages = [element | {key: value}, SIBLING]
    check(messages, extract(messages))
