"""What must hold before anything touches data: every migration of the code is applied to the database.

Web, worker, `serve`, every command that reads or writes data, and `/ready` ask here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor

LISTED_AT_MOST = 12


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
