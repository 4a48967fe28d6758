"""What one experience adds to a page: steps, remedies of errors, pitfalls. Pure.

The text of a point depends on the kind of the lesson alone, never on counts or on values of one session, so
that the same lesson from another session is the same line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skills.distillation.advice import is_formal
from skills.distillation.wording import code, inert, listing, said, sentence
from skills.evolution.facts import Facts, leaf_name
from skills.evolution.general import leans_on_context, phrase_of, without_names, without_values
from skills.evolution.page import NO_SUPPORT, SETTLE, Page, quoted
from skills.evolution.remedies import changes_outcome, refused_sort, remedy, serial_pitfall
from skills.evolution.types import ExperienceView

MAX_LINE_CHARS = 400
MAX_NAMED = 6
SEND_AGAIN = "send the same call once more, it can pass"
DO_NOT_FORCE = "do not try to get around it"
MAX_QUOTE_CHARS = 220
FAILED_CALL = {"changed_arguments", "retried_call", "repeated_call", "given_up"}

_RULE = re.compile(
    r"^(?:no,? |please,? |and |but |so |ok,? |well,? |actually,? )*"
    r"(?:use|don't|do not|never|always|stop|avoid|make sure|keep|put|write|run|send|call|check|ask|only"
    r"|first)\b"
    r"|\b(?:should|must|needs? to be|has to|have to|rather than|instead of)\b"
    r"|\b(?:we|our team|our) (?:use|always|never|only|don't)\b",
    re.IGNORECASE,
)
_CONTRAST = re.compile(r"\bnot\b|n['’]t\b|\b(?:only|just|instead|rather)\b", re.IGNORECASE)
_NO_RIGHT = re.compile(
    r"\b(?:(?:permission|access) denied|forbidden|unauthori[sz]ed|not (?:permitted|authori[sz]ed)|40[13])\b",
    re.IGNORECASE,
)
_HAND_OVER = re.compile(
    r"transfer|escalat|human|hand_?o(?:ver|ff)|ticket|follow_?up|on_?call|notify|contact|support|report",
    re.IGNORECASE,
)
_ABOUT_ONESELF = re.compile(r"\b(?:i|i'm|i've|i'd|my|me)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Step:
    """Something to do."""

    text: str

    def add_to(self, page: Page) -> bool:
        """Write it on the page; return whether that changed anything."""
        return page.add_step(self.text, before=closing_step(page))


@dataclass(frozen=True)
class Remedy:
    """What gets past an error, or what to turn to where nothing does."""

    error: str
    clause: str
    last_resort: bool = False

    @property
    def is_advice_to_wait(self) -> bool:
        """Whether it names nothing that helps."""
        return self.last_resort or self.clause == SETTLE

    def add_to(self, page: Page, support: Mapping[str, int] = NO_SUPPORT) -> bool:
        """Write it on the page, ordered by `support` (sessions by remedy); return if that changed it."""
        return page.add_remedy(self.error, self.clause, last_resort=self.last_resort, support=support)


@dataclass(frozen=True)
class Pitfall:
    """Something to keep away from."""

    text: str

    def add_to(self, page: Page) -> bool:
        """Write it on the page; return whether that changed anything."""
        return page.add_pitfall(self.text)


@dataclass(frozen=True)
class SayBack(Step):
    """The step that follows from any correction; by itself it is no reason for a skill."""


Point = Step | Remedy | Pitfall


def points(experience: ExperienceView) -> list[Point]:
    """Return what an experience teaches; empty where nothing general is left of it."""
    facts = Facts.of(experience)
    if facts.pattern in FAILED_CALL and facts.tool and facts.error:
        return list(_of_failed_call(facts))
    match facts.pattern:
        case "user_correction":
            return list(_of_correction(facts, experience.quote))
        case "user_confirmation":
            return list(_of_confirmation(facts))
        case "self_correction":
            return list(_of_own_correction(facts))
    return list(_of_words(experience))


def is_constructive(experience: ExperienceView) -> bool:
    """Return whether an experience says by itself what to do, so that it may found a skill."""
    return any(
        not point.is_advice_to_wait if isinstance(point, Remedy) else not isinstance(point, Pitfall | SayBack)
        for point in points(experience)
    )


def is_actionable(experience: ExperienceView) -> bool:
    """Return whether an experience says what to do or to keep away from, not only that an error exists."""
    return any(not isinstance(point, Remedy) or point.clause != SETTLE for point in points(experience))


def is_failed_call(facts: Facts) -> bool:
    """Return whether an experience is about a failed call whose error is known."""
    return facts.pattern in FAILED_CALL and bool(facts.tool and facts.error)


def _of_failed_call(facts: Facts) -> Iterator[Point]:
    tool = code(facts.tool)
    match facts.pattern:
        case "changed_arguments":
            yield from _of_changes(facts)
        case "retried_call" if facts.between:
            first = listing(code(name) for name in facts.between[-3:])
            yield Step(f"Call {first} before {tool}; else it answers {quoted(facts.error)}.")
        case "retried_call":
            yield Remedy(facts.error, SEND_AGAIN)
        case "repeated_call":
            yield Remedy(facts.error, _check(facts))
            yield Pitfall(
                f"Sending {tool} the same call again unchanged where no remedy says so; it was refused again."
            )
        case "given_up":
            yield from _of_giving_up(facts)


def _of_giving_up(facts: Facts) -> Iterator[Point]:
    """Say what to look at, and whom to turn to where that is what was done; any other tool is chance."""
    check = _check(facts)
    handed_over = f"go on with {code(facts.instead)}" if _HAND_OVER.search(facts.instead) else ""
    if check == DO_NOT_FORCE and handed_over:
        yield Remedy(facts.error, f"{check}, {handed_over}")
        return
    yield Remedy(facts.error, check)
    if handed_over:
        yield Remedy(facts.error, handed_over, last_resort=True)


def _of_changes(facts: Facts) -> Iterator[Point]:
    clause = remedy(facts.telling, facts.raw_error)
    sums = facts.compared
    if sums and sums.must == "equal" and any(change.name == sums.name for change in facts.telling):
        clause = sums.remedy()
    if clause and is_formal(facts.telling):
        yield Step(f"When you call {code(facts.tool)}, {clause}; else it answers {quoted(facts.error)}.")
    elif clause:
        yield Remedy(facts.error, clause)
    for change in facts.telling:
        if warning := refused_sort(change, facts.error):
            yield Pitfall(warning)


def _check(facts: Facts) -> str:
    """Return what to look at where nothing is known to help; a refusal of rights is not to be got around."""
    if _NO_RIGHT.search(facts.raw_error):
        return DO_NOT_FORCE
    if facts.compared:
        return facts.compared.remedy()
    names = listing(code(name, 60) for name in facts.named[:3])
    return f"check {names} before you call again" if names else SETTLE


def _of_correction(facts: Facts, quote: str) -> Iterator[Point]:
    words = quote if 0 < len(quote) <= MAX_QUOTE_CHARS else facts.said
    if facts.changes:
        names = listing(dict.fromkeys(code(leaf_name(change.argument), 60) for change in facts.changes[:3]))
        call = f" for {code(facts.tool)}" if facts.tool else ""
        yield Step(f"Take {names}{call} from the user's own words; where they can be read in two ways, ask.")
    elif words and is_rule(facts.said or words):
        wish = phrase_of(facts.request)
        occasion = f"For requests such as {said(wish)}, heed" if wish else "Heed"
        yield Step(f"{occasion} what a user had to add: {said(without_values(words), MAX_QUOTE_CHARS)}")
    elif words:
        call = f"call {code(facts.tool)}" if facts.tool else "act"
        yield SayBack(f"Before you {call}, say back what you understood: users had to correct it.")
        if _CONTRAST.search(facts.said):
            yield Pitfall(f"A misreading that a user had to correct: {said(without_names(facts.said), 200)}")


def is_rule(words: str) -> bool:
    """Return whether somebody's words say how a thing is to be done, not what they wanted that day."""
    return bool(_RULE.search(words)) and not (_ABOUT_ONESELF.search(words) and not _RULE.match(words))


