"""Backup and restore of the whole database, by PostgreSQL's own programs.

Those of the wheel for the embedded server, those on the PATH for one that `DATABASE_URL` names. A backup is
one snapshot, also while others write. A restore is one transaction: it is there as a whole, or nothing has
changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from psycopg import pq
from psycopg.conninfo import make_conninfo

from mirix.embedded.server import binaries

OPTIONS = ("--no-owner", "--no-acl")
MARKS = ("django_migrations", "tenants_organization")
"""Tables by which a backup is known for one of ours."""
# What is in the schema goes, but for what belongs to an extension; then what a backup rests on is made.
CLEAR = b"""
BEGIN;
SET LOCAL lock_timeout = '30s';
DO $$
DECLARE
    command text;
    -- All of them first: a name is known only as long as CASCADE has not taken what it names.
    commands text[] := ARRAY(
        SELECT format('DROP %s IF EXISTS %s CASCADE',
                      CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                                   WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, pg_class.oid::regclass)
        FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
          AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype IN ('e', 'i'))
        UNION ALL
        SELECT format('DROP ROUTINE IF EXISTS %s CASCADE', pg_proc.oid::regprocedure) FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace
          AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')
        UNION ALL
        SELECT format('DROP TYPE IF EXISTS %s CASCADE', pg_type.oid::regtype) FROM pg_type
        WHERE typnamespace = current_schema()::regnamespace AND typtype IN ('e', 'd', 'c')
          AND (typrelid = 0 OR (SELECT relkind FROM pg_class WHERE oid = typrelid) = 'c')
          AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_type.oid AND deptype = 'e')
    );
BEGIN
    FOREACH command IN ARRAY commands LOOP
        EXECUTE command;
    END LOOP;
END $$;
CREATE EXTENSION IF NOT EXISTS vector;
"""
OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
"""
SEAL = b"mirix sha256 "
"""Behind it, at the very end of a file, stands the digest of all before it; `pg_restore` does not mind."""
SEALED_BYTES = len(SEAL) + 64
BROKEN = "{} is broken; nothing was changed."


class DumpFailed(Exception):
    """What the operator can put right; the message is one line."""


@dataclass(frozen=True, kw_only=True)
class Backup:
    """A file that was written."""

    path: Path
    size: int
    sha256: str


