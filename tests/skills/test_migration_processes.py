"""The data steps of the chain in real processes: killed in the middle, and watched for their memory."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction

from skills.models import Skill, SkillRevision
from tests.factories import make_owner
from tests.processes import SOAK, TELL_PEAK, Process, eventually
from tests.skills.walks import forward, migrate

pytestmark = pytest.mark.processes

ROWS, BATCH = 40, 10
MIGRATE = """
from django.core.management import call_command
call_command("migrate", "skills", {target!r}, verbosity=0)
"""
IN_SMALL_BATCHES = (
    f"""
import importlib
for module in ("_batches", "0003_names"):
    importlib.import_module("skills.migrations." + module).BATCH = {BATCH}
"""
    + MIGRATE
)
DONE = {
    "0003_names": "name <> ''",
    "0004_texts": "instructions <> ''",
    "0007_first_revisions": "current_revision_id IS NOT NULL",
}
BEFORE = {
    "0003_names": "0002_blank_skill_columns",
    "0004_texts": "0003_names",
    "0007_first_revisions": "0006_learning",
}


def ask(sql: str, *parameters: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()[0] if cursor.description else None


def is_waited_for() -> bool:
    ask("SELECT pg_stat_clear_snapshot()")  # else a transaction sees who was there when it first looked
    waiting = "datname = current_database() AND wait_event_type = 'Lock'"
    return ask(f"SELECT count(*) FROM pg_stat_activity WHERE {waiting}") > 0


@pytest.mark.parametrize("step", DONE)
def test_a_step_that_is_killed_and_started_again_ends_as_if_it_had_not_been(flat, step):
    owner = make_owner()
    for number in range(ROWS):
        flat(owner, summary="task-3" if number == ROWS - 1 else "Task", steps=[f"Do {number}."])
    migrate(BEFORE[step])
    count = f"SELECT count(*) FROM skills_skill WHERE {DONE[step]}"

    with Process(IN_SMALL_BATCHES.format(target=step)) as process:
        with transaction.atomic():
            # The third batch cannot pass this row.
            ask("SELECT id FROM skills_skill WHERE id = 'proc_0025' FOR UPDATE")
            eventually(is_waited_for)
            process.kill()
        assert ask(count) == 2 * BATCH
    with Process(MIGRATE.format(target=step)) as again:
        assert again.end() == (0, "", "")
    assert ask(count) == ROWS
    forward()

    assert list(Skill.objects.order_by("pk").values_list("name", "instructions")) == [
        ("task", "1. Do 0."),
        ("task-2", "1. Do 1."),
        *((f"task-{number + 2}", f"1. Do {number}.") for number in range(2, ROWS - 1)),
        ("task-3", f"1. Do {ROWS - 1}."),
    ]
    revisions = SkillRevision.objects.order_by("skill_id").values_list("skill_id", "source__steps__0")
    assert list(revisions) == [(f"proc_{number:04d}", f"Do {number}.") for number in range(ROWS)]


@pytest.fixture
def peak(copy_at):
    """Return the most memory, in MB, that migrating so many rows of `repeats` times 5 bytes took."""

    def measure(rows: int, repeats: int) -> int:
        with copy_at("0001_initial"):
            owner = make_owner()
            ask(
                "INSERT INTO skills_proceduralmemory"
                " (id, organization_id, end_user_id, entry_type, summary, steps, last_modify,"
                " created_at, updated_at)"
                " SELECT 'proc_' || n, %s, %s, 'process', 'Task ' || n %% 500,"
                " jsonb_build_array(repeat('step ', %s)), '{}', now(), now()"
                " FROM generate_series(1, %s) AS n",
                owner.organization.pk,
                owner.end_user.pk,
                repeats,
                rows,
            )
            with Process(MIGRATE.format(target="0008_drop_flat_columns") + TELL_PEAK) as process:
                status, out, errors = process.end(600)
            assert (status, errors) == (0, "")
            assert ask("SELECT count(*) FROM skills_skillrevision") == rows
        return int(out) // 1024

    return measure


@pytest.mark.soak
def test_memory_does_not_grow_with_the_rows(peak):
    few, many = peak(2_000, 800), peak(50_000 if SOAK else 6_000, 800)

    assert many < few + 48


@pytest.mark.soak
def test_nor_with_the_number_of_rows_that_are_large(peak):
    """Rows of 2.5 MB, of which no two fit into a batch of 4 MB; six in one batch would take 90 MB more."""
    few, many = (peak(rows, 500_000) for rows in ((3, 100) if SOAK else (1, 6)))

    assert many < few + 48
