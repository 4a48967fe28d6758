"""Other real transcripts: function roles, coding runs, provider tests. What they teach was read by hand."""

from __future__ import annotations

from typing import Any

from skills.distillation.offline import OfflineDistiller
from tests.data import records
from tests.skills.distillation.sessions import turns_of


def titles(name: str, messages: str = "messages") -> list[str]:
    found: list[str] = []
    for record in records(name):
        turns = turns_of(record[messages])
        for lesson in OfflineDistiller().distil(turns, first_seq=1).lessons:
            (turn,) = [turn for turn in turns if turn.seq == lesson.turn_seq]
            assert lesson.quote in turn.content
            found.append(lesson.title)
    return found


def test_failed_apis_that_were_given_up():
    found = titles("traj/toolbench_function_role.jsonl")
    assert len(found) == 6
    assert (
        found[0] == "`news_for_seo_api` did not get past “Message error...”: settle the cause before calling"
    )


def test_an_edit_that_failed_for_its_indentation():
    found = titles("traj/sweagent_toolcalls_raw.jsonl")
    complaint = "Your proposed edit has introduced new syntax"
    assert len(found) == 6
    assert found[:3] == [
        f"After “{complaint}…”, do not call `edit` again with the same `replacement_text`",
        f"When `edit` says “{complaint} error(s)…”, mind the white space in `replacement_text`",
        "With `edit`, mind the white space in `replacement_text` from the start",
    ]


def test_arguments_that_a_schema_refused():
    found = titles("odd/pydantic_ai_openai_chat_conversations.jsonl")
    tool, complaint = "`get_something_by_name`", "2 validation errors: Field required"
    assert len(found) == 4
    assert found[:2] == [
        f"Do not call {tool} with `foo` or without `name`: it answers “{complaint}…”",
        f"When {tool} says “{complaint}, Extra inputs…”, leave out `foo` and add `name`",
    ]


def test_text_games_and_logs_without_failures_teach_nothing():
    for name in ("alfworld_fewshot_rollouts", "claude_code_jsonl_sessions", "mini_swe_agent"):
        for record in records(f"traj/{name}.jsonl"):
            messages: Any = record.get("messages") or record.get("trajectory") or []
            assert OfflineDistiller().distil(turns_of(messages), first_seq=1).verdict == "empty"
