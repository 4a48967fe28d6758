"""Keeping the vectors of skills: what is embedded, when it is due, and the work itself.

A published skill is in the lexical lane at once. Its vector follows in the worker: a job is queued in the
transaction that publishes, and a regular look embeds whatever is missing, as after a change of the model.
Each batch is stored by itself, so that work that was stopped goes on where it was. No endpoint is asked
within a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from mirix.llm.embeddings import EmbeddingEndpoint, EmbeddingFailed, get_endpoint
from mirix.queue import defer
from mirix.tenants.models import Organization
from skills.content import Content
from skills.models import Skill, SkillEmbedding, SkillStatus
from skills.search.changes import note_change

EMBED_SKILLS = "skills.embed_skills"
QUEUE = "embeddings"
KIND = "name: description"
"""Names what `embedded_text` returns: vectors of another kind lie in another space."""
BATCH = 32

logger = logging.getLogger(__name__)


def embedded_text(name: str, description: str) -> str:
    """Return what stands for a skill in the semantic lane."""
    return f"{name}: {description}"


def space_of(endpoint: EmbeddingEndpoint) -> str:
    """Return the space in which the endpoint's vectors of skills lie."""
    return endpoint.space(KIND)


def follow(skills: Sequence[Skill]) -> None:
    """Have the vectors of skills follow what was just written about them, in the caller's transaction.

    Those of skills that are not active go. Those of another text stay until the worker has new ones.
    """
    rows = SkillEmbedding.objects.for_organizations({skill.organization_id for skill in skills})
    active = {skill.pk: text_hash(skill) for skill in skills if skill.status == SkillStatus.ACTIVE}
    if gone := {skill.pk for skill in skills} - active.keys():
        rows.filter(skill__in=gone).delete()
    if not active:
        return
    endpoint = get_endpoint()
    space = space_of(endpoint) if endpoint else ""
    held, changed = set(), []
    for pk, skill_id, where, hashed in rows.filter(skill__in=active.keys()).values_list(
        "pk", "skill", "space", "text_hash"
    ):
        if hashed != active[skill_id]:
            changed.append(pk)
        elif where == space:
            held.add(skill_id)
    if changed:
        rows.filter(pk__in=changed).update(text_hash="")
    if endpoint and (due := sorted(active.keys() - held)):
        defer(EMBED_SKILLS, queue=QUEUE, skill_ids=due)


def text_hash(skill: Skill | Content) -> str:
    """Return the digest of what is embedded of a skill, or of a text that may become one."""
    return blake2b(embedded_text(skill.name, skill.description).encode(), digest_size=16).hexdigest()


def due(space: str, organization: Organization | None = None) -> QuerySet[Skill]:
    """Return the active skills without a vector of their present text in a space."""
    skills = Skill.objects.for_organizations(None if organization is None else {organization.pk})
    held = SkillEmbedding.objects.filter(skill=OuterRef("pk"), space=space).exclude(text_hash="")
    return skills.filter(~Exists(held), status=SkillStatus.ACTIVE)


@dataclass(kw_only=True)
class Embedded:
    """What came of embedding: how many skills got a vector, and which were refused by the endpoint."""

    stored: int = 0
    refused: list[str] = field(default_factory=list)


def embed_skills(skill_ids: Iterable[str]) -> Embedded:
    """Embed those of the skills that are due; without an endpoint none. Raises `EmbeddingFailed`."""
    endpoint = get_endpoint()
    if endpoint is None:
        return Embedded()
    wanted = due(space_of(endpoint)).filter(pk__in=list(skill_ids))
    return _embed(endpoint, wanted, lambda: False, None)


def embed_missing(
    organization: Organization | None = None,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] | None = None,
) -> Embedded:
    """Embed every skill that is due, a batch at a time; `progress` gets the number looked at so far.

    Raises `EmbeddingFailed` where the endpoint fails; what was stored until then stays.
    """
    endpoint = get_endpoint()
    if endpoint is None:
        return Embedded()
    return _embed(endpoint, due(space_of(endpoint), organization), should_stop, progress)


def _embed(
    endpoint: EmbeddingEndpoint,
    wanted: QuerySet[Skill],
    should_stop: Callable[[], bool],
    progress: Callable[[int], None] | None,
) -> Embedded:
    space = space_of(endpoint)
    size = _size(space)
    done, seen, last_id = Embedded(), 0, ""
    while not should_stop():
        batch = list(wanted.filter(pk__gt=last_id).order_by("pk")[:BATCH])
        if not batch:
            break
        for skills, vectors in _asked(endpoint, batch, done):
            size = size or len(vectors[0])
            if len(vectors[0]) != size:
                raise EmbeddingFailed(
                    f"the endpoint answered with vectors of {len(vectors[0])} numbers, those it gave before "
                    f"have {size}; another model needs another name in MIRIX_EMBEDDING_MODEL"
                )
            done.stored += _store(space, skills, vectors)
        seen += len(batch)
        last_id = batch[-1].pk
        if progress is not None:
            progress(seen)
    return done


def _size(space: str) -> int | None:
    """Return the size of the vectors of a space; None where it has none yet."""
    rows = SkillEmbedding.objects.for_organizations(None).filter(space=space)
    return next(iter(rows.values_list("dimensions", flat=True)[:1]), None)


def _asked(
    endpoint: EmbeddingEndpoint, skills: list[Skill], done: Embedded
) -> list[tuple[list[Skill], list[list[float]]]]:
    """Return the vectors of a batch; where the endpoint refuses it, of each skill that it does not refuse."""
    texts = [embedded_text(skill.name, skill.description) for skill in skills]
    try:
        return [(skills, endpoint.embed_documents(texts))]
    except EmbeddingFailed as error:
        if not error.refused:
            raise
        if len(skills) == 1:
            logger.warning("%s has no embedding: %s", skills[0].pk, error.reason)
            done.refused.append(skills[0].pk)
            return []
    return [answer for skill in skills for answer in _asked(endpoint, [skill], done)]


@transaction.atomic
def _store(space: str, skills: list[Skill], vectors: list[list[float]]) -> int:
    """Write the vectors of skills that still have the text that was embedded; return how many."""
    locked = (
        Skill.objects.for_organizations({skill.organization_id for skill in skills})
        .filter(pk__in=[skill.pk for skill in skills], status=SkillStatus.ACTIVE)
        .order_by("pk")
        .select_for_update(no_key=True)
    )
    now = {skill.pk: text_hash(skill) for skill in locked}
    rows = [
        SkillEmbedding(
            skill=skill,
            organization_id=skill.organization_id,
            end_user_id=skill.end_user_id,
            space=space,
            text_hash=text_hash(skill),
            dimensions=len(vector),
            vector=vector,
        )
        for skill, vector in zip(skills, vectors, strict=True)
        if now.get(skill.pk) == text_hash(skill)
    ]
    SkillEmbedding.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["skill", "space"],
        update_fields=["text_hash", "dimensions", "vector"],
    )
    note_change(row.skill for row in rows)
    return len(rows)
