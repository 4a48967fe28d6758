"""One world for each module, undone at its end; each test works in a savepoint of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import override_settings

from tests.access.world import World, make_world


@pytest.fixture(scope="module")
def _built(django_db_setup, django_db_blocker) -> Iterator[World]:
    fast = override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
    with django_db_blocker.unblock(), fast, undone():
        yield make_world()


@pytest.fixture
def world(_built: World) -> Iterator[World]:
    with undone():
        yield _built


class undone(transaction.Atomic):
    """A block whose writes to the database are undone when it ends."""

    def __init__(self) -> None:
        super().__init__(using=None, savepoint=True, durable=False)

    def __exit__(self, *exc_info) -> None:
        transaction.set_rollback(True)
        super().__exit__(*exc_info)
