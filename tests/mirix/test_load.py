"""Many clients at once for a while: no error, and no turn lost or stored twice."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from tests.mirix.served import Served
from tests.mirix.states import SOAK, State, wait_until
from tests.mirix.test_faults import STORED, UNTHROTTLED, WAITING
from tests.mirix.traffic import Traffic

pytestmark = [pytest.mark.processes, pytest.mark.soak]

CLIENTS, DREAMING, SECONDS = (46, 4, 120.0) if SOAK else (8, 2, 5.0)
GOING_ON = "SELECT count(*) FROM skills_autodreamrun WHERE state IN ('running', 'queued')"
FAILED = "SELECT count(*) FROM skills_autodreamrun WHERE state NOT IN ('running', 'queued', 'finished')"


def test_adding_searching_and_dreaming_all_at_once(migrated_state: State):
    made = migrated_state.manage("create_api_key", "--organization", "o", "--client", "c", "--json")
    served = Served(migrated_state, MIRIX_THROTTLE_DREAM="0", **UNTHROTTLED)
    migrated_state.start("manage.py", "worker", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    traffic = Traffic(served.port, json.loads(made.stdout)["key"])
    with traffic.flowing(CLIENTS, DREAMING):
        time.sleep(SECONDS)

    assert (traffic.refusals, traffic.odd) == ([], [])
    assert {"add", "search", "close", "dream"} == set(traffic.seconds)
    wait_until(lambda: migrated_state.ask(WAITING) == "0")
    stored = json.loads(migrated_state.ask(f"SELECT ({STORED})::text"))
    assert sorted(stored) == sorted(traffic.added)
    wait_until(lambda: migrated_state.ask(GOING_ON) == "0")
    assert migrated_state.ask(FAILED) == "0"
