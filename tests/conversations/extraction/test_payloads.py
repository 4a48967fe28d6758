"""Base64 where nothing announces it: replaced in text, JSON and calls; ordinary text is left alone."""

from __future__ import annotations

import base64
import textwrap
from random import Random

import pytest

from conversations.extraction import extract
from conversations.extraction.payloads import plain, scrub
from tests.conversations.extraction.single import call, only

PAYLOAD = base64.b64encode(Random(1).randbytes(3_000)).decode()
URL_SAFE = base64.urlsafe_b64encode(Random(1).randbytes(3_000)).decode()
ZEROS = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(3_000)).decode()
LINES = "\n".join(textwrap.wrap(PAYLOAD, 76))


@pytest.mark.parametrize("payload", [PAYLOAD, URL_SAFE, ZEROS])
@pytest.mark.parametrize("text", ["{}", "before {} after", '{{"file": "{}"}}', "see:{}."])
def test_a_long_run_is_replaced_wherever_it_stands(payload, text):
    assert scrub(text.format(payload)) == text.format("[data: 2.9 KB]")


def test_a_data_url_in_text_keeps_its_type():
    text = f"![chart](data:image/png;base64,{PAYLOAD}) and data:application/pdf;base64,{PAYLOAD}"
    assert scrub(text) == "![chart]([image: image/png, 2.9 KB]) and [file: application/pdf, 2.9 KB]"


@pytest.mark.parametrize("lines", [LINES, LINES.replace("\n", "\r\n"), LINES.replace("\n", "\\n")])
def test_base64_in_lines(lines):
    assert scrub(f"-----\n{lines}\n-----").startswith("-----\n[data: ")
    assert PAYLOAD[100:150] not in scrub(lines)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 5_000,
        "0123456789abcdef" * 100,
        "word " * 1_000,
        "/usr/lib/python3/site-packages/" * 10,
        "a_very_long_name_in_snake_case_" * 50,
        "Übermut" * 100,
        "data:image/png;base64,",
        "",
    ],
)
def test_what_only_looks_long_is_left_alone(text):
    assert scrub(text) == text


def test_signatures_and_what_is_encrypted_go_from_data():
    sealed = {"signature": "Ab3+" * 20, "encrypted_content": "E" * 40, "cache_control": {"type": "ephemeral"}}
    value = {"a": [sealed | {"title": "T", "data": "A" * 400}]}
    assert plain(value) == {"a": [{"title": "T", "data": "[data: 300 B]"}]}


def test_fields_of_these_names_that_hold_words_stay():
    own = {
        "signature": "Best regards, Rita",
        "fingerprint": "ab",
        "encrypted_note": "hello",
        "cache_control": "no-store",
    }
    assert plain(own) == own
    turn = only({"role": "assistant", "tool_calls": [call("sign", own)]})
    assert turn.tool_calls[0]["arguments"] == own


@pytest.mark.parametrize(
    "text", ["a" * 399 + "-", "data:" * 20_000, "data:a/b;" + "a=;" * 30_000, "A\n" * 50_000]
)
def test_hostile_text_is_read_at_once(text):
    assert scrub(text * 5)


def test_in_the_result_of_a_tool_and_in_what_it_was_called_with():
    result = {"role": "tool", "name": "shot", "content": {"image": PAYLOAD, "size": [1, 2]}}
    assert only(result).content == '[shot] {"image": "[data: 2.9 KB]", "size": [1, 2]}'
    for arguments in ({"image": PAYLOAD}, f'{{"image": "{PAYLOAD}"}}'):
        turn = only({"role": "assistant", "tool_calls": [call("save", arguments)]})
        assert turn.content == '[call save] {"image": "[data: 2.9 KB]"}'
        assert turn.tool_calls[0]["arguments"] == {"image": "[data: 2.9 KB]"}


@pytest.mark.parametrize(
    ("content", "expected", "count"),
    [
        ("<think>hm</think>\n\nFour.", "Four.", 1),
        ("\n<thinking>a</thinking><think>b</think>Four.", "Four.", 1),
        ("Write <think> first.", "Write <think> first.", 0),
        ("<thinker>Four.</thinker>", "<thinker>Four.</thinker>", 0),
    ],
)
def test_thoughts_written_before_an_answer_are_left_out(content, expected, count):
    extraction = extract([{"role": "assistant", "content": content}])
    assert extraction.turns[0].content == expected
    assert extraction.omitted == ({"reasoning": count} if count else {})


def test_thoughts_that_never_end_are_no_answer():
    assert extract([{"role": "assistant", "content": "<think>hm"}]).skipped[0].reason == "reasoning only"
    assert extract([{"role": "user", "content": "<think>hm"}]).turns[0].content == "<think>hm"
    many = extract([{"role": "assistant", "content": "<think></think>" * 100_000 + "Four."}])
    assert many.turns[0].content == "Four."
