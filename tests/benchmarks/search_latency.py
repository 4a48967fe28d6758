"""What a search costs, against two bare SQL queries over the same skills in the same process.

The bare pair is what is often written by hand: `ts_rank_cd` over a GIN-indexed tsvector of all fields, any
word matching, and cosine distance over `halfvec(384)`, the best 10 of each. Both sides get the vector of the
query for nothing. Each query is asked once by each side, in turn; caches are emptied before.

One owner with 10,000 skills; an owner of 200 in an organization that grows from 1,000 to 100,000 skills; that
organization as a whole, its vectors indexed by HNSW on both sides; an organization of 200 beside it.
`scale` makes all of it smaller.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any
from unittest.mock import patch

from django.core.cache import caches
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext, override_settings

from mirix.llm.embeddings import EmbeddingEndpoint, get_endpoint
from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from skills.models import Skill, SkillEmbedding
from skills.search import semantic, space_index
from skills.search.embedding import space_of, text_hash
from skills.search.index import rebuild
from skills.search.service import LANE_DEPTH, search
from tests.benchmarks import Report, Tell
from tests.benchmarks.library import SIZE, Library, Query
from tests.factories import make_organization, make_owner, owner_fields

SEED = 6
ONE_OWNER, SMALL, LARGE, BESIDE, OF_OWNER = 10_000, 1_000, 100_000, 200, 200
OWNER_LINES, LARGE_LINES = 24, 3
"""Lines of instructions: about 2,500 characters a skill for the one owner, 300 in the large organization."""
QUERIES, LARGE_QUERIES, WARM_UP = 120, 30, 10
BATCH = 1_000
LONG_CHARS = 2_000
GOALS = {
    "owner_p50": 1.0,
    "owner_p95": 1.2,
    "long_query": 8.0,
    "growth": 1.5,
    "organization_p50": 3.0,
}
RECALL_GOALS = {"organization_recall_at_10": 0.95, "beside_recall_at_10": 0.95}
NAMES = {
    "owner_p50": "hybrid, one owner, p50, to the bare pair",
    "owner_p95": "hybrid, one owner, p95, to the bare pair",
    "long_query": f"{LONG_CHARS:,} characters to a question, p50",
    "growth": "an owner, organization grown 100 times, p50",
    "organization_p50": "search_all_users, p50, to the bare pair",
    "organization_recall_at_10": "recall@10, whole organization, to exact",
    "beside_recall_at_10": "recall@10, small organization, to exact",
}
WORDS = """
    SELECT skill_id FROM {table}, (SELECT replace(plainto_tsquery('english', %s)::text, '&', '|')::tsquery) AS
    asked (words) WHERE fields @@ words ORDER BY ts_rank_cd(fields, words) DESC LIMIT 10
