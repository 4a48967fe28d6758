"""Fields that show stored JSON, which may have any shape: of one that nobody expects, what can be read."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mirix.shapes import as_dict, as_list, as_texts


class StoredList(serializers.ListField):
    """A list; empty for anything else."""

    def to_representation(self, data: Any) -> list[Any]:
        """Return the list."""
        return super().to_representation(as_list(data))


class StoredTexts(serializers.ListField):
    """The texts in a list."""

    child = serializers.CharField()

    def to_representation(self, data: Any) -> list[Any]:
        """Return the texts."""
        return super().to_representation(as_texts(data))


class StoredObject(serializers.DictField):
    """An object; empty for anything else."""

    def to_representation(self, value: Any) -> dict[str, Any]:
        """Return the object."""
        return super().to_representation(as_dict(value))
