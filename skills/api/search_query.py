"""The parameters of the two searches, each with what it takes; anything else is a 400 that names it.

One that is blank counts as left out, whichever it is.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from rest_framework import serializers
from rest_framework.request import Request

from mirix.api.filters import refuse_unknown
from mirix.api.numbers import NumberField, WholeNumberField
from mirix.text import clean_text
from skills.models import AnswerView
from skills.search.service import FIELDS, MAX_LIMIT, METHODS
from skills.search.tags import parse_filter_tags

PROCEDURAL = "procedural"
HELD_HERE = ("all", PROCEDURAL)
OTHER_TYPES = ("episodic", "semantic", "resource", "knowledge_vault")


class FilterTagsField(serializers.CharField):
    """A JSON object in a query parameter."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the object; raises `ValidationError` for anything else."""
        try:
            return parse_filter_tags(super().to_internal_value(data))
        except ValidationError as error:
            raise serializers.ValidationError(error.messages) from error


class SearchQuery(serializers.Serializer):
    """The parameters of a search."""

    query = serializers.CharField(
        default="", allow_blank=True, help_text="What to do, in plain words; empty: the newest skills."
    )
    memory_type = serializers.ChoiceField(
        choices=[*HELD_HERE, *OTHER_TYPES],
        default=PROCEDURAL,
        help_text="Only procedural memory is held here; other types of the original find nothing.",
    )
    search_method = serializers.ChoiceField(
        choices=METHODS,
        default="",
        allow_blank=True,
        help_text="Empty: the server's choice, `hybrid` unless set otherwise.",
    )
    search_field = serializers.ChoiceField(
        choices=[*FIELDS, "null"],
        default="",
        allow_blank=True,
        help_text="Search this field alone; empty or `null`: all of them.",
    )
    limit = WholeNumberField(min_value=1, max_value=MAX_LIMIT, default=10)
    filter_tags = FilterTagsField(
        required=False,
        allow_blank=True,
        help_text=(
            'A JSON object; every entry must hold. `{"k": "v"}` is equality, the operators are '
            '`{"k": {"$contains": v}}`, `{"k": {"$in": [v]}}` and `{"k": {"$exists": true}}`. '
            "The keys `scope` and `read_scopes` are ignored."
        ),
    )
    similarity_threshold = NumberField(
        min_value=0, max_value=2, required=False, help_text="Cosine distance; applies to embeddings alone."
    )
    start_date = serializers.CharField(
        required=False, allow_blank=True, help_text="Accepted; only episodic memory has dates."
    )
    end_date = serializers.CharField(
        required=False, allow_blank=True, help_text="Accepted; only episodic memory has dates."
    )
    include_core_memory = serializers.BooleanField(
        default=False, help_text="Accepted; there is no core memory here."
    )
    explain = serializers.BooleanField(
        default=False, help_text="Add to each row its rank and score per lane, and the matched terms."
    )
    view = serializers.ChoiceField(
        choices=AnswerView.values,
        default=AnswerView.FULL.value,
        help_text=(
            "`full`: whole skills. `catalog`: what is needed to choose one, without `instructions`, "
            "`triggers` and `examples`; the chosen one is at `/v1/skills/{id}`."
        ),
    )
    token_budget = WholeNumberField(
        min_value=1,
        required=False,
        help_text=(
            "Cut the answer from its end so that name, description and instructions of its rows (of a "
            "catalog: name and description) take no more tokens. A token is estimated as four bytes of "
            "UTF-8, rounded up for each row. A first row that takes more by itself comes as in a catalog. "
            "`message` says where that leaves out anything."
        ),
    )

    client_id = serializers.CharField(required=False, allow_blank=True, help_text="Accepted and not used.")
    org_id = serializers.CharField(required=False, allow_blank=True, help_text="Accepted and not used.")
    block_filter_tags = serializers.CharField(
        required=False, allow_blank=True, help_text="Accepted and not used."
    )

    def validate_start_date(self, value: str) -> str:
        """Refuse what is no date, though none is used here: a caller that sends it means something else."""
        return _checked_date(value)

    def validate_end_date(self, value: str) -> str:
        """Refuse what is no date."""
        return _checked_date(value)


def _checked_date(value: str) -> str:
    try:
        if value:
            datetime.fromisoformat(value)
    except ValueError as error:
        raise serializers.ValidationError("Must be an ISO 8601 date, or date and time.") from error
    return value


class OwnerSearchQuery(SearchQuery):
    """The parameters of a search in one end user's skills."""

    user_id = serializers.CharField(
        required=False,
        allow_blank=True,
        help_text="Your own id of the user; omitted: the client's default. Members must name one.",
    )


class OrganizationSearchQuery(SearchQuery):
    """The parameters of a search in all skills of the organization that the credential names."""

    user_id = serializers.CharField(
        required=False, allow_blank=True, help_text="Accepted and not used: all end users are searched."
    )


def asked_by(request: Request, serializer: type[SearchQuery]) -> dict[str, Any]:
    """Return the validated parameters; what PostgreSQL cannot hold is cleaned and not refused."""
    given = {key: clean_text(str(value)) for key, value in request.query_params.items()}
    query = serializer(data={key: value for key, value in given.items() if value.strip()})
    refuse_unknown(request, query.fields)
    query.is_valid(raise_exception=True)
    asked: dict[str, Any] = query.validated_data
    if asked["search_field"] == "null":
        asked["search_field"] = ""
    return asked
