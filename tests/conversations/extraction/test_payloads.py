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


def lines_of(width, between, payload=PAYLOAD):
    return between.join(payload[at : at + width] for at in range(0, len(payload), width))


@pytest.mark.parametrize(
    "payload",
    [
        PAYLOAD.replace("/", "\\/"),
        PAYLOAD.replace("/", "\\\\\\/"),
        PAYLOAD.replace("+", "\\u002b").replace("/", "\\u002F"),
        PAYLOAD.replace("+", "%2B").replace("/", "%2f"),
        lines_of(64, "\n    "),
        lines_of(76, "\r\n\t"),
        lines_of(48, "\n"),
        lines_of(64, "\n> > "),
        lines_of(64, "\\r\\n"),
        lines_of(64, "\\\\n"),
        lines_of(64, " "),
        lines_of(76, "\n", PAYLOAD[:3996] + "QUJDREVGRw=="),
        lines_of(64, "\n", URL_SAFE),
    ],
)
def test_base64_in_odd_forms(payload):
    expected = "[data: 2.9 KB]"
    assert scrub(payload) == expected
    assert scrub(f'see {{"file": "{payload}"}} and go on') == f'see {{"file": "{expected}"}} and go on'
    assert scrub(f"{payload}\nDone, he said") == f"{expected}\nDone, he said"
    assert scrub(f"data:image/png;base64,{payload}.") == "[image: image/png, 2.9 KB]."


def test_a_certificate():
    inside = PAYLOAD[:1280]
    for between in ("\n", "\\n", " "):
        text = between.join(["-----BEGIN KEY-----", *textwrap.wrap(inside, 64), "-----END KEY-----"])
        assert scrub(text) == between.join(["-----BEGIN KEY-----", "[data: 960 B]", "-----END KEY-----"])
    assert scrub(f"-----BEGIN KEY-----{inside}-----END KEY-----") == (
        "-----BEGIN KEY-----[data: 960 B]-----END KEY-----"
    )


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize(
    ("payload", "size"),
    [
        (PNG, 70),
        (PAYLOAD[:120], 90),
        (PAYLOAD[:300], 225),
        (base64.b64encode(b"Dear Rita, the meeting is at noon. " * 3).decode(), 105),
        (base64.b64encode(bytes(60) + bytes(range(60))).decode(), 120),
        (base64.b64encode("Bring the two keys, Rita. ".encode("utf-16-le") * 3).decode(), 156),
    ],
)
def test_a_short_run_in_text_that_surely_is_base64(payload, size):
    assert scrub(f"It is {payload}, he said.") == f"It is [data: {size} B], he said."


@pytest.mark.parametrize(
    "text",
    [
        "CamelCaseIdentifiers_" + "".join(f"word{n}Ab_" for n in range(70)),
        "".join(f"TheNameOfTheThing{n}InTheList" for n in range(30)),
        "/".join(f"Users/Rita2/Documents/Letters/Part{n}" for n in range(30)),
        "-".join(f"Who-Ate-My-Cake-{n}-Times" for n in range(30)),
        "".join(f"{a}{b}{c}" for a in "ABC" for b in "abcdefghijklmnop" for c in range(10)),
        "The_Quick_Brown_Fox_Jumps_Over_The_Lazy_Dog_123_Times_A_Day_And_Never_Gets_Tired_Of_It_" * 4,
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" * 8,
        "\n".join(["SomeVeryLongNameOfAClassInJava2EnterpriseEditionBeans"] * 20),
        "\n".join(["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"] * 20),
        f"integrity sha512-{PAYLOAD[:86]}==",
        f"key {PAYLOAD[:44]} and key {PAYLOAD[44:88]}",
    ],
)
def test_identifiers_paths_and_keys_are_no_base64(text):
    assert scrub(text) == text
    assert plain({"text": text, "list": [text]}) == {"text": text, "list": [text]}


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
    sealed = {"signature": PAYLOAD[:200], "encrypted_content": PAYLOAD[:80], "fingerprint": URL_SAFE[:43]}
    value = {
        "a": [
            sealed | {"title": "T", "data": "A" * 400},
            {"thoughtSignature": URL_SAFE[:200], "cache_control": {"type": "ephemeral"}, "text": "T"},
            {"cacheControl": {"type": "ephemeral", "ttl": "1h"}},
        ]
    }
    assert plain(value) == {"a": [{"title": "T", "data": "[data: 300 B]"}, {"text": "T"}, {}]}


OWN_FIELDS = {
    "signature": "Best regards, Rita",
    "thought_signature": "Best-regards-from-Rita-Levi-on-the-2nd-floor-of-building-B",
    "fingerprint": "ab",
    "encrypted_note": "hello",
    "encrypted_disk": "volumes-of-the-backup-server-in-the-second-cellar",
    "encrypted_path": "Volumes/BackupServer2/SecondCellar/Shelf14/DiskNumber7/Keys",
    "encrypted_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "cache_control": "no-store",
    "cacheControl": {"maxAge": 60},
}


def test_fields_of_these_names_that_are_a_tool_s_own_stay():
    assert plain(OWN_FIELDS) == OWN_FIELDS
    ours = {"cache_control": {"type": "ephemeral", "scope": "this shop"}}
    assert plain(ours) == ours
    turn = only({"role": "assistant", "tool_calls": [call("sign", OWN_FIELDS)]})
    assert turn.tool_calls[0]["arguments"] == OWN_FIELDS
    part = {"functionResponse": {"name": "who", "response": {"signature": "Rita Levi"}}}
    assert only({"role": "user", "parts": [part]}).content == '[who] {"signature": "Rita Levi"}'


def test_a_result_with_nothing_but_such_a_field_has_its_words():
    result = {"type": "tool_result", "tool_use_id": "t", "content": {"encrypted_note": "hello"}}
    assert only({"role": "user", "content": [result]}).content == '[tool] {"encrypted_note": "hello"}'


def test_data_fields_keep_words_and_lose_what_is_encoded():
    words = {"data": "\n".join(["Anna", "Bert", "Carla2"] * 20), "blob": "some-Long_slug-With-2-words-" * 10}
    assert plain(words) == words
    assert plain({"bytes": "00ff" * 60, "data": PAYLOAD[:200]}) == {
        "bytes": "[data: 180 B]",
        "data": "[data: 150 B]",
    }


@pytest.mark.parametrize(
    "text",
    [
        "a" * 399 + "-",
        "data:" * 20_000,
        "data:a/b;" + "a=;" * 30_000,
        "A\n" * 50_000,
        "\\" * 100_000 + "\\/",
        "\\/" * 50_000,
        f"{'Aa1' * 16}\n" * 5_000,
        f"{'Aa1' * 16} " * 5_000,
    ],
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
