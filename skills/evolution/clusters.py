"""Clusters: experiences that are about the same thing and so belong in one skill. Pure.

Lessons about one tool are one cluster, and so are lessons about one task. Tasks are named by a user's words,
so two names may mean one task: those that share enough words of meaning, with what was asked for counted
in, are one, and so are those of which lessons rest on the same error, whatever its values were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from skills.evolution.facts import Facts, topic_parts
from skills.evolution.types import ExperienceView
from skills.evolution.words import content_words, words

MIN_SHARED_WORDS = 2
MIN_OVERLAP = 0.5
MIN_ERROR_WORDS = 2
"""Words of meaning that an error must have to be known again, beside `SAID_OF_ANYTHING`."""
SAID_OF_ANYTHING = content_words(
    "access connection denied error exception exist failed failure fatal forbidden found input invalid "
    "missing permission refused request server timeout unauthorized unavailable unknown value"
)
ERROR_WORDS = frozenset(("error", "err", "exception", "fatal"))
CODE_CHARS = 3
"""Numbers of so many digits are codes, which tell errors apart; longer ones are values."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Experiences of one topic, the weightiest first."""

    topic: str
    experiences: tuple[ExperienceView, ...]

    @property
    def weight(self) -> float:
        """The sum of what its experiences weigh: a topic that came up often goes first."""
        return sum(weight(experience) for experience in self.experiences)


def weight(experience: ExperienceView) -> float:
    """Return how much an experience weighs: importance times credibility."""
    return experience.importance * experience.credibility


def clusters(experiences: Sequence[ExperienceView]) -> list[Cluster]:
    """Return the clusters of experiences, the heaviest first; every experience is in exactly one.

    The topic of several related tasks is the one that most of their experiences name.
    """
    by_topic: dict[str, list[ExperienceView]] = {}
    for experience in experiences:
        by_topic.setdefault(topic_of(experience), []).append(experience)
    tasks = {topic: _Task.of(topic, rows) for topic, rows in by_topic.items() if topic.startswith("task:")}
    groups: list[list[str]] = []
    for topic in sorted(by_topic):
        related = [group for group in groups if any(_related(topic, other, tasks) for other in group)]
        for group in related:
            groups.remove(group)
        groups.append([topic, *(other for group in related for other in group)])
    found = [_cluster(group, by_topic) for group in groups]
    return sorted(found, key=lambda cluster: (-cluster.weight, cluster.topic))


def main_topic(experiences: Sequence[ExperienceView]) -> str:
    """Return the topic that most of the experiences have, of equals the one that comes first."""
    counts = Counter(map(topic_of, experiences))
    return max(counts, key=lambda topic: counts[topic])


def topic_of(experience: ExperienceView) -> str:
    """Return what an experience is about; without a topic of its own, its title is the task."""
    kind, name = topic_parts(experience.topic)
    if name:
        return f"{kind or 'task'}:{name}"
    return f"task:{' '.join(sorted(content_words(experience.title)))[:80]}"


def error_of(experience: ExperienceView) -> str:
    """Return the kind of the error that a lesson rests on; "" where it rests on none that tells enough."""
    is_error = experience.verified and experience.signal_type == "tool_error"
    return kind_of_error(experience.quote) if is_error else ""


@lru_cache(maxsize=20_000)
def kind_of_error(quote: str) -> str:
    """Return an error as words, without ids and other values of its call; "" where too little is left.

    >>> kind_of_error("Error: order A-1742 needs a reason to be cancelled")
    'order needs reason to be cancelled'
    """
    said = [word for word in words(quote) if _is_kept(word)]
    while said and said[0] in ERROR_WORDS:
        del said[0]
    text = " ".join(said)
    return text if len(content_words(text) - SAID_OF_ANYTHING) >= MIN_ERROR_WORDS else ""


def _is_kept(word: str) -> bool:
    if word.isascii() and len(word) == 1:  # half of an id, or an article
        return False
    return word.isalpha() or (word.isdigit() and len(word) <= CODE_CHARS)


def says_of_the_same(one: ExperienceView, other: ExperienceView) -> bool:
    """Return whether two lessons are about the same: of one topic, or resting on the same error.

    What is said of two tools is not, though both answer in the same words.
    """
    if one.topic == other.topic:
        return bool(one.topic)
    kinds = {topic_parts(one.topic)[0], topic_parts(other.topic)[0]}
    return kinds != {"tool"} and bool(error_of(one)) and error_of(one) == error_of(other)


def overlap(left: frozenset[str], right: frozenset[str]) -> bool:
    """Return whether two sets of words share enough to speak of the same task."""
    shared = len(left & right)
    return shared >= MIN_SHARED_WORDS and shared >= MIN_OVERLAP * min(len(left), len(right))


def task_words(topic: str, experiences: Sequence[ExperienceView]) -> frozenset[str]:
    """Return the words of meaning of a task: of its name, and of what was asked for."""
    requests = " ".join(Facts.of(experience).request for experience in experiences)
    return content_words(f"{topic_parts(topic)[1]} {requests}")


@dataclass(frozen=True)
class _Task:
    """What tells whether two tasks are one."""

    words: frozenset[str]
    errors: frozenset[str]

    @classmethod
    def of(cls, topic: str, experiences: Sequence[ExperienceView]) -> _Task:
        errors = frozenset(map(error_of, experiences)) - {""}
        return cls(task_words(topic, experiences), errors)


def _related(one: str, other: str, tasks: Mapping[str, _Task]) -> bool:
    left, right = tasks.get(one), tasks.get(other)
    if left is None or right is None:
        return False
    return overlap(left.words, right.words) or not left.errors.isdisjoint(right.errors)


def _cluster(topics: list[str], by_topic: dict[str, list[ExperienceView]]) -> Cluster:
    members = [experience for topic in topics for experience in by_topic[topic]]
    ordered = sorted(members, key=lambda experience: (-weight(experience), experience.id))
    return Cluster(topic=main_topic(ordered), experiences=tuple(ordered))
