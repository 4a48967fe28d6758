"""Somebody is there with all that happens to them, through every door, and then they are not."""

from __future__ import annotations

import json
import logging
from io import StringIO
from pathlib import Path

import pytest
from django.core.cache import cache as django_cache
from django.core.management import call_command
from django.test import Client as Browser
from django.urls import reverse

from mirix.caches import caches
from mirix.measures import forget
from mirix.tenants.models import ErasureReceipt
from skills.models import SearchEvent, Skill, SkillExperience, SkillRevision
from skills.search.cache import cache
from tests.conftest import APIClient
from tests.erasure.canary import found
from tests.factories import make_client, make_key, make_member, make_organization
from tests.redis import redis

pytestmark = pytest.mark.django_db(transaction=True)
WORD = "zanzibar"
SESSION = [
    {"role": "user", "content": f"Cancel my order {WORD}-1."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "cancel_order", "arguments": json.dumps({"order": f"{WORD}"})},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": f"Error: order {WORD} needs the prefix #"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "c2",
                "type": "function",
                "function": {"name": "cancel_order", "arguments": json.dumps({"order": f"#{WORD}"})},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "cancelled"},
    {"role": "user", "content": f"No, I meant the one to {WORD}. That is wrong."},
]


@pytest.fixture
def lived(work, tmp_path):
    """An end user who was ingested, dreamed of, reviewed, searched for and exported; and who may see it."""
    organization = make_organization()
    client = make_client(organization)
    api = APIClient(headers={"X-API-Key": make_key(client, "admin")})
    reviewer = make_member(organization, "administrator")
    browser = Browser()
    browser.force_login(reviewer)
    user = {"user_id": f"{WORD}@example.org"}
    api.post("/users/create_or_get", user | {"name": WORD}, format="json")
    for n in range(3):
        body = {"session_id": f"{WORD}-{n}", "messages": SESSION, "filter_tags": {"who": WORD}}
        path = "/memory/add" if n else "/memory/add_sync"
        assert api.post(path, user | body, format="json").status_code == 200
    api.post("/memory/add_sync", user | {"session_id": WORD, "messages": [{"weird": WORD}]}, format="json")
    work()
    for n in range(3):
        api.post(f"/v1/sessions/{WORD}-{n}/close?user_id={user['user_id']}")
    api.post(f"/memory/auto_dream?wait=0&user_id={user['user_id']}", {}, format="json")
    work()
    assert SkillExperience.objects.exists()
    for proposal in api.get("/v1/proposals").json()["results"]:
        address = reverse("admin:skills_skillrevision_approve", args=[proposal["id"]])
        browser.post(address, {"reason": f"Of {WORD}."})
    assert Skill.objects.exists()
    api.get("/memory/search", user | {"query": f"cancel {WORD}"})
    assert SearchEvent.objects.exists()
    call_command(
        "export_skills", to=str(tmp_path / "out"), organization=organization.name, user=user["user_id"],
        stdout=StringIO(),
    )  # fmt: skip
    return api, client, user["user_id"]


@pytest.mark.parametrize("door", ["/users/{user}/memories", "/clients/{client}/memories"])
def test_no_table_no_job_and_no_line_of_the_log_says_a_word_of_them(lived, door, caplog, work, settings):
    api, client, user_id = lived
    caplog.set_level(logging.DEBUG)
    assert len(found(WORD)) >= 8

    answer = api.delete(door.format(user=user_id, client=client.pk))

    assert answer.status_code == 200
    work()  # what is done after the commit, and once more
    assert found(WORD) == {}
    assert WORD not in answer.content.decode()
    assert [line for line in _lines(caplog) if WORD in line] == []
    assert ErasureReceipt.objects.count() == 1
    assert _files(settings.VAR_DIR) == []
    forget()
    settings.MIRIX_METRICS_TOKEN = "a token of the tests"
    told = api.get("/metrics", headers={"Authorization": "Bearer a token of the tests"}).content.decode()
    assert f'mirix_erasures{{kind="{answer.json()["receipt"]["kind"]}"}} 1' in told


