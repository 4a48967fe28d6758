"""Examples as a headed section of Markdown, and back without a loss. Pure.

    ## Examples

    ### Example 1

    - **input**: Refund order 17.
    - **output**: {"refunded": true}

A value that is a plain line stands as it is, every other one as JSON; keys are sorted, as no order of theirs
is stored.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mirix.text import HIDDEN

HEADING = "## Examples"
TITLE = re.compile(r"### Example [0-9]+")
PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_ .-]{0,63}")
BULLET = re.compile(
    rf'- (?:\*\*(?:(?P<key>{PLAIN_KEY.pattern})|(?P<json_key>"(?:[^"\\]|\\.)*"))\*\*: )?(?P<value>.+)'
)
# JSON, or what a reader of Markdown could take for a key.
SPECIAL_START = re.compile(r"[\[{\"*]|-?[0-9]|(?:true|false|null)\Z")
UNSAFE = re.compile(rf"{HIDDEN.pattern}|[\r\n\x85\ud800-\udfff]")


def render(examples: list[Any]) -> str:
    """Return the section for the end of a body, "" for none."""
    if not examples:
        return ""
    parts = ["", HEADING]
    for number, example in enumerate(examples, start=1):
        parts += ["", f"### Example {number}", ""]
        if isinstance(example, dict):
            parts += [f"- **{_key(key)}**: {_inline(example[key])}" for key in sorted(example)] or ["- {}"]
        else:
            parts.append(f"- {_inline(example)}")
    return "\n".join([*parts, ""])


def take(body: str) -> tuple[str, list[Any]] | None:
    """Return the body without its last section of examples, and these; None without one as we write."""
    marker = f"\n{HEADING}\n"
    at = body.rfind(marker)
    if at < 0:
        return None
    try:
        examples = _examples(body[at + len(marker) :].split("\n"))
    except ValueError:
        return None
    return (body[:at], examples) if examples else None


def _examples(lines: list[str]) -> list[Any]:
    groups: list[list[str]] = []
    for line in lines:
        if TITLE.fullmatch(line):
            groups.append([])
        elif line.strip():
            if not groups:
                raise ValueError("text before the first example")
            groups[-1].append(line)
    return [_example(group) for group in groups]


def _example(lines: list[str]) -> Any:
    found: dict[str, Any] = {}
    for line in lines:
        match = BULLET.fullmatch(line)
        if match is None:
            raise ValueError("not a line of an example")
        value = _read(match["value"])
        if match["key"] is None and match["json_key"] is None:
            if len(lines) > 1:
                raise ValueError("a value without a key among others")
            return value
        found[match["key"] or json.loads(match["json_key"])] = value
    if not lines:
        raise ValueError("an example without a line")
    return found


def _key(key: str) -> str:
    return key if PLAIN_KEY.fullmatch(key) else _json(key)


def _inline(value: Any) -> str:
    is_plain = (
        isinstance(value, str)
        and value == value.strip()
        and value
        and not SPECIAL_START.match(value)
        and not UNSAFE.search(value)
    )
    return value if is_plain else _json(value)


def _read(text: str) -> Any:
    """Return a value as it was written; what looks like JSON and is none is a text that somebody typed."""
    if not SPECIAL_START.match(text):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return UNSAFE.sub(lambda match: json.dumps(match.group())[1:-1], text)
