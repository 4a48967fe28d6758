"""GET `/memory/search` and `/memory/search_all_users`: skills for agents, in the original's envelope."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mirix.api.authentication import principal_of
from mirix.api.views import APIView
from mirix.tenants.models import Permission
from mirix.tenants.owners import Owner
from mirix.tenants.principal import Principal
from mirix.tenants.selectors import find_owner
from mirix.text import clean_text
from skills.search.service import FIELDS, MAX_LIMIT, METHODS, Hit, SearchResult, search
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
    limit = serializers.IntegerField(min_value=1, max_value=MAX_LIMIT, default=10)
    filter_tags = FilterTagsField(
        required=False,
        allow_blank=True,
        help_text=(
            'A JSON object; every entry must hold. `{"k": "v"}` is equality, the operators are '
            '`{"k": {"$contains": v}}`, `{"k": {"$in": [v]}}` and `{"k": {"$exists": true}}`. '
            "The keys `scope` and `read_scopes` are ignored."
        ),
    )
    similarity_threshold = serializers.FloatField(
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

    def validate_start_date(self, value: str) -> str:
        """Refuse what is no date, though none is used here: a caller that sends it means something else."""
        return _checked_date(value)

    def validate_end_date(self, value: str) -> str:
        """Refuse what is no date."""
        return _checked_date(value)

    def validate_similarity_threshold(self, value: float) -> float:
        """Refuse what is not a number, which no bound catches."""
        if math.isnan(value):
            raise serializers.ValidationError("A valid number is required.")
        return value


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

    client_id = serializers.CharField(required=False, allow_blank=True, help_text="Accepted and not used.")
    org_id = serializers.CharField(required=False, allow_blank=True, help_text="Accepted and not used.")
    block_filter_tags = serializers.CharField(
        required=False, allow_blank=True, help_text="Accepted and not used."
    )


class PlaceSerializer(serializers.Serializer):
    """Where a lane put a skill."""

    rank = serializers.IntegerField()
    score = serializers.FloatField()


class ExplanationSerializer(serializers.Serializer):
    """Why a row stands where it does."""

    lanes = serializers.DictField(child=PlaceSerializer(), help_text="By lane: rank from 1, and BM25 score.")
    matched_terms = serializers.ListField(child=serializers.CharField(), source="terms")


class SearchRowSerializer(serializers.Serializer):
    """One skill that was found."""

    memory_type = serializers.SerializerMethodField()
    id = serializers.CharField(source="skill.id")
    entry_type = serializers.CharField(source="skill.entry_type")
    name = serializers.CharField(source="skill.name")
    description = serializers.CharField(source="skill.description")
    instructions = serializers.CharField(source="skill.instructions")
    triggers = serializers.ListField(child=serializers.CharField(), source="skill.triggers")
    examples = serializers.ListField(source="skill.examples")
    version = serializers.CharField(source="skill.version")
    revision_id = serializers.CharField(source="skill.current_revision_id", allow_null=True)
    filter_tags = serializers.DictField(source="skill.filter_tags")
    score = serializers.FloatField(
        allow_null=True, help_text="Comparable within one answer; null where nothing was ranked."
    )
    created_at = serializers.DateTimeField(source="skill.created_at")
    updated_at = serializers.DateTimeField(source="skill.updated_at")
    explain = ExplanationSerializer(source="*", required=False, help_text="With `explain=1`.")

    def get_memory_type(self, hit: Hit) -> str:
        """Return the one type that is held here."""
        return PROCEDURAL

    def to_representation(self, instance: Hit) -> dict[str, Any]:
        """Leave the explanation out where none was asked for."""
        row: dict[str, Any] = super().to_representation(instance)
        if not self.context["explain"]:
            del row["explain"]
        return row


class OrganizationSearchRowSerializer(SearchRowSerializer):
    """One skill that was found, with whose it is."""

    user_id = serializers.CharField(source="skill.end_user.user_id")


class SearchAnswerSerializer(serializers.Serializer):
    """What a search answers."""

    success = serializers.BooleanField()
    query = serializers.CharField(allow_blank=True)
    memory_type = serializers.CharField()
    search_field = serializers.CharField(allow_null=True)
    search_method = serializers.CharField(help_text="The method that was used.")
    date_range = serializers.CharField(allow_null=True, help_text="Always null: skills have no dates.")
    results = SearchRowSerializer(many=True)
    count = serializers.IntegerField(help_text="How many rows there are.")
    total_count = serializers.IntegerField(help_text="How many skills match, before the limit.")
    degraded = serializers.CharField(allow_null=True, help_text="What the answer had to do without.")
    message = serializers.CharField(required=False, help_text="Only where there is something to say.")


class OrganizationSearchAnswerSerializer(SearchAnswerSerializer):
    """What a search across an organization answers."""

    results = OrganizationSearchRowSerializer(many=True)
    client_id = serializers.CharField(allow_null=True, help_text="Null for members.")
    organization_id = serializers.CharField()
    filter_tags = serializers.DictField(allow_null=True)


class SearchView(APIView):
    """Search one end user's skills."""

    route_kind = "search"
    required_permission = Permission.READ

    @extend_schema(
        operation_id="memory_search",
        tags=["search"],
        summary="Find skills of one end user",
        description="Only published skills. An unknown `user_id` finds nothing, since agents search first.",
        parameters=[OwnerSearchQuery],
        responses=SearchAnswerSerializer,
    )
    def get(self, request: Request) -> Response:
        """Answer with the skills found, best first."""
        asked = _asked(request, OwnerSearchQuery)
        principal = principal_of(request)
        owner = find_owner(principal=principal, user_id=asked.get("user_id"))
        result = _search(principal, owner, asked) if owner else _nothing(asked)
        return Response(_answer(asked, result, SearchRowSerializer))