def _of_confirmation(facts: Facts) -> Iterator[Point]:
    wish = phrase_of(facts.request)
    if len(facts.steps) < 2 or not wish or leans_on_context(wish):
        return
    way = listing((code(name) for name in facts.steps), "and then")
    yield Step(f"For requests such as {said(wish)}, {way} led to a result that the user confirmed.")


def _of_own_correction(facts: Facts) -> Iterator[Point]:
    if facts.changes and facts.tool and is_formal(facts.changes):
        yield Step(f"When you call {code(facts.tool)}, {remedy(facts.changes, '')} from the start.")
    elif facts.said:
        yield Pitfall(f"A mistake that was made before: {said(without_names(facts.said), 200)}")


def _of_words(experience: ExperienceView) -> Iterator[Point]:
    """Take a lesson that is words alone at its word: its title, and its content where that is short."""
    heading = without_values(inert(experience.title, 200))
    body = without_values(inert(experience.content, MAX_LINE_CHARS))
    text = sentence(heading) if heading else ""
    if body and len(text) + len(body) <= MAX_LINE_CHARS and body.rstrip(".") not in text:
        text = f"{text} {sentence(body)}".strip()
    if not re.search(r"\w", text):
        return
    yield Pitfall(text) if experience.experience_type == "worth_avoiding" else Step(text)


