"""Which tool results are failures, and what they say. Pure.

A caller's own flag counts first; without one, only unmistakable beginnings of a text or fields of a JSON
object do. A result that merely talks about errors (a search hit, a manual) is not one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from skills.distillation.types import TranscriptTurn

MAX_QUOTE_CHARS = 512
_LONG_RESULT = 200_000

_FAILING_LINE = re.compile(
    r"""^\W{0,4}(?:
        (?:error|fatal(?:\ error)?|exception|panic|failure|failed|denied|rejected)
            \s*(?:\[[^\]]{0,60}\]|\([^)]{0,60}\)|code\s*-?\d+|-?\d+)?\s*:
      | (?:error|fatal)!
      | [\w.]*(?:Error|Exception|Fault|Failure)(?:\s*\[[^\]]{0,60}\]|\s*\([^)]{0,60}\))?:\s
      | (?:failed|unable)\ to\ \w
      | could\ not\ \w+\ (?:the|a|an|to|any)?\b
      | traceback\ \(most\ recent\ call\ last\)
      | \d+\ validation\ errors?\b
      | (?:http(?:/\d(?:\.\d)?)?\s*(?:status|error|code)?\s*:?\s*)[45]\d\d\b
      | [45]\d\d\ (?:client|server|bad|unauthorized|forbidden|not|internal|conflict|too|service|gateway)\b
      | (?:your|the)\ [\w\s]{0,40}\bintroduced\ (?:a\ )?(?:new\ )?syntax\ errors?
      | (?:command|process|script)\ (?:failed|exited|terminated)\ with\ (?:exit\ )?(?:code|status)\s*-?[1-9]
      | exit\ (?:code|status)\s*:?\s*-?[1-9]\d*\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_SHELL_LINE = re.compile(
    r"^[\w./-]+(?::[\w ./-]+){0,3}:\s.*"
    r"(?:command not found|No such file or directory|Permission denied|not recognized|Is a directory)\b"
)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE)
_RAISED = re.compile(
    r"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)|[\w.]+\.[A-Z]\w+)\b(?::.*)?$"
)
_BARE_PREFIX = re.compile(r"^\W{0,4}(?:error|fatal|failure|exception)\s*[:!]\s*(?=\S)", re.IGNORECASE)
_EXPLAINING = (
    "message",
    "error_message",
    "detail",
    "details",
    "reason",
    "description",
    "title",
    "error",
    "msg",
)
_SILENT = "the call failed without a reason"
_FAILED_STATES = {"error", "failed", "failure", "fail", "rejected", "denied"}


@dataclass(frozen=True)
class Failure:
    """What a failed tool result says."""

    message: str
    """One line for people: without a bare `Error:` in front; never blank."""
    quote: str
    """The words of the turn that say so, verbatim, at most 512 characters."""


def body(turn: TranscriptTurn) -> str:
    """Return a tool turn's own text, without the `[tool_name] ` that intake puts in front of it."""
    prefix = f"[{turn.tool_name}] "
    return turn.content.removeprefix(prefix) if turn.tool_name else turn.content


def failure(turn: TranscriptTurn) -> Failure | None:
    """Return what a tool turn complains about, or None where it does not look like a failure."""
    if turn.role != "tool":
        return None
    text = body(turn)
    message = _json_failure(text)
    if message is not None:
        return Failure(message or _SILENT, _quote(message, text))
    line = _failing_line(text)
    if line is None and turn.is_error:
        line = next((part for part in text.splitlines() if part.strip()), "")
    if line is None:
        return None
    line = line.strip()
    message = _BARE_PREFIX.sub("", line, count=1)
    return Failure(
        message or _SILENT,
        line[:MAX_QUOTE_CHARS] or turn.content[:MAX_QUOTE_CHARS],
    )


def _failing_line(text: str) -> str | None:
    """Return the line that carries the complaint: the first of the text, or what a traceback ends in."""
    if _TRACEBACK.search(text, 0, 4_000):
        raised = [line for line in text.splitlines() if _RAISED.match(line)]
        return raised[-1] if raised else text.strip().splitlines()[0]
    lines = (line for line in text[:4_000].splitlines() if line.strip())
    first = next(lines, "")
    if _FAILING_LINE.match(first.lstrip()) or _SHELL_LINE.match(first.strip()):
        # `2 validation errors:` alone says little; keep the line, its detail follows in the quote's turn.
        return first
    return None


def _json_failure(text: str) -> str | None:
    """Return the complaint of a JSON object that reports a failure ("" without words), else None."""
    stripped = text.strip()
    if not stripped.startswith("{") or len(stripped) > _LONG_RESULT:
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return _object_failure(value) if isinstance(value, dict) else None


def _object_failure(value: dict[str, Any]) -> str | None:
    for key in ("error", "errors", "exception"):
        if value.get(key) not in (None, "", False, 0, [], {}, "null", "none", "None"):
            return _words(value[key]) or _words(value)
    flagged = value.get("isError") is True or value.get("is_error") is True
    refused = value.get("success") is False or value.get("ok") is False
    state = value.get("status")
    failed_state = isinstance(state, str) and state.lower() in _FAILED_STATES
    code = next((value[key] for key in ("status", "status_code", "statusCode") if key in value), None)
    failed_code = isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600
    if flagged or refused or failed_state or failed_code:
        return _words(value)
    return None


def _words(value: Any, depth: int = 0) -> str:
    """Return the sentence inside an error value; "" where there is none."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list) and value and depth < 3:
        return _words(value[0], depth + 1)
    if isinstance(value, dict) and depth < 3:
        for key in _EXPLAINING:
            if words := _words(value.get(key), depth + 1):
                return words
    return ""


def _quote(message: str, text: str) -> str:
    """Return the complaint as it stands in a JSON text; where it is escaped there, the text's beginning."""
    if message and message in text:
        return message[:MAX_QUOTE_CHARS].strip()
    return text.strip()[:MAX_QUOTE_CHARS].strip()
