"""The tour of docs/tour.md: what a newcomer types works as it is written, and the pictures are there."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.mirix.served import Served
from tests.mirix.states import ROOT
from tests.mirix.test_readme import ADDRESS, OF_RUN, Reader, blocks
from tests.pictures import MOST_BYTES

TOUR = ROOT / "docs" / "tour.md"
NOT_RUN = ("./run\n", "KEY=")
"""The first start, which the test of `quickstart` has; and where the newcomer puts the key."""
SHOWN = re.compile(r'(?:src|srcset)="([^"]*)"')
QUERY_LOGS = """ "$(./run review list --organization demo --json | pick query-logs)" """
PICK = """import json, sys
print(next(row["id"] for row in json.load(sys.stdin) if row["name"] == sys.argv[1]))"""


class Newcomer(Reader):
    """Somebody who has just started mirix for the first time."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.served, self.folder = served, folder
        self.key = json.loads(served.manage("quickstart", "--no-serve", "--json"))["api_key"]
        self.filled_in = {ADDRESS: served.url, " REVISION": QUERY_LOGS.rstrip()}
        self.names = {}
        self.prepare("")
        self.program("pick", PICK)


def test_every_command_of_it_exists():
    named = re.findall(r"\./run (\w+)", TOUR.read_text())
    assert named
    assert set(named) - set(get_commands()) - OF_RUN == set()


def test_its_pictures_are_there_and_small():
    shown = {
        (page.parent / name).resolve()
        for page in (TOUR, ROOT / "README.md")
        for name in SHOWN.findall(page.read_text())
    }
    stored = {*(ROOT / "docs" / "pictures").iterdir()}
    assert shown == stored
    for path in stored:
        head = path.read_bytes()[:33]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        colours = struct.unpack(">IIBBBBB", head[16:29])[3]
        assert (colours, path.stat().st_size <= MOST_BYTES) == (3, True), path.name


@pytest.mark.processes
def test_it_does_what_it_says(served: Served, tmp_path: Path):
    newcomer = Newcomer(served, tmp_path)
    before, decided, after, taught = (
        newcomer.type(block) for block in blocks(TOUR) if not block.text.startswith(NOT_RUN)
    )
    assert '"count":0' in before
    assert "query-logs" in decided
    found = json.loads(after)["results"]
    assert [(row["name"], row["version"]) for row in found] == [("query-logs", "0.1.0")]
    assert '"stored":5' in taught
    assert "1 proposal waiting for review" in taught
