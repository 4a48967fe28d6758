"""What only real processes can show: adds at once, races for a key, workers killed in mid-storage."""

from __future__ import annotations

import json
import random
import time
from contextlib import ExitStack
from typing import Any

import pytest

from conversations.envelope import checked
from conversations.intake import accept, store_queued
from conversations.models import ConversationMessage, IntakeRecord, Session
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner
from tests.factories import make_client, make_owner
from tests.processes import SOAK, Process, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

PROCESSES = 8
ADD = """
import json, os
from conversations.envelope import checked
from conversations.intake import KeyReused, accept
from mirix.tenants.models import Client, EndUser
from mirix.tenants.owners import Owner

client = Client.objects.select_related("organization").get(pk=os.environ["TEST_CLIENT"])
owner = Owner(organization=client.organization, end_user=EndUser.objects.get(pk=os.environ["TEST_END_USER"]))
name = os.environ["TEST_NAME"]

def add(*texts, session_id="shared", wait=True, key=""):
    envelope = checked(messages=[{"role": "user", "content": text} for text in texts], session_id=session_id)
    return accept(client=client, owner=owner, envelope=envelope, wait=wait, idempotency_key=key)
"""
WORKER = "from django.core.management import call_command\ncall_command('worker')"
STUCK_WORKER = f"""
import time
from conversations import storage

def hang(*args):
    print("storing", flush=True)
    time.sleep(600)

storage._report = hang
{WORKER}
"""


@pytest.fixture
def owner(transactional_db) -> Owner:
    return make_owner(user_id="alice")


@pytest.fixture
def client_row(owner) -> Client:
    return make_client(owner.organization)


def all_at_once(script: str, owner: Owner, client: Client, *, processes: int) -> list[str]:
    """Run the script in several processes at once, each with a name of its own; return what they print."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                Process(
                    ADD + script,
                    TEST_CLIENT=client.pk,
                    TEST_END_USER=owner.end_user.pk,
                    TEST_NAME=f"p{number}",
                )
            )
            for number in range(processes)
        ]
        ends = [process.end() for process in started]
    for status, _, errors in ends:
        assert status == 0, errors
    return [out for _, out, _ in ends]


def queue(owner: Owner, client: Client, *texts: str, session_id: str = "s-1") -> IntakeRecord:
    messages = [{"role": "user", "content": text} for text in texts]
    envelope = checked(messages=messages, session_id=session_id)
    return accept(client=client, owner=owner, envelope=envelope, wait=False).record


def contents() -> list[str]:
    return list(ConversationMessage.objects.order_by("session", "seq").values_list("content", flat=True))


@pytest.mark.soak
def test_eight_processes_adding_to_one_session_lose_nothing_and_keep_each_order(owner, client_row):
    requests = 40 if SOAK else 5
    all_at_once(
        f"for n in range({requests}): add(*(f'{{name}}/{{n}}/{{i}}' for i in range(3)), wait=n % 3 > 0)",
        owner,
        client_row,
        processes=PROCESSES,
    )
    for pk in IntakeRecord.objects.filter(state="queued").values_list("pk", flat=True):
        store_queued(intake_id=pk)

    session = Session.objects.get()
    turns = list(session.turns.order_by("seq").values_list("seq", "content"))
    total = PROCESSES * requests * 3
    assert [seq for seq, _ in turns] == list(range(1, total + 1))
    assert (session.turn_count, session.last_seq) == (total, total)
    texts = [content for _, content in turns]
    assert len(set(texts)) == total
    for start in range(0, total, 3):  # every request lies together and in its order
        first = texts[start].rsplit("/", 1)[0]
        assert texts[start : start + 3] == [f"{first}/{i}" for i in range(3)]
    for number in range(PROCESSES):  # and so do the requests of one caller
        own = [text for text in texts if text.startswith(f"p{number}/")]
        assert own == [f"p{number}/{n}/{i}" for n in range(requests) for i in range(3)]
    assert set(IntakeRecord.objects.values_list("state", flat=True)) == {"stored"}


def test_a_key_used_by_many_at_once_is_accepted_once(owner, client_row):
    script = """
print(json.dumps(add("hello", key="same").answer, sort_keys=True))
try:
    print(add(name, key="other").record.pk)
except KeyReused:
    print("refused")
"""
    outputs = [out.splitlines() for out in all_at_once(script, owner, client_row, processes=4)]
    answers = {answer for answer, _ in outputs}
    assert len(answers) == 1
    assert json.loads(answers.pop())["turns"]["stored"] == 1

    record = IntakeRecord.objects.get(idempotency_key="other")
    assert sorted(other for _, other in outputs) == sorted([record.pk, "refused", "refused", "refused"])
    assert IntakeRecord.objects.count() == 2
    assert len(contents()) == 2


def test_a_worker_killed_in_mid_storage_is_taken_over_and_stores_once(owner, client_row):
    record = queue(owner, client_row, "one", "two")
    with Process(STUCK_WORKER) as worker:
        assert worker.line() == "storing"
        worker.kill()
    record.refresh_from_db()
    assert (record.state, contents()) == ("queued", [])
    assert not Session.objects.exists()

    with Process(WORKER, MIRIX_WORKER_STALLED_SECONDS="2"):
        eventually(lambda: IntakeRecord.objects.filter(state="stored").exists())
    assert contents() == ["one", "two"]


@pytest.mark.soak
def test_workers_killed_at_random_moments_store_every_request_once(owner, client_row):
    count, kills = (200, 10) if SOAK else (12, 2)
    for number in range(count):
        queue(owner, client_row, f"{number}/a", f"{number}/b", session_id=f"s-{number % 5}")
    chance = random.Random(count)

    def stored() -> int:
        return IntakeRecord.objects.filter(state="stored").count()

    for kill in range(kills):
        goal = count * kill // kills
        with Process(WORKER, MIRIX_WORKER_STALLED_SECONDS="2") as worker:
            eventually(lambda goal=goal: stored() > goal or stored() == count)
            time.sleep(chance.random() / 20)
            worker.kill()
    with Process(WORKER, MIRIX_WORKER_STALLED_SECONDS="2"):
        eventually(lambda: stored() == count)

    assert len(contents()) == len(set(contents())) == 2 * count
    for session in Session.objects.all():
        own: list[Any] = list(session.turns.order_by("seq").values_list("content", flat=True))
        numbers = [int(text.split("/")[0]) for text in own]
        assert numbers == sorted(numbers)
        assert [text[-1] for text in own] == ["a", "b"] * (len(own) // 2)
