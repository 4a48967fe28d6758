"""Lessons that belong to a skill which was taken out of use: they ask for it back. Pure."""

from __future__ import annotations

from dataclasses import replace

from skills.evolution.types import ExperienceView, Operation
from skills.evolution.voices import voices

ARCHIVED = "archived"


def asking_for_it_back(operation: Operation, experiences: list[ExperienceView]) -> Operation:
    """Return the operation, as a `restore` where its target is archived and it speaks for having it back.

    Whatever adds to the text does. What says the same again does where a session speaks that is not behind
    the text yet; the target comes with its support. Where its return is proposed already, that is joined.
    """
    target = operation.target
    if target is None or target.status != ARCHIVED:
        return operation
    if operation.action == "confirm" and (
        target.revision_id or not voices(experiences, heard=target.support)
    ):
        return operation
    return replace(operation, action="restore")
