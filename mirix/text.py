"""Text hygiene: everything that comes from outside passes here once before it is stored.

PostgreSQL refuses NUL and lone surrogates, in text as in JSON; two spellings of one letter must compare
as equal; and no caller may store a text without bound. Pure functions, no models.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

SURROGATES = re.compile("[\ud800-\udfff]")
SPACE = re.compile(r"\s+")
# Controls other than tab and line ends, bidirectional marks, invisible operators, tags, fillers.
_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"
)
HIDDEN = re.compile(f"[{_HIDDEN}]")
# Joiners are part of emoji, Arabic and Indic writing, between other letters they only hide something; a sign
# may be told how to look by one selector, a keycap or an emoji, an ideograph its variant.
_UNJOINED = "\x00-\x7f\u00c0-\u052f\u1e00-\u1fff\u200c\u200d\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_VARIANTS = "\U000e0100-\U000e01ef"
_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSEEN = re.compile(
    # The one class in front is what makes it fast.
    f"[{_HIDDEN}\u200c\u200d{_SELECTORS}](?:(?<=[{_HIDDEN}])"
    f"|(?<=[\u200c\u200d])(?<![^{_UNJOINED}].)(?![^{_UNJOINED}])"
    f"|(?<=[{_SELECTORS}])(?:(?<=[A-Za-z\\s{_SELECTORS}].)|(?<![\x00-\U0010ffff].))"
    f"|(?<=[{_VARIANTS}])(?<![{_IDEOGRAPHS}].))"
)
"""What nobody sees where it stands; every `HIDDEN` character, and others that belong elsewhere."""
BLANK_CATEGORIES = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Mn", "Me", "Mc"})
BRAILLE_BLANK = "\u2800"
SEQUENCES = (list, tuple)  # made once: `list | tuple` would be made anew for every value
MAX_DEPTH = 100
MAX_DIGITS = 18
TOO_DEEP = f"[nested deeper than {MAX_DEPTH} levels, left out]"


def clean_text(text: str) -> str:
    """Return `text` in NFC, without NUL, with lone surrogates replaced by U+FFFD."""
    text = text.replace("\x00", "")
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", SURROGATES.sub("\ufffd", text))


def clean_json(value: Any, max_depth: int = MAX_DEPTH) -> Any:
    """Return a JSON value with every string in it cleaned, keys too; NaN and infinities become null.

    Two keys that become equal by cleaning keep the later value, as in JSON itself. What is nested deeper
    than `max_depth` gives way to a marker: recursion stays bounded here and in whoever reads the result.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        if max_depth <= 0:
            return TOO_DEEP
        return {clean_text(str(key)): clean_json(item, max_depth - 1) for key, item in value.items()}
    if isinstance(value, SEQUENCES):
        if max_depth <= 0:
            return TOO_DEEP
        return [clean_json(item, max_depth - 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def strings_in(value: Any) -> Iterator[str]:
    """Yield every text within a JSON value, in order; keys are none."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from strings_in(item)
        case dict():
            for item in value.values():
                yield from strings_in(item)


def is_blank(text: str) -> bool:
    """Return whether a person sees nothing of `text`: white space, what is hidden, marks without a letter."""
    return all(
        unicodedata.category(letter) in BLANK_CATEGORIES or letter == BRAILLE_BLANK
        for letter in HIDDEN.sub("", text)
    )


def truncate(text: str, limit: int) -> tuple[str, bool]:
    """Cut `text` to `limit` characters, the cut marked at its end; return it and whether it was cut."""
    if len(text) <= limit:
        return text, False
    # The marker names what is gone; its own length changes with that number, so it is measured last.
    marker = f"… [truncated, {len(text)} characters in all]"
    return text[: max(0, limit - len(marker))] + marker[:limit], True


def fold(text: str) -> str:
    """Return `text` for comparing quotes: NFKC, every run of white space one blank, case kept."""
    return SPACE.sub(" ", unicodedata.normalize("NFKC", text)).strip()


def visible(text: str) -> str:
    """Return `text` for a terminal: what cannot be seen, or would command it, is spelled out."""
    return UNSEEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text).replace("\r", "\\r")


def visible_line(text: str) -> str:
    """Return `text` for a line on a terminal that others follow: line ends and tabs are spelled out too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def shorten(text: str, limit: int) -> str:
    """Return one line of at most `limit` characters for titles and tables, cut at a word with `…`."""
    line = SPACE.sub(" ", text).strip()
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    cut = head.rfind(" ")
    return (head[:cut] if cut > limit // 2 else head).rstrip(" ,;:.") + "…"


def slugify(text: str, limit: int = 60) -> str:
    """Return an ASCII slug of at most `limit` characters, cut at a word where possible; may be empty.

    Letters are transliterated where NFKD can (`Café` → `cafe`); spaces, underscores and hyphens fold to
    one hyphen; everything else is dropped.
    """
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    kept = re.sub(r"[^a-z0-9\s_-]", "", ascii_text)
    slug = re.sub(r"[\s_-]+", "-", kept).strip("-")
    if len(slug) <= limit:
        return slug
    head = slug[: limit + 1]
    cut = head.rfind("-")
    return (head[:cut] if cut > limit // 2 else head[:limit]).strip("-")


def whole_number(text: str, *, low: int, high: int) -> int | None:
    """Return the whole number that `text` is, None when it is none from `low` to `high`.

    Stricter than `int`, which takes `1_0`, spaces and digits of all scripts, and is slow on many of them.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
        return None
    number = int(text)
    return number if low <= number <= high else None
