"""How a credibility came about, in words that agree with what is computed."""

from __future__ import annotations

import pytest

from skills.distillation.evidence import ground
from skills.distillation.explaining import explain_credibility
from skills.distillation.types import Lesson, TranscriptTurn

TURNS = [
    TranscriptTurn(seq=1, role="user", content="No, use the other card, please."),
    TranscriptTurn(seq=2, role="tool", content="Error: card 6 is expired", is_error=True),
    TranscriptTurn(seq=3, role="assistant", content="I should have asked for the card first."),
]


def explained(signal: str, quote: str, claim: float) -> str:
    lesson = Lesson(
        experience_type="worth_learning",
        title="t",
        content="c",
        topic="",
        details={},
        importance=0.5,
        credibility=claim,
        signal_type=signal,
        quote=quote,
        turn_seq=None,
    )
    proof = ground(lesson, TURNS)
    speaker = next((turn.role for turn in TURNS if proof.verified and turn.seq == proof.turn_seq), "")
    return explain_credibility(
        signal_type=signal,
        verified=proof.verified,
        speaker=speaker,
        credibility=proof.credibility,
        claim=claim,
    )


FOUND = "The quote stands word for word in what {} said. "
OWN = "within that the distiller's own 50 % places it at {} %."


@pytest.mark.parametrize(
    ("signal", "quote", "words"),
    [
        (
            "user_critique",
            "use the other card",
            f"{FOUND.format('the user')}A user's critique counts 80 to 100 %; {OWN.format(90)}",
        ),
        (
            "tool_error",
            "card 6 is expired",
            f"{FOUND.format('a tool')}An error of a tool counts 80 to 100 %; {OWN.format(90)}",
        ),
        (
            "self_correction",
            "should have asked for the card",
            f"{FOUND.format('the assistant')}A correction of the assistant by itself counts 40 to 70 %; "
            + OWN.format(55),
        ),
        (
            "user_critique",
            "card 6 is expired",
            (
                f"{FOUND.format('a tool')}It was taken for a user's critique, which needs a turn of the "
                f"user; so it counts as inferred, 10 to 30 %; {OWN.format(20)}"
            ),
        ),
        (
            "tool_error",
            "nobody ever said this",
            (
                "The quote stands in no turn of its session word for word. Whatever the signal, that counts "
                f"10 to 30 %; {OWN.format(20)}"
            ),
        ),
    ],
)
def test_the_words_say_what_was_computed(signal, quote, words):
    assert explained(signal, quote, 0.5) == words


def test_what_was_not_computed_by_this_is_not_explained_by_it():
    said = explain_credibility(
        signal_type="user_critique", verified=True, speaker="user", credibility=0.87, claim=0.1
    )
    assert said.endswith("A user's critique counts 80 to 100 %; this 87 % was set otherwise.")


def test_without_a_claim_or_a_speaker_the_rest_is_said():
    said = explain_credibility(signal_type="inferred", verified=True, speaker="", credibility=0.2, claim=None)
    assert said == "The quote stands word for word. What was only inferred counts 10 to 30 %."
