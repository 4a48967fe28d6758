"""Fields of this app's models."""

from __future__ import annotations

from typing import Any

from django.db import models
from psycopg.types.json import Json


class VerbatimJSONField(models.JSONField):
    """JSON that comes back as it was written, the order of keys included, which `jsonb` loses.

    For what is kept whole and read whole: the database has no equality for it, and nothing looks inside.
    """

    def db_type(self, connection: Any) -> str:
        """Return the type of the column."""
        return "json"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Return what psycopg sends as `json`."""
        return Json(value)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the value, which psycopg has decoded."""
        return value
