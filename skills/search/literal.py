"""The literal lane: skills that contain a text as it stands, case ignored."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from django.db import connection
from django.db.models import BooleanField, F, Func, Q, QuerySet

from skills.models import Skill

TEXT_FIELDS = ("name", "description", "instructions", "entry_type")


class AnyItemContains(Func):
    """Whether an item of a JSON list contains a text; wildcards in it are only text."""

    template = (
        "EXISTS (SELECT FROM jsonb_path_query(%(expressions)s, '$[*]') AS item"
        " WHERE upper(item #>> '{}') LIKE upper(%%s))"
    )
    output_field = BooleanField()

    def __init__(self, items: F, text: str) -> None:
        super().__init__(items)
        self.pattern = f"%{connection.ops.prep_for_like_query(text)}%"

    def as_sql(self, *args: Any, **kwargs: Any) -> tuple[str, tuple[str | int, ...]]:
        """Return the condition, the pattern its last parameter."""
        sql, values = super().as_sql(*args, **kwargs)
        return sql, (*values, self.pattern)


def containing(skills: QuerySet[Skill], text: str, field: str = "") -> QuerySet[Skill]:
    """Return the skills that contain `text` in one field, or in any of them where none is named."""
    fields = (field,) if field else (*TEXT_FIELDS, "triggers")
    return skills.filter(reduce(or_, (_contains(name, text) for name in fields)))


def _contains(field: str, text: str) -> Q:
    if field == "triggers":
        return Q(AnyItemContains(F("triggers"), text))
    return Q((f"{field}__icontains", text))
