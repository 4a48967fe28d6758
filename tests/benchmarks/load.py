"""What many clients at once wait for: adding, searching and dreaming, beside a bare Django view.

The web server as `serve` starts it and two workers, all clients at once, as fast as answers come but for a
short pause; then the same clients against a Django view that does nothing, by the same web server.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mirix.management.commands.serve import listen, web_server
from tests.benchmarks import Report, Tell
from tests.factories import make_client, make_key, make_owner
from tests.mirix.traffic import Traffic

CLIENTS, DREAMING = 46, 4
SECONDS, BARE_SECONDS = 120.0, 20.0
WORKERS = 2
PATIENCE_SECONDS = 120.0
SHARES = (0.5, 0.95, 0.99)
KINDS = ("add", "search", "close", "dream")


def measure(tell: Tell, options: argparse.Namespace) -> Report:
    """Let the clients work, and then ask for nothing."""
    owner = make_owner()
    key = make_key(make_client(owner.organization), "write")
    tell(f"load: {CLIENTS + DREAMING} clients for {SECONDS * options.scale:.0f} s")
    with _served("mirix.wsgi") as port, _workers():
        traffic = _let_flow(port, key, SECONDS * options.scale, DREAMING)
    tell("load: a bare view")
    with _served("tests.benchmarks.bare") as port:
        bare = _let_flow(port, key, BARE_SECONDS * options.scale, 0)
    return Report(figures=_figures(traffic, bare), lines=_lines(traffic, bare))


def _let_flow(port: int, key: str, seconds: float, dreaming: int) -> Traffic:
    traffic = Traffic(port, key)
    traffic.wait_for(lambda: traffic.send("first", "GET", "/health") or traffic.odd.clear())
    with traffic.flowing(CLIENTS, dreaming):
        time.sleep(seconds)
    return traffic


@contextmanager
def _served(application: str) -> Iterator[int]:
    """Run the web server as `serve` does, with this application; the port it listens at."""
    unlimited = {f"MIRIX_THROTTLE_{kind}": "0" for kind in ("READ", "WRITE", "SEARCH", "DREAM")}
    with listen("127.0.0.1", 0) as listener:
        command = [application if part == "mirix.wsgi" else part for part in web_server(listener.fileno())]
        process = subprocess.Popen(command, pass_fds=(listener.fileno(),), env=os.environ | unlimited)
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


@contextmanager
def _workers() -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "manage.py", "worker"]) for _ in range(WORKERS)]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(PATIENCE_SECONDS)


def share(seconds: list[float], part: float) -> float:
    """Return what so large a part of the requests did not exceed, in seconds."""
    return sorted(seconds)[min(len(seconds) - 1, int(part * len(seconds)))]


def _figures(traffic: Traffic, bare: Traffic) -> dict[str, Any]:
    nothing = [*bare.seconds["add"], *bare.seconds["search"]]
    return {
        "clients": CLIENTS + DREAMING,
        "requests": {kind: traffic.done(kind) for kind in KINDS},
        "refused": len(traffic.refusals) + len(traffic.odd),
        "to_a_bare_view": {
            kind: {
                f"p{part * 100:.0f}": round(share(found, part) / share(nothing, part), 1) for part in SHARES
            }
            for kind, found in traffic.seconds.items()
            if kind in KINDS
        },
        "milliseconds": {
            kind: {f"p{part * 100:.0f}": round(share(found, part) * 1_000, 1) for part in SHARES}
            for kind, found in {**traffic.seconds, "bare view": nothing}.items()
            if kind != "first"
        },
    }


def _lines(traffic: Traffic, bare: Traffic) -> list[str]:
    figures = _figures(traffic, bare)
    done = ", ".join(f"{count} {kind}" for kind, count in figures["requests"].items())
    lines = [f"{figures['clients']} clients: {done}; {figures['refused']} refused or unanswered"]
    for kind, found in figures["milliseconds"].items():
        times = figures["to_a_bare_view"].get(kind)
        beside = f", {' / '.join(map(str, times.values()))} times a bare view" if times else ""
        lines.append(f"{kind}: p50 / p95 / p99 {' / '.join(map(str, found.values()))} ms{beside}")
    return lines
