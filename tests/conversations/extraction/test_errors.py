"""Which results of tools look like errors."""

from __future__ import annotations

import pytest

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
    ],
)
def test_no_errors(text):
    assert not looks_like_error(text)


@pytest.mark.parametrize(
    "text", ["{" * 50_000, '{"a":' * 5_000, "error " * 50_000, "a." * 50_000, "e" * 90_000]
)
def test_hostile_text_is_judged_at_once(text):
    assert looks_like_error(text) is False
