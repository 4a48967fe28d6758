"""Runs as LangSmith records them: which belong together, and what becomes of them.

A run is told in pieces: what it was given when it begins, what came out when it ends; and each run of a
model repeats what was said before. So all runs of a trace, or of a thread where they name one, are one
message of one session, and reading it is extraction's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conversations.extraction.langsmith import runs_of

THREAD_NAMES = ("thread_id", "session_id", "conversation_id")


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
    return {"runs": [run for payload in payloads for run in runs_of(payload)]}
