"""import_sessions, seal_sessions, replay_intake: as an operator sees them."""

from __future__ import annotations

import json
from datetime import timedelta
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from conversations import sealing, storage
from conversations.envelope import checked
from conversations.intake import accept
from conversations.models import ConversationMessage, IntakeRecord, Session
from conversations.records import fitting_session_id
from mirix.tenants.models import AuditEvent, Client, EndUser, Organization
from tests.data import shared
from tests.factories import make_session

pytestmark = pytest.mark.django_db

HELLO = {"role": "user", "content": "hello"}
HI = {"role": "assistant", "content": "hi"}


def run(*arguments: Any, fails: str = "") -> tuple[str, str]:
    """Output and error output of a command; with `fails`, the one line it must end with."""
    out, err = StringIO(), StringIO()
    if fails:
        with pytest.raises(CommandError) as error:
            call_command(*map(str, arguments), stdout=out, stderr=err)
        assert str(error.value) == fails
    else:
        call_command(*map(str, arguments), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def load(*arguments: Any, fails: str = "") -> dict[str, Any]:
    out, _ = run(
        "import_sessions", *arguments, "--organization", "demo", "--user", "tau", "--json", fails=fails
    )
    return json.loads(out)


@pytest.fixture
def write(tmp_path):
    """Write a file with one record, or raw line, a line."""

    def write(*records: Any, name: str = "sessions.jsonl") -> Path:
        lines = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
        path = tmp_path / name
        path.write_bytes(b"\n".join(lines) + b"\n")
        return path

    return write


def session(session_id: str = "s-1", *messages: Any, **fields: Any) -> dict[str, Any]:
    return {"session_id": session_id, "messages": list(messages) or [HELLO, HI]} | fields


class TestImport:
    def test_what_is_missing_is_made_and_said(self, write):
        path = write(session())
        out, _ = run("import_sessions", path, "--organization", "demo", "--user", "tau", "--client", "desk")
        assert out == (
            "created organization 'demo'\n"
            "created client 'desk'\n"
            "created end user 'tau'\n"
            "Imported 1 session: 2 new turns\n"
            "  turns            1 user, 1 assistant\n"
            f"  {path} (JSON Lines, one session, openai chat): 1 session: 2 new turns\n"
        )
        turn = ConversationMessage.objects.first()
        assert turn.client.name == "desk"
        assert (turn.organization.name, turn.end_user.user_id) == ("demo", "tau")
        assert Session.objects.get().state == "sealed"

    def test_the_report_counts_turns_by_role_and_what_was_skipped_and_why(self, write):
        messages = [{"role": "system", "content": "x"}, HELLO, HI, {"role": "user"}, 5]
        path = write(session("a", *messages, source="somewhere"), session("b"))
        report = load(path)
        [reason] = [reason for reason in report["skipped"] if reason.startswith("expected ")]
        counts = {
            "sessions": 2,
            "unchanged": 0,
            "unnamed": 0,
            "new_turns": 4,
            "turns": {"user": 2, "assistant": 2},
            "duplicate": 0,
            "truncated": 0,
            "skipped": {
                "system message": 1,
                "empty message": 1,
                reason: 1,
            },
            "omitted": {},
            "renamed": {},
            "problems": [],
        }
        assert reason.endswith(", got a number")
        taken_for = "JSON Lines, a session a record, openai chat"
        assert report == counts | {
            "files": [{"source": str(path), "taken_for": taken_for} | counts],
            "dry_run": False,
            "user_id": "tau",
        }

    def test_again_nothing_is_new(self, write):
        path = write(session("a"), session("b"))
        load(path)
        report = load(path)
        assert (report["sessions"], report["unchanged"]) == (2, 2)
        assert (report["new_turns"], report["duplicate"]) == (0, 4)
        assert ConversationMessage.objects.count() == 4
        assert IntakeRecord.objects.count() == 2

    def test_a_grown_session_adds_its_tail(self, write):
        load(write(session()))
        report = load(write(session("s-1", HELLO, HI, {"role": "user", "content": "bye"})))
        assert (report["new_turns"], report["duplicate"], report["unchanged"]) == (1, 2, 0)

    def test_again_nothing_is_new_of_a_session_that_nobody_can_read_in_full(self, write):
        path = write(session("a", HELLO, "what"))
        assert load(path)["new_turns"] == 1
        report = load(path)
        assert (report["new_turns"], report["duplicate"], report["unchanged"]) == (0, 1, 1)
        assert report["turns"] == {}

    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("2026-03-01T09:00:00Z", "2026-03-01T09:00:00+00:00"),
            ("2026-03-01T09:00:00+02:00", "2026-03-01T07:00:00+00:00"),
            ("2026-03-01 09:00", "2026-03-01T09:00:00+00:00"),
        ],
    )
    def test_when_it_happened_is_kept_with_the_turns(self, write, text, moment):
        load(write(session(occurred_at=text)))
        turns = ConversationMessage.objects.values_list("occurred_at", flat=True)
        assert [turn.isoformat() for turn in turns] == [moment, moment]

    def test_who_waits_for_sealed_sessions_is_told_once(self, write, monkeypatch):
        told: list = []
        monkeypatch.setattr(sealing, "_callbacks", [told.append])
        path = write(session("a"), session("b"))
        load(path)
        assert [owner.end_user.user_id for owner in told] == ["tau"]
        load(path)
        load(write(session("c")), "--open")
        assert len(told) == 1

    def test_open_leaves_them_open(self, write):
        load(write(session()), "--open")
        assert Session.objects.get().state == "open"

    def test_tags_of_a_record_reach_the_session(self, write):
        load(write(session(session_tag="conversation", filter_tags={"project": "x"})))
        row = Session.objects.get()
        assert (row.tag, row.filter_tags) == ("conversation", {"project": "x"})

    def test_a_dry_run_reports_the_same_and_keeps_nothing(self, write):
        path = write(session("a"), session("b"), b"{")
        fails = "1 line could not be imported."
        dry = load(path, "--dry-run", fails=fails)
        assert dry["dry_run"] is True
        for model in (Organization, Client, EndUser, Session, IntakeRecord, ConversationMessage):
            assert not model.objects.exists()
        assert load(path, fails=fails) == dry | {"dry_run": False}

    def test_a_dry_run_knows_what_is_stored(self, write):
        load(write(session("a")))
        report = load(write(session("a"), session("b")), "--dry-run")
        assert (report["unchanged"], report["new_turns"]) == (1, 2)

    def test_standard_input(self, write, monkeypatch):
        stdin = TextIOWrapper(BytesIO(write(session()).read_bytes()))
        monkeypatch.setattr("sys.stdin", stdin)
        assert load()["new_turns"] == 2
        assert not stdin.closed

    def test_several_files(self, write):
        report = load(write(session("a"), name="1"), write(session("b"), name="2"))
        assert (report["sessions"], report["new_turns"]) == (2, 4)

    def test_a_file_that_is_not_there_is_one_line_and_nothing_is_imported(self, write, tmp_path):
        missing = tmp_path / "missing.jsonl"
        run(
            "import_sessions",
            write(session()),
            missing,
            "--organization",
            "demo",
            "--user",
            "tau",
            fails=f"cannot read {missing}: No such file or directory",
        )
        assert not Organization.objects.exists()

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"{", "not valid JSON: Expecting property name"),
            (b"\xff{}", "not UTF-8: invalid start byte at byte 0"),
            (b"[" * 100_000, "nested too deeply"),
            (b"[]", "expected a session, got an empty list"),
            (b"5", "expected a session, which is an object with messages, or a message, got a number"),
            (
                b'{"a": 1}',
                "expected a session, which is an object with messages, or a message, got an object",
            ),
            (b'{"messages": []}', "messages: May not be empty."),
            (
                b'{"session_id": {}, "messages": [1]}',
                "session_id: must be a string or a whole number, not an object",
            ),
            (
                b'{"session_id": "a"}',
                "messages: missing; expected a list under one of messages, conversations, ",
            ),
            (b'{"session_id": "a", "messages": {}}', "messages: must be a list, not an object"),
            (b'{"session_id": "a", "messages": []}', "messages: May not be empty."),
            (
                b'{"session_id": "a", "messages": [1], "session_tag": "x"}',
                "session_tag: Must be one of task, conversation.",
            ),
            (
                b'{"session_id": "a", "messages": [1], "filter_tags": []}',
                "filter_tags: must be an object, not a list",
            ),
            (
                b'{"session_id": "a", "messages": [1], "occurred_at": 5}',
                "occurred_at: must be a string, not a number",
            ),
            (
                b'{"session_id": "a", "messages": [1], "occurred_at": "yesterday"}',
                "occurred_at: must be an ISO 8601 date and time, not 'yesterday'",
            ),
            (
                b'{"session_id": "a", "messages": [1], "occurred_at": "2026-02-30T00:00:00Z"}',
                "occurred_at: must be an ISO 8601 date and time, not '2026-02-30T00:00:00Z'",
            ),
            (
                b'{"session_id": "a", "messages": [1], "occurred_at": "0001-01-01T00:00:00+02:00"}',
                "occurred_at: must be an ISO 8601 date and time, not '0001-01-01T00:00:00+02:00'",
            ),
            (
                b'{"session_id": "a", "messages": [1], "session_id": "b"}',
                "not valid JSON: the key 'session_id' stands twice in one object",
            ),
            (b'{"session_id": "a", "messages": [NaN]}', "not valid JSON: NaN is not JSON"),
        ],
    )
    def test_a_broken_line_is_reported_and_the_rest_goes_on(self, write, line, reason):
        path = write(session("a"), line, session("b"))
        report = load(path, fails="1 line could not be imported.")
        assert report["new_turns"] == 4
        [problem] = report["problems"]
        assert (problem["source"], problem["line"]) == (str(path), 2)
        assert problem["reason"].startswith(reason)

    def test_a_person_reads_of_broken_lines_too(self, write):
        path = write(b"{}", session(), b"[]")
        out, _ = run(
            "import_sessions",
            path,
            "--organization",
            "demo",
            "--user",
            "tau",
            fails="2 lines could not be imported.",
        )
        reason = "expected a session, which is an object with messages, or a message, got an object"
        assert f"  {path}, line 1: {reason} with nothing\n" in out
        assert f"  {path}, line 3: expected a session, got an empty list\n" in out

    def test_blank_lines_a_byte_order_mark_and_no_line_end(self, tmp_path):
        path = tmp_path / "odd.jsonl"
        path.write_bytes(b"\xef\xbb\xbf" + json.dumps(session()).encode() + b"\r\n\n  \n")
        assert load(path)["sessions"] == 1

    def test_a_session_that_contradicts_what_is_stored_is_a_problem_and_kept(self, write):
        load(write(session("a")))
        report = load(write(session("a", HI, HELLO), session("b")), fails="1 line could not be imported.")
        record = IntakeRecord.objects.get(state="failed")
        assert report["problems"][0]["reason"] == (
            "session a: history is “full”, but the 2 stored turns of the session are not what the request "
            f"begins with; kept as {record.pk}"
        )
        assert record.body == {"messages": [HI, HELLO]}
        assert report["new_turns"] == 2

    def test_an_id_that_does_not_fit_is_rewritten_and_said(self, write):
        report = load(write(session("github_issue.traj.json"), session("x" * 70)))
        assert report["renamed"] == {
            "github_issue.traj.json": "github_issue-traj-json-cd8e82cf8fe7",
            "x" * 70: "x" * 51 + "-" + fitting_session_id("x" * 70)[-12:],
        }
        again = load(write(session("github_issue.traj.json")))
        assert (again["unchanged"], again["new_turns"]) == (1, 0)

    @pytest.mark.parametrize("raw", ["äöü", "\n", "a b", "\ud800", "a" * 65])
    def test_whatever_id_is_given_the_rewritten_one_fits(self, raw):
        assert fitting_session_id(raw) == fitting_session_id(raw)
        checked(messages=[HELLO], session_id=fitting_session_id(raw))

    def test_the_airline_desk(self):
        path = shared("traj/tau_airline_dev.jsonl")
        report = load(path)
        assert (report["sessions"], report["new_turns"]) == (40, 1_154)
        assert report["turns"] == {"user": 309, "assistant": 557, "tool": 288}
        assert report["skipped"] == {"system message": 40}
        assert report["problems"] == []
        assert Session.objects.filter(state="sealed").count() == 40
        errors = ConversationMessage.objects.filter(is_error=True)
        assert errors.count() == 35
        assert errors.values("session").distinct().count() == 13
        again = load(path)
        assert (again["new_turns"], again["unchanged"]) == (0, 40)

    @pytest.mark.parametrize(
        ("name", "turns"),
        [
            ("sweagent_toolcalls_raw", {"user": 4, "assistant": 31, "tool": 31}),
            ("mini_swe_agent", {"user": 13, "assistant": 12}),
            ("toolbench_function_role", {"user": 20, "assistant": 52, "tool": 37}),
            ("alfworld_fewshot_rollouts", {"user": 26, "assistant": 187, "tool": 161}),
        ],
    )
    def test_other_real_files(self, name, turns):
        path = shared(f"traj/{name}.jsonl")
        report = load(path)
        assert report["turns"] == turns
        assert report["problems"] == []
        assert load(path)["new_turns"] == 0


