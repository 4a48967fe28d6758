"""Turns in which a correction or a confirmation is heard, with what was done around them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from skills.distillation import lexicon
from skills.distillation.calls import Call
from skills.distillation.errors import MAX_QUOTE_CHARS
from skills.distillation.lexicon import Hit
from skills.distillation.types import TranscriptTurn

WHOLE_TURN_CHARS = 400


class Signal(StrEnum):
    """What was heard; the value is the lesson's pattern."""

    CORRECTION = "user_correction"
    CONFIRMATION = "user_confirmation"
    OWN_CORRECTION = "self_correction"


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A turn in which something was said that teaches."""

    signal: Signal
    turn: TranscriptTurn
    hit: Hit
    acts: list[Call]
    """Calls since the user had last spoken, those of the turn itself left out."""
    then: list[Call]
    """Calls until the user speaks again, those of the turn itself included."""
    answer: str
    """The assistant's last words before it; "" where there are none."""

    @property
    def words(self) -> str:
        """What was said, verbatim: a user's whole turn if it is short, else from the telling sentence on."""
        content = self.turn.content
        if self.turn.role != "user":
            return self.hit.sentence.text[:MAX_QUOTE_CHARS].strip()
        if len(content.strip()) <= WHOLE_TURN_CHARS:
            return content.strip()
        rest = content[self.hit.sentence.start :][:WHOLE_TURN_CHARS]
        end = max(rest.rfind(mark) for mark in ".!?\n") + 1
        return (rest[:end] if end >= len(self.hit.sentence.text) else rest).strip()

    @property
    def core(self) -> str:
        """The sentence that says most: the telling one, or a later one where that only objects."""
        if self.hit.informative or self.turn.role != "user":
            return self.hit.sentence.text
        later = [
            part.text for part in lexicon.split(self.turn.content) if part.start > self.hit.sentence.start
        ]
        statements = [text for text in later if len(text.split()) >= 5 and not text.endswith("?")]
        return (statements or [self.hit.sentence.text])[0]


def listen(turns: Sequence[TranscriptTurn], calls: Sequence[Call]) -> Iterator[Heard]:
    """Yield every turn that corrects or confirms, in order; a user's first words can do neither."""
    spoken_at, answer = 0, ""
    begun = False
    for turn in turns:
        if turn.role == "assistant":
            text = spoken(turn)
            hit = lexicon.self_correction(text)
            if hit and begun:
                yield _heard(Signal.OWN_CORRECTION, turn, hit, turns, calls, spoken_at, answer)
            answer = text or answer
        elif turn.role == "user":
            acts = [call for call in calls if spoken_at < call.seq < turn.seq]
            if answer or acts:
                signal, hit = _signal(turn, acts, answer)
                if signal and hit:
                    yield _heard(signal, turn, hit, turns, calls, spoken_at, answer)
            spoken_at, answer = turn.seq, ""
        begun = True


def spoken(turn: TranscriptTurn) -> str:
    """Return what an assistant turn says, without the lines in which intake writes its calls."""
    if not turn.tool_calls:
        return turn.content.strip()
    lines = (line for line in turn.content.split("\n") if not line.startswith("[call"))
    return "\n".join(lines).strip()


def _signal(turn: TranscriptTurn, acts: list[Call], answer: str) -> tuple[Signal | None, Hit | None]:
    asked = lexicon.asks(answer)
    if hit := lexicon.correction(turn.content, answers_question=asked or lexicon.offers(answer)):
        return Signal.CORRECTION, hit
    hit = lexicon.confirmation(turn.content, approves_plan=asked)
    # Praise is about something that was done; a plain "that worked" may be about advice.
    if hit and (hit.informative or any(call.succeeded for call in acts)):
        return Signal.CONFIRMATION, hit
    return None, None


def _heard(
    signal: Signal,
    turn: TranscriptTurn,
    hit: Hit,
    turns: Sequence[TranscriptTurn],
    calls: Sequence[Call],
    spoken_at: int,
    answer: str,
) -> Heard:
    until = next((other.seq for other in turns if other.role == "user" and other.seq > turn.seq), None)
    return Heard(
        signal=signal,
        turn=turn,
        hit=hit,
        acts=[call for call in calls if spoken_at < call.seq < turn.seq],
        then=[call for call in calls if turn.seq <= call.seq and (until is None or call.seq < until)],
        answer=answer,
    )
