"""`./run bench`: what it sends, and what it says of the figures."""

from __future__ import annotations

import json
from argparse import Namespace

import pytest
from django.db import connection

from conversations.extraction import extract
from skills.search import space_index
from tests import bench
from tests.access.admin_table import COLUMNS, MODELS, SITE
from tests.access.routes import read_table
from tests.benchmarks import admin, dream, ingest, search_latency, sessions, spread
from tests.benchmarks.library import Library


def test_every_message_of_a_made_up_session_is_one_turn():
    messages = sessions.messages(1, 30)
    extraction = extract(messages)
    assert [turn.index for turn in extraction.turns] == list(range(30))
    assert {turn.role for turn in extraction.turns} == {"user", "assistant", "tool"}
    assert sessions.messages(1, 30) == messages
    assert sessions.messages(2, 30) != messages


def test_recorded_sessions_are_lines_of_json():
    first, second = map(json.loads, sessions.lines(2, 3))
    assert (first["session_id"], second["session_id"]) == ("imported-0", "imported-1")
    assert first["messages"] == sessions.messages(0, 3)


def test_repeats_are_told_with_their_spread():
    assert spread([3.0, 1.0, 2.04], 1) == {"median": 2.0, "min": 1.0, "max": 3.0}


def test_speeds_are_told_as_ratios_of_the_same_round_and_goals_as_reached_or_missed():
    speeds = {name: [2000.0, 1000.0, 4000.0] for name in ingest.NAMES}
    speeds |= {"service": [1000.0, 600.0, 2400.0], "http": [200.0, 100.0, 1200.0]}
    memory = {"turns": 100_000, "rss_kb_after_a_tenth": 100 * 1024, "rss_kb_peak": 110 * 1024}

    ratios = ingest._figures(speeds, memory)["ratio_to_executemany"]
    assert ratios["service"] == {"median": 0.6, "min": 0.5, "max": 0.6}
    assert ratios["http"] == {"median": 0.1, "min": 0.1, "max": 0.3}

    lines = ingest._lines(speeds, memory)
    assert "service                               1000 turns/s  0.60 (0.50–0.60)  goal 0.5 reached" in lines
    assert any(line.startswith("HTTP") and line.endswith("goal 0.25 MISSED") for line in lines)
    assert lines[-1] == (
        "importing 100000 turns: 100 MB after a tenth of the time, 110 MB at most, growth 10 %"
    )


def test_made_up_skills_are_the_same_for_the_same_seed_and_differ_by_number():
    first, second = Library(1), Library(1)
    skills = [first.skill(number, 4) for number in range(3)]
    assert [second.skill(number, 4) for number in range(3)] == skills
    assert len({skill["description"] for skill in skills}) == 3
    assert [len(skill["vector"]) for skill in skills] == [384] * 3
    assert [query.text for query in first.queries(600)] == [query.text for query in second.queries(600)]
    assert len(first.long_query(2_000).text) <= 2_000


@pytest.mark.django_db(transaction=True)
def test_the_speed_of_search_is_measured_at_any_size():
    """Everything but the figures themselves, which at this size say nothing."""
    report = search_latency.measure(lambda line: None, scale=0.01)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE bare_owner, bare_organization")
        for name, _ in space_index._indexes():
            cursor.execute(f"DROP INDEX {name}")
    figures = report.figures
    assert figures["owner_skills"] == 100
    assert figures["organization_skills"] == [10, 1_000]
    assert figures["organization_recall_at_10"] == figures["beside_recall_at_10"] == 1.0
    for name, title in search_latency.NAMES.items():
        assert figures[name] > 0
        assert any(line.startswith(title) for line in report.lines)
    assert any("actual time" in line for line in figures["plan"])


@pytest.mark.django_db
def test_every_page_of_the_admin_that_can_be_looked_at_is_measured():
    """Everything but the figures themselves; each page once, at a small size."""
    report = admin.measure(lambda line: None, Namespace(scale=0.0))

    figures = report.figures
    assert figures["stored"] == {"skills": 500, "turns": 10_000, "sessions": 100, "waiting": 250}
    measured = {row["page"] for row in figures["pages"]}
    shown = {
        f"{label} {row.route}".strip()
        for label, table in [("", SITE), *MODELS.items()]
        for row in read_table(COLUMNS + table)
        if "GET" in row.methods and row.statuses["superuser"] == 200
    }
    assert measured == (shown | {"skills.skill rollback"}) - {"jsi18n"}
    assert all(row["p50_ms"] > 0 for row in figures["pages"])
    assert all(any(line.startswith(name) for line in report.lines) for name in measured)


def test_an_unknown_benchmark_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench", "nothing"])
    with pytest.raises(SystemExit) as end:
        bench.main()
    assert end.value.code == 2
    assert "invalid choice: 'nothing'" in capsys.readouterr().err


def test_runs_are_told_against_the_ideal_and_goals_as_reached_or_missed():
    def round_of(seconds: float, connections: int, *memory_kb: int) -> dream.Round:
        watch = dream.Watch(memory_kb=list(memory_kb), connections=connections)
        return dream.Round(seconds=seconds, calls=40, watch=watch)

    rounds = [
        round_of(15.0, 6, 90 * 1024, 100 * 1024),
        round_of(11.0, 6, 100 * 1024),
        round_of(10.5, 7, 110 * 1024, 105 * 1024),
        round_of(12.0, 6, 100 * 1024),
    ]
    prompts = {10: 30_000, 1_000: 30_600}

    figures = dream._figures(rounds, prompts)
    assert figures["ratio_to_ideal"] == {"median": 1.1, "min": 1.05, "max": 1.2}
    assert figures["ratio_to_ideal_cold"] == 1.5
    assert figures["memory"] == {"rss_kb_warm": 100 * 1024, "rss_kb_peak": 110 * 1024}
    assert (figures["connections"], figures["prompt_growth"]) == (7, 0.02)

    _, time, calls, memory, connections, prompt = dream._lines(rounds, prompts)
    assert time == ("time, to the ideal: 1.10 (1.05–1.20)  goal 1.15 reached; the first run of a worker 1.50")
    assert calls == "calls of a run: 40"
    assert memory == "memory of the worker: 100 MB after the first run, 110 MB at most, growth 10 %"
    assert connections == "connections of the worker: 7  goal 6 MISSED"
    assert prompt == (
        "prompt: 30000 characters with 10 skills, 30600 with 1000, growth 2.0 %  goal 0.05 reached"
    )


def test_the_ideal_counts_whole_waves():
    assert dream.ideal_seconds(40, 4, 1.0) == 10.0
    assert dream.ideal_seconds(41, 4, 1.0) == 11.0
