"""Evolving with a model over HTTP in real processes that are killed: what was answered is not half done."""

from __future__ import annotations

import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from mirix.tenants.owners import Owner
from skills.models import AutoDreamRun, ProposerCall, RevisionState, SkillExperience, SkillRevision
from tests.endpoints import ChatAnswer, ChatRequest, ChatServer, scripted_chat
from tests.factories import make_experience, make_owner, make_session
from tests.processes import SOAK, Process, eventually
from tests.skills.evolution.answers import answer, create

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

TOOLS = ("cancel_order", "refund_payment", "return_item", "change_address", "split_bill")
LESSONS_A_TOOL = 2
SECONDS_A_CALL = 0.05
HALT = """
import time
from skills.evolution import dialogue
def halt(**_):
    print("answered", flush=True)
    time.sleep(60)
dialogue.spend = halt
"""
CALL = """
import sys
from django.core.management import CommandError, call_command
try:
    call_command("evolve", **{!r})
except CommandError as error:
    sys.stderr.write(str(error))
    sys.exit(error.returncode)
"""


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A model that makes one skill of the lessons of a tool, all of them cited."""
    with scripted_chat() as served:
        served.answer = write
        yield served


def write(request: ChatRequest) -> ChatAnswer:
    tool = tool_of(request)
    ids = re.findall(r"\[lesson (\S+) ", request.user)
    skill = {
        "name": tool.replace("_", "-"),
        "description": f"How `{tool}` is called. Use when you call it.",
        "instructions": f"1. Have a reason ready.\n2. Call `{tool}` with it.",
        "triggers": [tool],
    }
    return ChatAnswer(text=answer(create(*ids, **skill)), slow=SECONDS_A_CALL)


def tool_of(request: ChatRequest) -> str:
    found = re.search(r"TOPIC: tool:(\w+)", request.user)
    assert found
    return found[1]


def fill(owner: Owner) -> None:
    for number, tool in enumerate(TOOLS * LESSONS_A_TOOL):
        error = f"Error: {tool} has no reason"
        said = [{"role": "tool", "content": error, "tool_name": tool, "is_error": True}]
        make_experience(
            owner,
            make_session(owner, said),
            experience_type="worth_avoiding",
            title=f"Give {tool} a reason, {number}",
            topic=f"tool:{tool}",
            signal_type="tool_error",
            quote=error,
        )


def evolve(owner: Owner, model: ChatServer, before: str = "") -> Process:
    names = {"organization": owner.organization.name, "user": owner.end_user.user_id}
    return Process(before + CALL.format(names), **(model.environment | {"MIRIX_LLM_API_KEY": ""}))


def look_dead() -> None:
    AutoDreamRun.objects.filter(state="running").update(heartbeat_at=None)


def assert_written_once(owner: Owner) -> None:
    """Each tool has one proposal, which rests on all of its lessons, and no lesson is left."""
    revisions = SkillRevision.objects.for_owner(owner)
    assert Counter(revisions.values_list("name", "state")) == Counter(
        (tool.replace("_", "-"), RevisionState.PROPOSED) for tool in TOOLS
    )
    assert {revision.experiences.count() for revision in revisions} == {LESSONS_A_TOOL}
    statuses = SkillExperience.objects.for_owner(owner).values_list("status", flat=True)
    assert Counter(statuses) == {"consumed": len(TOOLS) * LESSONS_A_TOOL}


def test_a_process_killed_between_answer_and_bookkeeping_leaves_all_pending(owner, model):
    fill(owner)
    with evolve(owner, model, HALT) as process:
        assert process.line() == "answered"
        process.kill()
    look_dead()
    assert not SkillRevision.objects.exists()
    assert not ProposerCall.objects.exists()
    assert set(SkillExperience.objects.values_list("status", "considered_by")) == {("pending", "")}

    with evolve(owner, model) as process:
        status, _, errors = process.end()

    assert status == 0, errors
    assert_written_once(owner)
    assert Counter(map(tool_of, model.requests)).total() == len(TOOLS) + 1


@pytest.mark.soak
def test_a_run_that_is_killed_again_and_again_writes_everything_once(model):
    owner, moments = make_owner(), random.Random(11)
    fill(owner)
    kills = 8 if SOAK else 2
    for _ in range(kills):
        with evolve(owner, model) as process:
            goal = model.calls + 1
            eventually(lambda goal=goal: model.calls >= goal or process.popen.poll() is not None)
            time.sleep(moments.uniform(0, 3 * SECONDS_A_CALL))
            process.kill()
        look_dead()
    with evolve(owner, model) as process:
        status, _, errors = process.end()

    assert status == 0, errors
    assert_written_once(owner)
    asked = Counter(map(tool_of, model.requests))
    assert (asked - Counter(TOOLS)).total() <= kills  # what was on its way when the process died


def test_one_that_is_told_to_stop_writes_the_answer_on_its_way_and_the_next_goes_on(model):
    owner, stop = make_owner(), threading.Event()
    fill(owner)

    def answer_slowly(request: ChatRequest) -> ChatAnswer:
        stop.wait(10)
        return write(request)

    model.answer = answer_slowly
    with evolve(owner, model) as process:
        eventually(lambda: model.calls == 1)
        process.send(signal.SIGTERM)
        time.sleep(0.5)
        stop.set()
        status, _, errors = process.end()

    assert status == 128 + signal.SIGTERM
    assert errors.splitlines()[-1] == (
        "Interrupted. What was written is kept; the same command goes on from there."
    )
    run = AutoDreamRun.objects.get()
    assert (run.state, run.error, len(run.counts["proposals"])) == ("interrupted", "Interrupted.", 1)
    with evolve(owner, model) as process:
        assert process.end()[0] == 0
    assert_written_once(owner)
    assert Counter(map(tool_of, model.requests)) == Counter(TOOLS)
