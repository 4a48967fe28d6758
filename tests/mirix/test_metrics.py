"""Numbers published by whoever counts, as text for Prometheus."""

from __future__ import annotations

import re
import threading

import pytest

from mirix import metrics
from mirix.metrics import Counts, Durations, Family, exposition, publish


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch):
    monkeypatch.setattr(metrics, "_families", {})


def test_each_name_has_its_help_its_kind_and_its_numbers_in_order():
    publish("b_total", "Bees.", lambda: 2, labels={"kind": "worker"})
    publish("b_total", "Bees.", lambda: 1, labels={"kind": "queen"})
    publish("a_seconds", "Age.", lambda: 0.25, kind="gauge")
    assert exposition() == (
        "# HELP a_seconds Age.\n"
        "# TYPE a_seconds gauge\n"
        "a_seconds 0.25\n"
        "# HELP b_total Bees.\n"
        "# TYPE b_total counter\n"
        'b_total{kind="queen"} 1\n'
        'b_total{kind="worker"} 2\n'
    )


def test_a_number_is_read_when_it_is_asked_for():
    seen = iter([1, 2])
    publish("a_total", "A.", lambda: next(seen))
    assert [exposition().splitlines()[-1] for _ in range(2)] == ["a_total 1", "a_total 2"]


def test_what_ends_a_label_is_escaped():
    publish("a_total", "A.", lambda: 1, labels={"a": 'x"y\\z\n'})
    assert exposition().splitlines()[-1] == r'a_total{a="x\"y\\z\n"} 1'


def test_of_many_threads_nothing_is_lost():
    counts = Counts("a_total", "A.")

    def count() -> None:
        for number in range(2_000):
            counts.add(even=str(number % 2 == 0))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert re.findall(r"^a_total.*", exposition(), re.MULTILINE) == [
        'a_total{even="False"} 8000',
        'a_total{even="True"} 8000',
    ]


def test_durations_are_sorted_and_summed():
    took = Durations("a_seconds", "A.")
    for seconds in (0.001, 0.005, 0.3, 99):
        took.add(seconds, lane="x")
    lines = exposition().splitlines()
    assert lines[:2] == ["# HELP a_seconds A.", "# TYPE a_seconds histogram"]
    assert [line.replace('lane="x",', "") for line in lines[2:]] == [
        'a_seconds_bucket{le="0.005"} 2',
        'a_seconds_bucket{le="0.01"} 2',
        'a_seconds_bucket{le="0.025"} 2',
        'a_seconds_bucket{le="0.05"} 2',
        'a_seconds_bucket{le="0.1"} 2',
        'a_seconds_bucket{le="0.25"} 2',
        'a_seconds_bucket{le="0.5"} 3',
        'a_seconds_bucket{le="1"} 3',
        'a_seconds_bucket{le="2.5"} 3',
        'a_seconds_bucket{le="5"} 3',
        'a_seconds_bucket{le="10"} 3',
        'a_seconds_bucket{le="+Inf"} 4',
        'a_seconds_sum{lane="x"} 99.306',
        'a_seconds_count{lane="x"} 4',
    ]


def test_a_call_is_timed_whatever_comes_of_it():
    took = Durations("a_seconds", "A.")

    @took.of(lane="x")
    def divide(number: int, *, by: int) -> float:
        """Divide."""
        return number / by

    assert divide(4, by=2) == 2
    with pytest.raises(ZeroDivisionError):
        divide(4, by=0)
    assert exposition().splitlines()[-1] == 'a_seconds_count{lane="x"} 2'
    assert divide.__doc__ == "Divide."


def test_what_is_stored_stands_among_what_was_counted():
    publish("b_total", "B.", lambda: 1)
    stored = {"a": Family(text="A.", kind="gauge", reads={(("x", "y"),): lambda: 2})}
    assert exposition(stored).splitlines()[2::3] == ['a{x="y"} 2', "b_total 1"]
