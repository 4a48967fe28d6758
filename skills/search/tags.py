"""`filter_tags` of a search as a condition on skills; keys and values only ever travel as parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import F, Func, Q, TextField, Value
from django.db.models.lookups import Exact, In

from mirix import strict_json
from mirix.text import clean_json

# The original takes these two from the client and not from the caller; it has no scopes here.
IGNORED_KEYS = frozenset({"scope", "read_scopes"})


def parse_filter_tags(text: str) -> dict[str, Any]:
    """Return the object that `text` holds as JSON, cleaned; blank is no condition.

    Raises `ValidationError` for anything else and for conditions that `tag_condition` would not take.
    """
    if not text.strip():
        return {}
    try:
        filter_tags = clean_json(strict_json.loads(text))
    except (ValueError, RecursionError) as error:
        raise _invalid("This is not valid JSON.") from error
    if not isinstance(filter_tags, dict):
        raise _invalid("This must be a JSON object.")
    tag_condition(filter_tags)
    return filter_tags


def tag_condition(filter_tags: Mapping[str, Any]) -> Q:
    """Return the condition that a skill's tags satisfy every entry of `filter_tags`.

    An entry is a plain value, equal as text to the tag's, or an object with one operator:
    `{"$contains": v}` (the tag is a list that has v), `{"$exists": true|false}`, `{"$in": [v, …]}` (equal to
    one of them; to none when it is empty or no list). Raises `ValidationError` on anything else.
    """
    condition = Q()
    for key, wanted in filter_tags.items():
        if key not in IGNORED_KEYS:
            condition &= _entry_condition(key, wanted)
    return condition


def _entry_condition(key: str, wanted: Any) -> Q:
    if not isinstance(wanted, dict):
        return Q(Exact(_tag_text(key), _text(key, wanted)))
    if len(wanted) != 1:
        raise _invalid(f"“{key}” needs exactly one operator.")
    ((operator, operand),) = wanted.items()
    match operator:
        case "$contains":
            return Q(filter_tags__contains={key: [operand]})
        case "$exists" if isinstance(operand, bool):
            exists = Q(filter_tags__has_key=key)
            return exists if operand else ~exists
        case "$exists":
            raise _invalid(f"“$exists” of “{key}” must be true or false.")
        case "$in":
            choices = operand if isinstance(operand, list) else []
            # Without a choice nothing matches, which Django knows by itself for a lookup on the key.
            return (
                Q(In(_tag_text(key), [_text(key, choice) for choice in choices])) if choices else Q(pk__in=[])
            )
        case _:
            raise _invalid(f"“{operator}” of “{key}” is no operator; there are $contains, $exists and $in.")


def _tag_text(key: str) -> Func:
    """Return the tag's value as text; by the function, since Django takes a key of digits for an index."""
    return Func(F("filter_tags"), Value(key), function="jsonb_extract_path_text", output_field=TextField())


def _text(key: str, value: Any) -> str:
    match value:
        case str():
            return value
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            raise _invalid(f"“{key}” must be compared with a text, a finite number, true or false.")


def _invalid(message: str) -> ValidationError:
    return ValidationError({"filter_tags": [message]})
