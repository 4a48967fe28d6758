"""The heartbeat of a run: by who works, and by a thread where the work leaves no time for it."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError

from skills.heartbeat import Heartbeat
from tests.processes import eventually


class Beats:
    """Counts the beats of each thread."""

    def __init__(self, *, lives: bool = True, error: Exception | None = None) -> None:
        self.threads: list[str] = []
        self.lives, self.error = lives, error

    def __call__(self) -> bool:
        self.threads.append(threading.current_thread().name)
        if self.error:
            raise self.error
        return self.lives


OWN = threading.current_thread().name
pytestmark = pytest.mark.django_db


def test_who_works_beats_when_it_is_time_and_no_thread_does():
    beats = Beats()
    with Heartbeat(beats, interval=0.2, name="heartbeat").watched() as heartbeat:
        heartbeat.tend()
        assert beats.threads == []
        eventually(lambda: heartbeat.tend() or len(beats.threads) > 2)
    assert set(beats.threads) == {OWN}


def test_a_thread_steps_in_during_a_slow_step():
    beats = Beats()
    with Heartbeat(beats, interval=0.02, name="heartbeat").watched():
        eventually(lambda: len(beats.threads) > 2)
    assert set(beats.threads) == {"heartbeat"}
    assert "heartbeat" not in [thread.name for thread in threading.enumerate()]


def test_the_thread_ends_when_there_is_nothing_left_to_beat_for():
    beats = Beats(lives=False)
    with Heartbeat(beats, interval=0.02, name="heartbeat").watched():
        eventually(lambda: "heartbeat" not in [thread.name for thread in threading.enumerate()])
    assert beats.threads == ["heartbeat"]


def test_a_database_that_is_gone_is_told_and_beaten_for_again(caplog):
    beats = Beats(error=OperationalError("server closed the connection"))
    with Heartbeat(beats, interval=0.02, name="heartbeat of run-1").watched() as heartbeat:
        eventually(lambda: heartbeat.tend() or len(beats.threads) > 3)
    assert "The heartbeat of run-1 failed: server closed the connection" in caplog.text
