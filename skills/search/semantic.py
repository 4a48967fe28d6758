"""The semantic lane: skills by the cosine distance of their vectors to that of the query.

Exact within an owner, and within an organization of few vectors: all of them are compared. In a large
organization the index of the space answers (`search_index build`), which goes on until it has enough rows of
the organization. Only vectors of one space and of the query's size are compared. The score is the cosine
similarity: 1 less the distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import QuerySet

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from mirix.tenants.scope import require
from skills.models import Skill, SkillDocument, SkillEmbedding
from skills.search.timing import lanes

EXACT_UP_TO = 10_000
"""How many vectors of an organization are compared one by one."""
SCAN_AT_MOST = 200_000
MAX_INDEXED_DIMENSIONS = 4_000
MAX_EF_SEARCH = 1_000

TABLE = SkillEmbedding._meta.db_table
DOCUMENTS = SkillDocument._meta.db_table
# The names in these come from the models; every value is a parameter.
EXACT = f"""
SELECT skill_id, distance, 0, comparable, skills FROM (
    SELECT count(*) AS comparable FROM {TABLE} WHERE {{scope}} AND space = %s
) AS of_space CROSS JOIN (
    SELECT count(*) AS skills FROM {DOCUMENTS} WHERE {{scope}}
) AS of_scope LEFT JOIN (
    SELECT skill_id, vector <=> %s::halfvec AS distance
    FROM {TABLE} WHERE {{scope}} AND space = %s AND dimensions = %s ORDER BY distance, skill_id LIMIT %s
) AS best ON true ORDER BY distance, skill_id
"""  # noqa: S608
# With conditions all distances are held, to count those that meet them.
NARROWED = f"""
WITH near AS MATERIALIZED (
    SELECT skill_id, vector <=> %s::halfvec AS distance
    FROM {TABLE} WHERE {{scope}} AND space = %s AND dimensions = %s
), eligible AS MATERIALIZED (
    SELECT skill_id, distance FROM near WHERE distance < %s AND {{eligible}}
)
SELECT skill_id, distance, total, comparable, skills FROM (
    SELECT count(*) AS comparable FROM near
) AS of_space CROSS JOIN (
    SELECT count(*) AS skills FROM {DOCUMENTS} WHERE {{scope}}
) AS of_scope CROSS JOIN (
    SELECT count(*) AS total FROM eligible
) AS of_query LEFT JOIN (
    SELECT skill_id, distance FROM eligible ORDER BY distance, skill_id LIMIT %s
) AS best ON true ORDER BY distance, skill_id
"""  # noqa: S608
INDEXED = f"""
SELECT skill_id, distance FROM (
    SELECT skill_id, vector::halfvec({{size}}) <=> %s::halfvec({{size}}) AS distance
    FROM {TABLE} WHERE {{scope}} AND space = %s AND dimensions = {{size}} AND {{eligible}}
    ORDER BY vector::halfvec({{size}}) <=> %s::halfvec({{size}}) LIMIT %s
) AS best ORDER BY distance, skill_id
"""  # noqa: S608
ITERATE = """
SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', %s, true),
       set_config('hnsw.max_scan_tuples', %s, true), set_config('hnsw.scan_mem_multiplier', '16', true)
"""
COUNTS = f"""
SELECT (SELECT count(*) FROM {TABLE} WHERE {{scope}} AND space = %s),
       (SELECT count(*) FROM {DOCUMENTS} WHERE {{scope}})
"""  # noqa: S608
FARTHEST = 3.0
"""Beyond any cosine distance."""


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """What the lane found, best first, with cosine similarities, and how much it could look at."""

    ranked: list[tuple[str, float]]
    total: int
    """How many skills are near enough and eligible; where an index narrows them, how many it returned."""
    comparable: int
    """How many skills of the scope have a vector in the space, of the query's size."""
    skills: int
    """How many skills of the scope can be found at all."""


@lanes.of(lane="semantic")
def nearest(
    *,
    organization: Organization,
    owner: Owner | None,
    space: str,
    vector: Sequence[float],
    depth: int,
    threshold: float | None = None,
    eligible: QuerySet[Skill] | None = None,
) -> Nearest:
    """Return the skills of an owner, or of the organization, that are nearest to the vector of a query.

    `threshold` is a cosine distance that all must be below. One statement for an owner; for an organization
    two, for a large one up to three and a setting in a transaction.
    """
    require(owner.organization.pk if owner else organization.pk)
    try:
        only, only_values = _eligible(eligible)
    except EmptyResultSet:  # Django sees by itself that nothing can match
        only, only_values = "false", ()
    scope, scope_values = "organization_id = %s", [organization.pk]
    if owner is not None:
        scope, scope_values = f"{scope} AND end_user_id = %s", [owner.organization.pk, owner.end_user.pk]
    limit = FARTHEST if threshold is None else threshold
    # To six digits, twice what `halfvec` holds: long numbers cost more to read than to compare.
    written = "[" + ",".join(f"{number:.6g}" for number in vector) + "]"
    with connection.cursor() as cursor:
        if owner is None:
            cursor.execute(COUNTS.format(scope=scope), [*scope_values, space, *scope_values])
            comparable, skills = cursor.fetchone()
            if comparable > EXACT_UP_TO and len(vector) <= MAX_INDEXED_DIMENSIONS:
                values = [written, *scope_values, space, *only_values, written, depth]
                statement = INDEXED.format(scope=scope, eligible=only, size=len(vector))
                with transaction.atomic():
                    cursor.execute(ITERATE, [str(min(max(4 * depth, 100), MAX_EF_SEARCH)), str(SCAN_AT_MOST)])
                    cursor.execute(statement, values)
                    rows = cursor.fetchall()
                if len(rows) == depth:
                    ranked = [(skill_id, 1 - distance) for skill_id, distance in rows if distance < limit]
                    total = comparable if threshold is None and eligible is None else len(ranked)
                    return Nearest(ranked=ranked, total=total, comparable=comparable, skills=skills)
                # The index gave up early: few are eligible, or have this size.
        alike = [*scope_values, space, len(vector)]
        if threshold is None and eligible is None:
            statement = EXACT.format(scope=scope)
            values = [*scope_values, space, *scope_values, written, *alike, depth]
        else:
            statement = NARROWED.format(scope=scope, eligible=only)
            values = [written, *alike, limit, *only_values, *scope_values, depth]
        cursor.execute(statement, values)
        rows = cursor.fetchall()
    _, _, total, comparable, skills = rows[0]
    ranked = [(skill_id, 1 - distance) for skill_id, distance, *_ in rows if skill_id is not None]
    if threshold is None and eligible is None:
        # Those of another size were counted, but not compared: then there are fewer than asked for.
        comparable = total = len(ranked) if len(ranked) < depth else comparable
    return Nearest(ranked=ranked, total=total, comparable=comparable, skills=skills)


def _eligible(eligible: QuerySet[Skill] | None) -> tuple[str, Sequence[Any]]:
    if eligible is None:
        return "true", ()
    sql, values = eligible.values("pk").query.sql_with_params()
    return f"skill_id IN ({sql})", values
