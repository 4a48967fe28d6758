"""GET `/v1/intake…`: what became of every accepted request."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from conversations.api.examples import LEDGER
from conversations.api.memory import TurnsReportSerializer
from conversations.intake import reason_of
from conversations.models import IntakeRecord, IntakeState
from conversations.selectors import find_intake, intake_of
from mirix.api.authentication import principal_of
from mirix.api.filters import MomentFilter, UserIdFilter
from mirix.api.views import ReadOnlyModelViewSet


class IntakeSerializer(serializers.ModelSerializer):
    """An accepted request; `turns` accounts for its messages once they were dealt with.

    One whose turns are not all stored can be replayed until `body_pruned_at`.
    """

    user_id = serializers.CharField(source="end_user.user_id")
    client_id = serializers.CharField()
    turns = TurnsReportSerializer(source="report", allow_null=True)
    error = serializers.SerializerMethodField(help_text="Why its turns are not stored; else empty.")

    class Meta:
        model = IntakeRecord
        fields = [
            "id",
            "user_id",
            "client_id",
            "session_id",
            "session_tag",
            "filter_tags",
            "history",
            "occurred_at",
            "message_count",
            "state",
            "turns",
            "error",
            "created_at",
            "stored_at",
            "body_pruned_at",
        ]

    def get_error(self, record: IntakeRecord) -> str:
        """Return the reason without the details, which are for the operator."""
        return reason_of(record=record)


class IntakeFilter(filters.FilterSet):
    """What a list of requests can be narrowed by."""

    user_id = UserIdFilter()
    state = filters.MultipleChoiceFilter(choices=IntakeState.choices)
    session_id = filters.CharFilter()
    client_id = filters.CharFilter(field_name="client")
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = IntakeRecord
        fields: list[str] = []


@extend_schema_view(
    list=extend_schema(
        operation_id="intake_list",
        tags=["intake"],
        summary="List accepted requests, newest first",
        description="Of the whole organization, or of one end user with `user_id`.",
    ),
    retrieve=extend_schema(
        operation_id="intake_retrieve",
        tags=["intake"],
        summary="One accepted request",
        description="By its id, whichever end user of the organization it is for.",
        examples=LEDGER,
    ),
)
class IntakeViewSet(ReadOnlyModelViewSet):
    """Browse the ledger of accepted requests."""

    serializer_class = IntakeSerializer
    filterset_class = IntakeFilter

    def get_queryset(self) -> QuerySet[IntakeRecord]:
        """Return the organization's requests."""
        if getattr(self, "swagger_fake_view", False):
            return IntakeRecord.objects.none()
        return intake_of(organization=principal_of(self.request).organization)

    def get_object(self) -> IntakeRecord:
        """Return any request of the organization by its id."""
        organization = principal_of(self.request).organization
        record = find_intake(organization=organization, intake_id=self.kwargs["pk"])
        if record is None:
            raise Http404
        return record
