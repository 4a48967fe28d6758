"""Runs with a model behind a scripted endpoint, in real processes that are killed or work at once.

The model is asked over HTTP by the real client, and what it was asked is counted: nothing is learned twice,
nothing is lost, and nothing is sent again without need.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection

from conversations.models import Session
from mirix.tenants.owners import Owner
from skills.distillation.reply import SCHEMA_NAME
from skills.models import AutoDreamRun, DistillationAttempt, SkillExperience, SkillRevision
from skills.triggers import request_run, trigger_if_due
from tests.endpoints import ChatAnswer, ChatRequest, ChatServer, scripted_chat
from tests.factories import make_owner, make_session
from tests.processes import PATIENCE_SECONDS, SOAK, Process, eventually
from tests.skills.distillation.answers import answer, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

TOOLS = ("cancel_order", "refund_order", "return_item", "change_address", "split_payment")
SECONDS_A_CALL = 0.05
CONCURRENCY = 4


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A model that learns one thing from each session of `fill`, and takes its time for it."""
    with scripted_chat() as served:
        served.answer = learn
        yield served


def learn(request: ChatRequest) -> ChatAnswer:
    if not is_distillation(request):
        return ChatAnswer(text="{}")
    number = order_of(request)
    tool = TOOLS[number % len(TOOLS)]
    lesson = told(2, error_of(number), title=f"Give {tool} a reason, {number}", topic=f"tool:{tool}")
    return ChatAnswer(text=answer(lesson), slow=SECONDS_A_CALL)


def is_distillation(request: ChatRequest) -> bool:
    return request.schema_name == SCHEMA_NAME


def order_of(request: ChatRequest) -> int:
    """The order that the session of the request is about."""
    found = re.search(r"cancel my order (\d+)", request.user)
    assert found
    return int(found[1])


def error_of(number: int) -> str:
    return f"Error: order {number} has no reason"


def fill(owner: Owner, numbers: range) -> None:
    """A session for each number; those of one tool teach the same."""
    for number in numbers:
        tool = TOOLS[number % len(TOOLS)]
        make_session(
            owner,
            [
                {"role": "user", "content": f"Please cancel my order {number}."},
                {"role": "tool", "content": error_of(number), "tool_name": tool, "is_error": True},
                {"role": "assistant", "content": f"What is your reason to cancel order {number}?"},
            ],
            session_id=f"order-{number}",
        )


def command(owner: Owner, model: ChatServer, **environment: str) -> Process:
    """`auto_dream` over all that is sealed, as an operator calls it."""
    names = {"organization": owner.organization.name, "user": owner.end_user.user_id}
    call = f"call_command('auto_dream', last_n_sessions=999, **{names!r})"
    return _process(call, model, environment)


def worker(model: ChatServer, **environment: str) -> Process:
    return _process("call_command('worker')", model, environment)


def _process(call: str, model: ChatServer, environment: dict[str, str]) -> Process:
    settings = {"MIRIX_DISTILLER_MAX_CONCURRENCY": str(CONCURRENCY), "MIRIX_LLM_API_KEY": ""}
    settings["MIRIX_PROPOSER"] = "offline"  # the model knows nothing of proposals
    script = f"from django.core.management import call_command\n{call}"
    return Process(script, **(model.environment | settings | environment))


def look_dead() -> None:
    """What a minute of silence does."""
    AutoDreamRun.objects.filter(state="running").update(heartbeat_at=None)


def learned(owner: Owner) -> list[tuple[Any, ...]]:
    """All that was learned of each session: what the owner's rows say, without ids and times."""
    experiences = SkillExperience.objects.for_owner(owner).values_list(
        "session__session_id", "experience_type", "title", "content", "topic", "importance", "credibility",
        "model_credibility", "signal_type", "quote", "turn_seq", "verified", "quarantined",
    )  # fmt: skip
    return sorted(experiences)


def proposed(owner: Owner) -> list[tuple[Any, ...]]:
    """What was made of it: each revision with its text and the lessons that it rests on."""
    revisions = SkillRevision.objects.for_owner(owner).prefetch_related("experiences")
    return sorted(
        (
            revision.action,
            revision.state,
            revision.content_hash,
            tuple(sorted(experience.title for experience in revision.experiences.all())),
        )
        for revision in revisions
    )


