"""A session with its passwords and keys covered up, before anything is learned from it. Pure.

Each secret becomes a word of its own, the same wherever it occurs, so that two calls still differ where
their secrets do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mirix.redaction import names_a_secret, replace_secrets
from skills.distillation.calls import bounded, parsed
from skills.distillation.types import TranscriptTurn

MAX_KNOWN = 500
MIN_CHARS = 4
"""Shorter values of an argument are covered in the argument alone: they may be any word of a text."""

_COVER = re.compile(r"\[secret-\d+\]")
_CUT_COVER = re.compile(r"\[(?:s(?:e(?:c(?:r(?:e(?:t(?:-\d*)?)?)?)?)?)?)?$")


class Secrets:
    """The secrets of one session."""

    def __init__(self, turns: Sequence[TranscriptTurn]) -> None:
        self._taken = {cover for turn in turns for cover in _COVER.findall(turn.content)}
        self._covers: dict[str, str] = {}
        called = [self._without(turn) for turn in turns]
        known = sorted((text for text in self._covers if len(text) >= MIN_CHARS), key=len, reverse=True)
        self._known = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, known[:MAX_KNOWN])) or '(?!)'})(?!\w)")
        self.concealed = [replace(turn, content=self._covered(turn.content)) for turn in called]
        """The turns without their secrets."""

    def revealed(self, quote: str) -> str:
        """Return a quote of a concealed turn in the words of the real one."""
        for text, cover in self._covers.items():
            quote = quote.replace(cover, text)
        return _CUT_COVER.sub("", quote) if self._covers else quote

    def _without(self, turn: TranscriptTurn) -> TranscriptTurn:
        """Return a turn whose calls hold no secret, and learn those that it holds."""
        calls = []
        for call in turn.tool_calls:
            if isinstance(call, dict):
                arguments = bounded(parsed(call.get("arguments")))
                covered = self._value(arguments, "")
                call = call | {"arguments": covered} if covered != arguments else call
            calls.append(call)
        return replace(turn, tool_calls=calls)

    def _value(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: self._value(item, str(key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, name) for item in value]
        if isinstance(value, str) and value.strip() and names_a_secret(name):
            return self._cover(value)
        return replace_secrets(value, self._found) if isinstance(value, str) else value

    def _covered(self, text: str) -> str:
        return replace_secrets(self._known.sub(lambda match: self._cover(match[0]), text), self._found)

    def _found(self, secret: str, label: str) -> str:
        return secret if _COVER.fullmatch(secret) else self._cover(secret)

    def _cover(self, secret: str) -> str:
        if secret not in self._covers:
            number = len(self._covers) + 1
            while (cover := f"[secret-{number}]") in self._taken:
                number += 1
            self._taken.add(cover)
            self._covers[secret] = cover
        return self._covers[secret]
