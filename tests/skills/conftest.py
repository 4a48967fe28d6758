"""Databases that stand at an earlier migration of the skills app."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.skills.walks import Templates, migrate

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def _templates(django_db_setup, django_db_blocker) -> Iterator[Templates]:
    templates = Templates()
    yield templates
    with django_db_blocker.unblock():
        templates.drop()


@pytest.fixture
def copy_at(_templates, django_db_blocker) -> Iterator[Callable[[str], AbstractContextManager[None]]]:
    """Work on an empty database of one's own at a migration of the skills app: `with copy_at(name):`."""
    with django_db_blocker.unblock():
        yield _templates.copy_at


@pytest.fixture
def flat(copy_at) -> Iterator[Any]:
    """Stand at the flat table; add rows to it by `flat(owner, summary=…, …)`."""
    with copy_at("0001_initial"):
        model = migrate("0001_initial").get_model("skills", "ProceduralMemory")

        def add(owner, **fields: Any) -> str:
            number = model.objects.count()
            defaults = {"id": f"proc_{number:04d}", "entry_type": "process", "summary": "", "steps": None}
            row = model.objects.create(
                organization_id=owner.organization.pk, end_user_id=owner.end_user.pk, **(defaults | fields)
            )
            moment = START + timedelta(minutes=number)
            model.objects.filter(pk=row.pk).update(created_at=moment, updated_at=moment)
            return row.pk

        add.model = model
        yield add