@pytest.fixture
def merged(work, tmp_path):
    """Two skills from files, the one that says the word merged into the other, searched for and exported."""
    organization = make_organization()
    api = APIClient(headers={"X-API-Key": make_key(make_client(organization), "admin")})
    browser = Browser()
    browser.force_login(make_member(organization, "administrator"))
    skills = {f"greet-{WORD}": f"1. Greet {WORD}.", "pay-an-order": "1. Ask which card to use."}
    for name, says in skills.items():
        folder = tmp_path / "in" / name
        folder.mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: Use when one must {name.replace('-', ' ')}.\n---\n\n"
        (folder / "SKILL.md").write_text(head + says + "\n")
    call_command(
        "import_skills", str(tmp_path / "in"), organization=organization.name, user="alice", stdout=StringIO()
    )
    for proposal in SkillRevision.objects.all():
        browser.post(
            f"/admin/skills/skillrevision/{proposal.pk}/approve/", {"reason": f"Of {proposal.name}."}
        )
    going, staying = (Skill.objects.get(name=name) for name in skills)
    browser.post(
        f"/admin/skills/skill/{going.pk}/merge/", {"target": staying.pk, "reason": f"As {WORD} said."}
    )
    merge = SkillRevision.objects.get(state="proposed")
    browser.post(f"/admin/skills/skillrevision/{merge.pk}/approve/", {"reason": f"As {WORD} said."})
    work()
    assert WORD in Skill.objects.get(pk=staying.pk).instructions
    api.get("/memory/search", {"user_id": "alice", "query": "which card"})
    call_command(
        "export_skills", to=str(tmp_path / "out"), organization=organization.name, user="alice",
        stdout=StringIO(),
    )  # fmt: skip
    return api, going, staying


def test_of_a_skill_that_was_merged_into_another_one_nothing_is_left_anywhere(
    settings, monkeypatch, caplog, work, request
):
    with redis() as url:
        settings.CACHES = caches(url)
        monkeypatch.setattr(cache.redis, "_rests_until", 0.0)  # after a failure in another test
        client = django_cache.client.get_client(write=True)
        client.flushdb()
        api, going, staying = request.getfixturevalue("merged")
        assert client.keys("mirix:search:*")
        assert len(found(WORD)) >= 4
        caplog.set_level(logging.DEBUG)

        answer = api.delete(f"/memory/procedural/{going.pk}")

        assert answer.status_code == 200
        assert WORD not in answer.content.decode()
        work()
        assert found(WORD) == {}
        assert client.keys("mirix:search:*") == []
        assert [key for key in client.keys("*") if WORD.encode() in key + (client.get(key) or b"")] == []
        assert [line for line in _lines(caplog) if WORD in line] == []
        assert _files(settings.VAR_DIR) == []
        left = Skill.objects.get()
        assert (left.pk, left.status, left.instructions) == (
            staying.pk,
            "quarantined",
            "1. Ask which card to use.",
        )
        assert api.get("/memory/search", {"user_id": "alice", "query": "which card"}).json()["count"] == 0
        assert SkillRevision.objects.get(state="proposed").action == "restore"


def _files(folder: str | Path) -> list[str]:
    """Files that say the word; what PostgreSQL has of rows that are gone, it overwrites in its own time."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    kept = [path for path in files if path.relative_to(folder).parts[0] != "postgres"]
    return [str(path) for path in kept if WORD.encode() in path.read_bytes()]


def _lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged by us; the request line of Django names the path that was asked for."""
    return [
        record.getMessage()
        for when in ("setup", "call")
        for record in caplog.get_records(when)
        if record.name.split(".")[0] in ("mirix", "conversations", "skills", "procrastinate")
    ]
