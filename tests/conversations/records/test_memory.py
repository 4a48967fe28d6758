"""However long a source is, what is held of it stays small."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conversations.records import Reader, Record
from conversations.records import sessions as module

TURNS = 30
TEXT = "x" * 500


class Endless(io.RawIOBase):
    """A stream that is written as it is read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._rest) < len(buffer) and (piece := next(self._pieces, b"")):
            self._rest += piece
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def message(number: int) -> dict[str, str]:
    return {"role": "user", "content": f"{number} {TEXT}"}


def session_lines(count: int) -> Iterator[bytes]:
    for number in range(count):
        messages = [message(turn) for turn in range(TURNS)]
        yield json.dumps({"id": f"s-{number}", "messages": messages}).encode() + b"\n"


def one_list(count: int) -> Iterator[bytes]:
    yield b"["
    for number, line in enumerate(session_lines(count)):
        yield b"," * bool(number) + line.strip()
    yield b"]"


def log_lines(count: int) -> Iterator[bytes]:
    for number in range(count * TURNS):
        yield json.dumps(message(number) | {"session_id": f"s-{number % count}"}).encode() + b"\n"


def peak(lines: Callable[[int], Iterator[bytes]], count: int) -> int:
    """The most that is held at once while a source of so many sessions is read, in bytes."""
    tracemalloc.start()
    try:
        stream: Any = io.BufferedReader(Endless(lines(count)))
        found = sum(isinstance(item, Record) for item in Reader(stream, name="x", limit=200_000))
        assert found == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("lines", [session_lines, one_list, log_lines])
def test_of_eight_megabytes_less_than_two_are_held(lines, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", 100_000)
    assert sum(map(len, lines(500))) > 8_000_000
    assert peak(lines, 500) < 2_000_000
