"""Erasing while others write: real processes and real commits. Nothing comes back, nothing is half gone."""

from __future__ import annotations

import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, Event
from typing import Any

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, connection
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from conversations.models import ConversationMessage, Session
from mirix.caches import caches
from mirix.tenants import erasure
from mirix.tenants.audit import Actor
from mirix.tenants.models import EndUser, ErasureReceipt
from mirix.tenants.owners import Owner
from skills.erasure.single import erase_skill
from skills.models import Skill, SkillExperience
from skills.review.errors import ReviewError
from skills.review.history import archive
from skills.review.merges import propose_merge
from skills.review.publishing import approve
from skills.search.cache import cache
from skills.search.index import index_skill
from skills.search.service import search
from tests.access.world import tenant_models
from tests.erasure.canary import found
from tests.factories import (
    make_client,
    make_content,
    make_key,
    make_member,
    make_owner,
    make_session,
    make_skill,
)
from tests.processes import Process
from tests.redis import redis, redis_server
from tests.skills.test_dream_processes import command, fill

pytestmark = pytest.mark.django_db(transaction=True)
ACTOR = Actor(kind="command", name="root")
SECRET = "zanzibar"


def erase(owner: Owner) -> ErasureReceipt:
    return erasure.erase_end_user(end_user=owner.end_user, actor=ACTOR)


def rows_of(end_user_id: str) -> dict[str, int]:
    """How many rows of any table of ours name an end user."""
    return {table: n for table, n in found(end_user_id).items() if table != "tenants_erasurereceipt"}


@pytest.mark.processes
class TestDuringARun:
    def test_what_a_run_writes_after_its_end_user_was_erased_is_discarded(self, tmp_path):
        owner = make_owner()
        fill(owner, 3)

        with command(owner, "distil_by(slow)", go=tmp_path / "go") as process:
            assert process.line() == "asked"
            erase(owner)
            (tmp_path / "go").touch()
            status, _, errors = process.end()

        assert status != 0
        assert "Traceback" not in errors
        assert rows_of(owner.end_user.pk) == {}

    def test_what_a_run_had_read_of_an_erased_client_is_not_learned(self, tmp_path):
        owner = make_owner()
        going, staying = make_client(owner.organization), make_client(owner.organization)
        make_session(owner, [{"role": "user", "content": f"No, {SECRET}."}], going)
        make_session(owner, [{"role": "user", "content": "No, theirs."}], staying)

        with command(owner, "distil_by(slow)", go=tmp_path / "go") as process:
            assert process.line() == "asked"
            erasure.erase_client(client=going, actor=ACTOR)
            (tmp_path / "go").touch()
            process.end()

        finish_as_the_worker_does()  # the server may have looked through the tables meanwhile
        assert found(SECRET) == {}
        assert list(Session.objects.values_list("state", flat=True)) == ["sealed"]
        assert not SkillExperience.objects.exists()
        with command(owner) as again:
            assert again.end()[0] == 0
        assert list(SkillExperience.objects.values_list("quote", flat=True)) == ["No, theirs."]


ERASING = """
import os, time
from mirix.tenants import erasure
from mirix.tenants.audit import Actor
from mirix.tenants.models import EndUser

def stop(**_):
    os.write(1, b"about to commit" + os.linesep.encode())
    time.sleep(600)

erasure.record = stop
erasure.erase_end_user(end_user=EndUser.objects.get(), actor=Actor(kind="command", name="root"))
"""


@pytest.mark.processes
def test_one_that_is_killed_has_erased_nothing_and_is_done_again():
    owner = make_owner()
    fill(owner, 3)
    with Process(ERASING) as process:
        assert process.line() == "about to commit"
        process.kill()

    assert ConversationMessage.objects.count() == 3
    assert not ErasureReceipt.objects.exists()
    assert erase(owner).counts["conversations.conversationmessage"] == 3
    assert rows_of(owner.end_user.pk) == {}


def finish_as_the_worker_does() -> None:
    """Do the job that an erasure leaves for what lies outside of its rows."""
    job = ProcrastinateJob.objects.get(task_name="tenants.finish_erasure")
    assert erasure.finish(**job.args)


def in_threads(*works: Any) -> list[Any]:
    """Do all at once, each over a connection of its own; return what they return, or raise."""
    start = Barrier(len(works))

    def do(work: Any) -> Any:
        try:
            start.wait()
            return work()
        except erasure.NothingThere as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(do, works))


def test_of_two_at_once_one_erases_and_one_finds_nothing():
    owner = make_owner()
    fill(owner, 5)

    results = in_threads(lambda: erase(owner), lambda: erase(owner))

    assert Counter(type(result) for result in results) == {ErasureReceipt: 1, erasure.NothingThere: 1}
    assert ErasureReceipt.objects.count() == 1
    assert rows_of(owner.end_user.pk) == {}


