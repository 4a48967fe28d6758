"""Lessons from failed tool calls: what to do, what to keep away from. Pure.

Every failure gives one lesson worth avoiding, grounded in that failure; a struggle that ends in success
gives, besides, one lesson worth learning for each thing the tool complained about: it says once what to do,
however often it went wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from skills.distillation import advice
from skills.distillation.amounts import compared
from skills.distillation.calls import Call
from skills.distillation.changes import ABSENT, Change, Kind, compare, leaves, renamed
from skills.distillation.intent import request_before
from skills.distillation.outcomes import MAX_SAME_FAILURES, Outcome, Struggle
from skills.distillation.types import Lesson, TranscriptTurn
from skills.distillation.wording import (
    code,
    inert,
    listing,
    mentions,
    number,
    ordinal,
    paragraph,
    pattern_of,
    said,
    speaks_of,
    title,
    value,
)

_PASSING = re.compile(
    r"time[d -]?\s?out|temporar|unavailable|rate.?limit|too many requests|try again|overload|connection|busy"
    r"|\b(?:429|502|503|504)\b",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile(
    r"permission|forbidden|unauthori[sz]ed|access denied|not authori[sz]ed|may not|\b(?:401|403)\b",
    re.IGNORECASE,
)

LEARN, AVOID = "worth_learning", "worth_avoiding"


def tool_lessons(found: Sequence[Struggle], turns: Sequence[TranscriptTurn]) -> Iterator[Lesson]:
    """Yield the lessons of the given struggles, in order of the failures."""
    for struggle in found:
        if struggle.same_failures > MAX_SAME_FAILURES:
            continue
        writer = _Writer(struggle, turns)
        match struggle.outcome:
            case Outcome.CHANGED:
                yield writer.changed_avoid()
                if struggle.is_last_of_message:
                    yield writer.changed_learn()
            case Outcome.RETRIED:
                if struggle.is_last_of_message:
                    yield writer.retried()
            case Outcome.REPEATED:
                yield writer.repeated()
            case Outcome.GIVEN_UP:
                yield writer.given_up()


class _Writer:
    """Writes the lessons of one struggle."""

    def __init__(self, struggle: Struggle, turns: Sequence[TranscriptTurn]) -> None:
        self.struggle, self.turns = struggle, turns
        self.call, self.fix, self.next_try = struggle.call, struggle.fix, struggle.next_try
        self.tool = code(self.call.tool, 80)
        self.message = self.call.message
        comparison = compared(self.call)
        self.compared = comparison[0] if comparison else None
        amounts = comparison[1] if comparison else []
        self.pattern = pattern_of(self.message, self.call.arguments, amounts)
        self.request = request_before(turns, self.call.seq, self.call.tool)
        # A refusal is about who asks, whatever it mentions besides.
        self.pointed = [] if _FORBIDDEN.search(self.message) else pointed(self.call)
        self.changes = compare(self.call, self.fix) if self.fix else []
        self.step = compare(self.call, self.next_try) if self.next_try else []
        self.telling = self._telling()

    # One method per outcome

    def changed_avoid(self) -> Lesson:
        """Say what not to do again after a failure that other arguments resolved."""
        warning = advice.avoid_all(self.telling, self.call.tool)
        if warning:
            heading = title(f"Do not {warning}: it answers ", self.pattern, "")
        else:
            kept = [change for change in self.telling if change.before is not ABSENT] or self.telling
            names = listing(dict.fromkeys(code(advice.leaf(change), 40) for change in kept[:2]))
            heading = title("After ", self.pattern, f", do not call {self.tool} again with the same {names}")
        return self._lesson(
            AVOID,
            heading,
            paragraph(
                f"{self.tool} failed with {said(self.message)} when called {advice.sent(self.changes)}",
                self._named(),
                self._count(),
                self._next_step(),
                f"In the call that went through, {advice.contrast_all(self.changes)}",
                self._doubt(),
            ),
            importance=0.65,
        )

    def changed_learn(self) -> Lesson:
        """Say what to do when the tool complains in this way."""
        return self._lesson(
            LEARN,
            title(f"When {self.tool} says ", self.pattern, f", {self._todo()}"),
            paragraph(
                f"When {self.tool} answers {said(self.message)}, {self._todo(example=False)}",
                f"It succeeded once {advice.contrast_all(self.changes)}",
                self._kept(),
                self._doubt(),
                self._effort(),
                self._wanted(),
            ),
            importance=0.7,
        )

    def retried(self) -> Lesson:
        """Say what to do when the very same call succeeded later."""
        between = self.struggle.between[-3:]
        if between:
            others = listing(code(tool, 60) for tool in between)
            heading = title(f"When {self.tool} says ", self.pattern, f", call {others} first")
            lesson = f"Once {others} had been called, the very same call succeeded"
        else:
            heading = title("", self.pattern, f" from {self.tool} can pass: send the same call again")
            nth = ordinal(self.struggle.total_same + 1)
            lesson = f"The very same call succeeded at the {nth} attempt, so it is worth sending it again"
        return self._lesson(
            LEARN,
            heading,
            paragraph(f"{self.tool} answered {said(self.message)}", lesson, self._wanted()),
            importance=0.6 if between else 0.45,
            between=list(between),
        )

    def repeated(self) -> Lesson:
        """Say what sending the same failing call again led to."""
        nth = ordinal(self.struggle.same_failures)
        return self._lesson(
            AVOID,
            title("After ", self.pattern, f", do not send {self.tool} the same call again"),
            paragraph(
                f"{self.tool} got the same call for the {nth} time and failed again: {said(self.message)}",
                f"It was called with {_arguments(self.call)}",
                self._named(),
                self._comparison()
                or "Change what the message objects to, or ask for what is missing, before calling again",
                self._ending(),
            ),
            importance=0.6,
        )

    def given_up(self) -> Lesson:
        """Say what is known about a failure that nothing resolved."""
        return self._lesson(
            AVOID,
            self._given_up_title(),
            paragraph(
                *self._unresolved(),
                f"It was called with {_arguments(self.call)}",
                self._named(),
                self._comparison(),
                self._next_step(),
                self._ending(),
                self._wanted(),
            ),
            importance=0.5,
        )

    # Titles and sentences

    def _unresolved(self) -> tuple[str, ...]:
        """Say that nothing resolved the failure; a success at something else teaches no value."""
        failed, other = f"{self.tool} failed with {said(self.message)}", self.struggle.other_success
        if other is None:
            return (f"{failed}, and no later call of it succeeded",)
        changed = compare(self.call, other)
        names = listing(list(dict.fromkeys(code(change.name, 40) for change in changed))[:3])
        how = f", with other values of {names}, left out here" if changed else ""
        return (failed, f"A later call of it succeeded{how}; whether it was a try at the same is not known")

    def _given_up_title(self) -> str:
        if _FORBIDDEN.search(self.message):
            return title(f"{self.tool} may refuse with ", self.pattern, ": know whom to turn to")
        if _PASSING.search(self.message):
            return title(f"{self.tool} can fail with ", self.pattern, ": have another way ready")
        if self.compared:
            what = self.compared.what()
            return title("", self.pattern, f" stopped {self.tool}: check {what} beforehand")
        if self.pointed:
            names = dict.fromkeys(code(path.rsplit(".", 1)[-1], 30) for path, _ in self.pointed[:2])
            return title("", self.pattern, f" stopped {self.tool}: check {listing(names)} beforehand")
        return title(f"{self.tool} did not get past ", self.pattern, ": settle the cause before calling")

    def _telling(self) -> list[Change]:
        """Return the changes that speak to the error: those of the step that ended it, those it names."""
        overcome = self.struggle.overcome
        step = {change.argument for change in compare(*overcome)} if overcome else set()
        changes = [change for change in self.changes if change.argument in step] or self.changes
        paths = [path for path, _ in self.pointed]
        named = [
            change
            for change in changes
            if any(path.startswith(change.argument) for path in paths) or speaks_of(self.message, change)
        ]
        if (pair := renamed(changes)) and (pair[0] in named or pair[1] in named):
            named = [change for change in changes if change in named or change in pair]
        return named or changes

    def _todo(self, *, example: bool = True) -> str:
        """Return the advice; an entry that the error names and the fix dropped is what it is about."""
        if len(self.telling) == 1 and self.telling[0].kind is Kind.FEWER_ENTRIES:
            argument = self.telling[0].argument
            if any(path.startswith(f"{argument}[") for path, _ in self.pointed):
                return f"leave the entry it names out of {code(argument, 60)}"
        return advice.do_all(self.telling, example=example)

    def _named(self) -> str:
        """Say which arguments the message points at: those that changed, and values that look like ids."""
        changed = tuple(change.argument for change in self.changes)
        parts = [
            f"{value(item, 60)} (sent as {code(path, 80)})"
            for path, item in self.pointed
            if path.startswith(changed) or any(char.isdigit() for char in str(item))
        ]
        return f"The message names {listing(parts[:2])}" if parts else ""

    def _comparison(self) -> str:
        """Say what the message holds against what was sent."""
        if self.compared is None:
            return ""
        other = f"its {self.compared.against}" if self.compared.against else "another number"
        return f"The message compares {other} with {self.compared.what()} as sent: {self.compared.remedy()}"

    def _count(self) -> str:
        same = self.struggle.same_failures
        return f"It was the {ordinal(same)} time that this very call failed" if same > 1 else ""

    def _next_step(self) -> str:
        """Say what the next attempt changed, where that failed as well."""
        if self.next_try is None:
            return ""
        if not self.step:
            return "The next attempt sent the same call and failed again"
        step = advice.contrast_all(self.step, brief=True)
        if self.next_try.message == self.message:
            return f"The next attempt met the same error, although {step}"
        return f"In the next attempt {step}; that met a different error, {said(self.next_try.message)}"

    def _kept(self) -> str:
        arguments = self.call.arguments
        changed = {change.name for change in self.changes}
        kept = (
            [code(name, 40) for name in arguments if name not in changed]
            if isinstance(arguments, dict)
            else []
        )
        if not 0 < len(kept) <= 6:
            return ""
        return f"{listing(kept)} stayed as {'it was' if len(kept) == 1 else 'they were'}"

    def _doubt(self) -> str:
        if len(self.telling) < 2 or renamed(self.telling):
            return ""
        return f"Which of these {number(len(self.telling), 'change')} was decisive, the session does not show"

    def _effort(self) -> str:
        attempts = self.struggle.attempts
        return f"It took {number(attempts, 'failed attempt')} to find that out" if attempts > 1 else ""

    def _wanted(self) -> str:
        return f"The user had asked: {said(self.request)}" if self.request else ""

    def _ending(self) -> str:
        """Say what the assistant did in the end."""
        instead = self.struggle.instead
        if instead is not None:
            return f"In the end the assistant turned to {code(instead.tool, 80)}"
        later = (turn for turn in self.turns if turn.seq > self.call.answered_at and turn.role == "assistant")
        told = next((turn.content for turn in later if turn.content.strip() and not turn.tool_calls), "")
        return f"The assistant told the user: {said(told)}" if told else ""

    def _argument_paths(self) -> list[str]:
        """Return the arguments that the error names: by value, else, where no fix tells, by name."""
        if self.compared and not self.fix:
            return [self.compared.argument]
        return [path for path, _ in self.pointed] or ([] if self.fix else called_by_name(self.call))

    def _lesson(self, kind: str, heading: str, content: str, *, importance: float, **more: Any) -> Lesson:
        struggle, call = self.struggle, self.call
        assert call.failure is not None
        repeated = struggle.outcome is Outcome.REPEATED
        details: dict[str, Any] = {
            "pattern": struggle.outcome.value,
            "tool": call.tool,
            "error": inert(call.message, 300),
            "error_pattern": inert(self.pattern, 300),
            "changes": [change.as_data() for change in self.changes],
            "telling": [change.argument for change in self.telling],
            "named": self._argument_paths(),
            "compared": self.compared.as_data() if self.compared else {},
            "attempts": struggle.total_same if repeated else struggle.attempts,
            "instead": struggle.instead.tool if struggle.instead else "",
            "request": self.request,
        }
        bonus = 0.1 if advice.is_formal(self.telling) else 0.0
        return Lesson(
            experience_type=kind,
            title=heading,
            content=content,
            topic=f"tool:{inert(call.tool, 150)}",
            details={key: item for key, item in (details | more).items() if item},
            importance=round(min(0.95, importance + bonus + 0.03 * min(5, struggle.attempts - 1)), 2),
            credibility=0.9,
            signal_type="tool_error",
            quote=call.failure.quote,
            turn_seq=call.answered_at,
        )


def called_by_name(call: Call) -> list[str]:
    """Return the paths of arguments whose own name the error message contains, each name once."""
    found: dict[str, str] = {}
    for path, _ in leaves(call.arguments):
        name = re.sub(r"(?:\[\d+\])+$", "", path).rsplit(".", 1)[-1]
        if len(name) >= 4 and (
            mentions(call.message, name) or mentions(call.message, name.replace("_", " "))
        ):
            found.setdefault(name, path)
    return list(found.values())


def pointed(call: Call) -> list[tuple[str, Any]]:
    """Return the arguments whose value stands in the error message, as (path, value), each value once."""
    found: dict[str, tuple[str, Any]] = {}
    for path, item in leaves(call.arguments):
        text = str(item)
        telling = path and item is not None and not isinstance(item, bool) and len(text) >= 3
        if telling and mentions(call.message, text):
            found.setdefault(text, (path, item))
    return list(found.values())


def _arguments(call: Call) -> str:
    """Return the arguments of a call for people."""
    if not isinstance(call.arguments, dict):
        return value(call.arguments) if call.arguments is not None else "arguments that are not on record"
    if not call.arguments:
        return "no arguments"
    shown = [advice.assignment(name, item) for name, item in list(call.arguments.items())[:6]]
    rest = len(call.arguments) - len(shown)
    return listing([*shown, number(rest, "more argument")] if rest else shown)
