"""Pages by cursor: stable while rows are added, never an OFFSET, never a COUNT."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class RecentFirstPagination(CursorPagination):
    """Newest first, over columns that never change."""

    ordering = ("-created_at", "-pk")
    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"