class OrganizationSearchView(APIView):
    """Search the skills of all end users of the caller's organization."""

    route_kind = "search"
    required_permission = Permission.READ

    @extend_schema(
        operation_id="memory_search_all_users",
        tags=["search"],
        summary="Find skills of all end users",
        description="The same search across the caller's organization, and never beyond it.",
        parameters=[OrganizationSearchQuery],
        responses=OrganizationSearchAnswerSerializer,
    )
    def get(self, request: Request) -> Response:
        """Answer with the skills found, best first, each with its `user_id`."""
        asked = _asked(request, OrganizationSearchQuery)
        principal = principal_of(request)
        answer = _answer(asked, _search(principal, None, asked), OrganizationSearchRowSerializer)
        return Response(
            answer
            | {
                "client_id": principal.client.pk if principal.client else None,
                "organization_id": principal.organization.pk,
                "filter_tags": asked.get("filter_tags"),
            }
        )


def _asked(request: Request, serializer: type[SearchQuery]) -> dict[str, Any]:
    """Return the validated parameters; what PostgreSQL cannot hold is cleaned and not refused."""
    query = serializer(data={key: clean_text(str(value)) for key, value in request.query_params.items()})
    query.is_valid(raise_exception=True)
    asked: dict[str, Any] = query.validated_data
    if asked["search_field"] == "null":
        asked["search_field"] = ""
    return asked


def _search(principal: Principal, owner: Owner | None, asked: dict[str, Any]) -> SearchResult:
    if asked["memory_type"] not in HELD_HERE:
        return _nothing(asked)
    return search(
        organization=principal.organization,
        owner=owner,
        query=asked["query"],
        method=asked["search_method"],
        field=asked["search_field"],
        limit=asked["limit"],
        filter_tags=asked.get("filter_tags"),
        explain=asked["explain"],
    )


def _nothing(asked: dict[str, Any]) -> SearchResult:
    return SearchResult(
        hits=[], method=asked["search_method"] or settings.MIRIX_SKILL_SEARCH_METHOD, total_count=0
    )


def _answer(asked: dict[str, Any], result: SearchResult, row: type[SearchRowSerializer]) -> dict[str, Any]:
    answer = {
        "success": True,
        "query": asked["query"],
        "memory_type": asked["memory_type"],
        "search_field": asked["search_field"] or None,
        "search_method": result.method,
        "date_range": None,
        "results": row(result.hits, many=True, context={"explain": asked["explain"]}).data,
        "count": len(result.hits),
        "total_count": result.total_count,
        "degraded": result.degraded,
    }
    if asked["memory_type"] not in HELD_HERE:
        answer["message"] = f"No {asked['memory_type']} memory is held here, only procedural memory."
    return answer
