"""The lexical index, kept by whoever changes what agents may find.

`index_skill` and `remove_skill` run inside the caller's transaction: a skill and its postings become visible
together. Only active skills have postings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from mirix.tenants.models import Organization
from skills.models import Skill, SkillDocument, SkillEmbedding, SkillPosting, SkillStatus
from skills.search.analysis import term_counts
from skills.search.changes import note_change
from skills.search.embedding import follow

FIELDS = ("name", "triggers", "description", "instructions")
REBUILD_BATCH = 200
# A skill has hundreds of postings: as arrays they are written several times faster than as model objects, and
# what they copy from their documents is copied by the database.
COUNTS = [f"{field}_count" for field in FIELDS]
LENGTHS = [f"{field}_length" for field in FIELDS]
COPIED = ["organization_id", "end_user_id", *LENGTHS]
INSERT_POSTINGS = f"""
    INSERT INTO {SkillPosting._meta.db_table} (document_id, term, {", ".join([*COUNTS, *COPIED])})
    SELECT new.document_id, new.term, {", ".join(f"new.{name}" for name in COUNTS)},
        {", ".join(f"document.{name}" for name in COPIED)}
    FROM unnest(%s::integer[], %s::text[], {", ".join("%s::smallint[]" for _ in COUNTS)})
        AS new (document_id, term, {", ".join(COUNTS)})
    JOIN {SkillDocument._meta.db_table} AS document ON document.id = new.document_id
"""  # noqa: S608  (names of our own)


@transaction.atomic
def index_skill(skill: Skill) -> None:
    """Make a skill findable as it stands in the database; where it is not active, not findable.

    Locks the skill's row: of two writers at once the later one indexes what both have written. Idempotent.
    """
    skills = Skill.objects.with_owner_of(skill).filter(pk=skill.pk)
    _replace(list(skills.select_for_update(no_key=True)))


@transaction.atomic
def index_skills(skills: Iterable[Skill]) -> None:
    """Do the same for many at once, of whatever owners; not within a request."""
    keys = sorted(skill.pk for skill in skills)
    for start in range(0, len(keys), REBUILD_BATCH):
        batch = Skill.objects.filter(pk__in=keys[start : start + REBUILD_BATCH])
        _replace(list(batch.order_by("pk").select_for_update(no_key=True)))


@transaction.atomic
def remove_skill(skill_id: str) -> None:
    """Make a skill not findable; one that is not indexed stays so."""
    note_change(Skill.objects.filter(pk=skill_id).select_for_update(no_key=True))
    SkillDocument.objects.filter(skill_id=skill_id).delete()
    SkillEmbedding.objects.filter(skill_id=skill_id).delete()


def rebuild(
    organization: Organization | None = None, *, progress: Callable[[int], None] | None = None
) -> int:
    """Index every skill of an organization, or of all, anew; return how many are findable.

    Works in batches, each its own transaction, so that search goes on meanwhile. `progress` is called after
    each batch with the number of skills looked at so far.
    """
    seen = indexed = 0
    last_id = ""
    while True:
        with transaction.atomic():
            skills = Skill.objects.filter(pk__gt=last_id).order_by("pk").select_for_update(no_key=True)
            if organization is not None:
                skills = skills.for_organization(organization)
            batch = list(skills[:REBUILD_BATCH])
            indexed += _replace(batch)
        if not batch:
            return indexed
        seen += len(batch)
        last_id = batch[-1].pk
        if progress is not None:
            progress(seen)


def settle() -> None:
    """Have the database look through the index's tables after much was written, so that it reads them faster.

    It would do so by itself, a while later. Not possible within a transaction, where this does nothing.
    """
    if connection.in_atomic_block:
        return
    tables = (model._meta.db_table for model in (SkillDocument, SkillPosting, SkillEmbedding))
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM (ANALYZE) {', '.join(tables)}")


@dataclass(frozen=True, kw_only=True)
class IndexStatus:
    """How far the index holds what it should."""

    active: int
    """Active skills."""
    missing: int
    """Active skills that are not indexed, and so not found."""
    outdated: int
    """Indexed skills that are not active any more."""
    postings: int


def status(organization: Organization | None = None) -> IndexStatus:
    """Compare the index with the skills of an organization, or of all."""
    skills, documents, postings = Skill.objects.all(), SkillDocument.objects.all(), SkillPosting.objects.all()
    if organization is not None:
        skills, documents = skills.for_organization(organization), documents.for_organization(organization)
        postings = postings.filter(organization=organization)
    active = skills.filter(status=SkillStatus.ACTIVE)
    return IndexStatus(
        active=active.count(),
        missing=active.filter(document=None).count(),
        outdated=documents.exclude(skill__status=SkillStatus.ACTIVE).count(),
        postings=postings.count(),
    )


def field_counts(skill: Skill) -> dict[str, Counter[str]]:
    """Return how often each term stands in each indexed field of a skill."""
    # Triggers are joined by a line end, which no term spans.
    texts = {
        "name": skill.name,
        "triggers": "\n".join(map(str, skill.triggers)),
        "description": skill.description,
        "instructions": skill.instructions,
    }
    return {field: term_counts(texts[field]) for field in FIELDS}


def _replace(skills: list[Skill]) -> int:
    """Write the index rows of locked skills anew; return how many of them are findable."""
    active = [skill for skill in skills if skill.status == SkillStatus.ACTIVE]
    counted = [field_counts(skill) for skill in active]
    organizations = {skill.organization_id for skill in skills}
    known = SkillDocument.objects.for_organizations(organizations)
    known.filter(skill__in=set(skills) - set(active)).delete()
    documents = SkillDocument.objects.bulk_create(
        [_document(skill, counts) for skill, counts in zip(active, counted, strict=True)],
        update_conflicts=True,
        unique_fields=["skill"],
        update_fields=[f"{field}_length" for field in FIELDS],
    )
    SkillPosting.objects.for_organizations(organizations).filter(document__in=documents).delete()
    rows = [
        row
        for document, counts in zip(documents, counted, strict=True)
        for row in _postings(document, counts)
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(INSERT_POSTINGS, [list(column) for column in zip(*rows, strict=True)])
    if skills:
        follow(skills)
        note_change(skills)
    return len(active)


def _document(skill: Skill, counts: dict[str, Counter[str]]) -> SkillDocument:
    return SkillDocument(
        skill=skill,
        organization_id=skill.organization_id,
        end_user_id=skill.end_user_id,
        **{f"{field}_length": counts[field].total() for field in FIELDS},
    )


def _postings(document: SkillDocument, counts: dict[str, Counter[str]]) -> Iterator[tuple[Any, ...]]:
    of_fields = [counts[field] for field in FIELDS]
    for term in set().union(*of_fields):
        yield (document.pk, term, *(found[term] for found in of_fields))
