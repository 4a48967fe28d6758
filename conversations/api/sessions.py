"""GET `/v1/sessions…`, POST `/v1/sessions/{session_id}/close` and `…/retry`: sessions and their turns."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api.fields import StrictBody
from conversations.api.owners import USER_ID, owner_to_read
from conversations.models import ConversationMessage, Session, SessionState, SessionTag, TurnRole
from conversations.operating import retry_session
from conversations.sealing import close_session
from conversations.selectors import find_session, sessions_of, turns_of
from mirix.api.authentication import principal_of
from mirix.api.filters import MomentFilter, TrueOrFalseFilter, UserIdFilter
from mirix.api.pagination import StrictCursorPagination
from mirix.api.views import APIView, ListAPIView, ReadOnlyModelViewSet
from mirix.tenants.audit import Actor
from mirix.tenants.models import Permission
from mirix.text import clean_text

WHOSE = "A session belongs to an end user: `user_id`, else the client's default end user."
MISSING = {
    400: OpenApiResponse(description="Invalid, naming the field; also a member's call without `user_id`."),
    404: OpenApiResponse(description="No such session of this end user."),
}


class SessionSerializer(serializers.ModelSerializer):
    """A session; turns up to `distilled_through` were learned from, those up to `pruned_through` are gone."""

    user_id = serializers.CharField(source="end_user.user_id")

    class Meta:
        model = Session
        fields = [
            "session_id",
            "user_id",
            "tag",
            "filter_tags",
            "state",
            "turn_count",
            "first_turn_at",
            "last_turn_at",
            "reopened_at",
            "closed_at",
            "sealed_at",
            "distilled_at",
            "distilled_through",
            "pruned_through",
            "pruned_at",
            "attempts",
            "next_attempt_at",
            "last_error",
            "created_at",
        ]


class TurnSerializer(serializers.ModelSerializer):
    """A turn as it is stored; `tool_calls` are the calls in its content, as data."""

    id = serializers.CharField(source="public_id")
    client_id = serializers.CharField()
    intake_id = serializers.CharField(allow_null=True)

    class Meta:
        model = ConversationMessage
        fields = [
            "id",
            "seq",
            "role",
            "content",
            "tool_calls",
            "tool_name",
            "tool_call_id",
            "is_error",
            "truncated",
            "message_id",
            "client_id",
            "intake_id",
            "occurred_at",
            "created_at",
        ]


class SessionFilter(filters.FilterSet):
    """What a list of sessions can be narrowed by."""

    user_id = UserIdFilter()
    state = filters.MultipleChoiceFilter(choices=SessionState.choices)
    tag = filters.ChoiceFilter(choices=SessionTag.choices)
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Session
        fields: list[str] = []


class TurnFilter(filters.FilterSet):
    """What a list of turns can be narrowed by."""

    role = filters.MultipleChoiceFilter(choices=TurnRole.choices)
    is_error = TrueOrFalseFilter()
    truncated = TrueOrFalseFilter()
    tool_name = filters.CharFilter()

    class Meta:
        model = ConversationMessage
        fields: list[str] = []


class InOrderPagination(StrictCursorPagination):
    """The turns of a session from its start; the sequence number is unique in it and never changes."""

    ordering = ("seq",)
    page_size = 100
    max_page_size = 500


def session_to_read(request: Request, session_id: str, body_user_id: str | None = None) -> Session:
    """Return a session of the end user the request names; a missing and a foreign one are both a 404."""
    owner = owner_to_read(request, body_user_id)
    session = find_session(owner=owner, session_id=session_id) if owner else None
    if session is None:
        raise Http404
    return session


@extend_schema_view(
    list=extend_schema(
        operation_id="sessions_list",
        tags=["sessions"],
        summary="List sessions, newest first",
        description="Of the whole organization, or of one end user with `user_id`.",
    ),
    retrieve=extend_schema(
        operation_id="sessions_retrieve",
        tags=["sessions"],
        summary="One session",
        description=WHOSE,
        parameters=[USER_ID],
        responses={200: SessionSerializer, **MISSING},
    ),
)
class SessionViewSet(ReadOnlyModelViewSet):
    """Browse the organization's sessions; a single one is named by its end user and its id."""

    serializer_class = SessionSerializer
    filterset_class = SessionFilter
    lookup_field = "session_id"

    def get_queryset(self) -> QuerySet[Session]:
        """Return the organization's sessions."""
        if getattr(self, "swagger_fake_view", False):
            return Session.objects.none()
        return sessions_of(organization=principal_of(self.request).organization)

    def get_object(self) -> Session:
        """Return the session the path names."""
        return session_to_read(self.request, self.kwargs["session_id"])


