"""Near-duplicates: whether two skills say so much of the same that one of them is too many. Pure.

Two contents are near when their names have the same slug stem, when the Jaccard index of their 5-word
shingles (name, description and instructions in one) is 0.5 or more, when half of the tools and steps that
either names are named by both, or, where both have a vector, when its cosine is 0.92 or more; two that are
each named after a tool of its own mean different things whatever a model makes of them, or whatever else both
name. Status plays no part: an archived skill and a rejected revision count like an active one.

A lesson that is told again in other words still names the same tools, commands and paths. Where it names
none, and nobody knows what it means, other words are another lesson here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal, TypeVar

from skills.content import Content
from skills.evolution.cards import skill_name
from skills.evolution.words import words
from skills.review.unsupported import steps
from skills.search.analysis import stem

Key = TypeVar("Key")

SHINGLE_WORDS = 5
NEAR_JACCARD = 0.5
NEAR_COSINE = 0.92

# Words that change nothing about what a skill is for.
FILLER = frozenset(
    words(
        "a an the to of for from with and or in on at by via how your my our "
        "guide workflow procedure process skill steps instructions properly correctly safely"
    )
)
COUNTER = re.compile(r"(-(v?\d+|copy|new|updated|revised|final))+$")


def slug_stem(name: str) -> str:
    """Return what is left of a slug when spelling no longer counts.

    A trailing counter or edition goes (`-2`, `-v3`, `-copy`, `-new`), then filler words (articles,
    prepositions, `guide`, `workflow`, …), and each remaining word is reduced to its stem; the order
    stays, for `staging-to-production` is not `production-to-staging`. A slug of nothing but such parts is
    its own stem.

    >>> slug_stem("updating-the-reservations-2") == slug_stem("update-reservation")
    True
    """
    parts = [stem(word) for word in words(COUNTER.sub("", name)) if word not in FILLER]
    return "-".join(parts) or name


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Return the set of all runs of five words; a shorter text is one run of all its words."""
    sequence = words(text)
    if not sequence:
        return frozenset()
    last = max(1, len(sequence) - SHINGLE_WORDS + 1)
    return frozenset(tuple(sequence[start : start + SHINGLE_WORDS]) for start in range(last))


