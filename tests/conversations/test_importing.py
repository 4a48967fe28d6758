"""Importing from files, folders and standard input, as an operator sees it."""

from __future__ import annotations

import gzip
import json
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from conversations import importing
from conversations.models import ConversationMessage, Session
from tests.conversations.test_commands import load, run, session
from tests.conversations.turns import BYE, HELLO, HI, contents
from tests.data import shared

pytestmark = pytest.mark.django_db

WHOSE = ("--organization", "demo", "--user", "tau")


def line(text: str, session_id: str = "log-1", **fields: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}, "sessionId": session_id} | fields


def jsonl(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@pytest.fixture
def folder(tmp_path):
    """A folder with sessions in many layouts."""
    files = {
        "b.jsonl": jsonl(session("a"), session("b")),
        "a.json": json.dumps([HELLO, HI], indent=1).encode(),
        "deep/log.jsonl": jsonl(line("one"), line("two"), line("aside", isSidechain=True, agentId="x")),
        "deep/packed.jsonl.gz": gzip.compress(jsonl(session("c"))),
        "deep/talk.json": json.dumps({"conversations": [{"from": "human", "value": "hello"}]}).encode(),
        "deep/package.json": b'{"name": "x", "version": "1"}',
        "notes.txt": b"not me",
        ".cache/d.jsonl": jsonl(session("d")),
    }
    for name, data in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return tmp_path


class TestFolders:
    def test_every_known_file_is_read_and_reported(self, folder):
        report = load(folder, fails="1 line could not be imported.")
        assert [
            (Path(item["source"]).name, item["taken_for"], item["sessions"], item["new_turns"])
            for item in report["files"]
        ] == [
            ("a.json", "JSON, a list of messages, openai chat", 1, 2),
            ("b.jsonl", "JSON Lines, a session a record, openai chat", 2, 4),
            ("log.jsonl", "JSON Lines, a log of 2 sessions, coding log", 2, 3),
            ("package.json", "JSON Lines", 0, 0),
            ("packed.jsonl.gz", "JSON Lines, one session, openai chat", 1, 2),
            ("talk.json", "JSON Lines, one session, sharegpt", 1, 1),
        ]
        assert (report["sessions"], report["new_turns"], report["unnamed"]) == (7, 12, 2)
        [problem] = report["problems"]
        assert problem["source"].endswith("package.json")
        assert contents("log-1") == ["one", "two"]

    def test_again_nothing_is_new_whichever_way_a_file_is_reached(self, folder):
        load(folder, fails="1 line could not be imported.")
        again = load(folder / "deep" / "talk.json", folder / "a.json")
        assert (again["new_turns"], again["unchanged"]) == (0, 2)

    def test_files_of_one_name_in_two_folders_do_not_meet(self, tmp_path):
        for name, text in (("one", "hello"), ("two", "bye")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "talk.json").write_bytes(
                json.dumps([{"role": "user", "content": text}]).encode()
            )
        report = load(tmp_path)
        assert (report["sessions"], report["new_turns"]) == (2, 2)

    def test_an_empty_folder_is_said(self, tmp_path):
        suffixes = ".json, .jsonl, .ndjson, .traj (or .gz after it)"
        run(
            "import_sessions",
            tmp_path,
            *WHOSE,
            fails=f"nothing to import in {tmp_path}: no file ends with {suffixes}",
        )

    def test_a_person_reads_an_account_of_each_file(self, folder):
        out, _ = run("import_sessions", folder, *WHOSE, fails="1 line could not be imported.")
        assert "Imported 7 sessions: 12 new turns\n" in out
        assert "  without an id    2 sessions, called after their file\n" in out
        assert (
            f"  {folder / 'deep' / 'log.jsonl'} (JSON Lines, a log of 2 sessions, coding log): "
            "2 sessions: 3 new turns\n"
        ) in out
        assert (
            f"  {folder / 'deep' / 'package.json'} (JSON Lines): 0 sessions: 0 new turns, 1 problem\n" in out
        )


class TestFaults:
    def test_a_file_that_cannot_be_opened_does_not_stop_the_others(self, tmp_path):
        (tmp_path / "a.jsonl").write_bytes(jsonl(session("a")))
        (tmp_path / "b.jsonl").symlink_to(tmp_path / "gone.jsonl")
        (tmp_path / "c.jsonl").write_bytes(jsonl(session("c")))
        report = load(tmp_path, fails="1 file could not be imported.")
        assert report["sessions"] == 2
        assert report["problems"] == [
            {
                "source": str(tmp_path / "b.jsonl"),
                "line": 0,
                "reason": "cannot be read: No such file or directory",
            }
        ]

    def test_a_file_named_alone_that_cannot_be_opened_is_refused_before_anything_is_read(self, tmp_path):
        path = tmp_path / "a.jsonl"
        path.symlink_to(path)
        with pytest.raises(CommandError, match=r"cannot read .*: Too many levels of symbolic links"):
            load(path)

    def test_a_broken_archive(self, tmp_path):
        path = tmp_path / "a.jsonl.gz"
        path.write_bytes(gzip.compress(jsonl(session("a"), session("b")))[:-9])
        report = load(path, fails="1 file could not be imported.")
        assert report["problems"][0]["reason"].startswith("cannot be unpacked")

    def test_a_session_beyond_the_limit_is_refused_in_one_line(self, tmp_path):
        path = tmp_path / "a.jsonl"
        path.write_bytes(jsonl(session("a", HELLO | {"content": "x" * 5_000}), session("b")))
        report = load(path, "--max-megabytes", "0.001", fails="1 line could not be imported.")
        assert (report["sessions"], report["problems"][0]["line"]) == (1, 1)
        assert report["problems"][0]["reason"] == "larger than 0.001 MB, the limit for one session"

    def test_a_limit_must_make_sense(self, tmp_path):
        fault = "Error: argument --max-megabytes: '0' is not a number above 0, at most 10000"
        run("import_sessions", "--max-megabytes", "0", *WHOSE, fails=fault)

    def test_what_is_no_transcript_is_one_problem(self):
        report = load(shared("retrieval/metatool_single/corpus.jsonl"), fails="1 file could not be imported.")
        assert report["sessions"] == 0
        assert report["problems"][0]["reason"].startswith("no transcript: expected a session")


class TestStandardInput:
    @pytest.mark.parametrize("data", [jsonl(HELLO, HI), json.dumps([HELLO, HI], indent=1).encode()])
    def test_messages_without_any_name_are_the_same_session_again(self, monkeypatch, data):
        for new_turns in (2, 0):
            monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(data)))
            report = load("-")
            assert (report["sessions"], report["new_turns"]) == (1, new_turns)
        assert report["files"][0]["source"] == "standard input"

    def test_gzip(self, monkeypatch):
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(gzip.compress(jsonl(session())))))
        assert load()["new_turns"] == 2


