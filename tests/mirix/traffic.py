"""Clients that add and search all at once, and remember every answer."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

ANSWER_SECONDS = 60.0
PAUSE_SECONDS = 0.05
"""Of a client between two requests."""


@dataclass
class Traffic:
    """What the clients have seen; each turn they add holds a text of its own."""

    port: int
    key: str
    pause: float = PAUSE_SECONDS
    added: list[str] = field(default_factory=list)
    """The texts that were acknowledged."""
    statuses: Counter[str] = field(default_factory=Counter)
    """`add 200` and the like: how many."""
    refusals: list[tuple[int, str | None, Any]] = field(default_factory=list)
    """Status, Retry-After and body of whatever was not done."""
    odd: list[str] = field(default_factory=list)
    """Answers that are no JSON, and requests without an answer."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """How long each kind took where it was done."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def done(self, kind: str) -> int:
        """How many requests of a kind were done."""
        return len(self.seconds.get(kind, ()))

    @contextmanager
    def flowing(self, clients: int, dreaming: int = 0) -> Iterator[Traffic]:
        """Let the clients work until the block ends; half add, half search, `dreaming` more dream."""
        tasks = [self._add if number % 2 else self._search for number in range(clients)]
        tasks += [self._dream] * dreaming
        threads = [threading.Thread(target=task, args=(number,)) for number, task in enumerate(tasks)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()

    def _add(self, number: int) -> None:
        for count in self._counted():
            text = f"please rebook flight {number}-{count}"
            body = {"session_id": f"s-{number}", "messages": [{"role": "user", "content": text}]}
            if self.send("add", "POST", "/memory/add_sync", body):
                with self._lock:
                    self.added.append(text)

    def _search(self, number: int) -> None:
        for count in self._counted():
            self.send("search", "GET", f"/memory/search?query={quote(f'rebook flight {number} {count}')}")

    def _dream(self, number: int) -> None:
        """Seal a session now and then, and have it learned from."""
        for count in self._counted():
            name = f"d-{number}-{count}"
            text = f"no, the other flight {number}-{count}"
            body = {"session_id": name, "messages": [{"role": "user", "content": text}]}
            if self.send("add", "POST", "/memory/add_sync", body):
                with self._lock:
                    self.added.append(text)
            self.send("close", "POST", f"/v1/sessions/{name}/close", {})
            self.send("dream", "POST", "/memory/auto_dream?wait=0", {"last_n_sessions": 5})

    def _counted(self) -> Iterator[int]:
        count = 0
        while not self._stopped.wait(self.pause):
            count += 1
            yield count

    def send(self, kind: str, method: str, path: str, body: Any = None) -> bool:
        """Send one request on a connection of its own; whether it was done."""
        headers = {"X-API-Key": self.key, "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        began = time.monotonic()
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            with self._lock:
                self.odd.append(f"{kind}: {type(error).__name__} {error}")
            return False
        finally:
            with suppress(OSError):
                connection.close()
        with self._lock:
            self.statuses[f"{kind} {answer.status}"] += 1
            if answer.status < 300:
                self.seconds.setdefault(kind, []).append(time.monotonic() - began)
            else:
                self.refusals.append((answer.status, answer.getheader("Retry-After"), found))
        return answer.status < 300

    def wait_for(self, what: Callable[[], Any], seconds: float = ANSWER_SECONDS) -> None:
        """Wait until something is so, while the clients go on."""
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, (self.statuses, self.odd[:3])
            time.sleep(0.05)
