"""The card of a skill: its name, the description that says when to use it, and its triggers. Pure.

These are what an agent's question is matched against, so they hold the words of its situation: what the
user asks for, the tool's name, the errors as they are shown.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from mirix.text import shorten, slugify
from skills.content import MAX_NAME_CHARS, MAX_TRIGGERS
from skills.distillation.wording import code, listing, said
from skills.evolution.facts import Facts, topic_parts
from skills.evolution.general import GAP, phrase_of, without_values
from skills.evolution.page import quoted
from skills.evolution.points import is_failed_call
from skills.evolution.types import ExperienceView
from skills.evolution.words import content_words, words

MAX_DESCRIBED_ERRORS = 4
MAX_DESCRIPTION_CHARS = 900
MAX_PHRASES = 5
MAX_TRIGGER_CHARS = 160
SAME_PHRASE = 0.6

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ERRORS_AT_END = re.compile(r"answers ((?:“[^”]*”(?:, | or )?)+)\.$")
_VERBS = frozenset(
    words(
        """add apply approve archive assign book build calculate call cancel change charge check clone close
        commit compare configure convert copy create decrypt delete deploy describe disable
        download edit enable encrypt exchange execute export fetch filter find format generate get
        import insert install issue list load lock look lookup merge migrate modify move notify
        open order parse pay ping post process publish pull push put query read rebuild refund
        register reject remove rename replace request reschedule reset resolve restart restore
        return revert rollback run save scale schedule search select send set ship show start stop
        submit subscribe summarize sync test transfer translate trigger unlock update upgrade
        upload validate verify view write"""
    )
)


def skill_name(topic: str) -> str:
    """Return the name of the skill about a topic: ``tool:getUserById`` → `get-user-by-id`."""
    _, name = topic_parts(topic)
    spaced = re.sub(r"[^\w-]+", "-", _CAMEL.sub("-", name))
    return slugify(spaced, MAX_NAME_CHARS) or f"lessons-{hashlib.sha256(topic.encode()).hexdigest()[:8]}"


def words_of_topic(topic: str) -> str:
    """Return a topic in plain words: ``tool:update_order`` → `update order`."""
    _, name = topic_parts(topic)
    return " ".join(re.split(r"[\W_]+", _CAMEL.sub(" ", name))).strip().lower()


def describe(topic: str, experiences: Sequence[ExperienceView]) -> str:
    """Return the description of a new skill: what it does, and "Use when …"."""
    kind, name = topic_parts(topic)
    errors = errors_of(experiences)
    requests = phrases_of(experiences)
    if kind == "tool":
        tool = code(name, 80)
        what = f"How to get {tool} through: what to check before the call"
        what += " and what its errors mean." if errors else " and how users want it done."
        occasion = words_of_topic(topic)
        begins = occasion.split(" ")[0] in _VERBS
        situations = [f"you have to {occasion}" if begins and " " in occasion else f"you call {tool}"]
    else:
        subject = words_of_topic(topic) or "this task"
        what = f"What earlier sessions taught about “{subject}”."
        situations = (
            []
            if requests
            else [
                f"the task is to {subject}"
                if subject.split(" ")[0] in _VERBS
                else f"the task is about {subject}"
            ]
        )
    if requests:
        situations.append(f"a user asks to {said(requests[0])}")
    text = f"{what} Use when {listing(situations, 'or')}"
    if errors:
        ending = listing((quoted(error) for error in errors[:MAX_DESCRIBED_ERRORS]), "or")
        text += f", or when {'it' if kind == 'tool' else 'a tool'} answers {ending}"
    return shorten(f"{text}.", MAX_DESCRIPTION_CHARS)


def widen_description(description: str, experiences: Sequence[ExperienceView]) -> str:
    """Return a description of ours with errors added to those it ends with; any other stays as it is."""
    found = _ERRORS_AT_END.search(description)
    if found is None:
        return description
    known = re.findall(r"“([^”]*)”", found[1])
    merged = list(dict.fromkeys([*known, *errors_of(experiences)]))[:MAX_DESCRIBED_ERRORS]
    if len(merged) <= len(known):
        return description
    ending = listing((quoted(error) for error in merged), "or")
    widened = f"{description[: found.start(1)]}{ending}."
    return widened if len(widened) <= MAX_DESCRIPTION_CHARS else description


def triggers_for(topic: str, experiences: Sequence[ExperienceView]) -> list[str]:
    """Return what an agent would search with: requests, the tool, errors."""
    kind, name = topic_parts(topic)
    tool = [name[:MAX_TRIGGER_CHARS]] if kind == "tool" and name else []
    return _shortened([*phrases_of(experiences), *tool, *_error_triggers(experiences)])


def widen_triggers(triggers: list[str], experiences: Sequence[ExperienceView]) -> list[str]:
    """Return triggers with those of more experiences behind them, without repetitions."""
    known = [content_words(trigger) for trigger in triggers]
    phrases = [phrase for phrase in phrases_of(experiences) if not _is_known(phrase, known)]
    room = max(0, 2 * MAX_PHRASES - len(triggers))
    merged = _shortened([*triggers, *phrases[:room], *_error_triggers(experiences)])
    return merged if len(merged) > len(triggers) else triggers


def errors_of(experiences: Iterable[ExperienceView]) -> list[str]:
    """Return the errors that experiences are about, each kind once, the most frequent first."""
    counts: dict[str, int] = {}
    for experience in experiences:
        facts = Facts.of(experience)
        if is_failed_call(facts):
            counts[facts.error] = counts.get(facts.error, 0) + 1
    return sorted(counts, key=lambda error: -counts[error])


def phrases_of(experiences: Iterable[ExperienceView]) -> list[str]:
    """Return what users asked for, in their words without their values; like requests once."""
    found: list[str] = []
    known: list[frozenset[str]] = []
    for experience in experiences:
        phrase = phrase_of(Facts.of(experience).request)
        if phrase and not _is_known(phrase, known):
            found.append(phrase)
            known.append(content_words(phrase))
    return found[:MAX_PHRASES]


def _error_triggers(experiences: Iterable[ExperienceView]) -> list[str]:
    plain = (" ".join(error.replace(GAP, " ").split()) for error in errors_of(experiences))
    return [without_values(error).strip(" :;,.") for error in plain if len(error.split()) >= 2]


def _is_known(phrase: str, known: Iterable[frozenset[str]]) -> bool:
    own = content_words(phrase)
    return any(len(own & other) >= SAME_PHRASE * max(1, min(len(own), len(other))) for other in known)


def _shortened(triggers: Iterable[str]) -> list[str]:
    """Return triggers on one short line each, without blanks and repetitions, as many as a skill may have."""
    lines = (shorten(trigger, MAX_TRIGGER_CHARS) for trigger in triggers)
    unique = {line.casefold(): line for line in reversed(list(lines)) if line.strip()}
    return list(reversed(unique.values()))[:MAX_TRIGGERS]
