"""What a run leaves in the log: whose line it is, and no word of a session."""

from __future__ import annotations

import json
import logging
from io import StringIO

import pytest

from mirix.logs import JsonFormatter
from skills import dream as dreaming
from skills.dream import dream
from skills.evolution.types import EvolutionReport
from skills.runs import claim
from tests.factories import make_session
from tests.skills.scripted import ScriptedDistiller

pytestmark = pytest.mark.django_db


def test_every_line_of_a_run_names_it_those_of_its_threads_too(owner, monkeypatch):
    class Stumbling(ScriptedDistiller):
        words = "could not read “canary”"

        def distil(self, *args, **kwargs):
            logging.getLogger("mirix.llm").warning("the endpoint stumbles")
            raise ValueError(self.words)

    monkeypatch.setattr(dreaming, "get_distiller", lambda model="": Stumbling())
    monkeypatch.setattr(dreaming, "evolve", lambda **_: EvolutionReport())
    make_session(owner, [{"role": "user", "content": "canary"}])
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    try:
        run = dream(claim=claim(owner=owner, trigger="command", parameters={}))
    finally:
        logging.getLogger().removeHandler(handler)

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["logger"] for line in lines} >= {"mirix.llm", "skills.lessons"}
    assert {line["run_id"] for line in lines} == {run.pk}
    fault = next(line for line in lines if line["logger"] == "skills.lessons")
    assert fault["error"] == "ValueError"
    assert "canary" not in stream.getvalue()
