"""The schema's examples tell the truth: every family's is read to the same turns, answers are those given."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.db import DataError
from jsonschema import Draft202012Validator as Validator

from conversations.api.examples import (
    ARGUMENTS,
    ASKED,
    CALLED,
    FAILED,
    MESSAGES,
    MISSED,
    QUEUED,
    RECORDS,
    SESSION,
    STORED,
    UNLEARNED,
)
from conversations.extraction import extract
from conversations.extraction.families import FAMILIES
from conversations.extraction.reading import find_reader
from conversations.models import IntakeRecord


def readers_of(value: Any) -> set[str]:
    """Return the families that read a message or its parts."""
    if not isinstance(value, dict):
        return set().union(*map(readers_of, value)) if isinstance(value, list) else set()
    kind = str(value.get("type", ""))
    return {
        family.name
        for family in FAMILIES
        if family.matches(value) or find_reader(family.parts, kind) or value.keys() & family.keys.keys()
    }.union(*(readers_of(item) for item in value.values()))


def test_every_family_has_an_example():
    assert set(MESSAGES) == {family.name for family in FAMILIES}


@pytest.mark.parametrize("name", MESSAGES)
def test_an_example_is_of_its_family(name):
    assert name in readers_of(MESSAGES[name][1])


@pytest.mark.parametrize("name", MESSAGES)
def test_every_example_is_the_same_talk(name):
    found = extract(MESSAGES[name][1])
    assert [turn.role for turn in found.turns] == ["user", "assistant", "tool"]
    asked, called, failed = found.turns
    assert asked.content == ASKED
    assert [(call["name"], call["arguments"]) for call in called.tool_calls] == [(CALLED, ARGUMENTS)]
    assert (failed.tool_name, failed.is_error, FAILED in failed.content) == (CALLED, True, True)
    assert [(item.index, item.reason) for item in found.skipped] == (
        [(0, "system message")] if name == "openai_chat" else []
    )


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    out = StringIO()
    call_command("spectacular", stdout=out)
    return yaml.safe_load(out.getvalue())


@pytest.fixture(scope="module")
def paths(schema) -> dict[str, Any]:
    return schema["paths"]


@pytest.mark.parametrize("path", ["/memory/add", "/memory/add_sync"])
def test_the_schema_shows_them_all(paths, path):
    shown = paths[path]["post"]["requestBody"]["content"]["application/json"]["examples"]
    assert {name: example["value"]["messages"] for name, example in shown.items()} == {
        name.title().replace("_", ""): messages for name, (_title, messages) in MESSAGES.items()
    }
    assert {example["summary"] for example in shown.values()} == {title for title, _ in MESSAGES.values()}


def test_the_schema_shows_what_is_answered(paths):
    def shown(path: str, method: str) -> list[Any]:
        answer = paths[path][method]["responses"]["200"]["content"]["application/json"]
        return [example["value"] for example in answer["examples"].values()]

    assert shown("/memory/add_sync", "post") == [STORED, MISSED, UNLEARNED]
    assert shown("/memory/add", "post") == [QUEUED]
    assert shown("/v1/intake/{id}", "get") == list(RECORDS.values())


def test_every_example_is_valid_by_the_schema(schema):
    """Under the closed schema of its place: what an example shows and the schema does not name fails too."""
    count = 0
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for media in (body.get("content", {}).get("application/json", {}) for body in bodies):
                for name, example in media.get("examples", {}).items():
                    closed = resolved(media["schema"], schema)
                    faults = [error.message for error in Validator(closed).iter_errors(example["value"])]
                    assert faults == [], (path, method, name)
                    count += 1
    assert count >= 2 * len(MESSAGES) + len(RECORDS)


def resolved(found: Any, schema: dict[str, Any]) -> Any:
    """Return a schema without references, and with no room for what it does not name."""
    if isinstance(found, list):
        return [resolved(item, schema) for item in found]
    if not isinstance(found, dict):
        return found
    if reference := found.get("$ref"):
        return resolved(schema["components"]["schemas"][reference.rpartition("/")[2]], schema)
    closed = {name: resolved(item, schema) for name, item in found.items()}
    if "properties" in closed:
        closed |= {"additionalProperties": False}
    if len(closed.get("allOf", [])) == 1:
        closed |= closed.pop("allOf")[0]
    if closed.pop("nullable", False):
        return {"anyOf": [closed, {"type": "null"}]}
    return closed


@pytest.mark.django_db
def test_every_key_of_a_report_is_in_the_schema(add, schema):
    mystery = {"type": "mystery", "blob": "?"}
    said = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, mystery, "a" * 70_000]}
    known = {"id": "m1", "role": "user", "content": "hello"}
    report = add({"role": "system", "content": "be brief"}, 7, known, known, said).record.report
    named = schema["components"]["schemas"]["TurnsReport"]
    assert report.keys() <= named["properties"].keys()
    assert named["properties"].keys() - report.keys() <= {"given_up"}
    closed = resolved(named, schema)
    assert [error.message for error in Validator(closed).iter_errors(report)] == []


def told(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in VARYING}


VARYING = ("intake_id", "id", "client_id", "created_at", "stored_at")
BODY = SESSION | {"messages": MESSAGES["openai_chat"][1]}


@pytest.mark.django_db
def test_the_answers_are_those_of_the_api(api, monkeypatch):
    answer = api.post("/memory/add", BODY | {"session_id": "other"}, format="json").json()
    assert told(answer) == told(QUEUED | {"session": QUEUED["session"] | {"session_id": "other"}})
    assert told(api.get(f"/v1/intake/{answer['intake_id']}").json()) == told(
        RECORDS["queued"] | {"session_id": "other"}
    )

    answer = api.post("/memory/add_sync", BODY, format="json").json()
    assert told(answer) == told(STORED)
    assert told(api.get(f"/v1/intake/{answer['intake_id']}").json()) == told(RECORDS["stored"])

    alone = {"messages": [{"role": "user", "content": ASKED}], "user_id": "desk-4"}
    assert told(api.post("/memory/add_sync", alone, format="json").json()) == told(UNLEARNED)


@pytest.mark.django_db
def test_the_answer_is_missed_where_the_turns_could_not_be_stored(api, monkeypatch):
    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise DataError("no such encoding")

    monkeypatch.setattr("conversations.storage.extract", broken)
    answer = api.post("/memory/add_sync", BODY, format="json").json()
    assert told(answer) == told(MISSED)
    assert told(api.get(f"/v1/intake/{answer['intake_id']}").json()) == told(RECORDS["failed"])


@pytest.mark.django_db
def test_a_message_that_nobody_knows_is_told_as_the_ledger_shows_it(api):
    messages = [*BODY["messages"][:3], {"what": "is this"}]
    answer = api.post("/memory/add_sync", BODY | {"messages": messages}, format="json").json()
    assert told(api.get(f"/v1/intake/{answer['intake_id']}").json()) == told(RECORDS["partial"])
    assert IntakeRecord.objects.get().state == "partial"


@pytest.mark.django_db
def test_a_part_that_nobody_knows_is_told_as_the_ledger_shows_it(api):
    asked = {"role": "user", "content": [{"type": "text", "text": ASKED}, {"type": "mystery", "blob": "?"}]}
    messages = [BODY["messages"][0], asked, *BODY["messages"][2:]]
    answer = api.post("/memory/add_sync", BODY | {"messages": messages}, format="json").json()
    assert told(api.get(f"/v1/intake/{answer['intake_id']}").json()) == told(RECORDS["partly_read"])
