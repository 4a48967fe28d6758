"""Moving over from a database of the original, generation by generation."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.models import ConversationMessage, Session
from mirix.tenants.models import ApiKey, Client, EndUser, Organization
from skills.models import Skill, SkillDocument, SkillExperience, SkillRevision
from tests.data import records
from tests.processes import SOAK, TELL_PEAK, Process
from tests.skills.interop.originals import CLIENT, GENERATIONS, MOMENT, ORG, TURNS, USER, Original, original

pytestmark = pytest.mark.django_db


@pytest.fixture
def make() -> Iterator[Callable[[str], Original]]:
    """Make a database of a generation, with an organization and a user."""
    with ExitStack() as stack:

        def made(generation: str) -> Original:
            found = stack.enter_context(original(generation))
            found.people()
            return found

        yield made


def run(source: Original, **options: Any) -> dict[str, Any]:
    out = io.StringIO()
    call_command("import_mirix", url=source.url, json=True, stdout=out, stderr=io.StringIO(), **options)
    return json.loads(out.getvalue())


def table(report: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [found for found in report["tables"] if found["table"] == name]
    return found


class TestGenerations:
    @pytest.mark.parametrize("generation", GENERATIONS)
    def test_each_is_known_and_brings_its_memories(self, make, generation: str):
        source = make(generation)
        if generation == "G1":
            row: dict[str, Any] = {"description": "Deploy the App!", "steps": '["Build", "Ship"]'}
        elif generation == "G5":
            row = {
                "name": "deploy-the-app",
                "description": "Deploy the App!",
                "version": "0.3.1",
                "instructions": "1. Build\n2. Ship",
                "triggers": ["deploy"],
                "examples": [{"n": 1}],
            }
        else:
            row = {"summary": "Deploy the App!", "steps": ["Build", "Ship"]}
        source.memory("proc_QNVR", **row, updated_at="2025-12-01T00:00:00+00:00")
        report = run(source)
        found = table(report, source.memories)
        assert found["generation"] == generation
        assert (found["rows"], found["imported"], found["skipped"]) == (1, 1, {})
        skill = Skill.objects.get()
        assert skill.organization.name == "acme"
        users = "user-00000000-0000-4000-8000-000000000000" if generation in ("G1", "G2") else USER
        assert skill.end_user.user_id == users
        assert (skill.name, skill.description) == ("deploy-the-app", "Deploy the App!")
        assert skill.instructions == "1. Build\n2. Ship"
        assert skill.entry_type == "workflow"
        assert skill.version == ("0.3.1" if generation == "G5" else "0.1.0")
        assert skill.triggers == (["deploy"] if generation == "G5" else [])
        assert skill.examples == ([{"n": 1}] if generation == "G5" else [])
        assert skill.created_at == datetime.fromisoformat(MOMENT)
        assert skill.updated_at == datetime.fromisoformat("2025-12-01T00:00:00+00:00")
        revision = SkillRevision.objects.get()
        assert skill.current_revision == revision
        assert (revision.action, revision.author_kind, revision.state) == ("import", "import", "published")
        assert revision.source is not None
        assert revision.source["row"]["id"] == "proc_QNVR"
        assert SkillDocument.objects.get().skill == skill
        assert {client.pk for client in Client.objects.all()} == (
            {CLIENT} if generation in ("G4c", "G4d", "G4e", "G5") else set()
        )
        assert not ApiKey.objects.exists()

    @pytest.mark.parametrize("generation", ["G1", "G4e", "G5"])
    def test_done_twice_brings_nothing_new(self, make, generation: str):
        source = make(generation)
        source.memory("proc_A")
        source.memory("proc_B")
        first = run(source)
        assert table(first, source.memories)["imported"] == 2
        again = run(source)
        assert again["imported"] == 0
        assert table(again, source.memories)["unchanged"] == 2
        assert (Skill.objects.count(), SkillRevision.objects.count()) == (2, 2)

    def test_the_five_rows(self, make):
        old, new = make("G2"), make("G4e")
        for number, record in enumerate(records("mirix/legacy_procedural_rows.jsonl")):
            row = record["row"]
            source = old if "description" in row else new
            source.memory(
                f"proc_{number:04}",
                entry_type=row["entry_type"],
                summary=row.get("summary", row.get("description")),
                steps=row["steps"],
            )
        run(old)
        run(new)
        found = list(Skill.objects.order_by("current_revision__source__row__id"))
        assert [(skill.name, skill.entry_type) for skill in found] == [
            ("deploy-application-to-production", "workflow"),
            ("setting-up-new-development-environment", "workflow"),
            ("troubleshooting-postgresql-connection-issues", "guide"),
            ("deploy-application-to-production", "workflow"),
            ("how-to-deploy-an-application", "workflow"),
        ]
        assert found[0].instructions.startswith("1. Run test suite to ensure all tests pass\n2. Create")
        assert found[4].instructions == (
            "1. Build the application\n2. Test the application\n3. Deploy to production"
        )
        assert {skill.end_user.user_id for skill in found[3:]} == {USER}


class TestMixedDatabases:
    def test_two_tables_share_the_names_of_an_owner(self, make):
        source = make("G2")
        source.execute(
            "CREATE TABLE procedural_memory_items (id varchar, created_at timestamptz, "
            "updated_at timestamptz, is_deleted boolean, organization_id varchar, entry_type varchar, "
            "description varchar, steps varchar)"
        )
        source.add(
            "procedural_memory_items",
            id="proc_item-1",
            organization_id=ORG,
            entry_type="x",
            description="Deploy",
            steps="Build\nShip",
            created_at="2025-04-01T00:00:00+00:00",
        )
        source.memory("proc_B", summary="deploy", steps=["Ship"])
        report = run(source)
        assert [found["generation"] for found in report["tables"][2:]] == ["G1", "G2"]
        names = {skill.instructions: skill.name for skill in Skill.objects.all()}
        assert names == {"Build\nShip": "deploy-2", "1. Ship": "deploy"}

    def test_skills_of_a_later_build_beside_flat_memories(self, make):
        source = make("G4e")
        source.execute(TURNS)
        source.memory("proc_A", summary="Pay", steps=["Ask"])
        source.turn("convmsg-1", "s-1", "user", "Pay it.")
        report = run(source)
        assert table(report, "procedural_memory")["generation"] == "G4e"
        assert table(report, "conversation_message")["imported"] == 1
        assert Skill.objects.get().name == "pay"

    def test_tables_without_ids_are_named_in_the_report(self, make):
        source = make("G5")
        source.memory("proc_1")
        source.turn("convmsg-1", "s-1", "user", "Pay it.")
        source.execute(
            "ALTER TABLE procedural_memory DROP COLUMN id; ALTER TABLE conversation_message DROP COLUMN id;"
            "ALTER TABLE skill_experience DROP COLUMN id; ALTER TABLE clients DROP COLUMN id CASCADE"
        )
        report = run(source)
        assert [found["table"] for found in report["tables"]] == ["organizations", "users"]
        without = {left["table"]: left["rows"] for left in report["left_behind"] if "“id”" in left["reason"]}
        assert without == {
            "clients": 1,
            "conversation_message": 1,
            "procedural_memory": 1,
            "skill_experience": 0,
        }


class TestUpgradedDatabases:
    def test_of_the_second_generation(self, make):
        source = make("G2")
        source.execute(
            "ALTER TABLE users ADD status varchar NOT NULL DEFAULT 'active';"
            "ALTER TABLE procedural_memory ADD user_id varchar"
        )
        source.memory("proc_A", summary="Pay", steps=["Ask"], user_id=USER)
        source.memory("proc_B", summary="Pay", steps=["Ask"], user_id=None)
        report = run(source)
        found = table(report, "procedural_memory")
        assert (found["generation"], found["imported"]) == ("G3", 1)
        assert found["skipped"] == {"its user is missing": 1}

    def test_of_the_fourth_generation(self, make):
        source = make("G5")
        source.execute(
            "ALTER TABLE procedural_memory ALTER triggers DROP NOT NULL, ALTER examples DROP NOT NULL, "
            "ALTER triggers TYPE jsonb, ALTER examples TYPE jsonb"
        )
        long = "word " * 300
        source.memory(
            "proc_A1B2", name="-", description=long, instructions="Ask", triggers=None, version="v2"
        )
        report = run(source)
        found = table(report, "procedural_memory")
        assert (found["generation"], found["imported"]) == ("G6", 1)
        assert found["notes"] == {
            "long description continued in the instructions": 1,
            "version that is not semantic became 0.1.0": 1,
            "name changed to one that is valid and free": 1,
        }
        skill = Skill.objects.get()
        assert f"{skill.description} {skill.instructions}" == f"{long.strip()}\n\nAsk"
        assert skill.triggers == []


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
class TestKilled:
    SCRIPT = """
