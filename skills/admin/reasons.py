"""Why proposals are turned down, in the words that most decisions need."""

from __future__ import annotations

from collections.abc import Mapping

from mirix.text import clean_text

OTHER = "other"
REASONS = {
    "wrong": "It is wrong, or misleads",
    "evidence": "Its evidence does not carry it",
    "case": "It holds for one case alone",
    "known": "Agents know it anyway",
    "twice": "Another skill says it already",
    "unsafe": "It is unsafe, or against our rules",
    OTHER: "Something else, which I write below",
}


def reason_of(sent: Mapping[str, str]) -> str:
    """Return the reason that a form sent: what was chosen, what was written, or both; "" for neither."""
    written = clean_text(sent.get("reason", "")).strip()
    chosen = sent.get("why", "")
    label = REASONS.get(chosen, "") if chosen != OTHER else ""
    return f"{label}: {written}" if label and written else label or written
