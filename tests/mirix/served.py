"""A running `serve`, as a test sees it."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
from typing import Any

import psutil

from tests.mirix.states import State


class Served:
    """A running `serve`, and what it says."""

    def __init__(self, state: State, **environment: str) -> None:
        self.state = state
        self.process = state.start(
            "manage.py", "serve", "--port", "0", stderr=subprocess.DEVNULL, env=environment
        )
        ready = self.process.stdout.readline()
        address = re.fullmatch(r"mirix serves http://127\.0\.0\.1:(\d+)/ .*\n", ready)
        assert address, ready
        self.port = int(address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def manage(self, *arguments: str) -> str:
        """Run one command on the same database; what it prints."""
        done = self.state.manage(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def post_in_chunks(self, path: str, key: str, *chunks: bytes) -> tuple[int, dict[str, Any]]:
        """POST a JSON body whose length is not said."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Content-Type": "application/json", "X-API-Key": key}
        try:
            connection.request(
                "POST", path, iter(chunks), headers | {"Transfer-Encoding": "chunked"}, encode_chunked=True
            )
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def child(self, word: str) -> psutil.Process | None:
        """The child whose command line has `word`."""
        for child in psutil.Process(self.process.pid).children():
            if child.status() != psutil.STATUS_ZOMBIE and word in child.cmdline():
                return child
        return None
