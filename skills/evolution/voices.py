"""How many sessions speak for something, each of them for itself. Pure.

A session that was imported twice, or recorded by two programs, teaches the same lessons in the same words
about the same values. That is one voice, whatever the two are called.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from skills.evolution.types import ExperienceView


def voices(experiences: Iterable[ExperienceView], *, heard: Iterable[ExperienceView] = ()) -> int:
    """Return how many sessions among `experiences` say something of their own, beside those of `heard`.

    A session is a copy where it says turn for turn what another says, or where all that it teaches was taught
    word for word, details included, by another.
    """
    known = list(heard)
    sessions = {experience.voice for experience in known}
    told = {_wording(experience) for experience in known}
    by_session: dict[str, set[str]] = {}
    for experience in experiences:
        if experience.voice not in sessions:
            by_session.setdefault(experience.voice, set()).add(_wording(experience))
    count = 0
    # The one that says most goes first: a copy of which a part was set aside is a copy still.
    for _, wordings in sorted(by_session.items(), key=lambda item: (-len(item[1]), item[0])):
        count += not wordings <= told
        told |= wordings
    return count


def _wording(experience: ExperienceView) -> str:
    said = [experience.title, experience.content, experience.quote, experience.details]
    return json.dumps(said, sort_keys=True, ensure_ascii=False)
