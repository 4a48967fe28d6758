"""GET `/v1/experiences…`: what sessions taught, with the words that prove it; POST `…/release`."""

from __future__ import annotations

import re

from django.db.models import QuerySet
from django.http import Http404
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api.fields import StrictBody, TextField
from mirix.api.authentication import principal_of
from mirix.api.filters import MomentFilter, TrueOrFalseFilter, UserIdFilter
from mirix.api.permissions import MayRelease
from mirix.api.views import APIView, ReadOnlyModelViewSet
from mirix.tenants.audit import Actor
from mirix.text import clean_text
from skills.models import ExperienceStatus, ExperienceType, SignalType, SkillExperience, SkillRevision
from skills.quarantine import MAX_REASON_CHARS, release_experience
from skills.selectors.experiences import experiences_of, taught, with_revisions

TURN = re.compile(r"convmsg-([0-9]{1,18})")


class TaughtSerializer(serializers.ModelSerializer):
    """A revision that rests on the experience, and what became of it."""

    revision_id = serializers.CharField(source="id")
    skill_id = serializers.CharField(allow_null=True, help_text="Null while a new skill waits.")

    class Meta:
        model = SkillRevision
        fields = ["revision_id", "skill_id", "name", "version", "state"]


class ExperienceSerializer(serializers.ModelSerializer):
    """An experience and its evidence: `quote` stands word for word in `turn` when `verified`."""

    user_id = serializers.CharField(source="end_user.user_id")
    session_id = serializers.CharField(source="session.session_id")
    run_id = serializers.CharField(allow_null=True)
    client_id = serializers.CharField()
    turn = serializers.SerializerMethodField(help_text="`convmsg-<n>`; null once the turn is pruned.")
    quarantined = serializers.BooleanField(help_text="Evolution leaves it alone until a member releases it.")
    quarantine_reason = serializers.CharField(help_text="Why it is, or was until it was released.")
    superseded_by_id = serializers.CharField(
        allow_null=True, help_text="The newer experience that took its place, where it is `superseded`."
    )
    released_by = serializers.SerializerMethodField(help_text="The member's name; null for keys.")

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
            "released_at",
            "released_by",
            "release_reason",
            "status",
            "superseded_by_id",
            "filter_tags",
            "created_at",
        ]

    def get_turn(self, experience: SkillExperience) -> str | None:
        """Return the public id of the turn, from the foreign key alone."""
        return f"convmsg-{experience.turn_id}" if experience.turn_id else None

    def get_released_by(self, experience: SkillExperience) -> str | None:
        """Return who released it, for members alone."""
        return (experience.released_by_name or None) if principal_of(self.context["request"]).user else None


class ExperienceDetailSerializer(ExperienceSerializer):
    """An experience with what rests on it."""

    revisions = TaughtSerializer(many=True, help_text="What rests on it, newest first.")

    class Meta(ExperienceSerializer.Meta):
        fields = [*ExperienceSerializer.Meta.fields, "revisions"]


class ExperienceFilter(filters.FilterSet):
    """What a list of experiences can be narrowed by."""

    user_id = UserIdFilter()
    session_id = filters.CharFilter(field_name="session__session_id")
    run_id = filters.CharFilter(field_name="attempt__run")
    skill_id = filters.CharFilter(method="of_skill", label="What taught a skill, in any of its revisions.")
    revision_id = filters.CharFilter(method="of_revision", label="What a revision rests on.")
    turn = filters.CharFilter(method="of_turn", label="`convmsg-<n>`: what was learned from a turn.")
    topic = filters.CharFilter()
    experience_type = filters.ChoiceFilter(choices=ExperienceType.choices)
    signal_type = filters.ChoiceFilter(choices=SignalType.choices)
    status = filters.ChoiceFilter(choices=ExperienceStatus.choices)
    verified = TrueOrFalseFilter()
    quarantined = TrueOrFalseFilter()
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = SkillExperience
        fields: list[str] = []

    def of_skill(self, queryset: QuerySet, name: str, value: str) -> QuerySet:
        """Narrow to what taught a skill."""
        organization = principal_of(self.request).organization
        return queryset.filter(pk__in=taught(organization=organization, skill_id=value).values("pk"))

    def of_revision(self, queryset: QuerySet, name: str, value: str) -> QuerySet:
        """Narrow to what a revision rests on."""
        organization = principal_of(self.request).organization
        return queryset.filter(pk__in=taught(organization=organization, revision_id=value).values("pk"))

    def of_turn(self, queryset: QuerySet, name: str, value: str) -> QuerySet:
        """Narrow to what was learned from a turn; what is no turn's id taught nothing."""
        number = TURN.fullmatch(value)
        return queryset.filter(turn=int(number[1])) if number else queryset.none()


@extend_schema_view(
    list=extend_schema(
        operation_id="experiences_list",
        tags=["experiences"],
        summary="List experiences, newest first",
        description="Of the whole organization, or of one end user with `user_id`.",
    ),
    retrieve=extend_schema(
        operation_id="experiences_retrieve",
        tags=["experiences"],
        summary="One experience, with the revisions that rest on it",
        responses=ExperienceDetailSerializer,
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
        organization = principal_of(self.request).organization
        experiences = experiences_of(organization=organization)
        if self.action != "retrieve":
            return experiences
        return with_revisions(experiences, organization=organization)

    def get_serializer_class(self) -> type[ExperienceSerializer]:
        """Return the shape of a list or of a single experience."""
        return ExperienceDetailSerializer if self.action == "retrieve" else ExperienceSerializer


class ReleaseRequest(StrictBody):
    """Body of `…/release`."""

    reason = TextField(max_length=MAX_REASON_CHARS, help_text="Why; it is kept.")


class ReleaseView(APIView):
    """Let evolution use an experience that was quarantined."""

    permission_classes = [MayRelease]

    @extend_schema(
        operation_id="experiences_release",
        tags=["experiences"],
        summary="Release an experience from quarantine",
        description="For members with the permission `release_quarantined`: reviewers and administrators. "
        "The next run may use it. Releasing it again changes nothing.",
        request=ReleaseRequest,
        responses={
            200: OpenApiResponse(ExperienceDetailSerializer, description="Released, now or before."),
            400: OpenApiResponse(description="Invalid, naming the field."),
            403: OpenApiResponse(description="No member who may release; a key never is."),
            404: OpenApiResponse(description="No such experience."),
        },
    )
    def post(self, request: Request, pk: str) -> Response:
        """Answer the experience as it is now."""
        caller = principal_of(request)
        rows = experiences_of(organization=caller.organization)
        experience = get_object_or_404(rows, pk=pk)
        body = ReleaseRequest(data=request.data)
        body.is_valid(raise_exception=True)
        reason = clean_text(body.validated_data["reason"])
        try:
            release_experience(experience=experience, actor=Actor.of_principal(caller), reason=reason)
        except SkillExperience.DoesNotExist as error:  # erased on the way
            raise Http404 from error
        shown = with_revisions(rows, organization=caller.organization)
        serializer = ExperienceDetailSerializer(get_object_or_404(shown, pk=pk), context={"request": request})
        return Response(serializer.data)
