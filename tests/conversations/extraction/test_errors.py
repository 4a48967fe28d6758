"""Which results of tools look like errors."""

from __future__ import annotations

import pytest

from conversations.extraction import extract
from conversations.extraction.errors import looks_like_error


@pytest.mark.parametrize(
    "text",
    [
        "Error: flight HAT030 not available",
        "error: no such file",
        "\n  ERROR connection refused",
        "Error",
        "Error executing tool search: timed out",
        "[error] exit 1",
        "**Error:** no access",
        "Traceback (most recent call last):\n  File …",
        "Exception: boom",
        "Exception in thread main",
        "ValueError: bad literal",
        "requests.exceptions.ConnectionError: refused",
        "java.lang.NullPointerException: null",
        "fatal: not a git repository",
        "panic: runtime error",
        "Failed to open the file",
        "Command failed with exit code 1",
        "bash: line 1: foo: command not found",
        "/bin/sh: 1: foo: not found",
        "HTTP 404 Not Found",
        "HTTP/1.1 503 Service Unavailable",
        '{"error": "no such order"}',
        '{ "errors": ["a"] }',
        "{'error': 'no such order'}",
        '{"id": 1, "error": {"code": 5}}',
        '{"success": false, "message": "no"}',
        '{"status": "error"}',
        '{"isError": true}',
        '{"error": "cut off in the mid',
        '{"output":"x","metadata":{"exit_code":1,"duration_seconds":0.1}}',
        '{"stdout": "x", "returncode": -9}',
        "Exit code: 1\nWall time: 0 seconds\nOutput:\nx",
        "Exit code 127",
        "Chunk ID: ab\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nx",
        '{"success": "false"}',
        "Error: none of the tests passed",
        "Error: no",
        "Error: no such file",
        "Error: 0 rows could be written",
        "Error handling request: connection refused",
        "Failed: 3 Passed: 0",
    ],
)
def test_errors(text):
    assert looks_like_error(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Transfer successful",
        "0 errors found",
        "Errors: none of the tests failed"[7:],
        "Error handling guide for beginners",
        "ErrorBoundary renders its children",
        "The command printed: Error: x",
        "failover is done",
        "bash is a shell",
        "HTTP 200 OK",
        "HTTP 301 Moved",
        '{"error": "", "response": "[]"}',
        '{"error":null}',
        '{"error": false, "errors": []}',
        '{"error": 0}',
        "{'error': None}",
        '{"status": "ok", "success": true}',
        '{"message": "error"}',
        '["error"]',
        "{not json",
        "Error: none",
        "Error: None.\nOutput: 5",
        "error = null",
        "Failed: 0 Passed: 3",
        "Failed: 0, Passed: 3",
        "ERROR: 0",
        "ERROR rate is 0",
        "Error handling guide: how to",
        "Error handling: a chapter",
        '{"error": "none", "rows": 1}',
        '{"rows": 1, "is_error": "false"}',
        '{"output":"x","metadata":{"exit_code":0}}',
        "Exit code: 0\nWall time: 0 seconds\nOutput:\nError: x",
        "Exit code 1 stands for no match",
    ],
)
def test_no_errors(text):
    assert not looks_like_error(text)


@pytest.mark.parametrize(
    "text", ["{" * 50_000, '{"a":' * 5_000, "error " * 50_000, "a." * 50_000, "e" * 90_000]
)
def test_hostile_text_is_judged_at_once(text):
    assert looks_like_error(text) is False


@pytest.mark.parametrize("word", [True, "true", "True", False, "false"])
def test_a_shapes_own_word_counts_as_text_too(word):
    result = {"tool_use_id": "t", "content": "Error: x" if word in (False, "false") else "x"}
    messages = [
        {"role": "tool", "is_error": word} | result,
        {"role": "user", "content": [{"type": "tool_result", "is_error": word} | result]},
        {"type": "agent.tool_result", "is_error": word} | result,
        {"type": "function_call_output", "call_id": "t", "output": result["content"], "is_error": word},
        {"role": "tool", "content": [{"type": "tool-result", "result": result["content"], "isError": word}]},
    ]
    expected = word not in (False, "false")
    assert [turn.is_error for turn in extract(messages).turns] == [expected] * len(messages)


def test_an_exit_code_of_codex_decides():
    for output in ({"output": "x", "metadata": {"exit_code": 1}}, "Exit code: 1\nWall time: 0\nOutput:\nx"):
        item = {"type": "function_call_output", "call_id": "a", "output": output}
        assert extract([item]).turns[0].is_error
