"""Walks along the migrations of the skills app, each on a database of its own.

A test begins where its case does: on a copy of an empty database that stands there, made once a process. It
leaves nothing that has to be walked back.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def migrate(name: str) -> Any:
    """Walk the skills app to a migration, there or back; return its historical models."""
    return _walk([("skills", name)])


def forward() -> None:
    """Walk every app to its newest migration."""
    _walk(MigrationExecutor(connection).loader.graph.leaf_nodes())


class Templates:
    """Empty databases to copy from: the skills app stands at a migration, all other apps at their newest."""

    def __init__(self) -> None:
        self._home = str(connection.settings_dict["NAME"])
        self._made: list[str] = []

    @contextmanager
    def copy_at(self, name: str) -> Iterator[None]:
        """Work on a copy of the template at the migration, also in processes started meanwhile."""
        copy = f"{self._home}_walk"
        _create(copy, template=self._standing_at(name))
        try:
            with _working_on(copy):
                yield
        finally:
            _drop(copy)

    def drop(self) -> None:
        for database in self._made:
            _drop(database)

    def _standing_at(self, name: str) -> str:
        database = f"{self._home}_at_{name.partition('_')[0]}"
        if database not in self._made:
            _create(database)
            self._made.append(database)
            with _working_on(database):
                newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
                _walk([node for node in newest if node[0] != "skills"] + [("skills", name)])
        return database


def _walk(targets: Iterable[tuple[str, str]]) -> Any:
    # The models are made anew at each step, in cycles: to look for them again and again takes a third of it.
    gc.disable()
    try:
        return MigrationExecutor(connection).migrate(list(targets)).apps
    finally:
        gc.enable()


@contextmanager
def _working_on(database: str) -> Iterator[None]:
    before = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = database
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before


def _create(database: str, *, template: str = "template1") -> None:
    _drop(database)  # one that was left behind by a run that was killed
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}"')


def _drop(database: str) -> None:
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
