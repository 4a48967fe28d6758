"""Searching the lists of what was learned by what indexes know: a million rows cost what a thousand do."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from conversations.models import Session
from mirix.text import clean_text
from mirix.words import says

MAX_SESSIONS = 50


def find_rows(
    rows: QuerySet,
    term: str,
    *,
    texts: tuple[str, ...] = (),
    keys: tuple[str, ...] = ("pk",),
    sessions_of: Iterable[str] | tuple[()] | None = (),
) -> QuerySet:
    """Return rows by the words of their `texts`, or by one of their `keys` as a whole.

    With `sessions_of`, the ids of organizations (None for all), also those of their sessions whose id begins
    with the term. The sessions are looked up first: a join would have the database read every row.
    """
    if not (word := clean_text(term).strip()):
        return rows
    found = says(word, *texts) if texts else Q(pk__in=())
    for key in keys:
        found |= Q(**{key: word})
    if sessions_of != ():
        sessions = Session.objects.for_organizations(sessions_of).filter(session_id__startswith=word)
        found |= Q(session__in=list(sessions.values_list("pk", flat=True)[:MAX_SESSIONS]))
    return rows.filter(found)
