"""Text that is not what it looks like: hidden characters, letters of other alphabets. Pure."""

from __future__ import annotations

import re
import unicodedata

from mirix.lookalikes import LATIN, LOOKALIKE
from mirix.text import HIDDEN, UNSEEN

_OVERWRITES = re.compile(r"\r(?!\n)")
_INVISIBLE = re.compile(f"{HIDDEN.pattern}|[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def plain(text: str) -> str:
    """Return text as it reads: compatibility forms folded, what cannot be seen left out."""
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def undisguised(text: str) -> str:
    """Return text as somebody reads it who knows Latin letters alone, for rules about English words."""
    return text if text.isascii() and not HIDDEN.search(text) else plain(text).translate(LATIN)


def has_hidden_characters(text: str) -> bool:
    """Whether a reader sees less than an agent does, or in another order."""
    return bool(UNSEEN.search(text) or _OVERWRITES.search(text))


def has_lookalikes(text: str) -> bool:
    """Whether a word mixes Latin letters with those of another alphabet that look the same."""
    return LOOKALIKE.search(plain(text)) is not None
