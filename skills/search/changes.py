"""How often what an owner's searches rest on has changed: the key by which answers may be kept elsewhere.

`note_change` runs inside the transaction that changes something, so that a change and its number become
visible together. A number is read before what is kept under it: what comes of a change in between is then
kept under the earlier number, which nobody asks for any more.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection
from django.db.models import Sum

from mirix.tenants.owners import Owner
from skills.models import SearchChange, Skill

# Rows that another transaction is folding are left to it, and its row is not seen before it commits.
NOTE = f"""
WITH changed AS (
    SELECT * FROM unnest(%s::text[], %s::text[]) AS owner (organization_id, end_user_id)
), folded AS (
    DELETE FROM {SearchChange._meta.db_table} WHERE id IN (
        SELECT id FROM {SearchChange._meta.db_table} JOIN changed USING (organization_id, end_user_id)
        FOR UPDATE OF {SearchChange._meta.db_table} SKIP LOCKED
    ) RETURNING end_user_id, amount
)
INSERT INTO {SearchChange._meta.db_table} (organization_id, end_user_id, amount, created_at)
SELECT organization_id, end_user_id, 1 + coalesce(
    (SELECT sum(amount) FROM folded WHERE folded.end_user_id = changed.end_user_id), 0
), now() FROM changed
"""  # noqa: S608  (names of our own)


def note_change(skills: Iterable[Skill]) -> None:
    """Count a change for the owner of each of these skills; one statement."""
    owners = sorted({(skill.organization_id, skill.end_user_id) for skill in skills})
    if owners:
        with connection.cursor() as cursor:
            cursor.execute(NOTE, [list(column) for column in zip(*owners, strict=True)])


def changes_of(owner: Owner) -> int:
    """Return how many changes an owner has seen; it only grows."""
    rows = SearchChange.objects.for_owner(owner)
    return rows.aggregate(total=Sum("amount"))["total"] or 0
