"""Fields and bodies that take what the contract says and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.fields import empty

from conversations.envelope import BAD_SESSION_ID, is_session_id
from conversations.extraction.content import json_type
from mirix.text import clean_text, is_blank

MAX_MESSAGES = 10_000
MAX_NAME_SHOWN = 64


class StrictBody(serializers.Serializer):
    """A JSON object in which every field is known: a misspelt `sessionid` is refused, not ignored."""

    def run_validation(self, data: Any = empty) -> Any:
        """Refuse what is no object."""
        if not isinstance(data, Mapping):
            raise ParseError(f"The body must be a JSON object, not {json_type(data)}.")
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> Any:
        """Name every unknown field."""
        unknown = sorted(str(name) for name in data if name not in self.fields)
        if unknown:
            raise serializers.ValidationError(
                {clean_text(name)[:MAX_NAME_SHOWN]: ["Unknown field."] for name in unknown}
            )
        return super().to_internal_value(data)


@extend_schema_field({"type": "array", "items": {"type": "object", "additionalProperties": True}})
class MessagesField(serializers.Field):
    """A list of messages; what each of them is, extraction finds out and reports by index."""

    def to_internal_value(self, data: Any) -> list[Any]:
        """Return the list as it is."""
        if not isinstance(data, list):
            raise serializers.ValidationError(f"Must be a list of messages, not {json_type(data)}.")
        if not data:
            raise serializers.ValidationError("May not be empty.")
        if len(data) > MAX_MESSAGES:
            raise serializers.ValidationError(
                f"May hold at most {MAX_MESSAGES} messages; this has {len(data)}."
            )
        return data


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"})
class SessionIdField(serializers.Field):
    """The caller's id of a session."""

    def to_internal_value(self, data: Any) -> str:
        """Return the id; the whole of it must fit the pattern, and a number is no string."""
        if not isinstance(data, str) or not is_session_id(data):
            raise serializers.ValidationError(BAD_SESSION_ID)
        return data


@extend_schema_field({"type": "object", "additionalProperties": True})
class ObjectField(serializers.Field):
    """A JSON object."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the object as it is."""
        if not isinstance(data, dict):
            raise serializers.ValidationError(f"Must be an object, not {json_type(data)}.")
        return data


class TextField(serializers.CharField):
    """A text that people read: a JSON string, of which something can be seen unless it may be blank."""

    def run_validation(self, data: Any = empty) -> Any:
        """Refuse what is no string, which DRF would turn into one, and what only looks empty."""
        if data is not empty and data is not None and not isinstance(data, str):
            raise serializers.ValidationError(f"Must be a string, not {json_type(data)}.")
        if isinstance(data, str) and not self.allow_blank and is_blank(data):
            self.fail("blank")
        return super().run_validation(data)


class SpansField(serializers.ListField):
    """Indexes of messages, those beside each other as one span `[first, last]`."""

    def __init__(self, **kwargs: Any) -> None:
        pair = serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2)
        super().__init__(child=pair, **kwargs)


@extend_schema_field({})
class IgnoredField(serializers.Field):
    """A field of the original's that callers may go on sending; it has no effect here."""

    def __init__(self) -> None:
        super().__init__(required=False, allow_null=True, help_text="Accepted and without effect.")

    def to_internal_value(self, data: Any) -> Any:
        """Return anything as it is."""
        return data
