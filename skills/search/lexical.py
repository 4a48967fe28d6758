"""The lexical lane: BM25 over several fields, computed in PostgreSQL from the postings.

For a query of terms t with weights q(t), over the N indexed skills of the scope that is searched:

    score(d) = Σ q(t) · idf(t) · tf(t, d) / (k1 + tf(t, d))
    idf(t)   = ln(1 + (N − df(t) + ½) / (df(t) + ½))
    tf(t, d) = Σ w(f) · count(t, d, f) / (1 − b + b · length(d, f) / average length(f))

This is BM25F: a term that stands in several fields is saturated once. df counts the skills of the scope that
have the term in one of the fields searched. A skill is found by any term that is not a stop word.

Stop words are most of what stands in skills, and say little. Where a query has other terms they only help to
rank the best `RERANKED` that these found, as if their idf were `STOP_IDF`, so that few of their postings are
read. A query of nothing else is ranked by them as by any term.

A query of more than `LONG_QUERY_TERMS` terms that are no stop words, as a question with a log around it, is
asked by those `MAX_QUERY_TERMS` of them that say most in the scope, by q(t) · idf(t), and by no others; see
`analysis.long_query_terms`.

The weights and K1 were chosen on public tool descriptions, skill libraries, package descriptions and
docstrings, and are not delicate there: half or twice of a weight changes nDCG@10 by a hundredth, K1 from
0.9 to 1.5 by less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from mirix.tenants.scope import require
from skills.models import Skill, SkillDocument, SkillPosting
from skills.search.analysis import is_stop_word, long_query_terms, query_terms, terms
from skills.search.timing import lanes

K1 = 1.0
B = 0.75
FIELD_WEIGHTS = {"name": 2.0, "triggers": 1.5, "description": 1.0, "instructions": 0.5}
MAX_QUERY_TERMS = 32
LONG_QUERY_TERMS = 48
MAX_LOOKED_UP = 300
"""Of how many terms of a long query it is looked up in how many skills they stand,"""
COUNTED_UP_TO = 1_000
"""and up to how many skills: a term of more says so little that their order is no matter."""
RERANKED = 100
STOP_IDF = 1.0

TABLES = {"documents": SkillDocument._meta.db_table, "postings": SkillPosting._meta.db_table}
# The names in these come from the models and the constants above; every value is a parameter. The postings
# are read in an order that no statistics can mislead (hence MATERIALIZED and OFFSET 0): term by term, each
# from its place in one index, then the stop words of each of the best.
STATEMENT = """
WITH corpus AS MATERIALIZED (
    SELECT count(*)::float8 AS skills, {slopes}
    FROM {documents} WHERE {scope}
), asked AS MATERIALIZED (
    SELECT term, {worths_of_term}
    FROM corpus
    CROSS JOIN unnest(%s::text[], %s::float8[]) AS asked (term, weight)
    CROSS JOIN LATERAL (
        SELECT {worths} FROM {postings} WHERE {scope} AND term = asked.term
    ) AS of_term
), score AS MATERIALIZED (
    SELECT document_id, {scores}
    FROM corpus
    CROSS JOIN asked
    CROSS JOIN LATERAL (
        SELECT document_id, {frequencies} FROM {postings} WHERE {scope} AND term = asked.term OFFSET 0
    ) AS posting
    WHERE {eligible}
    GROUP BY document_id
), best AS MATERIALIZED (
    {lists}
), candidate AS MATERIALIZED (
    SELECT document_id, skill_id, gains FROM (SELECT DISTINCT document_id FROM best) AS candidate
    CROSS JOIN LATERAL (
        SELECT skill_id FROM {documents} WHERE id = candidate.document_id OFFSET 0
    ) AS document
    CROSS JOIN LATERAL (
        SELECT array[{gains}] AS gains FROM (
            SELECT (%s::float8[])[array_position(%s::text[], term::text)] AS weight, {frequencies}
            FROM corpus CROSS JOIN {postings}
            WHERE document_id = candidate.document_id AND term = ANY (%s::text[]) OFFSET 0
        ) AS posting
    ) AS of_stop_words
)
SELECT lane, skill_id, (score + coalesce(gains[lane], 0))::real AS score, (SELECT count(score_1) FROM score)
FROM best JOIN candidate USING (document_id)
ORDER BY lane, score DESC, document_id
"""
BEST = """(
    SELECT {number} AS lane, document_id, score_{number} AS score FROM score
    WHERE score_{number} IS NOT NULL ORDER BY score_{number} DESC, document_id LIMIT {depth}
)"""
CHOICE = """
SELECT term, weight
FROM (SELECT count(*) AS skills FROM {documents} WHERE {scope}) AS corpus
CROSS JOIN unnest(%s::text[], %s::float8[]) WITH ORDINALITY AS asked (term, weight, place)
CROSS JOIN LATERAL (
    SELECT count(*) AS df FROM (
        SELECT FROM {postings} WHERE {scope} AND term = asked.term LIMIT {most}
    ) AS counted
) AS of_term
WHERE df > 0
ORDER BY weight * {idf} DESC, place
LIMIT {limit}
"""
IDF = "ln(1 + (skills - {having} + 0.5::float8) / ({having} + 0.5::float8))"
# As an expression and not a join, so that the rows are looked up in one hash.
ELIGIBLE = "(document_id IN (SELECT id FROM {documents} WHERE skill_id IN ({skills}))) IS TRUE"


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """What a query found: per lane the best skills with their scores, and how many the first lane found."""

    lanes: list[list[tuple[str, float]]]
    total: int


@lanes.of(lane="lexical")
def rank(
    *,
    organization: Organization,
    owner: Owner | None,
    query: str,
    lanes: Sequence[Sequence[str]],
    depth: int,
    eligible: QuerySet[Skill] | None = None,
) -> Ranking:
    """Rank the skills of an owner, or of the whole organization, by a query.

    A lane is the fields that it looks at; `depth` is how many skills each returns at most. Of equal
    scores the older skill comes first. `eligible` narrows what is found, not the statistics of the scope.
    One statement, and one more for a long query.
    """
    nothing = Ranking(lanes=[[] for _ in lanes], total=0)
    try:
        only, only_values = _eligible(eligible)
    except EmptyResultSet:  # Django sees by itself that nothing can match
        return nothing
    asked = asked_terms(organization=organization, owner=owner, query=query)
    if not asked:
        return nothing
    scope, scope_values = _scope(organization, owner)
    statement = STATEMENT.format(
        **TABLES,
        scope=scope,
        eligible=only,
        slopes=", ".join(
            f"coalesce({B} / nullif(avg({field}_length), 0), 0)::float8 AS {field}_slope"
            for field in FIELD_WEIGHTS
        ),
        frequencies=", ".join(
            f"{weight}::float8 * {field}_count / ({1 - B}::float8 + {field}_slope * {field}_length)"
            f" AS {field}_frequency"
            for field, weight in FIELD_WEIGHTS.items()
        ),
        worths_of_term=", ".join(f"worth_{number}" for number in range(1, len(lanes) + 1)),
        worths=", ".join(_worth(number, lane) for number, lane in enumerate(lanes, start=1)),
        # Rounded to single precision: the order in which a plan adds up must not decide between equals.
        scores=", ".join(
            f"sum(worth_{number} * {_saturated(lane)})::real AS score_{number}"
            for number, lane in enumerate(lanes, start=1)
        ),
        lists=" UNION ALL ".join(
            BEST.format(number=number, depth=max(depth, RERANKED)) for number in range(1, len(lanes) + 1)
        ),
        gains=", ".join(f"sum(weight * {STOP_IDF}::float8 * {_saturated(lane)})" for lane in lanes),
    )
    finding, stop_words = _parted(asked)
    values = [
        *(*scope_values, list(finding), list(finding.values())),
        *(*scope_values, *scope_values, *only_values),
        *(list(stop_words.values()), list(stop_words), list(stop_words)),
    ]
    found: dict[int, list[tuple[str, float]]] = defaultdict(list)
    total = 0
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        for number, skill_id, score, of_first in cursor.fetchall():
            found[number].append((skill_id, score))
            total = of_first
    return Ranking(lanes=[found[number][:depth] for number in range(1, len(lanes) + 1)], total=total)


def asked_terms(*, organization: Organization, owner: Owner | None, query: str) -> dict[str, float]:
    """Return the terms by which skills of the scope are ranked, with their weights.

    Of a long query they are those that say most in the scope, and no others. One statement for it, else none.
    """
    if not is_long(query):
        return query_terms(query, MAX_QUERY_TERMS)
    looked_up = long_query_terms(query, MAX_LOOKED_UP)
    scope, scope_values = _scope(organization, owner)
    statement = CHOICE.format(
        **TABLES, scope=scope, most=COUNTED_UP_TO, idf=IDF.format(having="df"), limit=MAX_QUERY_TERMS
    )
    with connection.cursor() as cursor:
        values = [*scope_values, list(looked_up), list(looked_up.values()), *scope_values]
        cursor.execute(statement, values)
        return dict(cursor.fetchall())


def is_long(query: str) -> bool:
    """Return whether a query is more than a question: it has a log or a letter around it."""
    return sum(not is_stop_word(term) for term in terms(query)) > LONG_QUERY_TERMS


def matched_terms(
    *, organization: Organization, owner: Owner | None, query: str, skill_ids: Iterable[str]
) -> dict[str, list[str]]:
    """Return which of the terms that were asked for stand in each of the scope's skills, in their order."""
    asked = list(asked_terms(organization=organization, owner=owner, query=query))
    postings = SkillPosting.objects.for_organization(organization)
    pairs = postings.filter(document__skill__in=skill_ids, term__in=asked)
    matched: dict[str, list[str]] = defaultdict(list)
    for skill_id, term in pairs.values_list("document__skill", "term"):
        matched[skill_id].append(term)
    return {skill_id: sorted(found, key=asked.index) for skill_id, found in matched.items()}


