"""GET `/v1/skills`: what agents may find, and the past of each skill."""

from __future__ import annotations

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from mirix.api.authentication import principal_of
from mirix.api.filters import MomentFilter, UserIdFilter
from mirix.api.views import ListAPIView, ReadOnlyModelViewSet
from skills.api.revisions import RevisionSerializer
from skills.models import (
    AuthorKind,
    EntryType,
    RevisionAction,
    RevisionState,
    Skill,
    SkillRevision,
    SkillStatus,
)
from skills.selectors.skills import revisions_of, skills_of


class SkillSerializer(serializers.ModelSerializer):
    """A skill as agents retrieve it."""

    user_id = serializers.CharField(source="end_user.user_id")
    revision_id = serializers.CharField(source="current_revision_id", allow_null=True)

    class Meta:
        model = Skill
        fields = [
            "id",
            "user_id",
            "name",
            "entry_type",
            "description",
            "instructions",
            "triggers",
            "examples",
            "version",
            "status",
            "revision_id",
            "filter_tags",
            "created_at",
            "updated_at",
        ]


class SkillFilter(filters.FilterSet):
    """What a list of skills can be narrowed by."""

    user_id = UserIdFilter()
    name = filters.CharFilter()
    entry_type = filters.ChoiceFilter(choices=EntryType.choices)
    status = filters.ChoiceFilter(choices=SkillStatus.choices)
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Skill
        fields: list[str] = []


@extend_schema_view(
    list=extend_schema(
        operation_id="skills_list",
        tags=["skills"],
        summary="List skills, newest first",
        description="Of the whole organization, or of one end user with `user_id`.",
    ),
    retrieve=extend_schema(operation_id="skills_retrieve", tags=["skills"], summary="One skill"),
)
class SkillViewSet(ReadOnlyModelViewSet):
    """Browse the organization's skills; only review writes them."""

    serializer_class = SkillSerializer
    filterset_class = SkillFilter

    def get_queryset(self) -> QuerySet[Skill]:
        """Return the organization's skills."""
        if getattr(self, "swagger_fake_view", False):
            return Skill.objects.none()
        return skills_of(organization=principal_of(self.request).organization)


class RevisionFilter(filters.FilterSet):
    """What a skill's past can be narrowed by."""

    user_id = UserIdFilter()
    state = filters.ChoiceFilter(choices=RevisionState.choices)
    action = filters.ChoiceFilter(choices=RevisionAction.choices)
    author_kind = filters.ChoiceFilter(choices=AuthorKind.choices)
    version = filters.CharFilter()
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = SkillRevision
        fields: list[str] = []


@extend_schema_view(
    get=extend_schema(
        operation_id="skills_revisions_list", tags=["skills"], summary="A skill's revisions, newest first"
    )
)
class SkillRevisionsView(ListAPIView):
    """Every revision of a skill: published, waiting, rejected and superseded."""

    serializer_class = RevisionSerializer
    filterset_class = RevisionFilter

    def get_queryset(self) -> QuerySet[SkillRevision]:
        """Return the revisions of one of the organization's skills."""
        if getattr(self, "swagger_fake_view", False):
            return SkillRevision.objects.none()
        organization = principal_of(self.request).organization
        skill = get_object_or_404(skills_of(organization=organization), pk=self.kwargs["pk"])
        return revisions_of(organization=organization).filter(skill=skill)
