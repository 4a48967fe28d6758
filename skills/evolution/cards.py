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
from skills.distillation.wording import code, listing, said, sentence
from skills.evolution.facts import Facts, topic_parts
from skills.evolution.general import GAP, leans_on_context, phrases_in
from skills.evolution.page import quoted
from skills.evolution.points import is_failed_call, learned
from skills.evolution.types import ExperienceView
from skills.evolution.words import content_words

MAX_DESCRIBED_ERRORS = 4
MAX_DESCRIPTION_CHARS = 900
MAX_OPENING_CHARS = 400
MAX_PHRASES = 5
MAX_FOREIGN_PHRASES = 2
MAX_TRIGGER_CHARS = 160
SAME_PHRASE = 0.6

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_EMPTY_QUOTES = re.compile(rf"['\"‘’]?{GAP}['\"‘’]?")
_ERRORS_AT_END = re.compile(r"answers ((?:“[^”]*”(?:, | or )?)+)\.$")


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
    requests = phrases_of(topic, experiences)
    if kind == "tool":
        tool = code(name, 80)
        what = _opening(tool, experiences)
        occasions = [f"when you call {tool}"]
    else:
        subject = words_of_topic(topic) or "this task"
        what = f"What earlier sessions taught about {said(subject)}."
        occasions = [] if requests else [f"when the task is {said(subject)}"]
    if requests:
        occasions.append(f"for requests such as {said(requests[0])}")
    if errors:
        ending = listing((quoted(error) for error in errors[:MAX_DESCRIBED_ERRORS]), "or")
        occasions.append(f"when {'it' if kind == 'tool' else 'a tool'} answers {ending}")
    return shorten(f"{what} Use {listing(occasions, 'or')}.", MAX_DESCRIPTION_CHARS)


def _opening(tool: str, experiences: Sequence[ExperienceView]) -> str:
    """Return what was learned about calling a tool, in one sentence."""
    beforehand, refused = learned(experiences)
    about_errors = listing(refused, "or")
    if beforehand:
        otherwise = f"; when it refuses, {about_errors}" if refused else ""
        text = f"Call {tool} right the first time: {listing(beforehand)}{otherwise}"
    elif refused:
        text = f"When {tool} refuses, {about_errors}"
    elif errors_of(experiences):
        text = f"Know the errors of {tool} before you call it"
    else:
        text = f"Call {tool} as users want it done"
    return sentence(shorten(text, MAX_OPENING_CHARS))


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
    return _shortened([*phrases_of(topic, experiences), *tool, *_error_triggers(experiences)])


def widen_triggers(topic: str, triggers: list[str], experiences: Sequence[ExperienceView]) -> list[str]:
    """Return triggers with those of more experiences behind them, without repetitions."""
    known = [content_words(trigger) for trigger in triggers]
    phrases = [phrase for phrase in phrases_of(topic, experiences) if not _is_known(phrase, known)]
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


def phrases_of(topic: str, experiences: Iterable[ExperienceView]) -> list[str]:
    """Return what users asked for, in their words without their values; like requests once.

    Those that share most words with the topic come first, and of those that share none only a few stay;
    what only makes sense after something said before it is left out.
    """
    subject = content_words(topic_parts(topic)[1])
    requests = dict.fromkeys(Facts.of(experience).request for experience in experiences)
    phrases = [phrase for request in requests for phrase in phrases_in(request)]
    phrases = [phrase for phrase in phrases if not leans_on_context(phrase)]
    phrases.sort(key=lambda phrase: -len(subject & content_words(phrase)))
    akin = [phrase for phrase in phrases if subject & content_words(phrase)]
    phrases = akin + phrases[len(akin) :][:MAX_FOREIGN_PHRASES]
    found: list[str] = []
    for phrase in phrases:
        if not _is_known(phrase, map(content_words, found)):
            found.append(phrase)
    return found[:MAX_PHRASES]


def _error_triggers(experiences: Iterable[ExperienceView]) -> list[str]:
    plain = (" ".join(_EMPTY_QUOTES.sub(" ", error).split()) for error in errors_of(experiences))
    tidy = (re.sub(r"\s+([,.;:!?])", r"\1", error).strip(" :;,.") for error in plain)
    return [error for error in tidy if len(error.split()) >= 2]


def _is_known(phrase: str, known: Iterable[frozenset[str]]) -> bool:
    own = content_words(phrase)
    return any(len(own & other) >= SAME_PHRASE * max(1, min(len(own), len(other))) for other in known)


def _shortened(triggers: Iterable[str]) -> list[str]:
    """Return triggers on one short line each, without blanks and repetitions, as many as a skill may have."""
    lines = (shorten(trigger, MAX_TRIGGER_CHARS) for trigger in triggers)
    unique = {line.casefold(): line for line in reversed(list(lines)) if line.strip()}
    return list(reversed(unique.values()))[:MAX_TRIGGERS]