def _scope(organization: Organization, owner: Owner | None) -> tuple[str, list[Any]]:
    require(owner.organization.pk if owner else organization.pk)
    if owner is None:
        return "organization_id = %s", [organization.pk]
    return "organization_id = %s AND end_user_id = %s", [owner.organization.pk, owner.end_user.pk]


def _eligible(eligible: QuerySet[Skill] | None) -> tuple[str, Sequence[Any]]:
    if eligible is None:
        return "true", []
    sql, values = eligible.values("pk").query.sql_with_params()
    return ELIGIBLE.format(documents=SkillDocument._meta.db_table, skills=sql), values


def _parted(terms: dict[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the terms that find skills, and the stop words that only help to rank them."""
    finding = {term: weight for term, weight in terms.items() if not is_stop_word(term)}
    if not finding:
        return terms, {}
    return finding, {term: weight for term, weight in terms.items() if term not in finding}


def _worth(number: int, lane: Sequence[str]) -> str:
    """Return the column of what a term is worth in a lane: its weight in the query and its idf."""
    having = f"count(*) FILTER (WHERE {' OR '.join(f'{field}_count > 0' for field in lane)})"
    return f"weight * {IDF.format(having=having)} AS worth_{number}"


def _saturated(lane: Sequence[str]) -> str:
    """Return how much of a term's worth a skill gets in a lane; null where none of the fields has it."""
    frequency = " + ".join(f"{field}_frequency" for field in lane)
    return f"(1 - {K1}::float8 / ({K1}::float8 + nullif({frequency}, 0)))"
