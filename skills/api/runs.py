"""GET `/v1/runs`: every auto dream, what it did with each session, and how it ended."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from mirix.api.authentication import principal_of
from mirix.api.filters import MomentFilter, UserIdFilter
from mirix.api.stored import StoredTexts
from mirix.api.views import ReadOnlyModelViewSet
from mirix.shapes import as_list
from skills.models import AutoDreamRun, DistillationAttempt, ProposerCall, RunState, RunTrigger
from skills.progress import Progress, progress_of
from skills.selectors.runs import runs_of, with_attempts


class BriefError(serializers.CharField):
    """What went wrong in a word or a sentence; the details, after the first colon, are for the operator."""

    def to_representation(self, value: str) -> str:
        """Return what stands before the details."""
        return value.partition(": ")[0]


class RunSerializer(serializers.ModelSerializer):
    """A run as lists show it."""

    user_id = serializers.CharField(source="end_user.user_id")
    error = BriefError()

    class Meta:
        model = AutoDreamRun
        fields = [
            "id",
            "user_id",
            "trigger",
            "state",
            "parameters",
            "counts",
            "tokens",
            "error",
            "created_at",
            "started_at",
            "heartbeat_at",
            "finished_at",
        ]
        extra_kwargs = {"heartbeat_at": {"help_text": "The last sign of life of its process."}}


def _reasons(parts: object) -> list[str]:
    return [str(part.get("reason", "")) for part in as_list(parts) if isinstance(part, dict)]


class AttemptSerializer(serializers.ModelSerializer):
    """One call of a distiller for one session."""

    session_id = serializers.CharField(source="session.session_id")
    error = BriefError()
    dropped = serializers.SerializerMethodField(help_text="Why parts of the reply gave no experience.")
    flags = StoredTexts(help_text="What in the session tried to steer its reader.")

    class Meta:
        model = DistillationAttempt
        fields = [
            "id",
            "session_id",
            "distiller",
            "model",
            "prompt_version",
            "verdict",
            "first_seq",
            "last_seq",
            "calls",
            "prompt_tokens",
            "completion_tokens",
            "duration_ms",
            "dropped",
            "flags",
            "error",
            "created_at",
        ]

    def get_dropped(self, attempt: DistillationAttempt) -> list[str]:
        """Return the reasons; what was dropped is in the admin, for people."""
        return _reasons(attempt.dropped)


class ProposerCallSerializer(serializers.ModelSerializer):
    """One question to a proposer's model about the lessons of one topic."""

    error = BriefError()
    experience_ids = StoredTexts(help_text="The lessons it showed.")
    refused = serializers.SerializerMethodField(help_text="Why operations of the answer were not written.")

    class Meta:
        model = ProposerCall
        fields = [
            "id",
            "topic",
            "model",
            "prompt_version",
            "verdict",
            "experience_ids",
            "operations",
            "refused",
            "calls",
            "prompt_tokens",
            "completion_tokens",
            "duration_ms",
            "error",
            "created_at",
        ]

    def get_refused(self, call: ProposerCall) -> list[str]:
        """Return the reasons; what was refused is in the admin, for people."""
        return _reasons(call.refused)


class RunProgressSerializer(serializers.Serializer):
    """How far a run has come."""

    read = serializers.IntegerField(help_text="Sessions that it has dealt with.")
    left = serializers.IntegerField(help_text="Sessions that wait for it; 0 once it is over.")


class RunDetailSerializer(RunSerializer):
    """A run with what it asked, of a distiller and of a proposer's model, and what it did not write.

    While it is going on, counts and tokens are those so far.
    """

    progress = RunProgressSerializer()
    attempts = AttemptSerializer(many=True)
    proposer_calls = ProposerCallSerializer(many=True)

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "progress", "notes", "attempts", "proposer_calls"]

    def to_representation(self, run: AutoDreamRun) -> dict[str, Any]:
        """Return the run as it stands at this moment."""
        progress: Progress = progress_of(run)
        run.counts, run.tokens = progress.counts, progress.tokens
        run.__dict__["progress"] = progress
        return super().to_representation(run)


class RunFilter(filters.FilterSet):
    """What a list of runs can be narrowed by."""

    user_id = UserIdFilter()
    state = filters.ChoiceFilter(choices=RunState.choices)
    trigger = filters.ChoiceFilter(choices=RunTrigger.choices)
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = AutoDreamRun
        fields: list[str] = []


@extend_schema_view(
    list=extend_schema(
        operation_id="runs_list",
        tags=["runs"],
        summary="List runs, newest first",
        description="Of the whole organization, or of one end user with `user_id`.",
    ),
    retrieve=extend_schema(
        operation_id="runs_retrieve",
        tags=["runs"],
        summary="One run with its attempts",
        responses=RunDetailSerializer,
    ),
)
class RunViewSet(ReadOnlyModelViewSet):
    """Browse the organization's runs."""

    filterset_class = RunFilter

    def get_queryset(self) -> QuerySet[AutoDreamRun]:
        """Return the organization's runs; a single one comes with its attempts."""
        if getattr(self, "swagger_fake_view", False):
            return AutoDreamRun.objects.none()
        runs = runs_of(organization=principal_of(self.request).organization)
        return with_attempts(runs) if self.action == "retrieve" else runs

    def get_serializer_class(self) -> type[RunSerializer]:
        """Return the shape of a list or of a single run."""
        return RunDetailSerializer if self.action == "retrieve" else RunSerializer
