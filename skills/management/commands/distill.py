"""The first half of a dream: experiences, and no proposals yet."""

from __future__ import annotations

from skills.management.dreaming import DreamCommand


class Command(DreamCommand):
    """Distil only; `evolve` does the rest."""

    help = "Distil a user's sealed sessions into experiences, without evolving skills."
    evolving = False