"""
VECTORS = f"SELECT skill_id FROM {{table}} ORDER BY vector <=> %s::halfvec({SIZE}) LIMIT 10"
COPIED = f"""
    CREATE TABLE {{table}} AS SELECT skill.id AS skill_id, vector::halfvec({SIZE}) AS vector,
    to_tsvector('english', concat_ws(' ', name, triggers #>> '{{{{}}}}', description, instructions)) AS fields
    FROM skills_skill AS skill JOIN skills_skillembedding ON skill_id = skill.id
    WHERE skill.organization_id = %s
"""

Ask = Callable[[Query], object]


def measure(tell: Tell, *, scale: float = 1.0) -> Report:
    """Measure everything, at sizes multiplied by `scale`."""
    library = Library(SEED)
    vectors: dict[str, list[float]] = {}
    with _endpoint(vectors):
        figures = _one_owner(tell, library, vectors, scale) | _organizations(tell, library, vectors, scale)
    figures["goals"] = GOALS | RECALL_GOALS
    figures["scale"] = scale
    return Report(figures=figures, lines=_lines(figures))


def _one_owner(tell: Tell, library: Library, vectors: dict[str, list[float]], scale: float) -> dict[str, Any]:
    owner = make_owner()
    count = _scaled(ONE_OWNER, scale)
    tell(f"search: an owner with {count} skills")
    _publish(library, owner, count, OWNER_LINES)
    rebuild(owner.organization)
    _bare_table("bare_owner", owner.organization)
    _vacuum()
    queries = _queries(library, vectors, WARM_UP + _scaled(QUERIES, scale))
    own = _searching(owner, owner.organization)
    hybrid, bare = _in_turn(queries, own, _bare_pair("bare_owner"))
    long = [library.long_query(LONG_CHARS) for _ in range(WARM_UP + _scaled(LARGE_QUERIES, scale))]
    vectors |= {query.text: query.vector for query in long}
    long_ms, _ = _in_turn(long, own, lambda query: None)
    with CaptureQueriesContext(connection) as captured:
        own(queries[0])
    return {
        "owner_skills": count,
        "owner_p50": median(hybrid) / median(bare),
        "owner_p95": _p95(hybrid) / _p95(bare),
        "long_query": median(long_ms) / median(hybrid),
        "statements": len(captured),
        "milliseconds": {
            "owner_p50": median(hybrid),
            "owner_p95": _p95(hybrid),
            "bare_p50": median(bare),
            "bare_p95": _p95(bare),
            "long_query_p50": median(long_ms),
        },
    }


def _organizations(
    tell: Tell, library: Library, vectors: dict[str, list[float]], scale: float
) -> dict[str, Any]:
    small, large, each = _scaled(SMALL, scale), _scaled(LARGE, scale), _scaled(OF_OWNER, scale)
    owner = make_owner()
    organization = owner.organization
    tell(f"search: an organization of {small} skills")
    _publish(library, owner, each, LARGE_LINES)
    for _ in range(small // each - 1):
        _publish(library, make_owner(organization), each, LARGE_LINES)
    rebuild(organization)
    _vacuum()
    own = _searching(owner, owner.organization)
    queries = _queries(library, vectors, WARM_UP + _scaled(QUERIES, scale))
    before, _ = _in_turn(queries, own, lambda query: None)

    tell(f"search: the organization grows to {large} skills")
    others = [make_owner(organization) for _ in range(50)]
    share = (large - small) // len(others)
    for other in others:
        _publish(library, other, share, LARGE_LINES)
    beside = make_owner(make_organization())
    _publish(library, beside, _scaled(BESIDE, scale), LARGE_LINES)
    rebuild(organization)
    rebuild(beside.organization)
    _bare_table("bare_organization", organization)
    endpoint = get_endpoint()
    assert endpoint is not None
    space = space_of(endpoint)
    tell("search: indexing vectors")
    space_index.build(space)
    with connection.cursor() as cursor:
        cursor.execute("SET maintenance_work_mem = '256MB'")
        cursor.execute("SET max_parallel_maintenance_workers = 0")
        cursor.execute("CREATE INDEX ON bare_organization USING hnsw (vector halfvec_cosine_ops)")
        cursor.execute("RESET maintenance_work_mem")
    _vacuum()
    after, _ = _in_turn(queries, own, lambda query: None)

    queries = _queries(library, vectors, WARM_UP + _scaled(LARGE_QUERIES, scale))
    whole, bare = _in_turn(queries, _searching(None, organization), _bare_pair("bare_organization"))
    with CaptureQueriesContext(connection) as captured:
        _searching(None, organization)(queries[0])
    return {
        "organization_skills": [small, large],
        "growth": median(after) / median(before),
        "organization_p50": median(whole) / median(bare),
        "organization_statements": len(captured),
        "organization_recall_at_10": _recall(organization, queries, space),
        "beside_recall_at_10": _recall(beside.organization, queries, space),
        "plan": _plan([query["sql"] for query in captured]),
        "organization_milliseconds": {
            "owner_before_p50": median(before),
            "owner_after_p50": median(after),
            "organization_p50": median(whole),
            "bare_p50": median(bare),
        },
    }


@contextmanager
def _endpoint(vectors: dict[str, list[float]]) -> Iterator[None]:
    """Have an endpoint that answers for nothing, from what is known."""
    with (
        override_settings(MIRIX_EMBEDDING_MODEL="bench", MIRIX_EMBEDDING_BASE_URL="http://127.0.0.1:9/v1"),
        patch.object(EmbeddingEndpoint, "embed_query", lambda self, text: vectors[text]),
    ):
        yield


def _publish(library: Library, owner: Owner, count: int, lines: int) -> None:
    """Store skills with their vectors, not yet indexed."""
    endpoint = get_endpoint()
    assert endpoint is not None
    space = space_of(endpoint)
    for start in range(0, count, BATCH):
        rows = [library.skill(number, lines) for number in range(start, min(start + BATCH, count))]
        near = [row.pop("vector") for row in rows]
        skills = Skill.objects.bulk_create(Skill(**owner_fields(owner), **row) for row in rows)
        SkillEmbedding.objects.bulk_create(
            SkillEmbedding(
                **owner_fields(owner),
                skill=skill,
                space=space,
                text_hash=text_hash(skill),
                dimensions=SIZE,
                vector=vector,
            )
            for skill, vector in zip(skills, near, strict=True)
        )


def _queries(library: Library, vectors: dict[str, list[float]], count: int) -> list[Query]:
    queries = library.queries(count)
    vectors |= {query.text: query.vector for query in queries}
    return queries


def _bare_table(table: str, organization: Organization) -> None:
    """Copy an organization's skills to a table as it would be without mirix; it goes with the cluster."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
        cursor.execute(COPIED.format(table=table), [organization.pk])
        cursor.execute(f"CREATE INDEX ON {table} USING gin (fields)")


def _vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _searching(owner: Owner | None, organization: Organization) -> Ask:
    return lambda query: search(organization=organization, owner=owner, query=query.text, method="hybrid")


def _bare_pair(table: str) -> Ask:
    def ask(query: Query) -> None:
        with connection.cursor() as cursor:
            cursor.execute(WORDS.format(table=table), [query.text])
            cursor.fetchall()
            cursor.execute(VECTORS.format(table=table), [str(query.vector)])
            cursor.fetchall()

    return ask


def _in_turn(queries: Sequence[Query], own: Ask, bare: Ask) -> tuple[list[float], list[float]]:
    """Return the milliseconds that each side takes for each query but the first, which warm up."""
    times: list[tuple[float, float]] = []
    for query in queries:
        for cache in caches.all():
            cache.clear()
        times.append((_milliseconds(own, query), _milliseconds(bare, query)))
    mine, other = zip(*times[WARM_UP:], strict=True)
    return list(mine), list(other)


def _milliseconds(ask: Ask, query: Query) -> float:
    began = time.perf_counter()
    ask(query)
    return 1_000 * (time.perf_counter() - began)


def _recall(organization: Organization, queries: Sequence[Query], space: str) -> float:
    """Return how much of the exact 10 nearest the semantic lane has as its first 10."""

    def first(query: Query) -> set[str]:
        near = semantic.nearest(
            organization=organization, owner=None, space=space, vector=query.vector, depth=LANE_DEPTH
        )
        return {skill_id for skill_id, _ in near.ranked[:10]}

    shares = []
    for query in queries:
        found = first(query)
        with patch.object(semantic, "EXACT_UP_TO", 10**9):
            exact = first(query)
        shares.append(len(found & exact) / len(exact))
    return sum(shares) / len(shares)


def _plan(statements: list[str]) -> list[str]:
    """Return the plan of that one of a search's statements that compares vectors."""
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            if "set_config" in statement:
                cursor.execute(statement)
            elif "<=>" in statement:
                cursor.execute(f"EXPLAIN (ANALYZE, COSTS off) {statement}")
                return [re.sub(r"'\[[^']{80,}'", "'[…]'", line) for (line,) in cursor.fetchall()]
    return []


def _scaled(size: int, scale: float) -> int:
    return max(5, round(size * scale))


def _p95(values: list[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1]


def _lines(figures: dict[str, Any]) -> list[str]:
    small, large = figures["organization_skills"]
    shown = [
        f"{figures['owner_skills']:,} skills of one owner, an organization of {small:,} to {large:,} skills",
    ]
    of_owner, across = figures["statements"], figures["organization_statements"]
    shown.append(f"statements a search: {of_owner}, across an organization {across}")
    for name, title in NAMES.items():
        value, goal = figures[name], figures["goals"][name]
        reached = value <= goal if name in GOALS else value >= goal
        sign = "≤" if name in GOALS else "≥"
        shown.append(f"{title:<42}{value:>6.2f}  goal {sign} {goal} {'reached' if reached else 'MISSED'}")
    shown.append("plan of the vectors' statement across the organization:")
    return [*shown, *(f"  {line}" for line in figures["plan"])]
