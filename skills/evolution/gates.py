"""Gates: what an operation must satisfy before it is written. Pure.

Each gate answers with a sentence that a reviewer, a run's notes or a model can act on. Refusals cost
nothing of the budget.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from skills.content import Content
from skills.evolution.types import ExperienceView
from skills.evolution.words import CJK
from skills.review.validation import content_errors

# Past this a text repeats itself so much that aligning it would take minutes: the whole passage counts.
MAX_EQUAL_PAIRS = 100_000

# A field this short may be rewritten whole: every change is a large share of it.
SHORT_FIELD_CHARS = 400

GATED_FIELDS = ("name", "description", "instructions")
TOKEN = re.compile(rf"[{CJK}]|[^\W_{CJK}]+\s*|[\W_]\s*")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The constants of the gates; the defaults are the original's."""

    max_change_chars: int = 800
    major_ratio: float = 0.4
    max_instructions_chars: int = 12_000


@dataclass(frozen=True)
class Change:
    """How far apart two texts are: characters changed, and their share of the text (0 to 1).

    A replaced passage counts with the longer of its two sides. The ratio is what went and what came over
    the characters of both texts, which is one minus their similarity. `lost` are the characters that went.
    """

    chars: int
    ratio: float
    lost: int = field(default=0, compare=False)


DEFAULT_LIMITS = Limits()


def measure_change(before: str, after: str) -> Change:
    """Return the size of a change, found over lines, then over the words of what differs.

    difflib's junk heuristic stays off: it takes the frequent words of a long text for noise and measures
    an inserted word as a new text.
    """
    passages = [
        words for lines in _differing(before, after, _lines) for words in _differing(*lines, TOKEN.findall)
    ]
    total = len(before) + len(after)
    return Change(
        sum(max(len(old), len(new)) for old, new in passages),
        sum(len(old) + len(new) for old, new in passages) / total if total else 0.0,
        sum(len(old) for old, _ in passages),
    )


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _differing(old: str, new: str, split: Callable[[str], list[str]]) -> list[tuple[str, str]]:
    """Return the passages that differ between two texts, aligned over the parts that `split` makes."""
    old, new = _without_shared_ends(old, new)
    old_parts, new_parts = split(old), split(new)
    if not _is_alignable(old_parts, new_parts):
        return [(old, new)]
    matcher = SequenceMatcher(None, old_parts, new_parts, autojunk=False)
    return [
        _without_shared_ends("".join(old_parts[i:j]), "".join(new_parts[k:m]))
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    ]


def _is_alignable(old: list[str], new: list[str]) -> bool:
    """Return whether aligning is affordable: its cost grows with the pairs of equal parts."""
    counts = Counter(new)
    return sum(counts[part] for part in old) <= MAX_EQUAL_PAIRS


def _without_shared_ends(old: str, new: str) -> tuple[str, str]:
    """Return two texts without the beginning and the end that they share."""
    shortest = min(len(old), len(new))
    head = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    rest = shortest - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    return old[head : len(old) - tail], new[head : len(new) - tail]


def content_refusals(content: Content) -> list[str]:
    """Return why a content could not be a skill at all, a sentence per field; empty when it can."""
    return [f"The {name}: {' '.join(messages)}" for name, messages in content_errors(content).items()]


def size_refusals(before: Content | None, after: Content, limits: Limits) -> list[str]:
    """Return why a change is too large for one operation; a create has no size but its own."""
    old_length, length = len(before.instructions) if before else 0, len(after.instructions)
    reasons = []
    if length > limits.max_instructions_chars and not (before and length < old_length):
        reasons.append(
            f"The instructions would have {length} characters; the limit is "
            f"{limits.max_instructions_chars} unless the edit shortens them."
        )
    if before is None:
        return reasons
    for name in GATED_FIELDS:
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        change = measure_change(old, new)
        if change.chars > limits.max_change_chars:
            reasons.append(
                f"The edit changes {change.chars} characters of the {name}; "
                f"the limit is {limits.max_change_chars}."
            )
        elif len(old) > SHORT_FIELD_CHARS and change.ratio >= limits.major_ratio:
            reasons.append(
                f"The edit changes {change.ratio:.2f} of the {name}; the limit is {limits.major_ratio}."
            )
    return reasons


def cumulative_refusals(
    published: Content | None, after: Content, limits: Limits = DEFAULT_LIMITS
) -> list[str]:
    """Return why an edit after others would rewrite what is published, though each of them is small.

    Held against what they take out of the published text together; what they add to it may grow, since every
    lesson is small, and a reviewer is told of it (`rewritten`).
    """
    reasons = []
    for name in GATED_FIELDS if published else ():
        old, new = getattr(published, name), getattr(after, name)
        lost = measure_change(old, new).lost
        share = lost / len(old) if len(old) > SHORT_FIELD_CHARS else 0.0
        if lost > limits.max_change_chars or share >= limits.major_ratio:
            reasons.append(
                f"It is cumulative: with the edits before it, it takes {lost} of the {len(old)} characters "
                f"out of the published {name}; the limit is {limits.max_change_chars} and a share of "
                f"{limits.major_ratio}. It waits until the other edits are decided."
            )
    return reasons


def rewritten(published: Content | None, after: Content, limits: Limits = DEFAULT_LIMITS) -> dict[str, float]:
    """Return the fields of which a proposal changes more than one edit may, each with the changed share."""
    found = {}
    for name in GATED_FIELDS if published else ():
        old = getattr(published, name)
        change = measure_change(old, getattr(after, name))
        is_major = len(old) > SHORT_FIELD_CHARS and change.ratio >= limits.major_ratio
        if change.chars > limits.max_change_chars or is_major:
            found[name] = change.ratio
    return found


def support_refusals(experiences: Sequence[ExperienceView]) -> list[str]:
    """Return why the evidence of an operation does not carry it."""
    if not experiences:
        return ["The operation cites no experience."]
    if not any(experience.verified for experience in experiences):
        return ["None of the cited experiences is verified."]
    return []


def refusals(
    *,
    before: Content | None,
    after: Content,
    experiences: Sequence[ExperienceView],
    limits: Limits = DEFAULT_LIMITS,
) -> list[str]:
    """Return every reason against an operation, in the order of the gates; empty when it may be written.

    `before` is the text that an edit starts from, None for a create; `experiences` are the cited ones.
    """
    unchanged = ["The edit changes nothing."] if before == after else []
    return [
        *content_refusals(after),
        *unchanged,
        *size_refusals(before, after, limits),
        *support_refusals(experiences),
    ]
