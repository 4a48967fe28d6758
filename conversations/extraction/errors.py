"""Whether what a tool returned looks like an error."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_PARSED_CHARS = 100_000
MAX_HEAD_CHARS = 1_000

STARTS_LIKE_AN_ERROR = re.compile(
    r"""
    \s* [\[*<(`"']{0,3}
    (?:
        ERROR \b                                     # log lines
      | Traceback \b
      | (?i: error (?: \s+ [\w'"./-]+ ){0,4} \s* : )   # Error: …, Error executing tool: …
      | (?i: error \s* (?: $ | \n ) )
      | (?i: (?: error | failed | fatal | tool_use_error ) \s* [\]*>)`] )
      | (?i: (?: exception | fatal | panic | fatal\ error | unhandled\ exception ) \s* : )
      | (?i: (?: command | request | tool ) \s+ failed \b | failed\ to \b | failed \s* : )
      | (?: \w+ [.:]+ )* \w* (?: Error | Exception ) \s* (?: [:(] | $ | \n )   # ValueError: …
      | Exception \s+ in \b
      | (?: /bin/ | -)? (?: ba | z | da )? sh: .* (?: not\ found | No\ such\ file | denied )
      | HTTP (?: / \d (?: \. \d )? )? \s+ (?: error \s+ )? [45] \d \d \b
    )
    """,
    re.VERBOSE,
)
ERROR_FIELD = re.compile(
    r"""
    \s* \{ \s* ["'] (?i: error | errors | error_message ) ["'] \s* :
    (?! \s* (?: "\s*" | '\s*' | null\b | None\b | false\b | False\b | 0\b | \[\s*\] | \{\s*\} ) )
    """,
    re.VERBOSE,
)


def looks_like_error(text: str) -> bool:
    """Return whether a tool's text starts like an error, or is a JSON object that reports one."""
    head = text[:MAX_HEAD_CHARS]
    if STARTS_LIKE_AN_ERROR.match(head) or ERROR_FIELD.match(head):
        return True
    if text.lstrip()[:1] != "{" or len(text) > MAX_PARSED_CHARS:
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and reports_error(value)


def reports_error(value: dict[str, Any]) -> bool:
    """Return whether a JSON object says that something failed."""
    return (
        any(value.get(key) for key in ("error", "errors", "is_error", "isError"))
        or any(value.get(key) is False for key in ("success", "ok"))
        or value.get("status") in ("error", "failed", "failure")
    )
