"""Runs as LangSmith records them: which belong together, and what becomes of them.

A run is told in pieces: what it was given when it begins, what came out when it ends; and each run of a
model repeats what was said before. So all runs of a trace, or of a thread where they name one, are one
message of one session, and reading it is extraction's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PIECES = ("post", "patch")
THREAD_NAMES = ("thread_id", "session_id", "conversation_id")


def runs_of(value: Any) -> list[dict[str, Any]]:
    """Return the runs that a payload holds, or the run that a value is; else nothing."""
    if not isinstance(value, dict):
        return []
    runs = [
        run
        for piece in PIECES
        if isinstance(value.get(piece), list)
        for run in value[piece]
        if isinstance(run, dict)
    ]
    if runs:
        return runs
    is_run = "run_type" in value or ("trace_id" in value and "dotted_order" in value)
    return [value] if is_run else []


def session_of(runs: Iterable[dict[str, Any]]) -> str:
    """Return the thread that runs name in their metadata, else their trace."""
    trace = ""
    for run in runs:
        extra = run.get("extra")
        metadata = extra.get("metadata") if isinstance(extra, dict) else None
        if isinstance(metadata, dict):
            threads = (metadata.get(name) for name in THREAD_NAMES)
            if thread := next((text for text in threads if isinstance(text, str) and text), ""):
                return thread
        trace = trace or next((str(run[name]) for name in ("trace_id", "id") if run.get(name)), "")
    return trace


def as_one(payloads: Iterable[Any]) -> dict[str, Any]:
    """Return the payloads of one session as one."""
    return {"post": [run for payload in payloads for run in runs_of(payload)]}
