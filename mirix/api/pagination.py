"""Pages by cursor: stable while rows are added, never an OFFSET, never a COUNT."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from typing import Any
from urllib.parse import parse_qs, urlencode

from django.core.exceptions import ValidationError as InvalidValue
from django.db import DataError
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from mirix.text import whole_number

CURSOR_PARTS = {"o", "r", "p", "l"}  # offset, reverse, position, list


class StrictCursorPagination(CursorPagination):
    """Refuses a `limit` out of range and a `cursor` that is none of this list, where the base would not."""

    page_size_query_param = "limit"
    max_page_size: int
    list_name = ""

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
            if not parts.keys() <= CURSOR_PARTS or parts.get("l") != [_name_of_list(request)]:
                raise _no_cursor()
            return super().decode_cursor(request)
        except (NotFound, ValueError) as error:
            raise _no_cursor() from error

    def encode_cursor(self, cursor: Cursor) -> str:
        """Return the address of a page; its cursor names the list, and no other takes it."""
        parts = {
            "o": cursor.offset or None,
            "r": 1 if cursor.reverse else None,
            "p": cursor.position,
            "l": self.list_name,
        }
        text = urlencode({name: part for name, part in parts.items() if part is not None})
        encoded = b64encode(text.encode("ascii")).decode("ascii")
        return replace_query_param(str(self.base_url), self.cursor_query_param, encoded)

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        """Return the rows of the page; a cursor's position may turn out to be none only here."""
        self.list_name = _name_of_list(request)
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


def _name_of_list(request: Request) -> str:
    """Return a short text that tells the list of a request from every other: its path, hashed."""
    return hashlib.sha256(request.path.encode()).hexdigest()[:16]


def _no_cursor() -> ValidationError:
    return ValidationError(
        {"cursor": ["This is no cursor of this list; take it from `next` or `previous` of a page."]}
    )
