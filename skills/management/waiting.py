"""What commands say while they wait for another run of the same owner."""

from __future__ import annotations

from skills.models import AutoDreamRun
from skills.runs import stalled_after


def waiting_for(run: AutoDreamRun) -> str:
    """Return the line for the person who watches."""
    seconds = stalled_after().total_seconds()
    return (
        f"{run.pk} ({run.trigger}) is going on; waiting until it ends, or for a dead one until it has "
        f"given no sign of life for {seconds:.0f} seconds."
    )
