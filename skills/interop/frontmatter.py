"""The YAML at the head of a SKILL.md: for the strictest reader, from the most careless writer. Pure.

Written: block style, every scalar double-quoted, nothing that a strict parser, a parser that splits at the
first `---`, or an eye that does not see hidden characters could take for something else. Read: every scalar
is the text that it was written as; no tags, no aliases, bounded in size and depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from mirix.text import HIDDEN

MAX_CHARS = 600_000
MAX_DEPTH = 16
MAX_NODES = 20_000

# What ends a scalar or a line, what nobody sees, what YAML does not print, and what ends the frontmatter.
ESCAPED = re.compile(rf'["\\\t\n\r\xa0\ufffe\uffff]|{HIDDEN.pattern}|-(?=--)')
SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
BLANK = re.compile(r"(?:[ \t]*\r?\n)*")
FENCE = re.compile(r"---[ \t]*\r?\n")
END = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$\n?", re.MULTILINE)
# A line that a careless writer left unquoted; indicators of lists, maps and blocks mean what they say.
UNQUOTED = re.compile(r"^(?P<key>[ \t]*[\w-]+):[ \t]+(?P<value>[^\s\"'|>\[{#].*)$", re.MULTILINE)


class Unreadable(ValueError):
    """The file cannot be read as a skill; the message says why in one line."""


def quoted(text: str) -> str:
    """Return `text` as a double-quoted scalar on one line."""
    return f'"{ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return SHORT.get(match.group()) or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")


def written(fields: Mapping[str, str | Mapping[str, str]]) -> str:
    """Return the frontmatter between its lines of hyphens; an empty map is left out."""
    lines = ["---"]
    for key, value in fields.items():
        if isinstance(value, str):
            lines.append(f"{key}: {quoted(value)}")
        elif value:
            lines.append(f"{key}:")
            lines += [f"  {quoted(name)}: {quoted(text)}" for name, text in value.items()]
    return "\n".join([*lines, "---", ""])


def split(text: str) -> tuple[str, str]:
    """Return the frontmatter without its fences, and the body. Raises `Unreadable` without a fence."""
    text = text.removeprefix("\ufeff")
    start = FENCE.match(text, BLANK.match(text).end())  # type: ignore[union-attr]
    if start is None:
        raise Unreadable("It does not begin with frontmatter between two lines of ---.")
    end = END.search(text, start.end())
    if end is None:
        raise Unreadable("Its frontmatter has no closing line of ---.")
    return text[start.end() : end.start()], text[end.end() :]


def read(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return the frontmatter as texts, lists and maps, and what is odd about it.

    Where YAML refuses it, lines that hold a bare colon or another indicator are read as quoted ones, once.
    Raises `Unreadable`.
    """
    if len(text) > MAX_CHARS:
        raise Unreadable(f"Its frontmatter has more than {MAX_CHARS:,} characters.")
    warnings: list[str] = []
    try:
        node = _compose(text)
    except yaml.YAMLError as error:
        try:
            node = _compose(UNQUOTED.sub(_quote_line, text))
        except yaml.YAMLError:
            raise Unreadable(f"Its frontmatter is no YAML: {_reason(error)}.") from error
        warnings.append(f"Its frontmatter is no YAML ({_reason(error)}); bare texts were read as quoted.")
    if not isinstance(node, yaml.MappingNode):
        raise Unreadable("Its frontmatter holds no fields.")
    return _value(node, warnings), warnings


def _quote_line(match: re.Match[str]) -> str:
    return f"{match['key']}: {json.dumps(match['value'].rstrip(), ensure_ascii=False)}"


def _reason(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "something that YAML does not allow"
    return f"{problem}, line {mark.line + 2}" if mark else str(problem)


class _Loader(yaml.BaseLoader):
    """Composes nodes within bounds; nothing is ever constructed from them but texts, lists and maps."""

    depth = 0
    nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose one node. Raises `Unreadable` at an alias and beyond the bounds."""
        if self.check_event(yaml.AliasEvent):
            raise Unreadable("Its frontmatter uses YAML aliases, which are not read.")
        self.depth += 1
        self.nodes += 1
        if self.depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise Unreadable("Its frontmatter is nested too deep or has too many fields.")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    except Unreadable:
        raise
    except (ValueError, OverflowError) as error:  # an escape or a version that is no number it could be
        raise yaml.YAMLError("a number that is out of range") from error
    finally:
        loader.dispose()


def _value(node: Any, warnings: list[str]) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, warnings) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _value(key_node, warnings)
        if not isinstance(key, str):
            raise Unreadable("Its frontmatter has a field whose name is no text.")
        if key in found:
            warnings.append(f"The field {key[:64]!r} stands twice; the last one counts.")
        found[key] = _value(value_node, warnings)
    return found
