"""Which texts our own search served to an owner's agents: they are no work to learn from."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F, Func, TextField

from mirix.tenants.owners import Owner
from mirix.tenants.querysets import OwnedQuerySet
from mirix.text import strings_in
from skills.models import AnswerView, SearchEvent, SearchSource, SkillRevision
from skills.search.fingerprints import ServedText

MAX_REVISIONS = 5_000


def served_fingerprints(*, owner: Owner, before: datetime, since: datetime) -> ServedText:
    """Return what searches of the API served from `since` on and before `before` to an owner's agents.

    Searches across the organization count too: nobody knows for whom they asked. Of a catalog, names and
    descriptions alone were served. Of more than `MAX_REVISIONS` texts those with the greatest ids count.
    """
    events = SearchEvent.objects.for_organization(owner.organization).filter(
        source=SearchSource.API, created_at__gte=since, created_at__lt=before
    )
    whole = _returned(events.filter(view=AnswerView.FULL), owner)
    heads = _returned(events.filter(view=AnswerView.CATALOG), owner) - whole
    revisions = SkillRevision.objects.for_organization(owner.organization).filter(pk__in=whole | heads)
    fields = ("pk", "name", "description", "instructions", "triggers", "examples")
    newest = revisions.order_by("-pk").values_list(*fields)[:MAX_REVISIONS]
    return ServedText.of(
        text
        for pk, name, description, *rest in newest.iterator()
        for text in (name, description, *(strings_in(rest) if pk in whole else ()))
    )


def _returned(events: OwnedQuerySet, owner: Owner) -> set[str]:
    """Return the ids of the revisions that searches of the owner, or of all users, returned."""
    found: set[str] = set()
    revision = Func(F("revision_ids"), function="unnest", output_field=TextField())
    # One after the other, since each has an index of its own.
    for whose in (events.filter(end_user=owner.end_user), events.filter(end_user__isnull=True)):
        found.update(whose.annotate(revision=revision).values_list("revision", flat=True).distinct())
    return found - {""}
