"""Pages by cursor: stable while rows are added, never an OFFSET, never a COUNT."""

from __future__ import annotations

from base64 import b64decode
from typing import Any
from urllib.parse import parse_qs

from django.core.exceptions import ValidationError as InvalidValue
from django.db import DataError
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.views import APIView

from mirix.text import whole_number

CURSOR_PARTS = {"o", "r", "p"}  # offset, reverse, position


class StrictCursorPagination(CursorPagination):
    """Refuses a `limit` out of range and a `cursor` that is none, where the base would do without them."""

    page_size_query_param = "limit"
    max_page_size: int

    def get_page_size(self, request: Request) -> int | None:
        """Return how many rows a page has; raises `ValidationError` naming `limit` and its range."""
        asked = request.query_params.get("limit")
        if asked is None:
            return self.page_size
        limit = whole_number(asked, low=1, high=self.max_page_size)
        if limit is None:
            raise ValidationError({"limit": [f"Must be a whole number from 1 to {self.max_page_size}."]})
        return limit

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Return where the page begins; raises `ValidationError` naming `cursor`."""
        encoded = request.query_params.get(self.cursor_query_param)
        if encoded is None:
            return None
        try:
            parts = parse_qs(b64decode(encoded, validate=True).decode("ascii"), strict_parsing=True)
            if not parts or not parts.keys() <= CURSOR_PARTS:
                raise _no_cursor()
            return super().decode_cursor(request)
        except (NotFound, ValueError) as error:
            raise _no_cursor() from error

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        """Return the rows of the page; a cursor's position may turn out to be none only here."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (InvalidValue, ValueError, OverflowError, DataError) as error:
            if self.cursor_query_param not in request.query_params:
                raise
            raise _no_cursor() from error

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """Add the range of `limit`."""
        parameters: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == "limit":
                parameter["schema"] |= {
                    "minimum": 1,
                    "maximum": self.max_page_size,
                    "default": self.page_size,
                }
        return parameters


class RecentFirstPagination(StrictCursorPagination):
    """Newest first, over columns that never change."""

    ordering = ("-created_at", "-pk")
    page_size = 50
    max_page_size = 200


def _no_cursor() -> ValidationError:
    return ValidationError(
        {"cursor": ["This is no cursor of this list; take it from `next` or `previous` of a page."]}
    )
