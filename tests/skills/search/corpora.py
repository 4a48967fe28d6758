"""Owners with many published skills, written and indexed in bulk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mirix.tenants.owners import Owner
from skills.models import Skill
from skills.search.index import rebuild
from tests.factories import owner_fields


def publish(owner: Owner, rows: Iterable[dict[str, Any]]) -> list[Skill]:
    """Store skills given by their fields, without revisions, and index the owner's organization."""
    skills = Skill.objects.bulk_create(
        Skill(**owner_fields(owner), **({"description": "", "instructions": ""} | row)) for row in rows
    )
    rebuild(owner.organization)
    return skills
