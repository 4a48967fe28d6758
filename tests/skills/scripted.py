"""A distiller that does as it is told: for tests of what happens around distillation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from skills.distillation.types import ALONE, DistillerReply, Lesson, Surroundings, TranscriptTurn

Script = Callable[[Sequence[TranscriptTurn], int], DistillerReply]


def lesson(turn: TranscriptTurn, **fields: Any) -> Lesson:
    """A lesson that quotes the whole of a turn."""
    defaults: dict[str, Any] = {
        "experience_type": "worth_learning",
        "title": f"Mind what was said: {turn.content}",
        "content": f"It was said that {turn.content}",
        "topic": "task:mind",
        "details": {"seq": turn.seq},
        "importance": 0.5,
        "credibility": 0.5,
        "signal_type": "user_critique",
        "quote": turn.content,
        "turn_seq": turn.seq,
    }
    return Lesson(**(defaults | fields))


def one_lesson(turns: Sequence[TranscriptTurn], first_seq: int) -> DistillerReply:
    """One lesson from the first new turn."""
    new = [turn for turn in turns if turn.seq >= first_seq]
    return DistillerReply(verdict="ok", lessons=[lesson(new[0])], prompt_tokens=10, completion_tokens=1)


def nothing(turns: Sequence[TranscriptTurn], first_seq: int) -> DistillerReply:
    return DistillerReply(verdict="empty", raw_reply="[]")


def gibberish(turns: Sequence[TranscriptTurn], first_seq: int) -> DistillerReply:
    return DistillerReply(verdict="retry", raw_reply="So I think", error="The reply is no JSON: So I think")


def broken(turns: Sequence[TranscriptTurn], first_seq: int) -> DistillerReply:
    raise KeyError("title")


class ScriptedDistiller:
    """Follows the script that a session's first turn names, else the default one; remembers its calls."""

    name = "scripted"
    model = "none"
    prompt_version = "1"
    asks_model = False
    tokens_a_session = 0

    def __init__(self, default: Script = one_lesson, **scripts: Script) -> None:
        self.default = default
        self.scripts = scripts
        self.calls: list[tuple[str, int]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()

    def distil(
        self, turns: Sequence[TranscriptTurn], *, first_seq: int, surroundings: Surroundings = ALONE
    ) -> DistillerReply:
        with self._lock:
            self.calls.append((turns[0].content, first_seq))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return self.scripts.get(turns[0].content, self.default)(turns, first_seq)
        finally:
            with self._lock:
                self._at_once -= 1

    def estimate(self, *, characters: int, octets: int = 0, turns: int = 0) -> int:
        return self.tokens_a_session
