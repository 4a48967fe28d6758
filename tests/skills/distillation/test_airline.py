"""The airline desk: 40 real sessions, 35 tool errors, and what the rules make of them.

The figures are counted here once more from the raw messages, by other code than the distiller's.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from skills.distillation.calls import pair_calls
from skills.distillation.changes import leaves
from skills.distillation.evidence import ground
from skills.distillation.hearing import Signal, listen
from skills.distillation.lexicon import asks, confirmation
from skills.distillation.offline import OfflineDistiller
from skills.distillation.types import Lesson, TranscriptTurn
from tests.data import records
from tests.skills.distillation.sessions import turns_of

FIXED, REPEATED, GIVEN_UP = "changed_arguments", "repeated_call", "given_up"


@dataclass
class Session:
    turns: list[TranscriptTurn]
    lessons: list[Lesson]

    @property
    def errors(self) -> list[TranscriptTurn]:
        return [turn for turn in self.turns if turn.role == "tool" and "] Error: " in turn.content]

    def lessons_on(self, turn: TranscriptTurn) -> list[Lesson]:
        found = [lesson for lesson in self.lessons if lesson.turn_seq == turn.seq]
        return [lesson for lesson in found if lesson.signal_type == "tool_error"]


@cache
def desk() -> dict[str, Session]:
    found = {}
    for record in records("traj/tau_airline_dev.jsonl"):
        turns = turns_of(record["messages"])
        reply = OfflineDistiller().distil(turns, first_seq=1)
        found[record["session_id"]] = Session(turns, reply.lessons)
    return found


@pytest.fixture(name="desk")
def _desk() -> dict[str, Session]:
    return desk()


@dataclass
class Error:
    """An error as counted from the raw messages: the call before it and what followed."""

    session: str
    content: str
    arguments: dict[str, Any]
    kind: str
    fixed_by: dict[str, Any] | None


def counted() -> list[Error]:
    """Every error: fixed by a later success with other arguments, else repeated, else given up."""
    found = []
    for record in records("traj/tau_airline_dev.jsonl"):
        calls = []
        for message in record["messages"]:
            for call in message.get("tool_calls") or []:
                function = call["function"]
                calls.append([call["id"], function["name"], json.loads(function["arguments"]), None])
            if message["role"] == "tool":
                waiting = [c for c in calls if c[0] == message["tool_call_id"] and c[3] is None]
                waiting[-1][3] = message["content"]
        for index, (_, name, arguments, content) in enumerate(calls):
            if not content.startswith("Error: "):
                continue
            later = [call for call in calls[index + 1 :] if call[1] == name]
            fixes = [call[2] for call in later if not call[3].startswith("Error: ") and call[2] != arguments]
            again = any(call[1] == name and call[2] == arguments for call in calls[:index])
            kind = FIXED if fixes else REPEATED if again else GIVEN_UP
            fix = fixes[0] if fixes else None
            found.append(Error(record["session_id"], content, arguments, kind, fix))
    return found


def test_the_figures(desk):
    errors = counted()
    assert len(desk) == 40
    assert len(errors) == 35
    assert Counter(error.kind for error in errors) == {FIXED: 22, REPEATED: 4, GIVEN_UP: 9}
    assert len({error.session for error in errors}) == 13
    assert len({error.session for error in errors if error.kind == FIXED}) == 8


def test_every_error_gives_one_lesson_to_avoid_of_the_kind_that_was_counted(desk):
    kinds = []
    for session in desk.values():
        for turn in session.errors:
            (avoid,) = [le for le in session.lessons_on(turn) if le.experience_type == "worth_avoiding"]
            kinds.append(avoid.details["pattern"])
            assert avoid.quote.startswith("Error: ")
            assert avoid.quote in turn.content
            assert avoid.topic == f"tool:{turn.tool_name}"
    assert kinds == [error.kind for error in counted()]


def test_each_of_the_13_sessions_quotes_an_error_of_its_own(desk):
    teaching = [
        session for session in desk.values() if any(le.signal_type == "tool_error" for le in session.lessons)
    ]
    assert len(teaching) == 13
    assert all(session.errors for session in teaching)


def test_a_fixed_error_names_every_changed_argument_with_both_values(desk):
    fixed = iter(error for error in counted() if error.kind == FIXED)
    checked = 0
    for session in desk.values():
        for turn in session.errors:
            lessons = [le for le in session.lessons_on(turn) if le.details["pattern"] == FIXED]
            if not lessons:
                continue
            error = next(fixed)
            assert error.fixed_by is not None
            changed = [name for name in error.arguments if error.arguments[name] != error.fixed_by[name]]
            for lesson in lessons:
                named = {change["argument"].split("[")[0] for change in lesson.details["changes"]}
                assert sorted(named) == sorted(changed)
                for name in changed:
                    assert f"`{name}" in lesson.content
                for before, after in values_that_differ(error.arguments, error.fixed_by):
                    assert before in lesson.content
                    assert after in lesson.content
                checked += 1
    assert checked == 34  # 22 to avoid, 12 to learn


def values_that_differ(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    """The values on both sides; of lists that shrank, each entry that went beside one that stayed."""
    found = []
    for name, old in before.items():
        new = after[name]
        if old == new:
            continue
        if not isinstance(old, list):
            found.append((old, new))
        elif len(old) == len(new):
            found += [
                (one, other)
                for (_, one), (_, other) in zip(leaves(old), leaves(new), strict=True)
                if one != other
            ]
        else:
            found += [(entry["flight_number"], new[0]["flight_number"]) for entry in old if entry not in new]
    return found


def test_every_quote_stands_word_for_word_in_the_turn_it_names(desk):
    for session in desk.values():
        for lesson in session.lessons:
            (turn,) = [turn for turn in session.turns if turn.seq == lesson.turn_seq]
            assert lesson.quote in turn.content
            grounded = ground(lesson, session.turns)
            assert (grounded.verified, grounded.turn_seq) == (True, turn.seq)
            assert grounded.credibility >= 0.8


def test_all_that_is_learned(desk):
    patterns = Counter(
        (lesson.details["pattern"], lesson.experience_type)
        for session in desk.values()
        for lesson in session.lessons
    )
    assert patterns == {
        (FIXED, "worth_avoiding"): 22,
        (FIXED, "worth_learning"): 12,
        (GIVEN_UP, "worth_avoiding"): 9,
        (REPEATED, "worth_avoiding"): 4,
        ("user_correction", "worth_avoiding"): 7,
    }
    assert sum(not session.lessons for session in desk.values()) == 25


def test_the_corrections_are_those_that_a_reader_finds(desk):
    """Reading all 309 user turns finds 13 that correct the assistant; 12 are heard, and nothing else is.

    The missed one ("Let's focus on changing the Atlanta to Las Vegas segment …") bears no sign of it.
    """
    heard = Counter(
        name
        for name, session in desk.items()
        for heard in listen(session.turns, pair_calls(session.turns))
        if heard.signal is Signal.CORRECTION
    )
    assert heard == {
        "tau-airline-13-t0": 5,
        "tau-airline-13-t2": 3,
        "tau-airline-13-t3": 2,
        "tau-airline-38-t1": 1,
        "tau-airline-38-t3": 1,
    }


def test_thanks_and_approval_confirm_nothing(desk):
    """309 user turns, many with "perfect", "great" or "yes, that sounds good": none confirms a procedure."""
    heard = 0
    for session in desk.values():
        answer = ""
        for turn in session.turns:
            if turn.role == "user":
                heard += 1
                assert confirmation(turn.content, approves_plan=asks(answer)) is None
            elif turn.role == "assistant":
                answer = turn.content
    assert heard == 309
