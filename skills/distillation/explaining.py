"""In plain words, how `skills.distillation.evidence` computed the credibility of an experience. Pure."""

from __future__ import annotations

from skills.distillation.evidence import CORRECTED, EXPLICIT, INFERRED

SIGNALS: dict[str, tuple[str, str, tuple[float, float]]] = {
    "user_critique": ("a user's critique", "a turn of the user", EXPLICIT),
    "user_confirmation": ("a user's confirmation", "a turn of the user", EXPLICIT),
    "tool_error": ("an error of a tool", "a tool's turn that failed", EXPLICIT),
    "self_correction": ("a correction of the assistant by itself", "a turn of the assistant", CORRECTED),
    "inferred": ("what was only inferred", "any turn", INFERRED),
}
"""By signal: what it is called, which turn its quote must stand in, and what it counts for then."""
SPEAKERS = {"user": "the user", "assistant": "the assistant", "tool": "a tool"}
TOLERANCE = 0.002
"""A credibility is stored to three digits."""


def explain_credibility(
    *, signal_type: str, verified: bool, speaker: str, credibility: float, claim: float | None
) -> str:
    """Return how a credibility came about: the check of the quote, the band, and the place in it.

    `speaker` is the role of the turn that holds the quote, "" where nobody knows any more; `claim` what the
    distiller itself said, None where it said nothing.
    """
    name, needs, wanted = SIGNALS[signal_type]
    if not verified:
        found = "The quote stands in no turn of its session word for word. Whatever the signal, that counts"
        return _placed(found, INFERRED, credibility, claim)
    said = f" in what {SPEAKERS[speaker]} said" if speaker in SPEAKERS else ""
    found = f"The quote stands word for word{said}."
    if wanted != INFERRED and credibility < wanted[0] - TOLERANCE:
        found += f" It was taken for {name}, which needs {needs}; so it counts as inferred,"
        return _placed(found, INFERRED, credibility, claim)
    return _placed(f"{found} {name[0].upper()}{name[1:]} counts", wanted, credibility, claim)


def _placed(found: str, band: tuple[float, float], credibility: float, claim: float | None) -> str:
    low, high = band
    text = f"{found} {_per_cent(low)} to {_per_cent(high)} %"
    if claim is None:
        return f"{text}."
    claimed = min(1.0, max(0.0, claim))
    if abs(low + (high - low) * claimed - credibility) > TOLERANCE:
        return f"{text}; this {_per_cent(credibility)} % was set otherwise."
    place = f"the distiller's own {_per_cent(claimed)} % places it at {_per_cent(credibility)} %"
    return f"{text}; within that {place}."


def _per_cent(share: float) -> int:
    return round(share * 100)