# What a description opens with

MAX_LEARNED = 3
_ARGUMENT = re.compile(r"`([^`]+)`")


def learned(experiences: Sequence[ExperienceView]) -> tuple[list[str], list[str]]:
    """Return what was learned about calling a tool: for any call, and for one that was refused.

    At most three clauses each, what helped in most sessions first.
    """
    sessions: dict[tuple[bool, str], set[str]] = defaultdict(set)
    errors: dict[str, set[str]] = defaultdict(set)
    for experience in experiences:
        for item in _learned(experience):
            sessions[item].add(experience.voice)
            errors[item[1]].add(Facts.of(experience).error)
    # What helped says more than what to look at.
    ranked = sorted(sessions, key=lambda item: (item[1].startswith("check "), -len(sessions[item])))
    beforehand = [clause for always, clause in ranked if always]
    refused = _compatible([clause for always, clause in ranked if not always], errors)
    return beforehand[:MAX_LEARNED], refused[:MAX_LEARNED]


def _compatible(clauses: Sequence[str], errors: Mapping[str, set[str]]) -> list[str]:
    """Return clauses that may stand side by side without their errors: no two that would contradict."""
    kept: list[str] = []
    for clause in clauses:
        names = set(_ARGUMENT.findall(clause))
        if clause == SEND_AGAIN and kept:
            continue
        if any(
            names & set(_ARGUMENT.findall(other)) and not errors[clause] & errors[other] for other in kept
        ):
            continue
        kept.append(clause)
    return kept


def _learned(experience: ExperienceView) -> Iterator[tuple[bool, str]]:
    """Yield (holds for any call, what to do)."""
    facts = Facts.of(experience)
    match facts.pattern:
        case "changed_arguments" if is_failed_call(facts) and is_formal(facts.telling):
            yield True, remedy(facts.telling, facts.raw_error)
        case "self_correction" if facts.changes and facts.tool and is_formal(facts.changes):
            yield True, remedy(facts.changes, "")
        case "retried_call" if is_failed_call(facts) and facts.between:
            yield True, f"call {listing(code(name) for name in facts.between[-3:])} first"
        case "user_correction" if facts.changes:
            names = listing(dict.fromkeys(code(leaf_name(item.argument), 60) for item in facts.changes[:3]))
            yield True, f"take {names} from the user's own words"
        case _:
            for point in points(experience):
                if isinstance(point, SayBack):
                    yield True, "say back what you understood"
                elif isinstance(point, Remedy) and not point.is_advice_to_wait:
                    yield False, point.clause


