"""Finding skills: the one entrance to search for the API, the admin, commands and the evolver.

Methods: `bm25` is the lexical lane over all fields. `embedding` is the semantic lane: skills by the nearness
of their vectors to the query's. `hybrid` fuses three lists: lexical over all fields, lexical over name and
description, semantic; see `skills.search.fusion`. Where the semantic lane cannot answer these two go on with
the lexical lists, and `degraded` says why. `string_match` finds a text as it stands, case ignored.

Any skill is near to any query to some degree, so meaning alone does not make a match: in a fused list a skill
that no word of the query finds is one of the `NEAREST` by meaning, or nearer than the caller's threshold. No
threshold of ours does it: on real skills and E5 the nearest to a question that none of them answers is as
near as the right one to a question that one does.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from mirix.llm.embeddings import EmbeddingEndpoint, EmbeddingFailed, get_endpoint
from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from mirix.text import clean_text
from skills.models import Skill, SkillStatus
from skills.search.cache import Found, cache
from skills.search.embedding import space_of
from skills.search.fusion import RankedList, fuse, trust
from skills.search.lexical import FIELD_WEIGHTS, is_long, matched_terms, rank
from skills.search.literal import containing
from skills.search.semantic import Nearest, nearest
from skills.search.tags import tag_condition

METHODS = ("hybrid", "bm25", "embedding", "string_match")
FIELDS = (*FIELD_WEIGHTS, "entry_type")
MAX_LIMIT = 100
LANE_DEPTH = 100
NEAREST = 10
"""How many skills a fused list has at most that no word found."""
ALL_FIELDS = tuple(FIELD_WEIGHTS)
HEAD_FIELDS = ("name", "description")
SEMANTIC = "semantic"
FUSED = ("all", "name_description", SEMANTIC)
DEGRADED = "no embedding endpoint is configured; lexical lane alone"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a lane put a skill: rank from 1, and the lane's own score."""

    rank: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One skill that was found.

    `score` is what the method ranks by: BM25, cosine similarity, or the fused score; None where
    nothing was ranked. `lanes` and `terms` (the query's terms that stand in the skill) are filled where an
    explanation was asked for.
    """

    skill: Skill
    score: float | None
    lanes: dict[str, Place] = dataclasses.field(default_factory=dict)
    terms: list[str] = dataclasses.field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """What a search found, best first; `total_count` is how many match before the limit.

    That is exact by words. A fused list has exactly so many where words find `LANE_DEPTH` at most, else at
    least so many. By meaning alone it is all that could be compared, or those below the threshold.

    `lanes` are the lists that the hits come from, as (skill id, the lane's score), best first; they are there
    where an explanation was asked for and something was ranked.
    """

    hits: list[Hit]
    method: str
    total_count: int
    degraded: str | None = None
    lanes: dict[str, list[tuple[str, float]]] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the lanes are asked."""

    organization: Organization
    owner: Owner | None
    query: str
    method: str
    field: str
    threshold: float | None
    eligible: QuerySet[Skill] | None


def search(
    *,
    organization: Organization,
    owner: Owner | None,
    query: str,
    method: str = "",
    field: str = "",
    limit: int = 10,
    filter_tags: Mapping[str, Any] | None = None,
    explain: bool = False,
    similarity_threshold: float | None = None,
) -> SearchResult:
    """Find active skills of an owner, or of the whole organization where `owner` is None.

    An empty query returns the newest. `method` defaults to `MIRIX_SKILL_SEARCH_METHOD`; `field` restricts to
    one field; vectors know name and description together. `similarity_threshold` is a cosine distance that
    what the semantic lane finds must be below; it bears on no other score. Not within a transaction, since it
    may wait for the vector of the query.

    Raises `ValidationError`, keyed by the API's names, for an unknown method or field, a limit
    outside 1 to 100, and bad `filter_tags`. Runs a fixed number of statements.
    """
    method = method or settings.MIRIX_SKILL_SEARCH_METHOD
    _validate(method, field, limit)
    query = clean_text(query).strip()
    skills = findable(organization, owner)
    tagged = skills.filter(tag_condition(filter_tags)) if filter_tags else skills
    if not query or method == "string_match" or field == "entry_type":
        matching = containing(tagged, query, field) if query else tagged
        newest = matching.select_related("end_user").order_by("-created_at", "-pk")
        hits = [Hit(skill=skill, score=None) for skill in newest[:limit]]
        return SearchResult(hits=hits, method=method, total_count=matching.count())
    asked = Asked(
        organization=organization,
        owner=owner,
        query=query,
        method=method,
        field=field,
        threshold=similarity_threshold,
        eligible=tagged if filter_tags else None,
    )
    found = _kept_or_found(asked, filter_tags)
    best, total = _best(asked, found)
    hits, gone = _hits(skills, best, limit)
    if explain:
        hits = _explained(organization, owner, query, hits, found.lanes)
    return SearchResult(
        hits=hits,
        method=method,
        total_count=total - gone,
        degraded=found.degraded,
        lanes=found.lanes if explain else {},
    )


def _kept_or_found(asked: Asked, filter_tags: Mapping[str, Any] | None) -> Found:
    """Return what the lanes find; within an owner it may have been kept since the owner's last change."""
    endpoint = get_endpoint() if asked.method in ("hybrid", "embedding") else None
    if asked.owner is None:
        return _found(asked, endpoint)
    depends_on = {
        "query": asked.query,
        "method": asked.method,
        "field": asked.field,
        "threshold": asked.threshold,
        "filter_tags": dict(filter_tags or {}),
        "space": space_of(endpoint) if endpoint else "",
        "vector": endpoint.query_key if endpoint else "",
    }
    return cache.found(asked.owner, depends_on, lambda: _found(asked, endpoint))


def _found(asked: Asked, endpoint: EmbeddingEndpoint | None) -> Found:
    lanes: dict[str, list[tuple[str, float]]] = {}
    total, near, degraded, is_lasting = 0, None, None, True
    if asked.method in ("hybrid", "embedding"):
        near, degraded, is_lasting = _near(asked, endpoint)
    if near is None or asked.method == "hybrid":
        fields = _lanes(asked.method, asked.field)
        ranking = rank(
            organization=asked.organization,
            owner=asked.owner,
            query=asked.query,
            lanes=list(fields.values()),
            depth=LANE_DEPTH,
            eligible=asked.eligible,
        )
        lanes, total = dict(zip(fields, ranking.lanes, strict=True)), ranking.total
    if near is not None:
        lanes[SEMANTIC] = near.ranked
        total = near.total if asked.method == "embedding" else total
    return Found(lanes=lanes, total=total, degraded=degraded, is_lasting=is_lasting)


def _near(asked: Asked, endpoint: EmbeddingEndpoint | None) -> tuple[Nearest | None, str | None, bool]:
    """Return what the semantic lane finds, None where it cannot; what the answer lacks; and if that lasts."""
    if asked.field and asked.field not in HEAD_FIELDS:
        return None, f"{asked.field} has no embedding; lexical lane alone", True
    if endpoint is None:
        return None, DEGRADED, True
    try:
        vector = cache.vector(endpoint, asked.query)
    except EmbeddingFailed as error:
        return None, f"{error.reason}; lexical lane alone", False
    near = nearest(
        organization=asked.organization,
        owner=asked.owner,
        space=space_of(endpoint),
        vector=vector,
        depth=LANE_DEPTH,
        threshold=asked.threshold,
        eligible=asked.eligible,
    )
    missing = near.skills - near.comparable
    if near.skills and not near.comparable:
        # Or the endpoint answered once with a vector of another size.
        cache.forget_vector(endpoint, asked.query)
        return None, f"none of {near.skills} skills has an embedding of this model; lexical lane alone", False
    if missing:
        return near, f"{missing} of {near.skills} skills have no embedding yet; found by words alone", True
    return near, None, True


def _best(asked: Asked, found: Found) -> tuple[list[tuple[str, float]], int]:
    """Return the ranking that the method makes of its lanes, and how many skills match."""
    lanes = found.lanes
    if asked.method == "bm25" or list(lanes) == [SEMANTIC]:
        (best,) = lanes.values()
        return best, found.total
    weights = _weights(asked.query, lanes)
    lists = [
        RankedList(items=ranked, weight=weights[lane], has_zero=lane != SEMANTIC)
        for lane, ranked in lanes.items()
    ]
    best = fuse(lists, k=settings.MIRIX_SKILL_HYBRID_RRF_K)
    by_words = {skill_id for lane, ranked in lanes.items() if lane != SEMANTIC for skill_id, _ in ranked}
    near = [skill_id for skill_id, _ in lanes.get(SEMANTIC, [])]
    matching = by_words.union(near if asked.threshold is not None else near[:NEAREST])
    best = [(skill_id, score) for skill_id, score in best if skill_id in matching]
    if found.total > LANE_DEPTH:  # then words may have found others of those that are near, too
        return best, max(found.total, len(best))
    return best, found.total + sum(skill_id not in by_words for skill_id, _ in best)


def _weights(query: str, lanes: Mapping[str, list[tuple[str, float]]]) -> dict[str, float]:
    """Return what each lane's list counts: its weight by the setting, as far as it is to be trusted."""
    by_lane = dict(zip(FUSED, settings.MIRIX_SKILL_HYBRID_WEIGHTS, strict=True))
    # The lane of a single field stands in for both lexical lists.
    given = {lane: by_lane.get(lane, 1.0) for lane in lanes}
    trusted = trust(lanes, is_long=is_long(query))
    weighed = {lane: weight * trusted.get(lane, 1.0) for lane, weight in given.items()}
    for weights in (weighed, given):
        if any(weights.values()):
            return weights
    return dict.fromkeys(lanes, 1.0)  # those that should count could not answer


def _hits(skills: QuerySet[Skill], best: list[tuple[str, float]], limit: int) -> tuple[list[Hit], int]:
    """Return the first of a ranking with their rows, and how many of the ranking turned out to be gone.

    They are asked for once more with their status: the index is behind where a skill was written past the
    services. Others move up for those, at the cost of one more statement.
    """
    ranked = [skill_id for skill_id, _ in best]
    read = skills.select_related("end_user")
    rows = read.in_bulk(ranked[:limit])
    gone = len(ranked[:limit]) - len(rows)
    if gone:
        rows |= read.in_bulk(ranked[limit:])
        gone = len(ranked) - len(rows)
    hits = [Hit(skill=rows[skill_id], score=score) for skill_id, score in best if skill_id in rows]
    return hits[:limit], gone


def _validate(method: str, field: str, limit: int) -> None:
    errors = {}
    if method not in METHODS:
        errors["search_method"] = [f"“{method}” is not a method; there are {', '.join(METHODS)}."]
    if field and field not in FIELDS:
        errors["search_field"] = [f"“{field}” is not a field; there are {', '.join(FIELDS)}."]
    if not 1 <= limit <= MAX_LIMIT:
        errors["limit"] = [f"The limit must be between 1 and {MAX_LIMIT}."]
    if errors:
        raise ValidationError(errors)


def findable(organization: Organization, owner: Owner | None) -> QuerySet[Skill]:
    """Return what a search may answer with: active skills of the owner, or of all in the organization."""
    skills = Skill.objects.for_owner(owner) if owner else Skill.objects.for_organization(organization)
    return skills.filter(status=SkillStatus.ACTIVE)


def _lanes(method: str, field: str) -> dict[str, Sequence[str]]:
    if field:
        return {field: (field,)}
    return {"all": ALL_FIELDS} if method == "bm25" else {"all": ALL_FIELDS, "name_description": HEAD_FIELDS}


def _explained(
    organization: Organization,
    owner: Owner | None,
    query: str,
    hits: list[Hit],
    lanes: dict[str, list[tuple[str, float]]],
) -> list[Hit]:
    places: dict[str, dict[str, Place]] = defaultdict(dict)
    for lane, ranked in lanes.items():
        for number, (skill_id, score) in enumerate(ranked, start=1):
            places[skill_id][lane] = Place(rank=number, score=score)
    found = [hit.skill.pk for hit in hits]
    terms = matched_terms(organization=organization, owner=owner, query=query, skill_ids=found)
    return [
        dataclasses.replace(hit, lanes=places[hit.skill.pk], terms=terms.get(hit.skill.pk, []))
        for hit in hits
    ]
