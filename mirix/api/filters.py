"""What lists of every room are narrowed by."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters

from mirix.text import clean_text


class UserIdFilter(filters.CharFilter):
    """The `user_id` of a list: rows of that end user; without it, of the whole organization."""

    def __init__(self) -> None:
        super().__init__(
            field_name="end_user__user_id",
            help_text="Your own id of the end user; omitted: rows of the whole organization.",
        )

    def filter(self, qs: QuerySet, value: str) -> Any:
        """Compare with ids as they are stored."""
        return super().filter(qs, clean_text(value) if value else value)