import os
from django.core.management import call_command
from skills.management.commands import import_mirix
original = import_mirix.import_original
def killed(**options):
    for number, done in enumerate(original(**options)):
        if number == 4:
            os.kill(os.getpid(), 9)
        yield done
import_mirix.import_original = killed
call_command("import_mirix", url=os.environ["SOURCE"], json=True)
"""

    def test_in_the_middle_it_goes_on_and_gives_the_same_names(self, make):
        source = make("G4e")
        source.memory("proc_0", summary="Pay", steps=["Ask"])
        source.execute(
            "INSERT INTO procedural_memory (id, organization_id, user_id, client_id, entry_type, summary, "
            "steps, last_modify, created_at) SELECT 'proc_' || n, organization_id, user_id, client_id, "
            "entry_type, summary, steps, last_modify, created_at + n * interval '1 second' "
            "FROM procedural_memory, generate_series(1, 1200) AS n"
        )
        with Process(self.SCRIPT, SOURCE=source.url) as process:
            assert process.popen.wait() == -9
        so_far = Skill.objects.count()
        assert 0 < so_far < 1201
        found = table(run(source), "procedural_memory")
        assert (found["unchanged"], found["imported"]) == (so_far, 1201 - so_far)
        named = dict(Skill.objects.values_list("current_revision__source__row__id", "name"))
        assert named == {"proc_0": "pay"} | {f"proc_{n}": f"pay-{n + 1}" for n in range(1, 1201)}


@pytest.mark.soak
@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
class TestVolume:
    """20,000 memories of one user under 500 summaries (soak; else 600), each with steps of 2 kB."""

    SCRIPT = (
        """