def test_a_client_twice_at_once():
    owner = make_owner()
    client = make_client(owner.organization)
    make_session(owner, [{"role": "user", "content": "One."}], client)

    results = in_threads(*[lambda: erasure.erase_client(client=client, actor=ACTOR)] * 2)

    assert sorted(result.total for result in results) == [0, 3]


@pytest.mark.parametrize("what", ["end_user", "client"])
def test_while_requests_come_in_each_is_stored_or_refused_as_a_whole(what):
    """Whoever was refused may send again, and is then somebody new."""
    organization = make_owner(user_id="alice").organization
    client = make_client(organization)
    key = make_key(client)
    done, stored = Event(), Event()

    def send(number: int) -> Counter[int]:
        api, statuses, n = APIClient(headers={"X-API-Key": key}), Counter(), 0
        while not done.is_set():
            n += 1
            body = {
                "user_id": "alice",
                "session_id": f"s-{number}-{n % 3}",
                "messages": [{"role": "user", "content": f"{number}: {n}"}],
            }
            status = api.post("/memory/add_sync", body, format="json").status_code
            statuses[status] += 1
            if status == 200:
                stored.set()
        return statuses

    def erase_all() -> int:
        """Erase what there is; return how many rows went."""
        if what == "client":
            return erasure.erase_client(client=client, actor=ACTOR).total
        total = 0
        for end_user in EndUser.objects.filter(user_id="alice"):
            with suppress(erasure.NothingThere):
                total += erasure.erase_end_user(end_user=end_user, actor=ACTOR).total
        return total

    def erase_often() -> int:
        total, times = 0, 0
        try:
            while times < 12 or not (stored.is_set() and total):
                total, times = total + erase_all(), times + 1
            return total
        finally:
            done.set()

    results = in_threads(erase_often, *[lambda number=number: send(number) for number in range(3)])

    statuses = sum(results[1:], Counter())
    assert results[0] > 0
    assert statuses[200] > 0
    assert set(statuses) <= {200, 409, 503}, statuses
    for session in Session.objects.all():
        assert session.turn_count == session.turns.count() > 0
    erase_all()
    assert not ConversationMessage.objects.exists()
    left = {model._meta.label for model in tenant_models() if model.objects.exists()}
    assert left - {"tenants.EndUser"} == {
        "tenants.Organization", "tenants.Client", "tenants.ApiKey", "tenants.ErasureReceipt",
        "tenants.AuditEvent",
    }  # fmt: skip


@pytest.mark.parametrize("time", range(4))
def test_a_skill_while_it_is_merged_and_what_it_goes_into_is_changed(time):
    """Whoever is first: nothing of it is left in the other one, and nobody waits for ever."""
    owner = make_owner()
    source = make_skill(owner, make_content(name=f"greet-{SECRET}", instructions=f"1. Greet {SECRET}."))
    target = make_skill(owner, make_content(name="ask", instructions="1. Ask."))
    merge = propose_merge(source=source, target=target)
    member = make_member(owner.organization)

    in_threads(
        lambda: erase_skill(skill=source, actor=ACTOR),
        lambda: _unless_gone(lambda: approve(revision=merge, decided_by=member)),
        lambda: _unless_gone(lambda: archive(skill=target, decided_by=member, reason="Old.")),
    )

    assert found(SECRET, besides=["pg_stats"]) == {}
    assert Skill.objects.get().instructions == "1. Ask."


def _unless_gone(act: Any) -> None:
    """Do what somebody else may be faster than."""
    with suppress(ReviewError, ObjectDoesNotExist, DatabaseError):
        act()


class TestOutsideOfTheRows:
    def test_nothing_is_left_in_redis(self, settings, monkeypatch):
        owner = make_owner()
        index_skill(make_skill(owner, make_content(name=f"greet-{SECRET}")))
        with redis() as url:
            settings.CACHES = caches(url)
            monkeypatch.setattr(cache.redis, "_rests_until", 0.0)  # after a failure in another test
            client = _client()
            client.flushdb()
            search(organization=owner.organization, owner=owner, query=SECRET)
            assert client.keys("mirix:search:*")

            erase(owner)

            assert client.keys("mirix:search:*") == []

    def test_with_redis_out_of_reach_the_worker_comes_back(self, settings, monkeypatch, caplog):
        owner = make_owner()
        with redis_server() as url:
            settings.CACHES = caches(url)
        caplog.set_level(logging.ERROR)

        erase(owner)

        job = ProcrastinateJob.objects.get(task_name="tenants.finish_erasure")
        assert job.status == "todo"
        assert erasure.finish(**job.args) is False

    def test_the_worker_does_it(self, work):
        owner = make_owner()
        erase(owner)
        work()
        assert ProcrastinateJob.objects.get(task_name="tenants.finish_erasure").status == "succeeded"


def _client() -> Any:
    from django.core.cache import cache as all_of_it

    return all_of_it.client.get_client(write=True)
