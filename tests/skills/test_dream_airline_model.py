"""Forty sessions of an airline's desk, distilled by a model that invents a third of its quotes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.management import call_command

from conversations.intake import import_session
from conversations.models import Session
from skills.distillation.prompt import prompt_version
from skills.models import DistillationAttempt, SkillExperience, SkillRevision
from tests.data import records
from tests.endpoints import ChatRequest
from tests.factories import make_client
from tests.skills.distillation.answers import answer, told

pytestmark = pytest.mark.django_db

TURN = re.compile(r"^\[turn (?P<seq>\d+) (?P<role>\w+)(?P<rest>.*) (?P<code>\w+)\]$", re.MULTILINE)
MOST_TOLD = 12
SIGNALS = {"user": "user_critique", "assistant": "self_correction", "tool": "tool_error"}


def turns_shown(prompt: str) -> list[tuple[int, str, str]]:
    """Number, kind and words of the turns in a prompt; an error is a kind of its own."""
    frame = prompt[prompt.index("<transcript ") : prompt.rindex("</new turns ")]
    found = list(TURN.finditer(frame))
    ends = [match.start() for match in found[1:]] + [len(frame)]
    return [
        (
            int(match["seq"]),
            "error" if match["rest"].endswith(" error") else match["role"],
            frame[match.end() + 1 : end].strip("\n"),
        )
        for match, end in zip(found, ends, strict=True)
    ]


def invented(number: int, words: str, other: str) -> str:
    """A quote that nobody said, but nearly."""
    match number % 5:
        case 0:
            return f"{words[:40].strip()} as the policy says in its ninth clause"
        case 1:
            return f"{words[:25].strip()} {other[-25:].strip()} {words[:5]}"
        case 2:
            return words[:50].swapcase()
        case 3:
            return " ".join(reversed(words[:60].split()))
    return "You have to ask the customer for a reason before you cancel."


class Inventor:
    """A model that tells a lesson of each telling turn, every third with a quote of its own making."""

    def __init__(self) -> None:
        self.told = 0
        self.invented = 0

    def __call__(self, request: ChatRequest) -> str:
        telling = [turn for turn in turns_shown(request.user) if len(turn[2].split()) >= 6]
        return answer(*(self._item(*turn) for turn in telling[:MOST_TOLD]))

    def _item(self, seq: int, kind: str, words: str) -> dict[str, Any]:
        line = max(words.splitlines(), key=len)
        self.told += 1
        signal = "tool_error" if kind == "error" else SIGNALS[kind]
        if self.told % 3:
            return told(seq, line[:80], signal=signal, title=f"True {self.told} of {kind}", topic="task:desk")
        self.invented += 1
        quote = invented(self.invented, line, words)
        return told(seq, quote, signal=signal, title=f"Invented {self.told} of {kind}", credibility=1.0)


def test_exactly_the_invented_quotes_are_marked_and_capped(owner, chat_server, settings, capsys):
    settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 1  # so that the model can count
    settings.MIRIX_PROPOSER = "offline"  # it knows nothing of proposals
    client = make_client(owner.organization)
    for record in records("traj/tau_airline_dev.jsonl"):
        import_session(
            client=client, owner=owner, session_id=record["session_id"], messages=record["messages"]
        )
    chat_server.answer = inventor = Inventor()
    options = ("--organization", owner.organization.name, "--user", "alice", "--last-n-sessions", "50")
    call_command("auto_dream", *options, "--json")
    told_of = json.loads(capsys.readouterr().out)

    assert told_of["sessions"] == {"distilled": 40, "empty": 0, "retry": 0, "dead": 0, "deferred": 0}
    assert chat_server.calls == 40
    attempts = DistillationAttempt.objects.all()
    assert {(row.distiller, row.model, row.prompt_version, row.calls) for row in attempts} == {
        ("llm", "scripted", prompt_version(), 1)
    }
    assert sum(len(row.dropped) for row in attempts) == 0
    assert set(Session.objects.values_list("state", flat=True)) == {"distilled"}

    experiences = list(SkillExperience.objects.select_related("turn"))
    made_up = [row for row in experiences if row.title.startswith("Invented ")]
    assert (len(experiences), len(made_up)) == (inventor.told, inventor.invented)
    assert len(experiences) // 3 == len(made_up) > 100
    assert {row.pk for row in experiences if not row.verified} == {row.pk for row in made_up}
    for row in made_up:
        assert (row.credibility, row.model_credibility) == (0.3, 1.0)
    bands = {"user": (0.9, "user_critique"), "error": (0.9, "tool_error")}
    bands |= {"assistant": (0.55, "self_correction")}
    for row in experiences:
        if row.verified:
            assert row.quote in row.turn.content
            expected = bands.get(row.title.rsplit(" ", 1)[1], (0.2, "inferred"))
            assert (row.credibility, row.signal_type) == expected
    for revision in SkillRevision.objects.all():
        assert revision.experiences.filter(verified=True).exists()
