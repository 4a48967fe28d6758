"""Migration operations of our own."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.db import ProgrammingError
from pgvector.django import VectorExtension


class CreateVectorExtension(VectorExtension):
    """`CREATE EXTENSION vector`, where a server that cannot do it gets one line that names the remedy."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Create the extension, or raise `CommandError`."""
        connection = schema_editor.connection
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM pg_available_extensions WHERE name = 'vector'")
            available = cursor.rowcount > 0
        if not available:
            major = connection.pg_version // 10_000
            raise CommandError(
                f"The PostgreSQL server has no pgvector. Install it there (Debian and Ubuntu: "
                f"postgresql-{major}-pgvector), or unset DATABASE_URL to use the embedded server."
            )
        try:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        except ProgrammingError as error:
            name = connection.settings_dict["NAME"]
            raise CommandError(
                f"The database user may not create the extension vector. Let an administrator of the server "
                f"run CREATE EXTENSION vector in the database {name}, then migrate again."
            ) from error