class TestSeal:
    @pytest.fixture
    def sessions(self, owner, stranger):
        long_ago = timezone.now() - timedelta(days=1)
        for name, of in (("mine", owner), ("other", stranger)):
            make_session(of, [HELLO], session_id=name, state="open", last_turn_at=long_ago)

    def test_every_owner(self, sessions):
        assert run("seal_sessions")[0] == "2 sessions sealed.\n"
        assert json.loads(run("seal_sessions", "--json")[0]) == {"sealed": 0}

    def test_one_owner(self, sessions, owner):
        out, _ = run("seal_sessions", "--organization", owner.organization.name, "--user", "alice")
        assert out == "1 session sealed.\n"
        assert Session.objects.get(session_id="other").state == "open"

    def test_an_unknown_owner_is_refused(self, sessions, owner):
        for organization, user in ((owner.organization.name, "bob"), ("nope", "alice")):
            fails = f"unknown user {user!r} in organization {organization!r}"
            run("seal_sessions", "--organization", organization, "--user", user, fails=fails)
        fails = "--organization and --user go together; with neither, every owner's are sealed"
        run("seal_sessions", "--user", "alice", fails=fails)
        assert set(Session.objects.values_list("state", flat=True)) == {"open"}


class TestReplay:
    @pytest.fixture
    def add(self, owner, client_row):
        def add(*, session_id: str = "s-1", wait: bool = True) -> IntakeRecord:
            envelope = checked(messages=[HELLO], session_id=session_id)
            return accept(client=client_row, owner=owner, envelope=envelope, wait=wait).record

        return add

    @pytest.fixture
    def failed(self, add, monkeypatch) -> IntakeRecord:
        with monkeypatch.context() as patch:
            patch.setattr(storage, "_rows", lambda *args: 1 / 0)
            return add()

    def test_failed_and_waiting_requests_are_stored(self, failed, add, owner):
        queued = add(session_id="s-2", wait=False)
        add(session_id="s-3")
        out, _ = run("replay_intake", "--organization", owner.organization.name)
        assert out == f"2 replayed: 2 stored\n  {failed.pk}  stored\n  {queued.pk}  stored\n"
        assert run("replay_intake", "--organization", owner.organization.name)[0] == (
            "0 replayed: nothing to do\n"
        )
        assert ConversationMessage.objects.count() == 3

    def test_those_named_alone(self, failed, add, owner):
        queued = add(session_id="s-2", wait=False)
        out, _ = run("replay_intake", "--organization", owner.organization.name, failed.pk, "--json")
        assert json.loads(out) == {
            "replayed": 1,
            "states": {"stored": 1},
            "records": [{"id": failed.pk, "state": "stored", "error": ""}],
        }
        queued.refresh_from_db()
        assert queued.state == "queued"

    def test_what_fails_again_is_said(self, failed, owner, monkeypatch):
        monkeypatch.setattr(storage, "_rows", lambda *args: 1 / 0)
        out, _ = run("replay_intake", "--organization", owner.organization.name, fails="1 failed again.")
        assert out == f"1 replayed: 1 failed\n  {failed.pk}  failed  ZeroDivisionError: division by zero\n"

    def test_what_fails_for_ever_is_given_up(self, failed, add, owner):
        queued = add(session_id="s-2", wait=False)
        organization = ("--organization", owner.organization.name)
        out, _ = run("replay_intake", *organization, failed.pk, "--give-up")
        assert out == f"1 given up\n  {failed.pk}  failed  ZeroDivisionError: division by zero\n"
        failed.refresh_from_db()
        assert (failed.state, failed.body, failed.body_pruned_at is None) == ("failed", None, False)
        event = AuditEvent.objects.get(action="intake.given_up")
        assert (event.organization, event.target_id, event.details) == (
            owner.organization,
            failed.pk,
            {"state": "failed", "turns": 0},
        )
        run("replay_intake", *organization, failed.pk, fails=f"nothing to replay in {failed.pk}")
        assert run("replay_intake", *organization)[0] == f"1 replayed: 1 stored\n  {queued.pk}  stored\n"

    def test_nothing_is_given_up_that_waits_or_is_not_named(self, failed, add, owner, stranger):
        queued = add(session_id="s-2", wait=False)
        organization = ("--organization", owner.organization.name)
        fails = f"not given up, for the worker has yet to store it: {queued.pk}"
        run("replay_intake", *organization, queued.pk, "--give-up", fails=fails)
        fails = "--give-up needs the ids of the requests to give up."
        run("replay_intake", *organization, "--give-up", fails=fails)
        foreign = ("--organization", stranger.organization.name, failed.pk, "--give-up")
        run("replay_intake", *foreign, fails=f"nothing to replay in {failed.pk}")
        assert not IntakeRecord.objects.filter(body__isnull=True).exists()
        assert not AuditEvent.objects.filter(action="intake.given_up").exists()

    def test_an_unknown_organization_or_request_is_refused(self, failed, owner, stranger):
        run(
            "replay_intake",
            "--organization",
            "nope",
            fails="unknown organization 'nope'; create it with: ./run create_organization NAME",
        )
        fails = f"nothing to replay in {failed.pk}"
        run("replay_intake", "--organization", stranger.organization.name, failed.pk, fails=fails)
        failed.refresh_from_db()
        assert failed.state == "failed"
