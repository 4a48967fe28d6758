"""Whether what a tool returned looks like an error."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_PARSED_CHARS = 100_000
MAX_HEAD_CHARS = 1_000

NOTHING = ("", "none", "null", "nil", "false", "no", "0", "n/a")
"""Words under which an object says that there is no error."""
EXIT_CODES = ("exit_code", "exitCode", "return_code", "returncode")

SAYS_NO_ERROR = re.compile(
    r"""
    \s* [\[*<(`"']{0,3} (?i:
        (?: error | failed | failure | fatal | exception ) s? [*`"']* \s* [:=] \s* (?:
            (?: none | null | nil | false | n/a ) \s* [.!;,)\]}'"*`]* \s* (?: $ | \n )
          | 0+ (?: \s* (?: $ | [\n.;,)] ) | \s+ \w+ \s* [:=] )     # Failed: 0 Passed: 3
        )
      | error \s+ (?:
            (?: rate | count | budget | margin | threshold | tolerance ) s? \b
          | (?: handling | recovery | correction | reporting | logging ) (?: \s+
                (?: guide s? | guideline s? | best | basics | tips | patterns? | strateg(?:y|ies) | overview
                  | tutorial | documentation | docs | in | with | and ) \b | \s* : )
        )
    )
    """,
    re.VERBOSE,
)
EXITED = re.compile(
    r"\s*(?:(?:Chunk ID|Wall time):[^\n]*\n){0,2}"
    r"(?:Process exited with code|[Ee]xit [Cc]ode:?) (?P<code>-?\d+)[ \t]*(?:$|[\n(])"
)
"""How shells of coding assistants begin what they give back."""

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
    (?! \s* (?: ["'] \s* (?i: none | null | nil | false | no | 0 | n/a )? \s* ["']
        | null\b | None\b | false\b | False\b | 0\b | \[\s*\] | \{\s*\} ) )
    """,
    re.VERBOSE,
)


def looks_like_error(text: str) -> bool:
    """Return whether a tool's text starts like an error, or is a JSON object that reports one."""
    head = text[:MAX_HEAD_CHARS]
    if STARTS_LIKE_AN_ERROR.match(head):
        return not SAYS_NO_ERROR.match(head)
    if ERROR_FIELD.match(head):
        return True
    if exited := EXITED.match(head):
        return int(exited["code"]) != 0
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
        any(_is_something(value.get(key)) for key in ("error", "errors", "is_error", "isError"))
        or any(truth(value.get(key)) is False for key in ("success", "ok"))
        or value.get("status") in ("error", "failed", "failure")
        or _failed_to_exit_well(value)
        or (isinstance(value.get("metadata"), dict) and _failed_to_exit_well(value["metadata"]))
    )


def truth(value: Any) -> bool | None:
    """Return what a field says that is true or false, also as text; None for anything else."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


def _is_something(value: Any) -> bool:
    return value.strip().lower() not in NOTHING if isinstance(value, str) else bool(value)


def _failed_to_exit_well(value: dict[str, Any]) -> bool:
    return any(type(value.get(key)) is int and value[key] != 0 for key in EXIT_CODES)
