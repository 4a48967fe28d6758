"""Ids in paths: `<id:pk>` matches whatever PostgreSQL can compare with, so that odd paths are a plain 404."""

from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter


class IdConverter(StringConverter):
    """A path segment without NUL, which PostgreSQL refuses in a parameter."""

    regex = r"[^/\x00]+"


register_converter(IdConverter, "id")
