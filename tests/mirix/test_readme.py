"""The README's examples, from top to bottom, against a running mirix: what is printed there works."""

from __future__ import annotations

import hmac
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class

from mirix.tenants.keys import PREFIX_CHARS
from tests.mirix.served import Served
from tests.mirix.states import ROOT

README = ROOT / "README.md"
ADDRESS = "http://127.0.0.1:8531"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OF_RUN = {"test", "bench", "lock", "COMMAND"}
"""Words that are no command of manage.py."""
NOT_RUN = {
    "./run          #": "the first start and the test run itself",
    "./run skills history": "needs a skill with four versions, and a member",
    "./run export_skills": "needs an archive of somebody else",
    "./run migrate": "needs a database of the original",
    "curl -s http://127.0.0.1:8531/auth/token": "needs a member's password",
}
"""By how they begin, with the reason; that their commands exist is looked at all the same."""
FILLED_IN = {
    "REVISION": '"$(./run review list --organization acme --json | first id)"',
    "PREFIX": f'"${{KEY:0:{PREFIX_CHARS}}}"',
}
"""What a reader fills in, and how the test does."""
FIRST = "import json, sys; print(json.load(sys.stdin)[0][sys.argv[1]])"
SESSION = """{"session_id": "order-1", "messages": [{"role": "user", "content": "Where is order 1?"}]}\n"""


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    text: str

    @property
    def runs(self) -> bool:
        return not self.text.startswith(tuple(NOT_RUN))


def blocks(path: Path = README) -> list[Block]:
    text = path.read_text()
    return [Block(text.count("\n", 0, found.start()) + 1, *found.groups()) for found in BLOCK.finditer(text)]


def commands() -> list[list[str]]:
    """The words after ./run of every line that calls it, in $(…) too."""
    text = "\n".join(block.text for block in blocks() if block.language == "sh").replace("\\\n", " ")
    lines = re.findall(r"(?:^|\$\()\./run ([^\n#)|]*)", text, re.MULTILINE)
    return [words for line in lines if (words := shlex.split(line))]


def test_every_command_of_it_exists_with_its_options():
    known = get_commands()
    for name, *arguments in commands():
        if name not in OF_RUN:
            parser = load_command_class(known[name], name).create_parser("./run", name)
            parser.parse_args(arguments)  # ends the test where it refuses


def test_every_command_named_in_its_text_exists():
    text = README.read_text()
    (table,) = re.findall(r"\| command \|.*\n((?:\|.*\n)+)", text)
    named = re.findall(r"`\./run (\w+)", text) + re.findall(r"^\| `(\w+)", table, re.MULTILINE)
    assert len(named) > 20
    assert set(named) - set(get_commands()) - OF_RUN == set()


def test_what_is_not_run_is_there():
    for begin in NOT_RUN:
        assert [block for block in blocks() if block.text.startswith(begin)], f"{begin} is gone"


class Reader:
    """Somebody who types what the README says into a shell, and into one Python."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.served, self.folder = served, folder
        self.key = served.manage("create_api_key", "--organization", "acme")
        self.names: dict[str, Any] = webhook()
        self.write("run", f'exec {sys.executable} {ROOT}/manage.py "$@"')
        self.write("bin/curl", f'exec {shutil.which("curl")} --fail-with-body "$@"')
        self.write("bin/first", f"exec {sys.executable} -c '{FIRST}' \"$1\"")
        self.write("sessions.jsonl", SESSION, mode=0o644)
        self.write("logs/one.json", SESSION, mode=0o644)

    def write(self, name: str, text: str, mode: int = 0o755) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n" if mode == 0o755 else text)
        path.chmod(mode)

    def type(self, block: Block) -> str:
        """What the block prints."""
        text = block.text.replace(ADDRESS, self.served.url)
        if block.language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(text, f"{README}:{block.line}", "exec"), self.names)
            return out.getvalue()
        for name, filled in FILLED_IN.items():
            text = text.replace(f" {name}", f" {filled}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder,
            env=self.served.state.environment(
                KEY=self.key, HOME=str(self.folder), PATH=f"{self.folder}/bin:{os.environ['PATH']}"
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"README.md:{block.line}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def webhook() -> dict[str, Any]:
    """What the receiver of a webhook has at hand."""
    secret, body, moment = "whsec_1", b"{}", int(time.time())
    signature = hmac.new(secret.encode(), f"{moment}.".encode() + body, "sha256").hexdigest()
    return {"secret": secret, "body": body, "headers": {"X-Mirix-Signature": f"t={moment},v1={signature}"}}


@pytest.mark.processes
def test_it_does_what_it_says(served: Served, tmp_path: Path, monkeypatch):
    reader = Reader(served, tmp_path)
    monkeypatch.setenv("MIRIX_API_KEY", reader.key)
    printed = {block.text: reader.type(block) for block in blocks() if block.runs}
    (story,) = [out for text, out in printed.items() if "/memory/add_sync" in text]
    assert '"stored":5' in story
    assert '"count":1' in story.splitlines()[-1], "the skill that it approved is not found"
    (learned,) = [out for text, out in printed.items() if "cancel_order" in text]
    assert learned == "1 session distilled into 2 experiences, 1 proposal waiting for review.\n"
    assert "refund" in reader.names["prompt"]
    assert "refund_order" in reader.names["prompt"]
    reader.names["mirix"].close()
