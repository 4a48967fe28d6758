"""SKILL.md files become proposals: each new skill, each change of one; nothing is published, nothing lost."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from mirix.tenants.owners import Owner
from mirix.text import clean_text, shorten
from skills.content import Content
from skills.interop.frontmatter import Unreadable
from skills.interop.skill_md import ReadFile, cleaned, parse
from skills.interop.sources import Found
from skills.models import AuthorKind, RevisionAction, RevisionState, Skill, SkillRevision
from skills.review.errors import ProposalConflict, ReviewError
from skills.review.proposals import propose
from skills.review.validation import content_errors

MAX_PLACE_CHARS = 300
SOURCE_KEY = "skill_md"
"""Under it a revision's source holds what its file said beside the content."""


class ImportStatus(StrEnum):
    """What became of one file."""

    NEW = "new"
    EDIT = "edit"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(kw_only=True)
class ImportOutcome:
    """What became of one file, and why."""

    file: str
    status: ImportStatus
    name: str = ""
    proposal: str | None = None
    reason: str = ""
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        return asdict(self) | {"status": self.status.value}


def import_skills(
    *, owner: Owner | Callable[[], Owner], found: Iterable[Found], author: User | None = None
) -> Iterator[ImportOutcome]:
    """Propose what each file holds, one transaction for each, and yield what became of it.

    A skill of that name becomes an edit of it, an import that waits already is replaced by the new one, and
    what says the same as the skill or as what waits is unchanged. Refused is what cannot be read or could
    never be published, a name that came before in the same import, a proposal of somebody else that waits,
    and a text that a person rejected. `author` is the member who imports.

    An owner that may not exist yet is given as a function that returns it; it is called only for a file whose
    skill could be proposed, once.
    """
    seen: dict[str, tuple[str, str]] = {}
    find_owner = cache(owner) if callable(owner) else lambda: owner
    for item in found:
        yield _import(find_owner, item, author, seen)


def counts_of(outcomes: Iterable[ImportOutcome]) -> dict[str, int]:
    """Return how many files came to each status."""
    counts = dict.fromkeys((status.value for status in ImportStatus), 0)
    for outcome in outcomes:
        counts[outcome.status] += 1
    return counts


def _import(
    find_owner: Callable[[], Owner], item: Found, author: User | None, seen: dict[str, tuple[str, str]]
) -> ImportOutcome:
    outcome = ImportOutcome(
        file=clean_text(shorten(item.place, MAX_PLACE_CHARS)),
        status=ImportStatus.REFUSED,
        reason=item.problem,
    )
    if item.problem:
        return outcome
    try:
        read = parse(item.data, item.folder)
    except Unreadable as error:
        outcome.reason = str(error)
        return outcome
    content = read.file.content
    outcome.name = content.name
    outcome.warnings = [clean_text(warning) for warning in read.warnings]
    if item.others:
        files = "1 more file" if item.others == 1 else f"{item.others} more files"
        outcome.warnings.append(f"Its folder holds {files}, which a skill here cannot carry.")
    if content.name in seen:
        place, earlier = seen[content.name]
        if earlier == content.hash:
            outcome.status, outcome.reason = ImportStatus.UNCHANGED, f"The same as {place}."
        else:
            outcome.reason = f"{place} of the same import has this name already."
        return outcome
    if errors := content_errors(content):
        outcome.reason = "; ".join(f"{name}: {' '.join(messages)}" for name, messages in errors.items())
        return outcome
    seen[content.name] = (outcome.file, content.hash)
    owner = find_owner()
    try:
        try:
            with transaction.atomic():
                _propose(owner, read, item, author, outcome)
        except ProposalConflict:  # somebody came first, perhaps with the very same: look once more
            with transaction.atomic():
                _propose(owner, read, item, author, outcome)
    except ReviewError as error:
        outcome.status, outcome.reason = ImportStatus.REFUSED, str(error)
    return outcome


def _propose(owner: Owner, read: ReadFile, item: Found, author: User | None, outcome: ImportOutcome) -> None:
    """Write the proposal, if there is anything to propose; fill in the outcome."""
    skill = Skill.objects.for_owner(owner).filter(name=read.file.content.name).first()
    content = _completed(read, skill)
    waiting = (
        SkillRevision.objects.for_owner(owner)
        .filter(state=RevisionState.PROPOSED, skill=skill, **({} if skill else {"name": content.name}))
        .first()
    )
    if skill is not None and cleaned(Content.of(skill)).hash == content.hash:
        outcome.status, outcome.reason = ImportStatus.UNCHANGED, f"Version {skill.version} says the same."
        return
    if waiting is not None and cleaned(Content.of(waiting)).hash == content.hash:
        outcome.status, outcome.proposal = ImportStatus.UNCHANGED, waiting.pk
        outcome.reason = f"{waiting.pk} says the same and waits."
        return
    if waiting is not None and waiting.author_kind != AuthorKind.IMPORT:
        outcome.reason = f"{waiting.pk}, a proposal for it, waits; decide that first."
        return
    if reason := _rejected(owner, content):
        outcome.reason = reason
        return
    revision = propose(
        owner=owner,
        content=content,
        skill=skill,
        target_revision=waiting,
        action=RevisionAction.EDIT if skill else RevisionAction.IMPORT,
        author_kind=AuthorKind.IMPORT,
        experiences=[],
        rationale=f"Imported from {outcome.file}.",
        author=author,
        source=_source(read, item, outcome.file),
    )
    outcome.status = ImportStatus.EDIT if skill else ImportStatus.NEW
    outcome.proposal = revision.pk


def _completed(read: ReadFile, skill: Skill | None) -> Content:
    """Return the content; what a file of another tool does not know of a skill stays as it is."""
    content = read.file.content
    if skill is None or read.is_ours:
        return content
    known = cleaned(Content.of(skill))
    return replace(
        content,
        entry_type=known.entry_type,
        triggers=content.triggers or known.triggers,
        examples=known.examples,
        filter_tags=known.filter_tags,
    )


def _rejected(owner: Owner, content: Content) -> str:
    """Return when and why a person turned this very text down, "" if nobody did."""
    rejected = (
        SkillRevision.objects.for_owner(owner)
        .filter(state=RevisionState.REJECTED, name=content.name, content_hash=content.hash)
        .order_by("-created_at")
        .first()
    )
    if rejected is None:
        return ""
    decision = rejected.decisions.order_by("-created_at").first()
    why = f": {shorten(decision.reason, 200)}" if decision else "."
    return f"This very text was rejected ({rejected.pk}){why}"


def _source(read: ReadFile, item: Found, place: str) -> dict[str, Any]:
    file = read.file
    return {
        SOURCE_KEY: {
            "file": place,
            "sha256": hashlib.sha256(item.data).hexdigest(),
            "provenance": file.provenance,
            "fields": file.fields,
            "metadata": file.metadata,
        }
    }
