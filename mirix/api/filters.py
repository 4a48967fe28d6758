"""What lists of every room are narrowed by."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.db.models import QuerySet
from django_filters import rest_framework as filters
from django_filters.fields import IsoDateTimeField
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.views import APIView

from mirix.text import clean_text

MAX_NAME_SHOWN = 64
PAGING = frozenset({"limit", "cursor"})
FIRST_MOMENT, LAST_MOMENT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
TRUTH = {"true": True, "1": True, "false": False, "0": False}


def refuse_unknown(request: Request, known: Iterable[str]) -> None:
    """Raise `ValidationError` naming every query parameter that is not known."""
    if unknown := sorted(set(request.query_params) - set(known)):
        raise ValidationError(
            {clean_text(name)[:MAX_NAME_SHOWN]: ["Unknown query parameter."] for name in unknown}
        )


class StrictFilterBackend(filters.DjangoFilterBackend):
    """Refuses a query parameter that the list does not know: a misspelt filter would answer everything.

    A view names in `more_parameters` what it reads itself.
    """

    def filter_queryset(self, request: Request, queryset: QuerySet, view: APIView) -> Any:
        """Return the rows asked for; raises `ValidationError` naming every unknown or bad parameter."""
        if getattr(view, "action", "list") == "list":
            known = PAGING | {*getattr(view, "more_parameters", ())}
            if filterset := self.get_filterset_class(view, queryset):
                known |= {*filterset.base_filters}
            refuse_unknown(request, known)
        return super().filter_queryset(request, queryset, view)


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


class _TrueOrFalseField(forms.Field):
    def to_python(self, value: str | None) -> bool | None:
        if not value:
            return None
        try:
            return TRUTH[value.lower()]
        except KeyError as error:
            raise forms.ValidationError("Must be true or false.") from error


class TrueOrFalseFilter(filters.BooleanFilter):
    """`true` or `false` (or 1, 0); the base would take any other word for no filter at all."""

    field_class = _TrueOrFalseField

    def __init__(self) -> None:
        super().__init__(widget=forms.TextInput)


class _MomentField(IsoDateTimeField):
    def to_python(self, value: str | None) -> datetime | None:
        moment = super().to_python(value)
        try:
            return moment and moment.astimezone(UTC)
        except OverflowError:  # beyond the first or the last year, where nothing lies
            return FIRST_MOMENT if moment.year == 1 else LAST_MOMENT


class MomentFilter(filters.IsoDateTimeFilter):
    """An ISO 8601 date and time, compared in UTC: PostgreSQL knows no offset of 16 hours and more."""

    field_class = _MomentField
