"""Errors that hold two numbers against each other, one of which the call had sent. Pure.

`total price is 4875, but paid 1625` compares a number of its own with what was sent, where 1625 is an
argument or the sum of one argument over a list. Which of the two is right the error does not say, but what
must hold between them it does.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from skills.distillation.calls import Call
from skills.distillation.changes import leaves
from skills.distillation.wording import code, mentions

_NUMBER = re.compile(r"(?<![\w.,:/#-])[$€£]?(\d{1,12}(?:,\d{3})*(?:\.\d{1,4})?)(?![\w:/-]|[.,]\d)")
_NO_QUANTITY = re.compile(r"\b(?:error|code|status|http|line|column|row|version|attempt)\W*$", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?:max(?:imum)?|min(?:imum)?|limit(?:ed)?|at (?:most|least)|up to|exceed\w*|more than|less than"
    r"|fewer than|too (?:many|large|long|high|few|small|short|low)|between|range)\b",
    re.IGNORECASE,
)
_EQUAL = re.compile(
    r"\b(?:adds? up|sums?|match\w*|mismatch\w*|equals?|unequal|differs?|different|expected|inconsistent"
    r"|reconcile\w*|total)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?:^|[^A-Za-z ])[A-Za-z ]*?((?:[A-Za-z]+ ){0,2}[A-Za-z]+)[ :=]*$")
_FILLER = {"is", "was", "are", "were", "be", "of", "to", "but", "and", "only", "the", "a", "an", "got", "not"}
_NO_NAME = re.compile(
    r"\b(?:do(?:es)?|did|must|should|can(?:not)?|has|have|match\w*|mismatch|equals?|differs?|expected)\b",
    re.IGNORECASE,
)
TELLING_DIGITS = 3
MAX_LABEL_CHARS = 60


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A number of the error's own, and the argument that it is held against."""

    argument: str
    """Its path, `[]` for the places in a list: `payment_methods[].amount`."""
    summed: bool
    """Whether it is the sum over the list that counts."""
    must: str
    """What has to hold: `equal` or `limit`."""
    against: str = ""
    """What the error calls its own number, in at most three words; "" where it has no name for it."""

    @property
    def name(self) -> str:
        """The top-level argument."""
        return re.split(r"[.\[]", self.argument, maxsplit=1)[0]

    def as_data(self) -> dict[str, Any]:
        """Return it for `details`."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Any) -> Comparison | None:
        """Return what `as_data` gave; None for anything else."""
        match data:
            case {"argument": str(argument), "summed": bool(summed), "must": "equal" | "limit" as must}:
                against = data.get("against")
                known = isinstance(against, str) and re.fullmatch(r"[A-Za-z ]{0,60}", against)
                return cls(argument=argument, summed=summed, must=must, against=against if known else "")
        return None

    def what(self) -> str:
        """Return what was sent, in words: ``the sum of `amount` in `payment_methods```."""
        parts = [part for part in re.split(r"[.\[\]]+", self.argument) if part]
        name = code(parts[-1] if parts else self.argument, 60)
        if not self.summed:
            return name
        if len(parts) < 2:
            return f"the sum of {name}"
        return f"the sum of {name} in {code(self.name, 60)}"

    def remedy(self) -> str:
        """Return what to do about it."""
        if self.must == "limit":
            return f"keep {self.what()} within the limit it names"
        against = f"the {self.against} it names" if self.against else "the other number it names"
        return f"make {self.what()} equal to {against} before you call again"


def compared(call: Call) -> tuple[Comparison, list[str]] | None:
    """Return what a call's error compares, and the numbers of that one call in it; None where it does not.

    Only where nothing else could be meant: two numbers, one of which is the value or the sum of exactly one
    argument, and words that say how the two should stand to each other.
    """
    must = "limit" if _LIMIT.search(call.message) else "equal" if _EQUAL.search(call.message) else ""
    found = [
        match
        for match in _NUMBER.finditer(call.message[:2_000])
        if not _NO_QUANTITY.search(call.message[: match.start()])
    ]
    if not must or len(found) != 2 or _amount(found[0]) == _amount(found[1]):
        return None
    hits = [
        (match, argument, summed)
        for match in found
        for argument, summed, amount in _quantities(call.arguments)
        if math.isclose(_amount(match), amount, rel_tol=0, abs_tol=0.005)
        and (summed or _is_telling(match[1], argument, call.message))
    ]
    if len({(argument, summed) for _, argument, summed in hits}) != 1 or len({hit[0] for hit in hits}) != 1:
        return None
    sent, argument, summed = hits[0]
    other = found[0] if sent is found[1] else found[1]
    comparison = Comparison(argument=argument, summed=summed, must=must, against=_label(call.message, other))
    return comparison, [sent[1], other[1]] if must == "equal" else [sent[1]]


def _quantities(arguments: Any) -> Iterator[tuple[str, bool, float]]:
    """Yield (argument, whether summed, amount) of every number sent, and of every sum over a list."""
    sums: dict[str, list[float]] = defaultdict(list)
    for path, item in leaves(arguments):
        number = _number_of(item)
        if number is None:
            continue
        argument = re.sub(r"\[\d+\]", "[]", path)
        if "[]" in argument:
            sums[argument].append(number)
        yield argument, False, number
    for argument, numbers in sums.items():
        if len(numbers) > 1:
            yield argument, True, sum(numbers)


def _number_of(item: Any) -> float | None:
    if isinstance(item, str) and re.fullmatch(r"-?\d{1,12}(?:\.\d{1,4})?", item):
        return float(item)
    if isinstance(item, int | float) and not isinstance(item, bool) and abs(item) < 1e12:
        return float(item)
    return None


def _amount(match: re.Match[str]) -> float:
    return float(match[1].replace(",", ""))


def _is_telling(number: str, argument: str, message: str) -> bool:
    """Whether a number that is also sent is no coincidence: a long one, or one whose argument is named."""
    name = re.split(r"[.\[]", argument.replace("[]", ""))[-1]
    return (
        len(number) >= TELLING_DIGITS or mentions(message, name) or mentions(message, name.replace("_", " "))
    )


def _label(message: str, match: re.Match[str]) -> str:
    """Return what a message calls a number: the words in front of it."""
    found = _LABEL.search(message[: match.start()][-80:])
    words = found[1].split() if found else []
    while words and words[0].lower() in _FILLER:
        words.pop(0)
    while words and words[-1].lower() in _FILLER:
        words.pop()
    label = " ".join(words).lower()
    return "" if _NO_NAME.search(label) or len(label) > MAX_LABEL_CHARS else label
