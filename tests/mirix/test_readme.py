"""The README's examples, from top to bottom, against a running mirix: what is printed there works."""

from __future__ import annotations

import hmac
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
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
OF_RUN = {"test", "bench", "pictures", "lock", "COMMAND"}
"""Words that are no command of manage.py."""
NOT_RUN = {
    "./run          #": "the first start and the test run itself",
    "./run migrate": "needs a database of the original",
}
"""By how they begin, with the reason; that their commands exist is looked at all the same."""
FIELD = """import functools, json, sys
path = [int(word) if word.isdigit() else word for word in sys.argv[1:]]
print(functools.reduce(lambda value, name: value[name], path, json.load(sys.stdin)))"""
SESSION = """{"session_id": "order-1", "messages": [{"role": "user", "content": "Where is order 1?"}]}\n"""
SKILL = "---\nname: {name}\ndescription: Use when the customer asks for it.\n---\n1. Do it.\n"
# A skill of another end user with the versions 0.1.0 to 0.1.3, and rita's word for the last three.
A_SKILL_WITH_A_PAST = """
import django
django.setup()
from dataclasses import replace
from django.contrib.auth.models import User
from mirix.tenants.models import Organization
from mirix.tenants.services import get_or_create_end_user
from mirix.tenants.owners import Owner
from skills.content import Content
from skills.review.editing import edit_skill
from skills.review.publishing import approve
from tests.factories import make_content, make_proposal
organization = Organization.objects.get(name="acme")
owner = Owner(
    organization=organization,
    end_user=get_or_create_end_user(organization=organization, user_id="desk-1"),
)
skill = approve(revision=make_proposal(owner, make_content(name="refund-an-order")))
approve(revision=make_proposal(owner, make_content(name="return-an-order")))
for number in range(3):
    skill.refresh_from_db()
    edit_skill(
        skill=skill,
        base=skill.current_revision,
        content=replace(Content.of(skill), instructions=f"{number}. Ask."),
        author=User.objects.get(username="rita"),
        may_decide=True,
    )
print(skill.pk)
"""

# A skill that is longer than the budget of the README's tool.
A_LONG_SKILL = """
import django
django.setup()
from mirix.tenants.models import Organization
from mirix.tenants.services import get_or_create_end_user
from mirix.tenants.owners import Owner
from skills.review.publishing import approve
from tests.factories import make_content, make_proposal
organization = Organization.objects.get(name="acme")
owner = Owner(
    organization=organization,
    end_user=get_or_create_end_user(organization=organization, user_id="desk-7"),
)
sail = {"name": "mend-a-sail", "description": "Use when a sail is torn.", "instructions": "Sew. " * 2_000}
print(approve(revision=make_proposal(owner, make_content(**sail))).pk)
"""


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
        rita = json.loads(served.manage("add_member", "--organization", "acme", "rita", "--json"))
        skill = served.state.run("-c", A_SKILL_WITH_A_PAST)
        assert skill.returncode == 0, skill.stderr
        self.filled_in = {
            ADDRESS: served.url,
            " REVISION": ' "$(./run review list --organization acme --json | field 0 id)"',
            " PREFIX": f" {self.key[:PREFIX_CHARS]}",
            "proc-…": skill.stdout.strip(),
            '"password": "…"': f'"password": "{rita["password"]}"',
            '"refresh": "…"': '"refresh": "\'"$(refresh_token)"\'"',
        }
        self.names: dict[str, Any] = webhook()
        self.prepare(rita["password"])

    def prepare(self, password: str) -> None:
        """Put the files there that the reader has, and programs in place of what a reader's eyes do."""
        self.write("run", f'exec {sys.executable} {ROOT}/manage.py "$@"')
        self.write("bin/curl", f'exec {shutil.which("curl")} --fail-with-body "$@"')
        self.program("field", FIELD)
        login = json.dumps({"username": "rita", "password": password})
        self.write(
            "bin/refresh_token",
            f"curl -s {self.served.url}/auth/token --json '{login}' | field refresh",
        )
        self.write("sessions.jsonl", SESSION, mode=0o644)
        self.write("logs/one.json", SESSION, mode=0o644)
        self.write("pay/SKILL.md", SKILL.format(name="pay"), mode=0o644)
        with zipfile.ZipFile(self.folder / "more.zip", "w") as archive:
            archive.writestr("ship/SKILL.md", SKILL.format(name="ship"))

    def program(self, name: str, code: str) -> None:
        self.write(f"bin/{name}", f"exec {sys.executable} -c '{code}' \"$@\"")

    def write(self, name: str, text: str, mode: int = 0o755) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n" if mode == 0o755 else text)
        path.chmod(mode)

    def type(self, block: Block) -> str:
        """What the block prints."""
        text = block.text
        for name, filled in self.filled_in.items():
            text = text.replace(name, filled)
        if block.language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(text, f"{README}:{block.line}", "exec"), self.names)
            return out.getvalue()
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
    long = served.state.run("-c", A_LONG_SKILL).stdout.strip()
    told = reader.names["search_skills"]("mend a torn sail")
    assert told.startswith(
        "## mend-a-sail\nUse when a sail is torn.\n\n(A long one; read it with read_skill: "
    )
    assert long in told
    assert reader.names["read_skill"](long).startswith("Sew. Sew. ")
    reader.names["mirix"].close()
