"""Skills become SKILL.md files, with where they come from and what an import brought along."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db.models import Count

from skills.content import Content
from skills.interop.importing import SOURCE_KEY
from skills.interop.skill_md import FILE_NAME, SkillFile, render
from skills.interop.targets import safe_name
from skills.models import RevisionState, Skill, SkillRevision

BATCH = 200


def skill_md(*, skill: Skill) -> bytes:
    """Return the file of one skill."""
    return next(iter(skill_mds(skills=[skill])))[1]


def skill_mds(*, skills: Iterable[Skill]) -> Iterator[tuple[Skill, bytes]]:
    """Yield each skill with its file.

    A text that is as it was imported keeps the provenance that came with it, so that the file stays the same
    wherever it travels; fields of other tools stay with a skill as long as it lives.
    """
    rows = iter(skills)
    while batch := list(islice(rows, BATCH)):
        current = _current(batch)
        sources = _sources(batch)
        for skill in batch:
            yield skill, render(_file_of(skill, current.get(skill.pk), sources.get(skill.pk, {})))


def tree(*, skills: Iterable[Skill]) -> list[tuple[str, bytes]]:
    """Return (path, file) of each skill, sorted by path: a folder each, below one of its owner if several.

    The skills carry their end users and organizations.
    """
    files = list(skill_mds(skills=skills))
    organizations = {skill.organization_id for skill, _ in files}
    owners = {skill.end_user_id for skill, _ in files}
    return sorted(
        (_path(skill, of_many=len(organizations) > 1, of_several=len(owners) > 1), data)
        for skill, data in files
    )


def _path(skill: Skill, *, of_many: bool, of_several: bool) -> str:
    parts = [safe_name(skill.organization.name)] if of_many else []
    parts += [safe_name(skill.end_user.user_id)] if of_several else []
    return "/".join([*parts, skill.name, FILE_NAME])


def top_of(paths: list[str]) -> str:
    """Return the one folder that an archive of these paths has at its top: the skill's own, or `skills`."""
    return "" if len(paths) == 1 else "skills"


def _file_of(skill: Skill, current: Any, source: dict[str, Any]) -> SkillFile:
    content = Content.of(skill)
    return SkillFile(
        content=content,
        provenance=_brought(current, content) or _own(skill, current),
        fields=_texts(source.get("fields")),
        metadata=_texts(source.get("metadata")),
    )


def _brought(current: Any, content: Content) -> dict[str, str]:
    """Return the provenance that came with the file, while the text is the one that came with it."""
    source = _skill_md_of(current.source) if current else {}
    return _texts(source.get("provenance")) if source and current.content_hash == content.hash else {}


def _own(skill: Skill, current: Any) -> dict[str, str]:
    found = {"version": skill.version}
    if current is not None:
        found |= {"revision": current.pk, "author": current.author_kind}
        if current.decided_at:
            found["published"] = f"{current.decided_at:%Y-%m-%dT%H:%M:%SZ}"
        if current.experience_count:
            found["experiences"] = str(current.experience_count)
    return found


def _current(skills: list[Skill]) -> dict[str, SkillRevision]:
    """Return the published revision of each skill with `experience_count`."""
    revisions = SkillRevision.objects.for_organizations(_organizations(skills)).filter(
        pk__in=[skill.current_revision_id for skill in skills if skill.current_revision_id]
    )
    counted = revisions.annotate(experience_count=Count("experiences"))
    return {revision.skill_id: revision for revision in counted if revision.skill_id}


def _sources(skills: list[Skill]) -> dict[str, dict[str, Any]]:
    """Return what the last published import of each skill brought along."""
    found = (
        SkillRevision.objects.for_organizations(_organizations(skills))
        .filter(
            skill__in=[skill.pk for skill in skills],
            state=RevisionState.PUBLISHED,
            source__has_key=SOURCE_KEY,
        )
        .order_by("created_at", "pk")
        .values_list("skill_id", "source")
    )
    return {skill_id: _skill_md_of(source) for skill_id, source in found}


def _organizations(skills: list[Skill]) -> list[str]:
    return sorted({skill.organization_id for skill in skills})


def _skill_md_of(source: Any) -> dict[str, Any]:
    found = source.get(SOURCE_KEY) if isinstance(source, dict) else None
    return found if isinstance(found, dict) else {}


def _texts(value: Any) -> dict[str, str]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {key: text for key, text in pairs if isinstance(text, str)}
