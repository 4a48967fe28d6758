"""Procedural memories of the original become skills that are live here.

Names are unique per owner, and the memories of an owner can stand in two tables: so who is called what is
found out first, over all rows, and then the rows are brought a batch at a time. A skill that is here already
keeps its name, whatever it is by now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from django.db import transaction

from mirix.tenants.owners import Owner
from skills.interop.legacy import Names, base_name
from skills.interop.original import memories
from skills.interop.original.people import TWICE, People, Place, Skip
from skills.interop.original.report import TableReport
from skills.interop.original.source import Source, batched
from skills.interop.original.values import Row, digest, moment, reference, text
from skills.models import Skill
from skills.review.adoption import LiveSkill, adopt

RATIONALE = "Brought over from the original MIRIX."


@dataclass(frozen=True, kw_only=True)
class _Named:
    """What decides the name of a memory."""

    order: tuple[str, str, str]
    pk: str
    row_id: str
    brought: str | None
    called_after: str


def import_memories(
    source: Source, people: People, reports: dict[str, TableReport], advance: Callable[[int], None]
) -> Iterator[None]:
    """Bring the memories of all tables, and yield between batches."""
    names = _names(source, people)
    for table, report in reports.items():
        rows = source.rows(table, memories.COLUMNS)
        for batch in batched(rows):
            with transaction.atomic():
                _bring(batch, source, people, names, report)
            advance(len(batch))
            yield


def _bring(
    batch: tuple[Row, ...], source: Source, people: People, names: dict[str, str], report: TableReport
) -> None:
    found: dict[str, LiveSkill] = {}
    notes: dict[str, Counter[str]] = {}
    for row in batch:
        report.rows += 1
        try:
            place = people.place(row, client_id=row.get("client_id"), is_without_user="user_id" not in row)
        except Skip as reason:
            report.skipped[str(reason)] += 1
            continue
        pk = _pk(people, row, report.table)
        if pk in notes:  # a table without its key
            report.skipped[TWICE] += 1
            continue
        notes[pk] = Counter()
        if pk not in names:  # it came with an earlier import
            report.unchanged += 1
            continue
        content = memories.content_of(row, names[pk], source.tables[report.table], notes[pk])
        version = memories.version_of(row, notes[pk])
        if row.get("name") is not None and row["name"] != names[pk]:
            notes[pk]["name changed to one that is valid and free"] += 1
        found[pk] = LiveSkill(
            id=pk,
            owner=people.owner(place),
            content=content,
            version=version,
            source=memories.source_of(row, report.table, report.generation, source.name),
            created_at=moment(row.get("created_at")),
            updated_at=moment(row.get("updated_at")),
        )
    # Another import may be at it.
    here = set(Skill.objects.filter(pk__in=found).values_list("pk", flat=True))
    new = [skill for pk, skill in found.items() if pk not in here]
    adopt(skills=new, rationale=RATIONALE)
    report.unchanged += len(here)
    report.imported += len(new)
    for skill in new:
        report.notes.update(notes[skill.id])


def _names(source: Source, people: People) -> dict[str, str]:
    """Return the names of the memories that are not here yet, by the key that they get here."""
    owners: dict[str, Owner] = {}
    by_owner: dict[str, list[_Named]] = {}
    for table in memories.TABLES:
        if not source.has(table, "id"):
            continue
        for batch in batched(source.rows(table, memories.NAMING)):
            found = list(_placed(batch, people))
            people.meet(place for _, place in found)
            for row, place in found:
                owner = people.owner(place)
                owners[owner.end_user.pk] = owner  # several users there may be one here
                by_owner.setdefault(owner.end_user.pk, []).append(_named(people, row, table))
    names: dict[str, str] = {}
    for keys in batched(by_owner):
        here: dict[str, dict[str, str]] = {key: {} for key in keys}
        organizations = {owners[key].organization.pk for key in keys}
        skills = Skill.objects.for_organizations(organizations).filter(end_user__in=keys)
        for pk, end_user, name in skills.values_list("pk", "end_user", "name").iterator():
            here[end_user][pk] = name
        for key in keys:
            names |= _new_names(by_owner[key], here[key])
    return names


def _placed(rows: Iterable[Row], people: People) -> Iterator[tuple[Row, Place]]:
    for row in rows:
        try:
            yield (
                row,
                people.place(row, client_id=row.get("client_id"), is_without_user="user_id" not in row),
            )
        except Skip:
            continue


def _named(people: People, row: Row, table: str) -> _Named:
    return _Named(
        order=(row.get("created_at") or "", row["id"] or "", table),
        pk=_pk(people, row, table),
        row_id=text(row["id"]),
        brought=memories.own_name(row),
        called_after=memories.named_after(row)[:1_000],
    )


def _new_names(found: list[_Named], here: dict[str, str]) -> dict[str, str]:
    """Return the names of those memories of an owner that are not among the skills that are `here`."""
    new = sorted((one for one in found if one.pk not in here), key=lambda one: one.order)
    free = Names(((one.pk, one.brought) for one in new if one.brought is not None), here.values())
    return {
        one.pk: free.name_for(one.pk, one.brought, base_name(one.called_after, one.row_id)) for one in new
    }


def _pk(people: People, row: Row, table: str) -> str:
    organization = people.organizations[reference(row.get("organization_id"))]
    return f"proc-{digest(organization.id, organization.created_at, table, row['id'] or '')}"