def jaccard(left: frozenset[Any], right: frozenset[Any]) -> float:
    """Return shared over all, 0.0 when neither has any."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


Measure = Literal["steps", "meaning", "words", "name"]
MEASURES: tuple[Measure, ...] = ("steps", "meaning", "words", "name")
"""What two texts may be near by, the plainest last."""
CODE = re.compile(r"`([^`\s]+)`")
IDENTIFIER = re.compile(r"(?=\S*(?:[_./]|[a-z0-9][A-Z]))[\w./-]+")
TOOL = re.compile(r"(?<![\w-])(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+)(?!\w)")


@lru_cache(maxsize=500)
def named_in(text: str) -> frozenset[str]:
    """Return the tools, commands, addresses, variables, flags and paths that a text names.

    A tool is a word as programs write them, `cancel_order` or `cancelOrder`, in code or not.
    """
    return frozenset([*TOOL.findall(text), *(" ".join(step.split()).casefold() for step in steps(text))])


@dataclass(frozen=True, kw_only=True)
class Nearness:
    """By what two texts are near-duplicates, and how much so: 1.0 for names, else Jaccard or cosine.

    `steps` are the tools, commands, paths and the like that they name.
    """

    measure: Measure
    score: float

    @property
    def rank(self) -> tuple[int, float]:
        """What says most of two: the same name before the same words, the same meaning, the same steps."""
        return MEASURES.index(self.measure), self.score


@dataclass(frozen=True)
class Fingerprint:
    """What nearness looks at; taken once per text when one is compared with many."""

    stem: str
    shingles: frozenset[tuple[str, ...]]
    tool: str = ""
    """The tool that the text is named after."""
    named: frozenset[str] = frozenset()
    """The tools, commands and the like that it names."""
    vector: tuple[float, ...] = field(default=(), repr=False)
    """Where its name and description lie, of length 1; empty where nobody knows."""

    @classmethod
    def of(cls, content: Content, vector: Sequence[float] = ()) -> Fingerprint:
        """Return the fingerprint of a content."""
        body = f"{content.description}\n{content.instructions}"
        named = named_in(body) | named_in("\n".join(map(str, content.triggers)))
        marks = shingles(f"{content.name}\n{body}")
        return cls(slug_stem(content.name), marks, named_after(content), named, tuple(vector))

    def similarity(self, other: Fingerprint) -> float:
        """Return 1.0 for the same slug stem, else the Jaccard index of the shingles."""
        return 1.0 if self.stem == other.stem else jaccard(self.shingles, other.shingles)

    def cosine(self, other: Fingerprint) -> float:
        """Return the cosine of the vectors; 0.0 where one is missing or they are of different models."""
        if len(self.vector) != len(other.vector):
            return 0.0
        return sum(one * two for one, two in zip(self.vector, other.vector, strict=True))

    def is_about_another_tool(self, other: Fingerprint) -> bool:
        """Return whether both are named after tools, and these differ."""
        return bool(self.tool and other.tool and self.tool != other.tool)

    def nearness(self, other: Fingerprint, *, cosine: float = NEAR_COSINE) -> Nearness | None:
        """Return by what the two are near-duplicates, None where they are not."""
        if self.stem == other.stem:
            return Nearness(measure="name", score=1.0)
        if (similarity := self.similarity(other)) >= NEAR_JACCARD:
            return Nearness(measure="words", score=similarity)
        if self.is_about_another_tool(other):
            return None
        if (meaning := self.cosine(other)) >= cosine:
            return Nearness(measure="meaning", score=meaning)
        if (named := jaccard(self.named, other.named)) >= NEAR_JACCARD:
            return Nearness(measure="steps", score=named)
        return None

    def is_near(self, other: Fingerprint) -> bool:
        """Return whether the two texts are near-duplicates."""
        return self.nearness(other) is not None


def named_after(content: Content) -> str:
    """Return the tool, in code or as a trigger, that a skill has its name from; "" without one."""
    triggers = (trigger for trigger in map(str, content.triggers) if IDENTIFIER.fullmatch(trigger))
    names = [*CODE.findall(content.description), *triggers]
    return next((name for name in names if skill_name(f"tool:{name}") == content.name), "")


def nearest(
    own: Fingerprint, others: Iterable[tuple[Key, Fingerprint]], *, cosine: float = NEAR_COSINE
) -> tuple[Key, Nearness] | None:
    """Return the key of the nearest near-duplicate, the first of equals, and how near; None without any."""
    best: tuple[Key, Nearness] | None = None
    for key, other in others:
        near = own.nearness(other, cosine=cosine)
        if near and (best is None or near.rank > best[1].rank):
            best = key, near
    return best


def pairs_by_text(prints: Sequence[Fingerprint]) -> Iterator[tuple[int, int, Nearness]]:
    """Yield the pairs that are near by name, words or steps, as their places.

    Only those are compared that have anything in common.
    """
    shared = _shared([print_.shingles for print_ in prints])
    named = _shared([print_.named for print_ in prints])
    for one, other in sorted(shared | named | _shared([[print_.stem] for print_ in prints])):
        if near := prints[one].nearness(prints[other], cosine=math.inf):
            yield one, other, near


def _shared(marks: Sequence[Iterable[object]]) -> set[tuple[int, int]]:
    """Return the pairs of places that have anything in common."""
    holders: dict[object, list[int]] = {}
    for place, own in enumerate(marks):
        for mark in own:
            holders.setdefault(mark, []).append(place)
    return {pair for places in holders.values() for pair in combinations(places, 2)}
