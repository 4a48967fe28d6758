"""Lessons from what was said: a user's corrections and confirmations, an assistant's own corrections. Pure.

Corrections about one thing give one lesson: a user who has to say it four times teaches it once, only more
urgently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirix.text import shorten
from skills.distillation import advice
from skills.distillation.calls import Call
from skills.distillation.changes import ABSENT, FORM, Change, Kind, compare, renamed
from skills.distillation.hearing import Heard, Signal, listen
from skills.distillation.intent import request_before, task_slug
from skills.distillation.outcomes import NO_STEP
from skills.distillation.types import Lesson, TranscriptTurn
from skills.distillation.wording import (
    MAX_TITLE_CHARS,
    code,
    discreet,
    inert,
    listing,
    number,
    paragraph,
    said,
    speaks_of,
    title,
    value,
)

_INSTRUCTION = re.compile(
    r"(?:(?:no|please|and|but|then),? )*(?:don't|don’t|do not|never|always|stop|use|try|put|make|send"
    r"|keep|leave|write)\b",
    re.IGNORECASE,
)

LEARN, AVOID = "worth_learning", "worth_avoiding"
MAX_STEPS = 6
MAX_SAID_CHARS = 200


def talk_lessons(
    turns: Sequence[TranscriptTurn], calls: Sequence[Call], *, first_seq: int
) -> Iterator[Lesson]:
    """Yield the lessons of what was said from `first_seq` on."""
    corrections: dict[str, list[_Scene]] = {}
    confirmed_at = 0
    for heard in listen(turns, calls):
        scene = _scene(heard, turns, calls)
        fresh = heard.turn.seq >= first_seq
        match heard.signal:
            case Signal.CORRECTION if fresh:
                corrections.setdefault(scene.topic, []).append(scene)
            case Signal.OWN_CORRECTION if fresh and (heard.hit.informative or scene.changes):
                yield _own_correction(scene)
            case Signal.CONFIRMATION:
                if fresh:
                    yield _confirmation(scene, _steps(calls, confirmed_at, heard.turn.seq))
                confirmed_at = heard.turn.seq
    for scenes in corrections.values():
        yield _correction(max(scenes, key=_weight), len(scenes))


@dataclass(frozen=True, kw_only=True)
class _Scene:
    """What was heard, with the calls that it is about."""

    heard: Heard
    request: str
    before: Call | None
    """The last call before it."""
    after: Call | None
    """The first call after it, of the same tool where there is one."""
    changes: list[Change] = field(default_factory=list)
    """What differs between the two, where they are calls of one tool."""

    @property
    def tool(self) -> str:
        call = self.before or (self.after if self.heard.signal is Signal.OWN_CORRECTION else None)
        return call.tool if call else ""

    @property
    def topic(self) -> str:
        return f"tool:{inert(self.tool, 150)}" if self.tool else f"task:{task_slug(self.request)}"

    def lesson(
        self, kind: str, heading: str, content: str, signal_type: str, importance: float, **more: Any
    ) -> Lesson:
        details = {
            "pattern": self.heard.signal.value,
            "tool": self.tool,
            "changes": [change.as_data() for change in self.changes],
            "request": self.request,
        }
        return Lesson(
            experience_type=kind,
            title=heading,
            content=content,
            topic=self.topic,
            details={key: item for key, item in (details | more).items() if item},
            importance=round(min(0.95, importance), 2),
            credibility=0.9 if self.heard.hit.informative else 0.5,
            signal_type=signal_type,
            quote=self.heard.words,
            turn_seq=self.heard.turn.seq,
        )


def _scene(heard: Heard, turns: Sequence[TranscriptTurn], calls: Sequence[Call]) -> _Scene:
    acts = [call for call in heard.acts if call.tool.casefold() not in NO_STEP]
    if heard.signal is Signal.CONFIRMATION and not acts:
        acts = [call for call in calls if call.seq < heard.turn.seq and call.tool.casefold() not in NO_STEP]
    before, after = _counterparts(acts, heard.then)
    # What differs is the remedy only where it worked, and says something only where it can be named.
    comparable = before is not None and after is not None and after.tool == before.tool and after.succeeded
    changes = compare(before, after) if before and after and comparable else []
    if heard.signal is Signal.CORRECTION:
        changes = _spoken_of(changes, heard.words)
    return _Scene(
        heard=heard,
        request=request_before(turns, heard.turn.seq, before.tool if before else ""),
        before=before,
        after=after,
        changes=changes if all(_can_be_named(change) for change in changes) else [],
    )


def _counterparts(acts: list[Call], then: list[Call]) -> tuple[Call | None, Call | None]:
    """Return the call that the words are about and the one that followed them.

    The words are about the tool that was called again after them, else about the last call.
    """
    for after in then:
        again = [call for call in acts if call.tool == after.tool]
        if again:
            return again[-1], after
    return (acts[-1] if acts else None), (then[0] if then else None)


def _spoken_of(changes: list[Change], words: str) -> list[Change]:
    """Return the changes that a user's words are about: their only one, else those that they mention.

    Whatever else the next call changed, nothing says that the user wanted it.
    """
    if len(changes) < 2 or (len(changes) == 2 and renamed(changes)):
        return changes
    return [change for change in changes if speaks_of(words, change)]


def _can_be_named(change: Change) -> bool:
    """Whether a difference is one of values; of two longer texts it only says that they are two."""
    if change.kind in FORM or change.kind in {Kind.FEWER_ENTRIES, Kind.MORE_ENTRIES}:
        return True
    return all(len(str(item)) <= 60 and "\n" not in str(item) for item in (change.before, change.after))


# The three kinds of lesson


def _correction(scene: _Scene, times: int) -> Lesson:
    heard, before = scene.heard, scene.before
    tool = code(scene.tool, 80)
    if before is not None:
        opening = (
            f"After {tool} had been called{_with(scene.changes)}, the user said: {said(heard.words, 400)}"
        )
    elif heard.answer:
        opening = (
            f"When the assistant had answered {said(heard.answer)}, the user said: {said(heard.words, 400)}"
        )
    else:
        opening = f"The user said: {said(heard.words, 400)}"
    weight = 0.8 if scene.changes else 0.7 if heard.hit.informative else 0.55
    return scene.lesson(
        AVOID,
        _corrected_title(scene),
        paragraph(opening, _repeated(times), _what_followed(scene), _rule(scene)),
        "user_critique",
        weight + 0.05 * min(3, times - 1),
        attempts=times if times > 1 else 0,
        said=_core(heard.core),
    )


def _corrected_title(scene: _Scene) -> str:
    tool = code(scene.tool, 60)
    wanted = _wanted(scene.changes)
    if wanted:
        return shorten(f"{tool}: the user wanted {wanted}", MAX_TITLE_CHARS)
    words = discreet(scene.heard.core)
    return title(f"{tool}, corrected by the user: " if scene.tool else "Corrected by the user: ", words, "")


def _confirmation(scene: _Scene, steps: list[Call]) -> Lesson:
    heard = scene.heard
    names = list(dict.fromkeys(call.tool for call in steps))
    chain = listing((code(name, 40) for name in names), "and then")
    if not steps:
        heading = title("The user confirmed this answer: ", discreet(heard.answer), "")
        how = f"The assistant had answered: {said(heard.answer, 400)}"
    else:
        heading = _procedure_title(scene.request, names)
        last = steps[-1]
        final = f"; the last call was {code(last.tool, 80)}" if len(names) > 1 else ""
        how = f"What led there: {chain}{final}{_call_arguments(last)}"
    wish = f"The user had asked: {said(scene.request)}" if scene.request else ""
    return scene.lesson(
        LEARN,
        heading,
        paragraph(f"The user confirmed the result: {said(heard.words, 300)}", how, wish),
        "user_confirmation",
        0.6 if heard.hit.informative else 0.5,
        steps=names,
    )


def _procedure_title(request: str, names: list[str]) -> str:
    chain = listing((code(name, 40) for name in names[-3:]), "and then")
    if request:
        return title(f"{chain} settled ", request, "")
    return shorten(f"{chain} did what the user wanted", MAX_TITLE_CHARS)


def _own_correction(scene: _Scene) -> Lesson:
    tool = code(scene.tool, 60)
    words = discreet(scene.heard.hit.sentence.text)
    if advice.is_formal(scene.changes):
        heading = shorten(f"With {tool}, {advice.do_all(scene.changes)} from the start", MAX_TITLE_CHARS)
    else:
        heading = title(f"Own mistake with {tool}: " if scene.tool else "Own mistake: ", words, "")
    return scene.lesson(
        AVOID,
        heading,
        paragraph(
            f"The assistant noticed its own mistake: {said(scene.heard.words, 400)}",
            f"It had called {tool}{_with(scene.changes)}" if scene.changes else "",
            _what_followed(scene),
        ),
        "self_correction",
        0.6 if scene.changes else 0.5,
        said=_core(scene.heard.hit.sentence.text),
    )


# Sentences


def _core(sentence: str) -> str:
    return inert(discreet(sentence), MAX_SAID_CHARS)


def _weight(scene: _Scene) -> tuple[bool, bool, bool]:
    """Return how much a correction says: with its remedy, what was meant and what was not."""
    return bool(scene.changes), scene.heard.hit.informative, " not " in scene.heard.core


def _repeated(times: int) -> str:
    often = "twice" if times == 2 else number(times, "time")
    return f"The user had to correct it {often}" if times > 1 else ""


def _what_followed(scene: _Scene) -> str:
    before, after = scene.before, scene.after
    if after is None:
        return ""
    if scene.changes:
        return f"In the next call, which succeeded, {advice.contrast_all(scene.changes)}"
    if before is not None and after.key == before.key:
        return "The assistant then sent the same call again"
    if before is not None and after.tool == before.tool and after.failure:
        return f"The next call failed: {said(after.message)}"
    return ""


def _rule(scene: _Scene) -> str:
    if scene.changes:
        names = _names(scene.changes)
        return f"Before calling {code(scene.tool, 80)}, take {names} from the user's own words, or ask"
    if _INSTRUCTION.match(scene.heard.core):
        return "Do it that way from the start"
    if scene.before is None and not scene.heard.hit.informative:
        return "Check such an answer before giving it"
    return "Act on the request as the user put it; where it can be read in two ways, ask first"


def _with(changes: list[Change]) -> str:
    return f" {advice.sent(changes)}" if changes else ""


def _names(changes: list[Change]) -> str:
    return listing(dict.fromkeys(code(advice.leaf(change), 40) for change in changes[:3]))


def _wanted(changes: list[Change]) -> str:
    """Return the corrected values for a title."""
    names = _names(changes)
    if len(changes) != 1:
        return f"another {names}" if changes else ""
    change = changes[0]
    given = [item for item in (change.after, change.before) if item is not ABSENT]
    if any(isinstance(item, dict | list) for item in given):
        return f"other {names}"
    if any(discreet(str(item)) != str(item) for item in given):
        return f"another {names}"
    shown = [value(item, 30) for item in given]
    if len(shown) == 2:
        return f"{names} {shown[0]}, not {shown[1]}"
    return f"{names} {shown[0]}" if change.before is ABSENT else f"no {names}"


def _steps(calls: Sequence[Call], since: int, until: int) -> list[Call]:
    """Return the successful calls that led to a confirmation, the last ones where they are many."""
    done = [call for call in calls if since < call.seq < until and call.succeeded]
    return [call for call in done if call.tool.casefold() not in NO_STEP][-MAX_STEPS:]


def _call_arguments(call: Call) -> str:
    if not isinstance(call.arguments, dict) or not call.arguments:
        return ""
    return (
        f" with {listing(advice.assignment(name, item) for name, item in list(call.arguments.items())[:6])}"
    )