class TestAgain:
    def test_a_log_that_has_grown_adds_its_tail(self, tmp_path):
        path = tmp_path / "log.jsonl"
        path.write_bytes(jsonl(line("one"), line("two")))
        load(path)
        path.write_bytes(jsonl(line("one"), line("two"), line("three")))
        report = load(path)
        assert (report["new_turns"], report["duplicate"]) == (1, 2)
        assert contents("log-1") == ["one", "two", "three"]

    def test_an_import_that_broke_off_is_started_again_and_does_the_rest(self, tmp_path, monkeypatch):
        path = tmp_path / "many.jsonl"
        path.write_bytes(jsonl(*(session(f"s-{number}", HELLO, HI, BYE) for number in range(10))))
        stored = importing.import_session

        def dies(**fields: Any) -> Any:
            if fields["session_id"] == "s-6":
                raise KeyboardInterrupt
            return stored(**fields)

        with monkeypatch.context() as patch:
            patch.setattr(importing, "import_session", dies)
            with pytest.raises(KeyboardInterrupt):
                load(path)
        assert Session.objects.count() == 6
        report = load(path)
        assert (report["sessions"], report["unchanged"], report["new_turns"]) == (10, 6, 12)
        assert ConversationMessage.objects.count() == 30

    def test_when_a_log_happened_is_kept(self, tmp_path):
        path = tmp_path / "log.jsonl"
        path.write_bytes(jsonl(line("one", timestamp="2026-03-01T09:00:00.5Z"), line("two", timestamp="x")))
        load(path)
        moments = ConversationMessage.objects.values_list("occurred_at", flat=True)
        assert {moment.isoformat() for moment in moments} == {"2026-03-01T09:00:00.500000+00:00"}


FILES = {
    "traj/alfworld_fewshot_rollouts.jsonl": (25, {"user": 26, "assistant": 187, "tool": 161}),
    "traj/claude_code_jsonl_sessions.jsonl": (6, {"user": 23, "assistant": 34, "tool": 21}),
    "traj/langsmith_openai_runs.jsonl": (12, {"user": 13, "assistant": 15, "tool": 5}),
    "traj/mini_swe_agent.jsonl": (2, {"user": 13, "assistant": 12}),
    "traj/sweagent_toolcalls_raw.jsonl": (4, {"user": 4, "assistant": 31, "tool": 31}),
    "traj/tau_airline_dev.jsonl": (40, {"user": 309, "assistant": 557, "tool": 288}),
    "traj/toolbench_function_role.jsonl": (13, {"user": 20, "assistant": 52, "tool": 37}),
    "odd/mistral_common_samples.jsonl": (6, {"user": 20, "assistant": 24, "tool": 11}),
    "odd/pydantic_ai_message_shapes.jsonl": (1, {"user": 73, "assistant": 148, "tool": 97}),
    "odd/pydantic_ai_openai_chat_conversations.jsonl": (82, {"user": 116, "assistant": 114, "tool": 120}),
    "odd/vercel_ai_responses.jsonl": (1, {"assistant": 171, "tool": 100}),
}


@pytest.mark.parametrize("name", FILES)
def test_real_files_import_without_a_problem_and_again_bring_nothing_new(name):
    path = shared(name)
    report = load(path)
    assert (report["problems"], report["sessions"], report["turns"]) == ([], *FILES[name])
    again = load(path)
    assert (again["new_turns"], again["duplicate"]) == (0, report["new_turns"])
