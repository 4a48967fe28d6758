"""Near-duplicates: whether two skills say so much of the same that one of them is too many. Pure.

Two contents are near when their names have the same slug stem, when the Jaccard index of their 5-word
shingles (name, description and instructions in one) is 0.5 or more, or, where both have a vector, when its
cosine is 0.92 or more; two that are each named after a tool of its own mean different things whatever a
model makes of them. Status plays no part: an archived skill and a rejected revision count like an active one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, TypeVar

from skills.content import Content
from skills.evolution.cards import skill_name
from skills.evolution.words import words
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


def jaccard(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> float:
    """Return shared over all shingles, 0.0 when neither has any."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


Measure = Literal["meaning", "words", "name"]
MEASURES: tuple[Measure, ...] = ("meaning", "words", "name")
"""What two texts may be near by, the plainest last."""
CODE = re.compile(r"`([^`\s]+)`")
IDENTIFIER = re.compile(r"(?=\S*(?:[_./]|[a-z0-9][A-Z]))[\w./-]+")


@dataclass(frozen=True, kw_only=True)
class Nearness:
    """By what two texts are near-duplicates, and how much so: 1.0 for names, else Jaccard or cosine."""

    measure: Measure
    score: float

    @property
    def rank(self) -> tuple[int, float]:
        """What says most of two: the same name before the same words before the same meaning."""
        return MEASURES.index(self.measure), self.score


@dataclass(frozen=True)
class Fingerprint:
    """What nearness looks at; taken once per text when one is compared with many."""

    stem: str
    shingles: frozenset[tuple[str, ...]]
    tool: str = ""
    """The tool that the text is named after."""
    vector: tuple[float, ...] = field(default=(), repr=False)
    """Where its name and description lie, of length 1; empty where nobody knows."""

    @classmethod
    def of(cls, content: Content, vector: Sequence[float] = ()) -> Fingerprint:
        """Return the fingerprint of a content."""
        text = f"{content.name}\n{content.description}\n{content.instructions}"
        return cls(slug_stem(content.name), shingles(text), named_after(content), tuple(vector))

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
) -> Key | None:
    """Return the key of the nearest near-duplicate, the first of equals; None without any."""
    best, best_rank = None, (-1, 0.0)
    for key, other in others:
        near = own.nearness(other, cosine=cosine)
        if near and near.rank > best_rank:
            best, best_rank = key, near.rank
    return best


def pairs_by_text(prints: Sequence[Fingerprint]) -> Iterator[tuple[int, int, Nearness]]:
    """Yield the pairs that are near by name or words, as their places, without comparing all with all."""
    shared = _shared([print_.shingles for print_ in prints])
    for one, other in sorted(shared | _shared([[print_.stem] for print_ in prints])):
        left, right = prints[one], prints[other]
        union = len(left.shingles) + len(right.shingles) - shared[one, other]
        if left.stem == right.stem:
            yield one, other, Nearness(measure="name", score=1.0)
        elif (similarity := shared[one, other] / union) >= NEAR_JACCARD:
            yield one, other, Nearness(measure="words", score=similarity)


def _shared(marks: Sequence[Iterable[object]]) -> Counter[tuple[int, int]]:
    """Count what each two places have in common, for those that have anything."""
    holders: dict[object, list[int]] = {}
    for place, own in enumerate(marks):
        for mark in own:
            holders.setdefault(mark, []).append(place)
    return Counter(pair for places in holders.values() for pair in combinations(places, 2))
