"""What only real processes can show of importing: killed at any moment, started again, it does the rest."""

from __future__ import annotations

import json
import random
import time

import pytest

from conversations.models import ConversationMessage, IntakeRecord, Session
from tests.processes import SOAK, Process, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes, pytest.mark.soak]

TURNS = 5
IMPORT = """
import os
from django.core.management import call_command
call_command("import_sessions", os.environ["TEST_FILE"], "--json", organization="demo", user="alice")
"""


def test_an_import_killed_at_random_moments_stores_everything_once(transactional_db, tmp_path):
    count, kills = (300, 10) if SOAK else (40, 3)
    path = tmp_path / "sessions.jsonl"
    with path.open("w") as lines:
        for number in range(count):
            messages = [{"role": "user", "content": f"{number}/{turn}"} for turn in range(TURNS)]
            lines.write(json.dumps({"id": f"s-{number}", "messages": messages}) + "\n")
    chance = random.Random(count)
    for kill in range(kills):
        goal = count * kill // kills
        with Process(IMPORT, TEST_FILE=str(path)) as importer:
            eventually(lambda goal=goal: Session.objects.count() > goal)
            time.sleep(chance.random() / 20)
            importer.kill()
    with Process(IMPORT, TEST_FILE=str(path)) as importer:
        status, out, errors = importer.end()
    assert status == 0, errors

    assert json.loads(out)["sessions"] == count
    assert IntakeRecord.objects.filter(state="stored").count() == IntakeRecord.objects.count() == count
    assert set(Session.objects.values_list("state", "turn_count")) == {("sealed", TURNS)}
    contents = ConversationMessage.objects.values_list("content", flat=True)
    assert sorted(contents) == sorted(f"{number}/{turn}" for number in range(count) for turn in range(TURNS))