def assert_learned_once(owner: Owner, numbers: range) -> None:
    """Each session was answered for once, taught one thing, and is done."""
    quotes = SkillExperience.objects.for_owner(owner).values_list("quote", flat=True)
    assert Counter(quotes) == Counter(map(error_of, numbers))
    attempts = DistillationAttempt.objects.for_owner(owner).values_list("session__session_id", "verdict")
    assert Counter(attempts) == Counter((f"order-{number}", "ok") for number in numbers)
    states = Session.objects.for_owner(owner).values_list("state", "distilled_through", "attempts")
    assert Counter(states) == {("distilled", 3, 0): len(numbers)}


def asked(model: ChatServer) -> Counter[int]:
    """How often the model was asked about each order."""
    return Counter(order_of(request) for request in model.requests if is_distillation(request))


@pytest.mark.soak
def test_a_run_that_is_killed_again_and_again_ends_as_an_undisturbed_one(model):
    """kill -9 at a random moment, the same command once more, and so on."""
    numbers, kills = range(100, 140), 10 if SOAK else 2
    undisturbed, owner = make_owner(), make_owner()
    fill(undisturbed, numbers)
    fill(owner, numbers)
    with command(undisturbed, model) as process:
        status, _, errors = process.end()
    assert status == 0, errors
    assert asked(model) == Counter(numbers)
    model.requests.clear()

    moments = random.Random(7)
    for _ in range(kills):
        with command(owner, model) as process:
            goal = model.calls + moments.randint(1, 30 // kills)
            eventually(lambda goal=goal: model.calls >= goal)
            time.sleep(moments.uniform(0, 2 * SECONDS_A_CALL))
            process.kill()
        look_dead()
    with command(owner, model) as process:
        status, _, errors = process.end()

    assert status == 0, errors
    assert_learned_once(owner, numbers)
    assert learned(owner) == learned(undisturbed)
    assert proposed(owner) == proposed(undisturbed) != []
    states = Counter(AutoDreamRun.objects.for_owner(owner).values_list("state", flat=True))
    assert states == {"abandoned": kills, "finished": 1}
    again = asked(model) - Counter(numbers)
    assert again.total() <= kills * CONCURRENCY  # what was on its way when the process died


def test_two_workers_and_two_triggers_at_once_do_one_run_of_an_owner_at_a_time(model):
    """Owners go on side by side: each one's first question is answered once the other's has come."""
    parts = {make_owner(): range(100, 110), make_owner(): range(200, 210)}
    for owner, numbers in parts.items():
        fill(owner, numbers)
    both = threading.Barrier(len(parts), timeout=PATIENCE_SECONDS)
    first = {100, 200}

    def meet(request: ChatRequest) -> ChatAnswer:
        if is_distillation(request) and order_of(request) in first:
            both.wait()
        return learn(request)

    model.answer = meet
    with worker(model), worker(model):
        at_once(
            *(partial(trigger, owner=owner) for owner in parts for trigger in (ask_for_run, trigger_if_due))
        )
        eventually(lambda: not Session.objects.exclude(state="distilled").exists())
        eventually(lambda: not AutoDreamRun.objects.exclude(state="finished").exists())

    assert not both.broken
    assert asked(model) == Counter([*range(100, 110), *range(200, 210)])
    for owner, numbers in parts.items():
        assert_learned_once(owner, numbers)
        times = AutoDreamRun.objects.for_owner(owner).order_by("started_at")
        spans = list(times.values_list("started_at", "finished_at"))
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def ask_for_run(*, owner: Owner) -> None:
    request_run(owner=owner, trigger="api", parameters={"last_n_sessions": 99})


def at_once(*calls: Callable[[], Any]) -> None:
    """Do them in threads that begin together, each with its own connection."""
    together = threading.Barrier(len(calls))

    def call(what: Callable[[], Any]) -> None:
        try:
            together.wait()
            what()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(call, calls))
