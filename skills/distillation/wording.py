"""Words for people: values, errors and lists as they stand in the text of a lesson. Pure.

Every value comes from a transcript and is data: it appears on one line, shortened where it is long,
without characters that could end its quotation marks or hide something.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from mirix.text import shorten
from skills.distillation.changes import ABSENT, Change, leaves, sort_of

MAX_TITLE_CHARS = 120
MAX_VALUE_CHARS = 120
MAX_ERROR_CHARS = 200

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn"}
_INNER_QUOTES = str.maketrans("“”„", "'''")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_LONG_NUMBER = re.compile(r"(?<![\w.])\+?\d(?:[ -]?\d){8,}(?!\w)")


def inert(text: str, limit: int) -> str:
    """Return text as one line of at most `limit` characters, free of hidden characters and backticks."""
    return shorten(_visible(text[: limit * 20]), limit)


def _visible(text: str) -> str:
    """Return text with every white space a blank, without hidden characters and backticks."""
    kept = (" " if char.isspace() else "" if unicodedata.category(char) in _HIDDEN else char for char in text)
    return "".join(kept).replace("`", "'")


def said(text: str, limit: int = MAX_ERROR_CHARS) -> str:
    """Return somebody's words in quotation marks."""
    return "“" + inert(text, limit).translate(_INNER_QUOTES) + "”"


def code(text: str, limit: int = MAX_VALUE_CHARS) -> str:
    """Return a name or value as code."""
    return f"`{inert(text, limit) or ' '}`"


def value(item: Any, limit: int = MAX_VALUE_CHARS) -> str:
    """Return a JSON value as code; long texts lose their middle, long lists their middle entries."""
    if isinstance(item, str):
        return f"`{_middle(' '.join(_visible(item).split()), limit)}`" if item.strip() else "an empty text"
    return exact(item, limit)


def exact(item: Any, limit: int = MAX_VALUE_CHARS) -> str:
    """Return a value as JSON, where text and number or white space must be told apart."""
    if isinstance(item, list) and len(item) > 2 and len(_json(item)) > limit:
        first, last = (_middle(_json(entry), limit // 2) for entry in (item[0], item[-1]))
        return f"`[{first}, … {len(item) - 2} more …, {last}]`"
    return f"`{_middle(_json(item), limit)}`"


def _json(item: Any) -> str:
    return _visible(json.dumps(item, ensure_ascii=False, default=str))


def _middle(text: str, limit: int) -> str:
    """Return text with its middle taken out, so that both ends stay recognisable."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = max(1, limit - head - 3)
    return f"{text[:head].rstrip()} … {text[-tail:].lstrip()}"


def listing(parts: Iterable[str], last: str = "and") -> str:
    """Return `a`, `a and b`, or `a, b and c`."""
    items = list(parts)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def number(count: int, noun: str, plural: str = "") -> str:
    """Return `one call`, `two calls`, `17 calls`."""
    return f"{spelled(count)} {noun if count == 1 else plural or noun + 's'}"


def spelled(count: int) -> str:
    """Return a number up to ten as a word."""
    names = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    return names[count] if count < len(names) else str(count)


def ordinal(count: int) -> str:
    """Return `first`, `second`, … `12th`."""
    names = ["", "first", "second", "third", "fourth", "fifth", "sixth"]
    return names[count] if count < len(names) else f"{count}th"


def sentence(text: str) -> str:
    """Return text with a capital in front and a full stop behind."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", ".”", "!”", "?”")) else ".")


def paragraph(*sentences: str) -> str:
    """Return sentences as one paragraph; blank ones fall out."""
    return " ".join(sentence(text) for text in sentences if text.strip())


def discreet(text: str) -> str:
    """Return text without e-mail addresses and long numbers, for titles."""
    return _LONG_NUMBER.sub("…", _EMAIL.sub("…", text))


def pattern_of(message: str, arguments: Any, amounts: Sequence[str] = ()) -> str:
    """Return an error message with the values of this one call taken out: what stays is the kind of error.

    `amounts` are numbers in it that are of this one call as well.

    `flight HAT030 not available on date 2024-05-13` becomes `flight … not available on date …`.
    """
    text = discreet(message)
    for item in [*_identifying(arguments, message), *amounts]:
        text = re.sub(rf"(?<!\w){re.escape(item)}(?!\w)", "…", text)
    # An argument may be gone while the message is full of its kind: ids go as well.
    text = re.sub(r"(?<![\w.])(?=(?:\w*\d){2})(?=\w*[A-Za-z_])[\w-]{5,}(?![\w.]*\w)", "…", text)
    return re.sub(r"…(?:\s*…)+", "…", text)


def _identifying(arguments: Any, message: str) -> list[str]:
    """Return the values of a call that point at one thing, longest first.

    Those are values with a digit or an at sign, and those that the message puts in quotation marks.
    """
    texts = {str(item) for _, item in leaves(arguments) if item is not None and not isinstance(item, bool)}
    found = {
        text
        for text in texts
        if 3 <= len(text) <= 120
        and (re.search(r"[\d@]", text) or f"'{text}'" in message or f'"{text}"' in message)
    }
    return sorted(found, key=lambda text: (-len(text), text))[:200]


def title(before: str, quoted: str, after: str) -> str:
    """Return a title of at most 120 characters in which only the quoted words are shortened."""
    room = MAX_TITLE_CHARS - len(before) - len(after) - 2
    if room >= 16:
        return f"{before}{said(quoted, room)}{after}"
    if len(before) > len(after) and MAX_TITLE_CHARS - len(before) > 24:
        return f"{before}{said(quoted, MAX_TITLE_CHARS - len(before) - 2)}"
    return shorten(f"{before}{said(quoted, 40)}{after}", MAX_TITLE_CHARS)


def mentions(text: str, word: str) -> bool:
    """Whether a text contains a word or value as a whole, in any case."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def speaks_of(text: str, change: Change) -> bool:
    """Whether a text is about a change: it has the argument's name, one of its values or their sort in words.

    `gift card balance is not enough` is about a `payment_id` that was `gift_card_748`.
    """
    name = re.sub(r"(?:\[\d+\])+$", "", change.argument).rsplit(".", 1)[-1]
    told = {name, change.name} | {
        str(item)
        for value in (change.before, change.after)
        for _, item in leaves(value)
        if item is not None and item is not ABSENT and not isinstance(item, bool)
    }
    told |= {sort_of(item) for item in told}
    words = (re.sub(r"[_\W]+", " ", item).strip() for item in told)
    spaced = re.sub(r"[_\W]+", " ", text)
    return any(mentions(spaced, word) for word in words if len(word) >= 3)