import os
from django.core.management import call_command
call_command("import_mirix", url=os.environ["SOURCE"], json=True)
"""
        + TELL_PEAK
    )

    def test_many_come_over_whole_with_names_of_their_own_in_little_memory(self, make):
        rows = 20_000 if SOAK else 600
        source = make("G4e")
        source.memory("proc_0", summary="Pay", steps=["Ask " * 500])
        source.execute(
            "INSERT INTO procedural_memory (id, organization_id, user_id, client_id, entry_type, summary, "
            "steps, last_modify, created_at) SELECT 'proc_' || n, organization_id, user_id, client_id, "
            "entry_type, 'Pay order ' || n %% 500, steps, last_modify, created_at + n * interval '1 second' "
            "FROM procedural_memory, generate_series(1, %s) AS n",
            [rows - 1],
        )
        with Process(self.SCRIPT, SOURCE=source.url) as process:
            status, out, errors = process.end(1_500)
        assert status == 0, errors
        report, peak = out.rsplit("\n", 2)[:2]
        assert table(json.loads(report), "procedural_memory")["imported"] == rows
        assert Skill.objects.values("name").distinct().count() == rows
        assert SkillRevision.objects.count() == SkillDocument.objects.count() == rows
        assert int(peak) < 256_000

        again = run(source)
        assert table(again, "procedural_memory")["unchanged"] == rows
        assert (again["imported"], Skill.objects.count()) == (0, rows)


class TestQueries:
    def test_are_as_many_for_one_owner_and_session_as_for_twenty(self, make):
        def queries(count: int) -> int:
            source = make("G5")
            source.client("client-b", "other", "admin")
            for n in range(count):
                source.add(
                    "users", id=f"u-{n}", organization_id=ORG, name="x", timezone="UTC", status="active"
                )
                source.memory(f"proc-{n}", user_id=f"u-{n}")
                source.turn(f"convmsg-{n}", f"s-{n}", "user", "Pay it.", user_id=f"u-{n}")
            source.execute(f"UPDATE organizations SET created_at = '2025-01-{count:02}'")
            with CaptureQueriesContext(connection) as captured:
                report = run(source, choice="split")
            assert table(report, "conversation_message")["imported"] == count
            assert table(report, "procedural_memory")["imported"] == count
            return len(captured)

        assert queries(1) == queries(20)


class TestOddValues:
    def test_are_kept_or_counted(self, make):
        source = make("G4e")
        source.execute(
            "ALTER TABLE procedural_memory ALTER steps DROP NOT NULL, ALTER summary DROP NOT NULL, "
            "ALTER created_at TYPE varchar, ALTER filter_tags TYPE varchar"
        )
        source.memory("proc_0001", summary=None, steps=None, created_at="never", filter_tags="{broken")
        source.memory("proc_0002", summary="!!!", steps='["a\\u0000b", "\\ud83d\\ude00"]')
        source.memory("proc_0003", summary="北京", steps='{"do": {"this": 1.10}}', filter_tags="null")
        report = run(source)
        assert table(report, "procedural_memory")["imported"] == 3
        notes = table(report, "procedural_memory")["notes"]
        assert notes["characters that cannot be stored were left out"] == 1
        assert notes["without a description or instructions"] == 1
        found = {s.current_revision.source["row"]["id"]: s for s in Skill.objects.all()}
        assert found["proc_0001"].name == "skill-roc-0001"
        assert found["proc_0002"].instructions == "1. ab\n2. 😀"
        assert found["proc_0003"].instructions == "do: this: 1.10"
        assert found["proc_0003"].filter_tags == {}

    def test_of_skills_are_made_to_fit_and_kept_whole_in_the_first_revision(self, make):
        source = make("G5")
        source.execute(
            "ALTER TABLE procedural_memory ALTER triggers TYPE varchar, ALTER examples TYPE varchar"
        )
        source.memory(
            "proc_0001",
            description="\u202e--- '\"; DROP TABLE users;",
            instructions="x" * 70_000,
            triggers=["  ", 7, {"a": 1}, "t" * 600],
            examples=["said", {"n": 1e3}],
            version="1.2.3-rc.1",
            created_at="infinity",
        )
        source.memory("proc_0002", triggers="no json [", examples="null", updated_at=None)
        report = run(source)
        assert table(report, "procedural_memory")["imported"] == 2
        found = {s.current_revision.source["row"]["id"]: s for s in Skill.objects.all()}
        odd, bare = found["proc_0001"], found["proc_0002"]
        assert odd.description == "\u202e--- '\"; DROP TABLE users;"
        assert len(odd.instructions) == 65_536
        assert len(odd.current_revision.source["row"]["instructions"]) == 70_000
        assert odd.triggers[:2] == ["7", '{"a": 1}']
        assert len(odd.triggers[2]) == 512
        assert odd.examples == [{"example": "said"}, {"n": 1000.0}]
        assert odd.version == "1.2.3-rc.1"
        assert "hidden_characters" in odd.current_revision.risk_flags
        assert (bare.triggers, bare.examples) == (["no json ["], [])

    def test_of_json_that_cannot_be_kept_as_they_are_become_text_and_are_counted(self, make):
        source = make("G5")
        source.execute(
            "ALTER TABLE procedural_memory ALTER triggers TYPE varchar, ALTER examples TYPE varchar, "
            "ALTER filter_tags TYPE varchar"
        )
        deep = "[" * 101 + "]" * 101
        digits = "9" * 5_000
        source.memory("proc-1", examples='[{"a": NaN, "b": -Infinity, "c": 1e999, "d": 1e3}]')
        source.memory("proc-2", examples=f'[{{"a": {digits}, "b": 1}}]', triggers="[NaN]")
        source.memory("proc-3", examples=deep, triggers=deep, filter_tags=deep)
        source.memory("proc-4", examples="[" * 5_000, filter_tags='{"a": 1e999}', triggers='["a\\u0000b"]')
        report = run(source)
        assert table(report, "procedural_memory")["imported"] == 4
        found = {skill.name: skill for skill in Skill.objects.all()}
        assert found["proc-1"].examples == [{"a": "NaN", "b": "-Infinity", "c": "1e999", "d": 1000.0}]
        assert found["proc-2"].examples == [{"a": digits, "b": 1}]
        assert found["proc-2"].triggers == ["NaN"]
        assert (found["proc-3"].examples, found["proc-3"].triggers) == ([{"example": deep}], [deep])
        assert found["proc-3"].filter_tags == {}
        assert found["proc-3"].current_revision.source["row"]["filter_tags"] == deep
        assert found["proc-4"].examples == [{"example": "[" * 5_000}]
        assert (found["proc-4"].filter_tags, found["proc-4"].triggers) == ({"a": "1e999"}, ["ab"])
        notes = table(report, "procedural_memory")["notes"]
        del notes["without a description or instructions"]
        assert notes == {
            "numbers in examples that cannot be kept as such became text": 2,
            "numbers in triggers that cannot be kept as such became text": 1,
            "numbers in filter_tags that cannot be kept as such became text": 1,
            "triggers too odd to be read as JSON kept as text": 1,
            "examples too odd to be read as JSON kept as text": 2,
            "filter_tags that are no object left out; whole in the first revision": 1,
            "characters that cannot be stored were left out": 1,
        }

    def test_of_experiences_are_made_to_fit(self, make):
        source = make("G5")
        source.experience(
            "sexp-1",
            "s-1",
            title="",
            content="c" * 9_000,
            importance="NaN",
            credibility=7,
            evidence="[",
            status="lost",
        )
        found = table(run(source), "skill_experience")
        assert found["notes"] == {
            "sessions whose turns are gone": 1,
            "evidence that ends midway: kind of signal unknown": 1,
            "importance that is no number became 0": 1,
            "content cut at the limit": 1,
            "quote found in no turn: unverified": 1,
            "unknown status became superseded": 1,
        }
        row = SkillExperience.objects.get()
        assert (row.importance, row.model_credibility, row.status) == (0.0, 1.0, "superseded")
        assert len(row.content) == 8_192
        assert row.session.state == "distilled"

    def test_the_erased_and_nobodys_stay_behind(self, make):
        source = make("G4e")
        source.add(
            "users",
            id="gone",
            organization_id=ORG,
            name="x",
            timezone="UTC",
            status="active",
            is_deleted=True,
        )
        source.client("client-gone", "gone", "read_write")
        source.execute("UPDATE clients SET is_deleted = true WHERE id = 'client-gone'")
        source.memory("proc_1", is_deleted=True)
        source.memory("proc_2", user_id="gone")
        source.memory("proc_3", client_id="client-gone")
        source.memory("proc_4", organization_id=None)
        source.execute("ALTER TABLE procedural_memory DROP CONSTRAINT procedural_memory_user_id_fkey")
        source.memory("proc_5", user_id="nobody")
        report = run(source)
        assert table(report, "procedural_memory")["skipped"] == {
            "erased": 1,
            "its user was erased": 1,
            "its client was erased": 1,
            "its organization is missing": 1,
            "its user is missing": 1,
        }
        assert not Skill.objects.exists()
        assert set(EndUser.objects.values_list("user_id", flat=True)) == {
            USER,
            "user-00000000-0000-4000-8000-000000000000",
        }


class TestPeople:
    def test_null_refers_to_nobody_though_an_id_may_be_empty(self, make):
        source = make("G5")
        source.execute("ALTER TABLE procedural_memory ALTER user_id DROP NOT NULL")
        source.add("organizations", id="", name="nameless")
        source.add("users", id="", organization_id=None, name="x", timezone="UTC", status="active")
        source.add("clients", id="", organization_id="", name="old", status="active", read_scopes=[])
        source.execute("UPDATE clients SET is_deleted = true WHERE id = ''")
        source.memory("proc_1", organization_id=None)
        source.memory("proc_2", user_id=None)
        source.memory("proc_3", client_id=None)
        source.memory("proc_4", organization_id="", user_id="")
        report = run(source)
        found = table(report, "procedural_memory")
        assert found["imported"] == 2
        assert found["skipped"] == {"its organization is missing": 1, "its user is missing": 1}
        assert table(report, "users")["skipped"] == {"its organization is missing": 1}
        assert set(Skill.objects.values_list("name", "organization__name")) == {
            ("proc-3", "acme"),
            ("proc-4", "nameless"),
        }

    @pytest.mark.parametrize("choice", ["merge", "split"])
    def test_whose_ids_are_one_here_share_their_names(self, make, choice: str):
        source = make("G5")
        source.client("client-b", "other", "admin")
        for user_id in ("\u00e9", "e\u0301"):
            source.add("users", id=user_id, organization_id=ORG, name="x", timezone="UTC", status="active")
            source.memory(f"proc-{user_id}", user_id=user_id, name="s1", instructions=ascii(user_id))
        report = run(source, choice=choice)
        assert table(report, "users")["notes"] == {
            "put together: ids that differ only in how letters are composed": 2
        }
        assert table(report, "procedural_memory")["imported"] == 2
        assert {skill.end_user.user_id for skill in Skill.objects.all()} == {"\u00e9"}
        assert {skill.name: skill.instructions for skill in Skill.objects.all()} == {
            "s1": "'e\\u0301'",
            "s1-2": "'\\xe9'",
        }
        assert run(source, choice=choice)["imported"] == 0


class TestSessions:
    def test_turns_and_experiences_come_with_their_states(self, make):
        source = make("G5")
        source.turn("convmsg-1", "s-1", "user", "Pay it.", distilled_at=MOMENT)
        source.turn(
            "convmsg-2",
            "s-1",
            "tool",
            "[pay] Error: declined",
            distilled_at=MOMENT,
            created_at="2025-11-20T09:13:00+00:00",
        )
        source.turn(
            "convmsg-3",
            "s-1",
            "user",
            "No, use the other card.",
            distilled_at=MOMENT,
            created_at="2025-11-20T09:14:00+00:00",
        )
        source.turn("convmsg-4", "s-2", "user", "Hello", _created_by_id="client-lost")
        source.turn("convmsg-5", "s-2", "system", "Be kind.")
        source.experience("sexp-1", "s-1")
        source.experience(
            "sexp-2", "pruned", status="consumed", consumed_by="xprun-1", evidence='{"quote": "half a qu'
        )
        source.experience("sexp-3", "s-1", experience_type="worthless")
        source.add("messages", id="m-1", organization_id=ORG, user_id=USER, role="user", session_id="s-0")
        report = run(source)
        assert table(report, "conversation_message")["skipped"] == {"role system": 1}
        assert table(report, "skill_experience")["skipped"] == {"experience_type worthless": 1}
        assert {left["table"]: left["rows"] for left in report["left_behind"]} == {"agents": 1, "messages": 1}
        one, two = Session.objects.get(session_id="s-1"), Session.objects.get(session_id="s-2")
        assert (one.state, one.last_seq, one.distilled_through) == ("distilled", 3, 3)
        assert (two.state, two.last_seq, two.distilled_through) == ("open", 1, 0)
        assert two.turns.get().client.name == "import_mirix"
        turns = list(one.turns.order_by("seq").values_list("role", "tool_name", "is_error", "message_id"))
        assert turns == [
            ("user", "", False, "convmsg-1"),
            ("tool", "pay", True, "convmsg-2"),
            ("user", "", False, "convmsg-3"),
        ]
        kept = SkillExperience.objects.get(session=one)
        assert (kept.verified, kept.status, kept.credibility, kept.turn_seq) == (True, "pending", 0.98, 3)
        assert kept.model_credibility == 0.9
        bare = SkillExperience.objects.get(session__session_id="pruned")
        assert (bare.verified, bare.status, bare.quote) == (False, "consumed", "half a qu")
        assert bare.credibility <= 0.3
        again = run(source)
        assert again["imported"] == 0
        assert (ConversationMessage.objects.count(), SkillExperience.objects.count()) == (4, 2)

    def test_turns_keep_an_id_each_whatever_it_was(self, make):
        source = make("G5")
        ids = ["", "a" * 256, "a" * 256 + "b", "a" * 256 + "c", "\u00e9", "e\u0301"]
        for number, pk in enumerate(ids):
            source.turn(pk, "s-1", "user", f"turn {number}", created_at=f"2025-11-20T09:{number:02}:00+00:00")
        assert table(run(source), "conversation_message")["imported"] == 6
        turns = list(ConversationMessage.objects.order_by("seq").values_list("message_id", "content"))
        assert [content for _, content in turns] == [f"turn {number}" for number in range(6)]
        assert (turns[1][0], turns[4][0]) == ("a" * 256, "\u00e9")
        assert all(re.fullmatch("convmsg-[0-9a-f]{22}", turns[n][0]) for n in (0, 2, 3, 5))
        again = table(run(source), "conversation_message")
        assert (again["imported"], again["unchanged"]) == (0, 6)

    def test_a_turn_that_is_cut_is_counted(self, make):
        source = make("G5")
        source.turn("convmsg-1", "s-1", "user", "x" * 65_537)
        assert table(run(source), "conversation_message")["notes"]["content cut at the limit"] == 1
        turn = ConversationMessage.objects.get()
        assert (len(turn.content), turn.truncated) == (65_536, True)

    def test_rows_of_one_id_are_counted(self, make):
        source = make("G5")
        source.execute(
            "ALTER TABLE conversation_message DROP CONSTRAINT conversation_message_pkey;"
            "ALTER TABLE skill_experience DROP CONSTRAINT skill_experience_pkey;"
            "ALTER TABLE procedural_memory DROP CONSTRAINT procedural_memory_pkey"
        )
        for _ in range(2):
            source.turn("convmsg-1", "s-1", "user", "Pay it.")
            source.experience("sexp-1", "s-1")
            source.memory("proc-1")
        report = run(source)
        for name in ("conversation_message", "skill_experience", "procedural_memory"):
            found = table(report, name)
            assert (found["rows"], found["imported"]) == (2, 1)
            assert found["skipped"] == {"another row has its id": 1}


class TestScopes:
    @pytest.fixture
    def source(self, make) -> Original:
        source = make("G4e")
        source.client("client-b", "dashboard", "admin")
        source.memory("proc_1", summary="One", steps=["a"], filter_tags={"scope": "read_write"})
        source.memory("proc_2", summary="Two", steps=["a"], client_id="client-b")
        return source

    def test_that_differ_need_a_word(self, source: Original):
        with pytest.raises(
            CommandError, match=r"“acme” \(admin, read_write\).*--merge-scopes.*--split-scopes"
        ):
            run(source)
        assert not Organization.objects.exists()

    def test_can_be_merged(self, source: Original):
        run(source, choice="merge")
        assert [skill.organization.name for skill in Skill.objects.all()] == ["acme", "acme"]
        with pytest.raises(CommandError, match="imported whole before"):
            run(source, choice="split")

    def test_can_be_split(self, source: Original):
        run(source, choice="split")
        names = {skill.name: skill.organization.name for skill in Skill.objects.all()}
        assert names == {"one": "acme (read_write)", "two": "acme (admin)"}
        assert run(source, choice="split")["imported"] == 0
        assert Skill.objects.count() == 2
        with pytest.raises(CommandError, match="imported split by scopes before"):
            run(source, choice="merge")

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE clients SET is_deleted = true WHERE id = 'client-b'",
            "UPDATE clients SET write_scope = 'read_write', read_scopes = '[\"read_write\"]'",
            "UPDATE clients SET write_scope = 'new', read_scopes = '[\"new\"]'",
        ],
    )
    def test_that_were_split_stay_so_when_they_differ_no_more(self, make, change: str):
        source = make("G5")
        source.client("client-b", "dashboard", "admin")
        source.turn("convmsg-1", "s-1", "user", "Pay it.", _created_by_id="client-b")
        source.memory("proc-1", client_id="client-b")
        source.memory("proc-2")
        run(source, choice="split")
        source.execute(change)
        source.memory("proc-3", client_id="client-b")
        source.memory("proc-4")
        for choice in (None, "merge"):
            with pytest.raises(CommandError, match=r"split by scopes before.*choose --split-scopes"):
                run(source, choice=choice)
        report = run(source, choice="split")
        assert report["imported"] == (1 if "is_deleted" in change else 2)
        assert dict(Skill.objects.values_list("name", "organization__name")) == {
            "proc-1": "acme (admin)",
            "proc-2": "acme (read_write)",
            "proc-4": "acme (read_write)",
        } | ({} if "is_deleted" in change else {"proc-3": "acme (admin)"})
        assert (Session.objects.count(), Organization.objects.count()) == (1, 2)

    def test_one_organization_stays_whole_beside_one_that_is_split(self, make):
        source = make("G5")
        source.add("organizations", id="org-2", name="other")
        reads = {"status": "active", "read_scopes": []}
        source.add("clients", id="c-1", organization_id="org-2", name="a", write_scope="x", **reads)
        source.add("clients", id="c-2", organization_id="org-2", name="b", write_scope="y", **reads)
        source.memory("proc-1")
        run(source, choice="split")
        source.client("client-b", "dashboard", "admin")
        source.memory("proc-2", client_id="client-b")
        report = run(source, choice="split")
        assert table(report, "organizations")["notes"] == {
            "split by the scopes of its clients": 1,
            "not split: they came whole, when their clients had one scope": 1,
        }
        assert set(Skill.objects.values_list("name", "organization__name")) == {
            ("proc-1", "acme"),
            ("proc-2", "acme"),
        }


class TestCommand:
    def test_dry_run_reports_and_keeps_nothing(self, make):
        source = make("G5")
        source.memory("proc_1", description="Pay", instructions="Ask.")
        report = run(source, dry_run=True)
        assert table(report, "procedural_memory")["imported"] == 1
        assert not Organization.objects.exists()

    def test_tells_people(self, make):
        source = make("G2")
        source.memory("proc_1", summary="Pay", steps=["Ask"])
        out = io.StringIO()
        call_command("import_mirix", url=source.url, stdout=out)
        assert "procedural_memory (G2): 1 row, 1 imported, 0 here already" in out.getvalue()

    def test_reads_in_a_transaction_that_cannot_write(self, make):
        from skills.interop.original.source import opened

        source = make("G2")
        with opened(source.url) as reading:
            answers = reading._connection.execute(
                "SELECT current_setting('transaction_read_only'), current_setting('transaction_isolation')"
            ).fetchone()
        assert answers == ("on", "repeatable read")

    @pytest.mark.parametrize(
        "url", ["mysql://a/b", "postgresql://u:s3cret@127.0.0.1:1/x", "postgresql://u:s3cret@h:x/y"]
    )
    def test_refuses_what_it_cannot_read_without_the_password(self, url: str):
        with pytest.raises(CommandError, match="--from: ") as refusal:
            call_command("import_mirix", url=url)
        assert "s3cret" not in str(refusal.value)
