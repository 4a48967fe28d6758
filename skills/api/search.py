"""GET `/memory/search` and `/memory/search_all_users`: skills for agents, in the original's envelope."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mirix.api.authentication import principal_of
from mirix.api.stored import StoredList, StoredObject, StoredTexts
from mirix.api.views import APIView
from mirix.sent import when_sent
from mirix.tenants.models import Permission
from mirix.tenants.owners import Owner
from mirix.tenants.principal import Principal
from mirix.tenants.selectors import find_owner
from skills.api.search_query import (
    HELD_HERE,
    PROCEDURAL,
    OrganizationSearchQuery,
    OwnerSearchQuery,
    asked_by,
)
from skills.models import AnswerView, SearchSource
from skills.search.log import log_search
from skills.search.service import Hit, SearchResult, search
from skills.search.shown import Shown, within_budget

NOT_IN_CATALOG = ("instructions", "triggers", "examples")


class PlaceSerializer(serializers.Serializer):
    """Where a lane put a skill."""

    rank = serializers.IntegerField()
    score = serializers.FloatField()


class ExplanationSerializer(serializers.Serializer):
    """Why a row stands where it does."""

    lanes = serializers.DictField(
        child=PlaceSerializer(), help_text="By lane: rank from 1, and BM25 score or cosine similarity."
    )
    matched_terms = serializers.ListField(child=serializers.CharField(), source="terms")


class SearchRowSerializer(serializers.Serializer):
    """One skill that was found."""

    memory_type = serializers.SerializerMethodField()
    id = serializers.CharField(source="skill.id")
    entry_type = serializers.CharField(source="skill.entry_type")
    name = serializers.CharField(source="skill.name")
    description = serializers.CharField(source="skill.description")
    instructions = serializers.CharField(
        source="skill.instructions", required=False, help_text="Not in a catalog."
    )
    triggers = StoredTexts(source="skill.triggers", required=False, help_text="Not in a catalog.")
    examples = StoredList(source="skill.examples", required=False, help_text="Not in a catalog.")
    version = serializers.CharField(source="skill.version")
    revision_id = serializers.CharField(source="skill.current_revision_id", allow_null=True)
    filter_tags = StoredObject(source="skill.filter_tags")
    score = serializers.FloatField(
        allow_null=True, help_text="Comparable within one answer; null where nothing was ranked."
    )
    created_at = serializers.DateTimeField(source="skill.created_at")
    updated_at = serializers.DateTimeField(source="skill.updated_at")
    explain = ExplanationSerializer(source="*", required=False, help_text="With `explain=1`.")

    def get_memory_type(self, hit: Hit) -> str:
        """Return the one type that is held here."""
        return PROCEDURAL

    def get_fields(self) -> dict[str, serializers.Field]:
        """Leave out what was not asked for; the schema has all."""
        left_out = self.context.get("left_out", ())
        return {name: field for name, field in super().get_fields().items() if name not in left_out}


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
    total_count = serializers.IntegerField(
        help_text=(
            "How many skills match, before `limit` and `token_budget`. By meaning alone the ten nearest do, "
            "or with `similarity_threshold` all below it; for `embedding` all that it can compare. "
            "Where words find over 100, `hybrid` may count too few."
        )
    )
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
        description=(
            "Only published skills. An unknown `user_id` finds nothing, since agents search first. "
            "A blank parameter counts as left out, one that does not exist is refused."
        ),
        parameters=[OwnerSearchQuery],
        responses=SearchAnswerSerializer,
    )
    def get(self, request: Request) -> Response:
        """Answer with the skills found, best first."""
        asked = asked_by(request, OwnerSearchQuery)
        principal = principal_of(request)
        owner = find_owner(principal=principal, user_id=asked.get("user_id"))
        if owner is None or asked["memory_type"] not in HELD_HERE:
            return _nothing(asked, SearchRowSerializer)
        return _search(principal, owner, asked, SearchRowSerializer)


class OrganizationSearchView(APIView):
    """Search the skills of all end users of the caller's organization."""

    route_kind = "search"
    required_permission = Permission.READ

    @extend_schema(
        operation_id="memory_search_all_users",
        tags=["search"],
        summary="Find skills of all end users",
        description=(
            "The same search across the caller's organization, and never beyond it. "
            "A blank parameter counts as left out, one that does not exist is refused."
        ),
        parameters=[OrganizationSearchQuery],
        responses=OrganizationSearchAnswerSerializer,
    )
    def get(self, request: Request) -> Response:
        """Answer with the skills found, best first, each with its `user_id`."""
        asked = asked_by(request, OrganizationSearchQuery)
        principal = principal_of(request)
        whose = {
            "client_id": principal.client.pk if principal.client else None,
            "organization_id": principal.organization.pk,
            "filter_tags": asked.get("filter_tags"),
        }
        if asked["memory_type"] not in HELD_HERE:
            return _nothing(asked, OrganizationSearchRowSerializer, whose)
        return _search(principal, None, asked, OrganizationSearchRowSerializer, whose)


