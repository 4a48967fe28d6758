"""What counts as a failed result, and what it says."""

from __future__ import annotations

import json

import pytest

from skills.distillation.errors import failure
from skills.distillation.types import TranscriptTurn


def tool(text: str, name: str = "pay", *, is_error: bool = False) -> TranscriptTurn:
    content = f"[{name}] {text}" if name else text
    return TranscriptTurn(seq=1, role="tool", content=content, tool_name=name, is_error=is_error)


@pytest.mark.parametrize(
    ("text", "message", "quote"),
    [
        ("Error: card expired", "card expired", "Error: card expired"),
        ("ERROR - no route", "ERROR - no route", "ERROR - no route"),
        (
            "ValueError: n must be positive",
            "ValueError: n must be positive",
            "ValueError: n must be positive",
        ),
        (
            "running\nTraceback (most recent call last):\n  File 'a.py', line 1\nKeyError: 'id'\n",
            "KeyError: 'id'",
            "KeyError: 'id'",
        ),
        ('{"error": "no such user"}', "no such user", "no such user"),
        ('{"error": {"code": 7, "message": "quota used up"}}', "quota used up", "quota used up"),
        ('{"success": false, "message": "tag is taken"}', "tag is taken", "tag is taken"),
        ('{"isError": true, "detail": "timeout"}', "timeout", "timeout"),
        ('{"status": 404, "title": "Not Found"}', "Not Found", "Not Found"),
        ('{"errors": [{"msg": "too long"}]}', "too long", "too long"),
        ('{"error": "line one\\nline two"}', "line one line two", "line one\\nline two"),
        ('{"success": false}', "the call failed without a reason", '{"success": false}'),
        ("cat: notes.txt: No such file or directory", *["cat: notes.txt: No such file or directory"] * 2),
        (
            "1 validation error for Order\namount\n  Input should be a valid integer",
            "1 validation error for Order: amount, Input should be a valid integer",
            "1 validation error for Order",
        ),
        (
            "Your edit has introduced new syntax error(s). Read this.\n- E999 IndentationError: unexpected",
            "Your edit has introduced new syntax error(s): E999 IndentationError: unexpected",
            "Your edit has introduced new syntax error(s). Read this.",
        ),
    ],
)
def test_a_failure_says_what_is_wrong_and_quotes_its_own_words(text, message, quote):
    found = failure(tool(text))
    assert found is not None
    assert (found.message, found.quote) == (message, quote)
    assert found.quote in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "paid",
        "Handling errors in Rust: a guide",
        "No errors were found.",
        '{"error": "", "response": "ok"}',
        '{"error": null, "success": true}',
        '{"status": "ok", "errors": []}',
        '{"status": 200}',
        '[{"error": "an entry of a list of log lines"}]',
        "404 orders were found",
        "The last deployment failed: see ticket 7",
    ],
)
def test_a_result_that_only_talks_about_errors_is_none(text):
    assert failure(tool(text)) is None


def test_the_callers_own_flag_makes_anything_a_failure():
    found = failure(tool("The card was declined.\nTry another one.", is_error=True))
    assert found is not None
    assert (found.message, found.quote) == ("The card was declined.", "The card was declined.")


def test_a_flagged_result_without_words_quotes_its_turn():
    found = failure(tool("", is_error=True))
    assert found is not None
    assert (found.message, found.quote) == ("the call failed without a reason", "[pay] ")


def test_only_tool_turns_fail():
    turn = TranscriptTurn(seq=1, role="user", content="Error: it does not work")
    assert failure(turn) is None


def test_quotes_are_at_most_512_characters():
    found = failure(tool(json.dumps({"error": "x" * 2_000})))
    assert found is not None
    assert found.quote == "x" * 512
