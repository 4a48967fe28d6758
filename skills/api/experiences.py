"""GET `/v1/experiences`: what sessions taught, with the words that prove it."""

from __future__ import annotations

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from mirix.api.authentication import principal_of
from mirix.api.filters import TrueOrFalseFilter, UserIdFilter
from mirix.api.views import ReadOnlyModelViewSet
from skills.models import ExperienceStatus, ExperienceType, SignalType, SkillExperience
from skills.selectors.experiences import experiences_of


class ExperienceSerializer(serializers.ModelSerializer):
    """An experience and its evidence: `quote` stands word for word in `turn` when `verified`."""

    user_id = serializers.CharField(source="end_user.user_id")
    session_id = serializers.CharField(source="session.session_id")
    run_id = serializers.CharField(allow_null=True)
    client_id = serializers.CharField()
    turn = serializers.SerializerMethodField(help_text="`convmsg-<n>`; null once the turn is pruned.")

    class Meta:
        model = SkillExperience
        fields = [
            "id",
            "user_id",
            "session_id",
            "run_id",
            "client_id",
            "experience_type",
            "title",
            "content",
            "topic",
            "details",
            "importance",
            "credibility",
            "model_credibility",
            "signal_type",
            "quote",
            "turn",
            "turn_seq",
            "turn_pruned_at",
            "verified",
            "quarantined",
            "quarantine_reason",
            "status",
            "filter_tags",
            "created_at",
        ]

    def get_turn(self, experience: SkillExperience) -> str | None:
        """Return the public id of the turn, from the foreign key alone."""
        return f"convmsg-{experience.turn_id}" if experience.turn_id else None


class ExperienceFilter(filters.FilterSet):
    """What a list of experiences can be narrowed by."""

    user_id = UserIdFilter()
    session_id = filters.CharFilter(field_name="session__session_id")
    run_id = filters.CharFilter(field_name="attempt__run")
    topic = filters.CharFilter()
    experience_type = filters.ChoiceFilter(choices=ExperienceType.choices)
    signal_type = filters.ChoiceFilter(choices=SignalType.choices)
    status = filters.ChoiceFilter(choices=ExperienceStatus.choices)
    verified = TrueOrFalseFilter()
    quarantined = TrueOrFalseFilter()
    created_after = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte")
    created_before = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = SkillExperience
        fields: list[str] = []


@extend_schema_view(
    list=extend_schema(
        operation_id="experiences_list",
        tags=["experiences"],
        summary="List experiences, newest first",
        description="Of the whole organization, or of one end user with `user_id`.",
    ),
    retrieve=extend_schema(
        operation_id="experiences_retrieve", tags=["experiences"], summary="One experience"
    ),
)
class ExperienceViewSet(ReadOnlyModelViewSet):
    """Browse the organization's experiences."""

    serializer_class = ExperienceSerializer
    filterset_class = ExperienceFilter

    def get_queryset(self) -> QuerySet[SkillExperience]:
        """Return the organization's experiences."""
        if getattr(self, "swagger_fake_view", False):
            return SkillExperience.objects.none()
        return experiences_of(organization=principal_of(self.request).organization)
