"""Near-duplicates: whether two skills say so much of the same that one of them is too many. Pure.

Two contents are near when their names have the same slug stem, or when the Jaccard index of their
5-word shingles (name, description and instructions in one) is 0.5 or more. Status plays no part: an
archived skill and a rejected revision count like an active one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from skills.content import Content
from skills.evolution.words import words
from skills.search.analysis import stem

Key = TypeVar("Key")

SHINGLE_WORDS = 5
NEAR_JACCARD = 0.5

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


@dataclass(frozen=True)
class Fingerprint:
    """What nearness looks at; taken once per text when one is compared with many."""

    stem: str
    shingles: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, content: Content) -> Fingerprint:
        """Return the fingerprint of a content."""
        text = f"{content.name}\n{content.description}\n{content.instructions}"
        return cls(slug_stem(content.name), shingles(text))

    def similarity(self, other: Fingerprint) -> float:
        """Return 1.0 for the same slug stem, else the Jaccard index of the shingles."""
        return 1.0 if self.stem == other.stem else jaccard(self.shingles, other.shingles)

    def is_near(self, other: Fingerprint) -> bool:
        """Return whether the two texts are near-duplicates."""
        return self.similarity(other) >= NEAR_JACCARD


def nearest(content: Content, others: Iterable[tuple[Key, Fingerprint]]) -> Key | None:
    """Return the key of the nearest near-duplicate of `content`, the first of equals; None without any."""
    own = Fingerprint.of(content)
    best, best_similarity = None, 0.0
    for key, other in others:
        similarity = own.similarity(other)
        if similarity >= NEAR_JACCARD and similarity > best_similarity:
            best, best_similarity = key, similarity
    return best