class TurnListView(ListAPIView):
    """The turns of one session."""

    serializer_class = TurnSerializer
    filterset_class = TurnFilter
    pagination_class = InOrderPagination
    more_parameters = ("user_id",)

    def get_queryset(self) -> QuerySet[ConversationMessage]:
        """Return the session's turns in their order."""
        if getattr(self, "swagger_fake_view", False):
            return ConversationMessage.objects.none()
        return turns_of(session=session_to_read(self.request, self.kwargs["session_id"]))

    @extend_schema(
        operation_id="sessions_turns_list",
        tags=["sessions"],
        summary="The turns of a session, in their order",
        description=WHOSE,
        parameters=[USER_ID],
        responses={200: TurnSerializer(many=True), **MISSING},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer a page of turns."""
        return self.list(request, *args, **kwargs)


class WhoseRequest(StrictBody):
    """Whose session it is; may be left out altogether."""

    user_id = serializers.CharField(required=False, allow_null=True, max_length=256)


class CloseView(APIView):
    """Say that a session is complete."""

    required_permission = Permission.WRITE

    @extend_schema(
        operation_id="sessions_close",
        tags=["sessions"],
        summary="Close a session, so that it can be learned from",
        description="Requests for it that still wait for the worker are stored first. Closing it again "
        "changes nothing; new messages open it again.",
        parameters=[USER_ID],
        request=WhoseRequest,
        responses={200: SessionSerializer, **MISSING},
    )
    def post(self, request: Request, session_id: str) -> Response:
        """Answer the session as it is now."""
        body = WhoseRequest(data=request.data)
        body.is_valid(raise_exception=True)
        owner = owner_to_read(request, body.validated_data.get("user_id"))
        if owner is None:
            raise Http404
        try:
            session = close_session(owner=owner, session_id=clean_text(session_id))
        except Session.DoesNotExist as error:
            raise Http404 from error
        return Response(SessionSerializer(session).data)


class RetryView(APIView):
    """Have a session read again that could not be learned from."""

    required_permission = Permission.WRITE

    @extend_schema(
        operation_id="sessions_retry",
        tags=["sessions"],
        summary="Retry a session that was given up, or that rests after a failure",
        description="Once the cause is gone: it has all of its attempts again, and the next run reads it; "
        "an automatic run is asked for at once, where those are on; `POST /memory/auto_dream` starts one. "
        "A session that has not failed, or whose turns are gone, is answered as it is. "
        "`GET /v1/sessions?state=dead` lists those that were given up.",
        parameters=[USER_ID],
        request=WhoseRequest,
        responses={200: SessionSerializer, **MISSING},
    )
    def post(self, request: Request, session_id: str) -> Response:
        """Answer the session as it is now."""
        body = WhoseRequest(data=request.data)
        body.is_valid(raise_exception=True)
        user_id = body.validated_data.get("user_id")
        session = session_to_read(request, session_id, user_id)
        retry_session(session=session, actor=Actor.of_principal(principal_of(request)))
        return Response(SessionSerializer(session_to_read(request, session_id, user_id)).data)
