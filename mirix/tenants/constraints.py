"""The border in the database: a row points at rows of its own organization and end user alone."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import BaseConstraint, Model, UniqueConstraint

SHARED = ("organization", "end_user")


def owner_key(name: str, *columns: str) -> UniqueConstraint:
    """Return the constraint that lets `SameOwner` point at a model; by organization and end user."""
    return UniqueConstraint(fields=["id", *(columns or SHARED)], name=name)


class SameOwner(BaseConstraint):
    """The row that `field` points at names the same organization and, where both name one, the same end user.

    A foreign key over all of these columns, beside the plain one. The other model needs a unique constraint
    over its key and them: `owner_key`. It is checked where the transaction ends, as foreign keys are.
    """

    def __init__(self, *, field: str, name: str) -> None:
        super().__init__(name=name)
        self.field = field

    def create_sql(self, model: type[Model] | None, schema_editor: BaseDatabaseSchemaEditor | None) -> str:
        """Return the statement that adds it."""
        assert model is not None
        assert schema_editor is not None
        field: Any = model._meta.get_field(self.field)
        other = field.related_model
        shared = [name for name in SHARED if _has(model, name) and _has(other, name)]
        mine = [field.column, *(model._meta.get_field(name).column for name in shared)]  # type: ignore[union-attr]
        theirs = [other._meta.pk.column, *(other._meta.get_field(name).column for name in shared)]
        quote = schema_editor.quote_name
        return (
            f"ALTER TABLE {quote(model._meta.db_table)} ADD CONSTRAINT {quote(self.name)} "
            f"FOREIGN KEY ({', '.join(map(quote, mine))}) "
            f"REFERENCES {quote(other._meta.db_table)} ({', '.join(map(quote, theirs))}) "
            "DEFERRABLE INITIALLY DEFERRED"
        )

    def remove_sql(self, model: type[Model] | None, schema_editor: BaseDatabaseSchemaEditor | None) -> str:
        """Return the statement that takes it away."""
        assert model is not None
        assert schema_editor is not None
        quote = schema_editor.quote_name
        return f"ALTER TABLE {quote(model._meta.db_table)} DROP CONSTRAINT {quote(self.name)}"

    def constraint_sql(
        self, model: type[Model] | None, schema_editor: BaseDatabaseSchemaEditor | None
    ) -> str:
        """Return nothing for the statement that makes the table: the other one may not be there yet."""
        assert schema_editor is not None
        schema_editor.deferred_sql.append(self.create_sql(model, schema_editor))
        return ""

    def validate(self, *args: Any, **kwargs: Any) -> None:
        """Leave it to the database: forms offer no row of others, and services make none."""

    def deconstruct(self) -> Any:
        """Return what a migration writes down."""
        path, _, _ = super().deconstruct()
        return path, (), {"field": self.field, "name": self.name}

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SameOwner):
            return (self.field, self.name) == (other.field, other.name)
        return NotImplemented


def _has(model: type[Model], name: str) -> bool:
    try:
        return bool(model._meta.get_field(name).concrete)
    except FieldDoesNotExist:
        return False