def back_up(*, path: Path, replace: bool = False) -> Backup:
    """Write the database into a new file that its owner alone may read. Raises `DumpFailed`.

    The file is under its name once it is whole, on disk and can be read again.
    """
    if path.exists() and not replace:
        raise DumpFailed(f"{path} exists already.")
    _require_programs()
    partial = path.with_name(f"{path.name}.part")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise DumpFailed(f"{path} cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            arguments = ["--format=custom", *OPTIONS, f"--schema={_schema()}", f"--dbname={_address()}"]
            _run("pg_dump", *arguments, stdout=file)
            file.flush()
            file.seek(0, os.SEEK_END)
            file.write(SEAL + _digest(partial).encode())
            file.flush()
            os.fsync(file.fileno())
        _table_of_contents(partial)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    return Backup(path=path, size=path.stat().st_size, sha256=_digest(path))


def is_empty() -> bool:
    """Return whether the database holds nothing that a restore would replace."""
    return not connection.introspection.table_names()


def require_restorable(path: Path) -> None:
    """Raise `DumpFailed` for a file that is no backup of ours, or one of a later release."""
    _require_programs()
    if not path.is_file():
        raise DumpFailed(f"There is no file {path}.")
    contents = _table_of_contents(path)
    if not all(f" TABLE DATA {_schema()} {mark} " in contents for mark in MARKS):
        raise DumpFailed(f"{path} is no backup of mirix.")
    if not _is_sealed(path):
        raise DumpFailed(BROKEN.format(path))
    known = MigrationLoader(None).disk_migrations
    unknown = [f"{app}.{name}" for app, name in _migrations_in(path) if (app, name) not in known]
    if unknown:
        raise DumpFailed(
            f"{path} is of a later release than this one, which knows nothing of {unknown[0]}. "
            "Install that release first."
        )


def require_alone() -> None:
    """Raise `DumpFailed` while anybody else is connected to the database."""
    with connection.cursor() as cursor:
        cursor.execute(OTHERS)
        (others,) = cursor.fetchone()
    if others:
        raise DumpFailed(
            f"Somebody else uses the database (connections: {others}). "
            "Stop serve, web servers and workers first."
        )


def restore(*, path: Path) -> None:
    """Replace what the database holds by the backup, in one transaction. Raises `DumpFailed`.

    Call `require_restorable` and `require_alone` before.
    """
    connection.close()
    command = ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", f"--dbname={_address()}"]
    with tempfile.TemporaryFile() as said, _script(path) as source:
        psql = _start(*command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
        assert psql.stdin is not None
        assert source.stdout is not None
        with suppress(BrokenPipeError), psql.stdin as script:  # its status says why it does not listen
            script.write(CLEAR)
            shutil.copyfileobj(source.stdout, script, 1_000_000)
            is_whole = source.wait() == 0
            script.write(b"COMMIT;\n" if is_whole else b"")
        source.stdout.close()
        if psql.wait():
            said.seek(0)
            raise DumpFailed(f"{path} was not restored, nothing was changed: {_fault(said.read())}")
    if not is_whole:
        raise DumpFailed(BROKEN.format(path))


@contextmanager
def _script(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Have the backup read as SQL, without what makes schema and extensions: these are there by then."""
    with tempfile.NamedTemporaryFile("w", suffix=".list") as wanted:
        lines = _table_of_contents(path).splitlines(keepends=True)
        wanted.writelines(line for line in lines if " SCHEMA - " not in line and " EXTENSION - " not in line)
        wanted.flush()
        command = ["pg_restore", *OPTIONS, f"--use-list={wanted.name}", "--file=-", str(path)]
        # What it finds wrong is told by its status.
        with _start(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as source:
            yield source


def _digest(path: Path, *, without: int = 0) -> str:
    """Return the SHA-256 of a file, or of what it holds before its last bytes."""
    digest = hashlib.sha256()
    left = path.stat().st_size - without
    with path.open("rb") as file:
        while left > 0 and (part := file.read(min(left, 1_000_000))):
            digest.update(part)
            left -= len(part)
    return digest.hexdigest()


def _is_sealed(path: Path) -> bool:
    """Return whether the file is whole; `pg_restore` takes one without its last tables for a whole one."""
    with path.open("rb") as file:
        file.seek(-min(SEALED_BYTES, path.stat().st_size), os.SEEK_END)
        said = file.read()
    return said == SEAL + _digest(path, without=SEALED_BYTES).encode()


def _migrations_in(path: Path) -> list[tuple[str, str]]:
    try:
        text = _run("pg_restore", "--data-only", "--table=django_migrations", "--file=-", str(path))
    except DumpFailed as error:
        raise DumpFailed(BROKEN.format(path)) from error
    rows = text.partition("FROM stdin;\n")[2].partition("\n\\.")[0].splitlines()
    return [(app, name) for _, app, name, *_ in (row.split("\t") for row in rows)]


def _table_of_contents(path: Path) -> str:
    try:
        return _run("pg_restore", "--list", str(path))
    except DumpFailed as error:
        raise DumpFailed(f"{path} is no backup of mirix.") from error


def _run(program: str, *arguments: str, stdout: Any = subprocess.PIPE) -> str:
    process = _start(program, *arguments, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
    out, said = process.communicate()
    if process.returncode:
        raise DumpFailed(f"{program} failed: {_fault(said)}")
    return (out or b"").decode(errors="replace")


def _start(program: str, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([_program(program), *arguments], env=_environment(), **streams)  # noqa: S603


def _fault(said: bytes) -> str:
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    faults = [line for line in lines if "error:" in line.lower() or "fatal:" in line.lower()]
    return (faults or lines or ["it said nothing"])[0]


def _require_programs() -> None:
    """Raise `DumpFailed` unless there are programs that know this server."""
    with connection.cursor():
        server = connection.connection.info.server_version // 10_000
    found = int(re.findall(r"\d+", _run("pg_dump", "--version"))[0])
    if found < server:
        raise DumpFailed(
            f"pg_dump on the PATH is of PostgreSQL {found}, and the server is of {server}: "
            f"install postgresql-client-{server}."
        )


def _program(name: str) -> str:
    if not settings.DATABASE_URL:
        return str(binaries() / name)
    if found := shutil.which(name):
        return found
    raise DumpFailed(f"{name} is not on the PATH: install the client programs of PostgreSQL.")


def _schema() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        return str(cursor.fetchone()[0])


def _parameters() -> Mapping[str, Any]:
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    parameters = connection.get_connection_params()
    return {name: value for name, value in parameters.items() if name in known and value is not None}


def _address() -> str:
    """Return how the programs reach the database; the password is no word of their command line."""
    return make_conninfo(**{name: value for name, value in _parameters().items() if name != "password"})


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANG", "LC_"))}
    password = _parameters().get("password")
    return kept | {"LC_ALL": "C"} | ({"PGPASSWORD": str(password)} if password else {})
