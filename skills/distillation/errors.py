"""Which tool results are failures, and what they say. Pure.

What intake takes for an error is one; besides, this module knows beginnings that only a reader of whole
results can tell: validation reports, refused edits, a shell's complaint, a traceback after some output.
A result that merely talks about errors (a search hit, a manual) is none.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from conversations.extraction.errors import looks_like_error
from skills.distillation.types import TranscriptTurn

MAX_QUOTE_CHARS = 512
_HEAD_CHARS = 4_000
_LONG_RESULT = 200_000

_FAILING_LINE = re.compile(
    r"""^\W{0,4}(?:
        \d+\ validation\ errors?\b
      | (?:your|the)\ [\w\s]{0,40}\bintroduced\ (?:a\ )?(?:new\ )?syntax\ errors?
      | (?:command|process|script)\ (?:failed|exited|terminated)\ with\ (?:exit\ )?(?:code|status)\s*-?[1-9]
      | exit\ (?:code|status)\s*:?\s*-?[1-9]\d*\b
      | [45]\d\d\ (?:client|server|bad|unauthorized|forbidden|not|internal|conflict|too|service|gateway)\b
      | (?:unable\ to|could\ not)\ \w
      | npm\ err!\ | make(?:\[\d+\])?:\ \*\*\* | error\[\w+\]: | E:\ \w
      | (?:fehler|erreur|errore|fout|ошибка|错误|錯誤|エラー|오류)\s*[:：]
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
_DETAIL = re.compile(r"\b(?:[A-Z]\d{3} )?[A-Z]\w*(?:Error|Exception): .*")
_BARE_PREFIX = re.compile(
    r"^\W{0,4}(?:error|fatal|failure|exception|npm err"
    r"|fehler|erreur|errore|fout|ошибка|错误|錯誤|エラー|오류)\s*[:!：]\s*(?=\S)",
    re.IGNORECASE,
)
_EXPLAINING = (
    "message",
    "error_message",
    "detail",
    "details",
    "reason",
    "description",
    "title",
    "msg",
    "error",
)
_EXPLAINED = re.compile(r"""["'](?:error|errors|message|detail|reason)["']\s*:\s*["']([^"']{3,300})["']""")
_FAILED_STATES = {"error", "failed", "failure", "fail", "rejected", "denied"}
_EMPTY: tuple[Any, ...] = (None, "", False, 0, [], {}, "null", "none", "None")
_SILENT = "the call failed without a reason"


@dataclass(frozen=True)
class Failure:
    """What a failed tool result says."""

    message: str
    """One line for people: without a bare `Error:` in front; never blank."""
    quote: str
    """The words of the turn that say so, verbatim, at most 512 characters."""


def body(turn: TranscriptTurn) -> str:
    """Return a tool turn's own text, without the `[tool_name] ` that intake puts in front of it."""
    prefix = f"[{turn.tool_name}]"
    return turn.content.removeprefix(prefix).removeprefix(" ") if turn.tool_name else turn.content


def failure(turn: TranscriptTurn) -> Failure | None:
    """Return what a tool turn complains about, or None where it does not look like a failure."""
    if turn.role != "tool":
        return None
    text = body(turn)
    reported = _reported(text)
    if reported is not None:
        return _failure(reported, _quote(reported, text), turn)
    line = _failing_line(text)
    if line is None and (turn.is_error or looks_like_error(text)):
        found = _EXPLAINED.search(text[:_HEAD_CHARS]) if text.lstrip().startswith("{") else None
        line = found.group(1) if found else next((part for part in text.splitlines() if part.strip()), "")
    if line is None:
        return None
    return _failure(_explained(line.strip(), text), line.strip(), turn)


def _failure(message: str, quote: str, turn: TranscriptTurn) -> Failure:
    message = _BARE_PREFIX.sub("", " ".join(message.split()), count=1)
    return Failure(message or _SILENT, (quote or turn.content)[:MAX_QUOTE_CHARS])


def _failing_line(text: str) -> str | None:
    """Return the line that carries the complaint: the first of the text, or what a traceback ends in."""
    if _TRACEBACK.search(text, 0, _HEAD_CHARS):
        raised = [line for line in text.splitlines() if _RAISED.match(line)]
        return raised[-1] if raised else text.strip().splitlines()[0]
    first = next((line for line in text[:_HEAD_CHARS].splitlines() if line.strip()), "")
    if _FAILING_LINE.match(first.lstrip()) or _SHELL_LINE.match(first.strip()):
        return first
    return None


def _explained(line: str, text: str) -> str:
    """Return a complaint with the detail that follows it, where the line itself only announces one."""
    announces = line.endswith(":") or _FAILING_LINE.match(line)
    if not announces:
        return line
    rest = text[text.find(line) + len(line) :][:_HEAD_CHARS]
    reasons = re.findall(r'"msg":\s*"([^"]{1,120})"', rest) or _DETAIL.findall(rest)[:1]
    if not reasons:
        reasons = [part.strip() for part in rest.splitlines() if re.search(r"\w\w", part)][:2]
    first_sentence = re.split(r"(?<=[^.]\.)\s", line, maxsplit=1)[0].rstrip(":. ")
    return f"{first_sentence}: {', '.join(dict.fromkeys(reasons))}" if reasons else line


def _reported(text: str) -> str | None:
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
        if value.get(key) not in _EMPTY:
            return _words(value[key]) or _words(value)
    state, code = value.get("status"), value.get("status_code", value.get("statusCode", value.get("status")))
    failed = (
        value.get("isError") is True
        or value.get("is_error") is True
        or value.get("success") is False
        or value.get("ok") is False
        or (isinstance(state, str) and state.lower() in _FAILED_STATES)
        or (type(code) is int and 400 <= code < 600)
    )
    return _words(value) if failed else None


def _words(value: Any, depth: int = 0) -> str:
    """Return the sentence inside an error value; "" where there is none."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and value and depth < 3:
        return _words(value[0], depth + 1)
    if isinstance(value, dict) and depth < 3:
        for key in _EXPLAINING:
            if words := _words(value.get(key), depth + 1):
                return words
    return ""


def _quote(message: str, text: str) -> str:
    """Return the complaint as it stands in a JSON text, escaped as it is there; else the text's beginning."""
    for words in (message, json.dumps(message)[1:-1], json.dumps(message, ensure_ascii=False)[1:-1]):
        if words and words in text:
            return words
    return text.strip()
