"""Evidence: the quote is looked up word for word, the credibility computed from signal and role."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.distillation.evidence import Grounded, ground
from skills.distillation.types import Lesson, TranscriptTurn

TURNS = [
    TranscriptTurn(seq=1, role="user", content="Please refund order 17."),
    TranscriptTurn(seq=2, role="assistant", content="I should have asked for the reason first."),
    TranscriptTurn(
        seq=3,
        role="tool",
        content="[refund] Error: reason\n  is missing",
        tool_name="refund",
        tool_call_id="c1",
    ),
    TranscriptTurn(seq=4, role="tool", content="[refund] refunded 17", tool_name="refund"),
    TranscriptTurn(seq=5, role="user", content="That worked, thank you. Error: reason is missing was odd."),
]


def lesson(**fields: Any) -> Lesson:
    defaults: dict[str, Any] = {
        "experience_type": "worth_learning",
        "title": "t",
        "content": "c",
        "topic": "tool:refund",
        "details": {},
        "importance": 0.5,
        "credibility": 0.5,
        "signal_type": "tool_error",
        "quote": "Error: reason is missing",
        "turn_seq": 3,
    }
    return Lesson(**defaults | fields)


def test_a_quote_in_the_named_turn_is_verified_and_returned_in_the_turns_own_white_space():
    assert ground(lesson(), TURNS) == Grounded(
        turn_seq=3, verified=True, credibility=0.9, quote="Error: reason\n  is missing"
    )


def test_a_quote_in_another_turn_moves_the_lesson_there():
    grounded = ground(lesson(quote="That worked", signal_type="user_confirmation"), TURNS)
    assert (grounded.turn_seq, grounded.verified, grounded.credibility) == (5, True, 0.9)


def test_of_several_other_turns_the_one_that_suits_the_signal_is_taken():
    assert ground(lesson(turn_seq=1), TURNS).turn_seq == 3


def test_a_quote_that_nobody_said_is_unverified_and_hardly_believed():
    assert ground(lesson(quote="Error: reason was missing", credibility=1.0), TURNS) == Grounded(
        turn_seq=3, verified=False, credibility=0.3, quote="Error: reason was missing"
    )


def test_case_counts_and_compatibility_forms_do_not():
    assert not ground(lesson(quote="error: Reason is missing"), TURNS).verified
    assert ground(lesson(quote="Ｅrror: reason is missing"), TURNS).verified


def test_a_blank_quote_is_unverified():
    assert ground(lesson(quote=" \n "), TURNS).verified is False


@pytest.mark.parametrize(
    ("quote", "content", "verified"),
    [
        ("No", "No", True),
        ("No.", " No. ", True),
        ("No", "No, I said economy", False),
        ("e", "Please refund order 17.", False),
        ("fund", "Please refund order 17.", False),
        ("refund", "Please refund order 17.", True),
        ("Please refu", "Please refund order 17.", False),
        ("Please refund o", "Please refund order 17.", True),
        ("不", "不对，我要经济舱", False),
        ("不对", "不对，我要经济舱", True),
        ("我要经济舱，不是", "不对，我要经济舱，不是商务舱", True),
        ("…", "wait … no", False),
        ("17", "Please refund order 17.", False),
        ("?!", "?!", True),
        ("[redacted: api key]", "it is [redacted: api key] so use it", False),
        ("[1,200 characters left out]", "a\n[1,200 characters left out]\nb", False),
        ("[served by skill search]", "[served by skill search]", False),
        ("so use [redacted: api key]", "it is so: so use [redacted: api key]", True),
    ],
)
def test_a_quote_that_stands_anywhere_by_chance_proves_nothing(quote, content, verified):
    turn = TranscriptTurn(seq=1, role="user", content=content)
    assert ground(lesson(quote=quote, turn_seq=1), [turn]).verified is verified


def test_all_that_a_tool_complains_of_may_be_short():
    turn = TranscriptTurn(seq=1, role="tool", content='{"error": "no", "note": 1}')
    assert ground(lesson(quote="no", turn_seq=1), [turn]).verified
    assert not ground(lesson(quote="n", turn_seq=1), [turn]).verified


def test_a_turn_that_does_not_exist_is_forgotten():
    assert ground(lesson(quote="nobody said so", turn_seq=99), TURNS).turn_seq is None


@pytest.mark.parametrize(
    ("signal", "seq", "quote", "low", "high"),
    [
        ("tool_error", 3, "is missing", 0.8, 1.0),
        ("tool_error", 4, "refunded 17", 0.1, 0.3),  # no failure
        ("tool_error", 2, "I should have asked", 0.1, 0.3),  # no tool
        ("user_critique", 1, "Please refund", 0.8, 1.0),
        ("user_critique", 2, "I should have asked", 0.1, 0.3),
        ("user_confirmation", 5, "That worked", 0.8, 1.0),
        ("user_confirmation", 4, "refunded 17", 0.1, 0.3),
        ("self_correction", 2, "I should have asked", 0.4, 0.7),
        ("self_correction", 1, "Please refund", 0.1, 0.3),
        ("inferred", 1, "Please refund", 0.1, 0.3),
        ("no such signal", 1, "Please refund", 0.1, 0.3),
    ],
)
def test_signal_and_role_choose_the_band_and_the_claim_only_the_place_in_it(signal, seq, quote, low, high):
    def credibility(claim: float) -> float:
        named = lesson(signal_type=signal, turn_seq=seq, quote=quote, credibility=claim)
        return ground(named, TURNS).credibility

    assert credibility(0.0) == low
    assert credibility(0.5) == pytest.approx((low + high) / 2)
    assert credibility(1.0) == high
    assert credibility(7.0) == high
    assert credibility(-1.0) == low
    assert credibility(math.nan) == low


@given(quote=st.text(max_size=700), claim=st.floats(), signal=st.text(max_size=20))
def test_anything_may_be_claimed(quote, claim, signal):
    grounded = ground(lesson(quote=quote, credibility=claim, signal_type=signal, turn_seq=None), TURNS)
    assert 0.1 <= grounded.credibility <= 1.0
    assert len(grounded.quote) <= 512
    assert grounded.verified or grounded.credibility <= 0.3
