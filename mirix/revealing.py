"""Hidden and bidirectional characters made visible in a page, wherever in it they stand. Pure.

What a model or a caller wrote may hold characters that nobody sees, or that turn the order of others around:
a reviewer would decide on another text than the one that is stored. This works on the finished page, so that
no template and no column can forget it.
"""

from __future__ import annotations

import re
import unicodedata

from mirix.lookalikes import LOOKALIKE
from mirix.text import UNSEEN

_ATTRIBUTES = r"""(?:"[^"]*"|'[^']*'|[^"'>])*"""
_PART = re.compile(
    # What is no text: comments, and what goes back to the server as it is.
    r"(?P<kept><!--.*?-->|<(?P<raw>script|style|textarea)\b.*?</(?P=raw)\s*>)"
    # Text that can hold no elements.
    rf"|(?P<open><(?P<plain>title|option)\b{_ATTRIBUTES}>)(?P<words>.*?)(?P<close></(?P=plain)\s*>)"
    rf"|(?P<tag></?[a-z]{_ATTRIBUTES}>)"
    r"|(?P<text>[^<]+|<)",
    re.DOTALL | re.IGNORECASE,
)
_DECEIVING = re.compile(f"{UNSEEN.pattern}|{LOOKALIKE.pattern}")
_SPOKEN = re.compile(r"""\s(?:title|alt|aria-label|placeholder)=(?:"[^"]*"|'[^']*')""", re.IGNORECASE)


def reveal(html: str) -> str:
    """Return a page in which each hidden character is a marked escape; one without any stays as it is.

    In text the escape is a chip of class `mx-hidden` that names the character, and a letter that looks like a
    Latin one beside it is marked by the class `mx-lookalike`; in titles, choices and
    spoken attributes it is the escape alone. Values of forms and scripts are left as they are.
    """
    return _PART.sub(_part, html) if _DECEIVING.search(html) else html


def _part(match: re.Match[str]) -> str:
    if (text := match["text"]) is not None:
        return _DECEIVING.sub(_chip, text)
    if match["words"] is not None:
        return _tag(match["open"]) + UNSEEN.sub(_escape, match["words"]) + match["close"]
    return _tag(match["tag"]) if match["tag"] is not None else match[0]


def _tag(tag: str) -> str:
    return _SPOKEN.sub(lambda attribute: UNSEEN.sub(_escape, attribute[0]), tag)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _chip(match: re.Match[str]) -> str:
    if LOOKALIKE.match(match.string, match.start()):
        name = unicodedata.name(match[0])
        return f'<span class="mx-lookalike" title="U+{ord(match[0]):04X} {name}">{match[0]}</span>'
    name = unicodedata.name(match[0], "control character")
    return f'<span class="mx-hidden" title="U+{ord(match[0]):04X} {name}">{_escape(match)}</span>'
