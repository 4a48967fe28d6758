"""Numbers published by whoever counts, as text for Prometheus."""

from __future__ import annotations

import re
import threading

import pytest

from mirix import metrics
from mirix.metrics import Counts, exposition, publish


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