# What several experiences say together


def support_of(experiences: Iterable[ExperienceView]) -> dict[Point, int]:
    """Return how many sessions teach each point."""
    sessions: dict[Point, set[str]] = defaultdict(set)
    for experience in experiences:
        for point in points(experience):
            sessions[point].add(experience.voice)
    return {point: len(ids) for point, ids in sessions.items()}


def shared_points(experiences: Sequence[ExperienceView]) -> dict[str, list[Point]]:
    """Return points that take several experiences to see, by the id of each that supports one."""
    series: dict[tuple[str, str, str], list[tuple[str, Facts]]] = defaultdict(list)
    for experience in experiences:
        facts = Facts.of(experience)
        if is_failed_call(facts) and len(facts.telling) == 1:
            key = (experience.session_id, facts.error, facts.telling[0].argument)
            series[key].append((experience.id, facts))
    found: dict[str, list[Point]] = defaultdict(list)
    for (_, error, _), members in series.items():
        if warning := serial_pitfall([facts.telling[0] for _, facts in members], error):
            for experience_id, _ in members:
                found[experience_id].append(Pitfall(warning))
    return found


# Steps that stand on every page about a tool

_CHECK = re.compile(r"^Before you call (`[^`]+`), check (.+) against the errors below\.$")
_OUTCOME = re.compile(
    r"^Where a remedy changes the outcome \((.+)\), make sure that it is still what was asked for\.$"
)
_CLOSING = re.compile(r"^When `[^`]+` refuses, change what the error objects to before you call it again\.$")
"""What earlier versions wrote as the last step of such a page."""


def frame(page: Page, tool: str, experience: ExperienceView) -> bool:
    """Write the steps around a list of errors, or widen them by an experience; say if that changed it."""
    facts = Facts.of(experience)
    if not any(isinstance(point, Remedy) for point in points(experience)):
        return False
    checked = [leaf_name(change.argument) for change in facts.telling] or list(facts.named)
    if facts.pattern == "retried_call":
        checked = []
    outcome = [leaf_name(change.argument) for change in facts.telling if changes_outcome(change)]
    name = code(tool or facts.tool)
    changed = _widen(page, _CHECK, checked, f"Before you call {name}, check ", " against the errors below.")
    changed |= _widen(
        page,
        _OUTCOME,
        outcome,
        "Where a remedy changes the outcome (",
        "), make sure that it is still what was asked for.",
    )
    return changed


def is_frame(line: str) -> bool:
    """Return whether a line is one of those that stand around a list of errors and say nothing else."""
    return any(pattern.match(line) for pattern in (_CHECK, _OUTCOME, _CLOSING))


def closing_step(page: Page) -> str:
    """Return the last step where it is the one that all others go in front of, else ""."""
    steps = page.steps()
    return steps[-1][1] if steps and _CLOSING.match(steps[-1][1]) else ""


def _widen(page: Page, pattern: re.Pattern[str], names: list[str], before: str, behind: str) -> bool:
    """Add names to the step that lists them between the words before and behind; write it where missing."""
    if not names:
        return False
    for index, text in page.steps():
        if found := pattern.match(text):
            listed = re.findall(r"`([^`]+)`", found[found.lastindex or 1])
            merged = list(dict.fromkeys([*listed, *(code(name, 60)[1:-1] for name in names)]))[:MAX_NAMED]
            return page.replace_step(index, text.replace(found[found.lastindex or 1], _names(merged)))
    text = f"{before}{_names(list(dict.fromkeys(names)))}{behind}"
    return page.add_step(text, before=closing_step(page))


def _names(names: list[str]) -> str:
    return listing(code(name, 60) for name in names[:MAX_NAMED])
