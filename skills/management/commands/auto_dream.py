"""Learn from an owner's sealed sessions now, in this process."""

from __future__ import annotations

from skills.management.dreaming import DreamCommand


class Command(DreamCommand):
    """Distil, then evolve."""

    help = "Distil a user's sealed sessions into experiences, and evolve them into proposals."
