"""Whether the words that ground a lesson were really said, and how far the lesson is to be believed. Pure.

The credibility is `low + (high - low) × claim`: the kind of signal and the role of the turn choose the
band, the distiller's own number only places the lesson inside it. The bands:

| signal | needs | low | high |
|---|---|---|---|
| `tool_error` | a tool turn that looks like a failure | 0.8 | 1.0 |
| `user_critique`, `user_confirmation` | a user turn | 0.8 | 1.0 |
| `self_correction` | an assistant turn | 0.4 | 0.7 |
| `inferred`, and each of the above without what it needs | | 0.1 | 0.3 |

A quote that stands in no turn puts the lesson into the lowest band, whatever its signal. So does one of a
few letters that stands in a turn by chance: below `TELLING_CHARS` letters and digits it must be whole words
there, below `MIN_CHARS` the whole turn or all that a failed tool complains of.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from mirix.text import clean_text, fold
from skills.distillation.errors import failure
from skills.distillation.types import Lesson, TranscriptTurn

MAX_QUOTE_CHARS = 512
TELLING_CHARS, MIN_CHARS = 12, 4
EXPLICIT, CORRECTED, INFERRED = (0.8, 1.0), (0.4, 0.7), (0.1, 0.3)

MARKERS = re.compile(
    r"\[(?:served by skill search|redacted: [a-z ]+|[\d,]+ (?:characters|turns?) left out[^\]]{0,20}"
    r"|truncated, \d+ characters in all)\]"
)
"""What stands in a turn in the place of words: nobody said it."""


@dataclass(frozen=True, kw_only=True)
class Grounded:
    """A lesson's evidence after the check."""

    turn_seq: int | None
    """The turn that the quote stands in; the one that was claimed where it stands in none."""
    verified: bool
    credibility: float
    quote: str
    """The turn's own words where they differ from the claimed ones by white space; at most 512 characters."""


def ground(lesson: Lesson, turns: Sequence[TranscriptTurn]) -> Grounded:
    """Look a lesson's quote up in the turns as the distiller saw them: first in the one it names."""
    turn = _find(lesson, turns)
    known = any(other.seq == lesson.turn_seq for other in turns)
    return Grounded(
        turn_seq=turn.seq if turn else lesson.turn_seq if known else None,
        verified=turn is not None,
        credibility=_credibility(lesson, turn),
        quote=_words_of(lesson.quote, turn) if turn else clean_text(lesson.quote)[:MAX_QUOTE_CHARS],
    )


def suits(signal_type: str, turn: TranscriptTurn) -> bool:
    """Whether a turn can give such a signal; any turn may be inferred from."""
    match signal_type:
        case "tool_error":
            return failure(turn) is not None
        case "user_critique" | "user_confirmation":
            return turn.role == "user"
        case "self_correction":
            return turn.role == "assistant"
    return True


def _find(lesson: Lesson, turns: Sequence[TranscriptTurn]) -> TranscriptTurn | None:
    quote = fold(lesson.quote)
    if not quote:
        return None
    # A turn that suits the signal beats one that only happens to hold the same words.
    return min(
        (turn for turn in turns if _stands_in(quote, turn)),
        key=lambda turn: (turn.seq != lesson.turn_seq, _band(lesson, turn) == INFERRED),
        default=None,
    )


def _stands_in(quote: str, turn: TranscriptTurn) -> bool:
    """Whether a turn says the quote: not where it is so short that it stands in any text by chance."""
    text = fold(turn.content)
    if quote not in text:
        return False
    words = MARKERS.sub("", quote)
    size = sum(2 if unicodedata.east_asian_width(char) == "W" else 1 for char in words if char.isalnum())
    if not words.strip():
        return False
    if size >= TELLING_CHARS or words == text:
        return True
    if size >= MIN_CHARS and re.search(rf"(?<!\w){re.escape(quote)}(?!\w)", text):
        return True
    failed = failure(turn)
    return failed is not None and quote == fold(failed.quote)


def _words_of(quote: str, turn: TranscriptTurn) -> str:
    """Return the quote as it stands in the turn, white space and all."""
    quote = quote.strip()
    if quote not in turn.content:
        pattern = r"\s+".join(map(re.escape, quote.split()))
        found = re.search(pattern, turn.content)
        quote = found.group() if found else quote
    return clean_text(quote)[:MAX_QUOTE_CHARS]


def _credibility(lesson: Lesson, turn: TranscriptTurn | None) -> float:
    low, high = _band(lesson, turn) if turn else INFERRED
    claim = lesson.credibility if math.isfinite(lesson.credibility) else 0.0
    return round(low + (high - low) * min(1.0, max(0.0, claim)), 3)


def _band(lesson: Lesson, turn: TranscriptTurn) -> tuple[float, float]:
    bands = {"self_correction": CORRECTED}
    bands |= dict.fromkeys(("tool_error", "user_critique", "user_confirmation"), EXPLICIT)
    return bands.get(lesson.signal_type, INFERRED) if suits(lesson.signal_type, turn) else INFERRED