def _search(
    principal: Principal,
    owner: Owner | None,
    asked: dict[str, Any],
    row: type[SearchRowSerializer],
    whose: dict[str, Any] | None = None,
) -> Response:
    """Search, and have the search logged once its answer is sent."""
    began = perf_counter()
    result = search(
        organization=principal.organization,
        owner=owner,
        query=asked["query"],
        method=asked["search_method"],
        field=asked["search_field"],
        limit=asked["limit"],
        filter_tags=asked.get("filter_tags"),
        explain=asked["explain"],
        similarity_threshold=asked.get("similarity_threshold"),
    )
    seconds = perf_counter() - began
    shown = within_budget(result.hits, budget=asked.get("token_budget"), view=asked["view"])
    response = Response(_answer(asked, result, shown, row) | (whose or {}))
    log = partial(
        log_search,
        organization=principal.organization,
        owner=owner,
        source=SearchSource.API,
        client=principal.client,
        user=principal.user,
        query=asked["query"],
        field=asked["search_field"],
        filter_tags=asked.get("filter_tags"),
        similarity_threshold=asked.get("similarity_threshold"),
        limit=asked["limit"],
        token_budget=asked.get("token_budget"),
        view=asked["view"],
        result=result,
        returned=shown.hits,
        seconds=seconds,
    )
    when_sent(response, log)
    return response


def _nothing(
    asked: dict[str, Any], row: type[SearchRowSerializer], whose: dict[str, Any] | None = None
) -> Response:
    """Answer where there is nothing to search in; nobody's search, and so none that is logged."""
    method = asked["search_method"] or settings.MIRIX_SKILL_SEARCH_METHOD
    message = ""
    if asked["memory_type"] not in HELD_HERE:
        message = f"No {asked['memory_type']} memory is held here, only procedural memory."
    nothing = SearchResult(hits=[], method=method, total_count=0)
    return Response(_answer(asked, nothing, Shown(hits=[], message=message), row) | (whose or {}))


def _answer(
    asked: dict[str, Any], result: SearchResult, shown: Shown, row: type[SearchRowSerializer]
) -> dict[str, Any]:
    left_out = [
        *(NOT_IN_CATALOG if asked["view"] == AnswerView.CATALOG else ()),
        *([] if asked["explain"] else ["explain"]),
    ]
    rows = row(shown.hits, many=True, context={"left_out": left_out}).data
    if shown.is_first_brief:
        rows[0] = {name: value for name, value in rows[0].items() if name not in NOT_IN_CATALOG}
    answer = {
        "success": True,
        "query": asked["query"],
        "memory_type": asked["memory_type"],
        "search_field": asked["search_field"] or None,
        "search_method": result.method,
        "date_range": None,
        "results": rows,
        "count": len(shown.hits),
        "total_count": result.total_count,
        "degraded": result.degraded,
    }
    return answer | {"message": shown.message} if shown.message else answer
