"""The extension `vector`, which the migrations create first."""

from __future__ import annotations

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.state import ProjectState

from mirix.operations import CreateVectorExtension


def create() -> None:
    with connection.schema_editor() as editor:
        CreateVectorExtension().database_forwards("tenants", editor, ProjectState(), ProjectState())


def execute(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.rowcount


def test_it_is_there_after_the_migrations_and_creating_it_again_is_harmless(db):
    create()
    assert execute("SELECT FROM pg_extension WHERE extname = 'vector'") == 1


def test_a_server_without_pgvector_gets_one_line_that_names_the_remedy(db):
    execute("CREATE SCHEMA bare")
    execute("CREATE VIEW bare.pg_available_extensions AS SELECT 'plpgsql' AS name")
    execute("SET LOCAL search_path = bare, pg_catalog, public")
    major = connection.pg_version // 10_000
    with pytest.raises(CommandError) as refusal:
        create()
    assert str(refusal.value) == (
        f"The PostgreSQL server has no pgvector. Install it there (Debian and Ubuntu: "
        f"postgresql-{major}-pgvector), or unset DATABASE_URL to use the embedded server."
    )


def test_a_user_who_may_not_create_it_is_told_whom_to_ask(db):
    execute("DROP EXTENSION vector CASCADE")
    execute("CREATE ROLE powerless")
    execute("SET LOCAL ROLE powerless")
    with pytest.raises(CommandError, match="Let an administrator of the server run CREATE EXTENSION vector"):
        create()
