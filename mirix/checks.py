"""What must hold before anything touches data: the database is ours, and every migration is applied to it.

Web, worker, `serve`, every command that reads or writes data, and `/ready` ask here for the migrations.
Whether a database is one of the original MIRIX is looked at whenever Django connects, whoever asked for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

LISTED_AT_MOST = 12
# Every generation of the original makes the first three; we make the last, and it does not.
IS_ORIGINAL = """
    SELECT to_regclass('organizations') IS NOT NULL AND to_regclass('users') IS NOT NULL
        AND coalesce(to_regclass('agents'), to_regclass('procedural_memory'),
                     to_regclass('procedural_memory_items')) IS NOT NULL
        AND to_regclass('tenants_organization') IS NULL
"""


class OriginalDatabaseError(OperationalError):
    """`DATABASE_URL` names a database of the original MIRIX, in which nothing of ours may be made."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"“{name}” is a database of the original MIRIX and is left as it is. Let DATABASE_URL name "
            "another one, or unset it; then run ./run migrate, and ./run import_mirix --from the URL of this."
        )


def refuse_original(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Give a new connection up again where it leads to a database of the original."""
    (is_original,) = connection.connection.execute(IS_ORIGINAL).fetchone()
    if is_original:
        name = connection.settings_dict["NAME"]
        connection.close()
        raise OriginalDatabaseError(name)


class UnappliedMigrationsError(Exception):
    """The database is behind the code; `names` are the missing migrations, the message says what to run."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        super().__init__(
            f"The database is behind the code by {len(names)} migration{'s' * (len(names) > 1)}: "
            f"{_listing(names)}. Run ./run migrate first."
        )


def unapplied_migrations(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Return the migrations not yet applied, as `app_label.name`, in the order `migrate` would apply them."""
    executor = MigrationExecutor(connections[using])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def require_migrations(using: str = DEFAULT_DB_ALIAS) -> None:
    """Raise `UnappliedMigrationsError` unless the database is as the code expects it."""
    if names := unapplied_migrations(using):
        raise UnappliedMigrationsError(names)


def _listing(names: Sequence[str]) -> str:
    """Name a few; count the many of an empty database by app, as the line is for a person."""
    if len(names) <= LISTED_AT_MOST:
        return ", ".join(names)
    return ", ".join(f"{app} ({count})" for app, count in Counter(n.split(".")[0] for n in names).items())
