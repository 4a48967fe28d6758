"""The index of a space's vectors, by which a large organization is searched; and which spaces there are.

One index for each space and size, over all organizations. It is built while search and publishing go on, and
takes up what is embedded later by itself. Small organizations and single end users need none.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from django.db import connection
from django.db.models import Count
from psycopg import sql

from mirix.tenants.models import Organization
from skills.models import SkillEmbedding
from skills.search.embedding import due
from skills.search.semantic import MAX_INDEXED_DIMENSIONS

TABLE = SkillEmbedding._meta.db_table
PREFIX = "embedding_space_"
BUILD_MEMORY = "256MB"
OF_OURS = """
    SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indrelid = %s::regclass AND starts_with(relname, %s) ORDER BY relname
"""


class CannotBuild(Exception):
    """There is nothing that an index could be built of; the message says why."""


@dataclass(frozen=True, kw_only=True)
class SpaceStatus:
    """How far the vectors of the present model hold what they should."""

    space: str
    embedded: int
    """Skills with a vector in the space."""
    due: int
    """Active skills without one of their present text."""
    former: int
    """Vectors of other spaces, which are not searched under the present model."""
    is_indexed: bool


def space_status(space: str, organization: Organization | None = None) -> SpaceStatus:
    """Compare the vectors of a space with the skills of an organization, or of all."""
    rows = SkillEmbedding.objects.for_organizations(None if organization is None else {organization.pk})
    embedded = rows.filter(space=space).count()
    names = {index_name(space, size) for size in _sizes(space)}
    return SpaceStatus(
        space=space,
        embedded=embedded,
        due=due(space, organization).count(),
        former=rows.exclude(space=space).count(),
        is_indexed=bool(names) and names <= {name for name, is_valid in _indexes() if is_valid},
    )


def build(space: str) -> list[str]:
    """Build the index of a space where it is missing; return what was built.

    Indexes of spaces that have no vectors any more go. Those of others stay: another process may be searching
    there. Not within a transaction. Raises `CannotBuild`.
    """
    sizes = _sizes(space)
    if not sizes:
        raise CannotBuild("no skill is embedded yet; run ./run search_index rebuild, or a worker, first")
    if (largest := max(sizes)) > MAX_INDEXED_DIMENSIONS:
        raise CannotBuild(
            f"vectors of {largest} numbers cannot be indexed, only of up to {MAX_INDEXED_DIMENSIONS}; "
            "search compares them one by one"
        )
    wanted = {index_name(space, size): size for size in sizes}
    in_use = _names_in_use()
    valid = set()
    for name, is_valid in _indexes():
        if name in in_use and is_valid:
            valid.add(name)
        else:  # of vectors that are gone, or left half built
            _execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))
    built = sorted(wanted.keys() - valid)
    for name in built:
        _build(name, space, wanted[name])
    return built


def drop_former(space: str, organization: Organization | None = None) -> int:
    """Delete the vectors of other spaces once every skill has one in this; return how many went."""
    if due(space, organization).exists():
        return 0
    rows = SkillEmbedding.objects.for_organizations(None if organization is None else {organization.pk})
    return rows.exclude(space=space).delete()[0]


def index_name(space: str, size: int) -> str:
    """Return the name of the index of a space's vectors of one size."""
    return PREFIX + blake2b(f"{space} {size}".encode(), digest_size=8).hexdigest()


def _sizes(space: str) -> list[int]:
    rows = SkillEmbedding.objects.for_organizations(None).filter(space=space)
    return [size for size, _ in rows.values_list("dimensions").annotate(Count("pk")).order_by("dimensions")]


def _names_in_use() -> set[str]:
    rows = SkillEmbedding.objects.for_organizations(None)
    return {index_name(*found) for found in rows.values_list("space", "dimensions").distinct()}


def _indexes() -> list[tuple[str, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(OF_OURS, [TABLE, PREFIX])
        return list(cursor.fetchall())


def _build(name: str, space: str, size: int) -> None:
    # In one process: several would need shared memory, of which containers have little.
    _execute(sql.SQL("SET max_parallel_maintenance_workers = 0"))
    _execute(sql.SQL("SET maintenance_work_mem = {}").format(sql.Literal(BUILD_MEMORY)))
    try:
        _execute(
            sql.SQL(
                "CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw"
                " ((vector::halfvec({size})) halfvec_cosine_ops)"
                " WHERE space = {space} AND dimensions = {size}"
            ).format(
                name=sql.Identifier(name),
                table=sql.Identifier(TABLE),
                size=sql.Literal(size),
                space=sql.Literal(space),
            )
        )
    finally:
        _execute(sql.SQL("RESET max_parallel_maintenance_workers"))
        _execute(sql.SQL("RESET maintenance_work_mem"))


def _execute(statement: sql.Composable) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement.as_string(cursor.connection))
