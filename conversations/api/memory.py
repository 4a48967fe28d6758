"""POST `/memory/add` and `/memory/add_sync`: messages come in."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.account import readable
from conversations.api.examples import ADDED, ADDED_SYNC, REQUESTS
from conversations.api.fields import (
    IgnoredField,
    MessagesField,
    ObjectField,
    SessionIdField,
    SpansField,
    StrictBody,
)
from conversations.api.owners import USER_ID, owner_to_write
from conversations.envelope import Envelope, checked
from conversations.intake import KeyReused, accept
from conversations.models import History, SessionTag
from mirix.api.authentication import principal_of
from mirix.api.errors import Conflict
from mirix.api.views import APIView
from mirix.tenants.models import Permission
from mirix.tenants.services import client_of
from mirix.text import clean_text

MAX_KEY_CHARS = 255
IDEMPOTENCY_KEY = "Idempotency-Key"


class AddRequest(StrictBody):
    """Messages of one session, in any shape that agents write; the examples have one of each family."""

    messages = MessagesField(
        help_text="Messages as your framework has them; the examples show every family of shapes, and one "
        "request may mix them. A message with an `id` is stored once; if it comes again grown, what is new "
        "in it is added. Whatever is no turn is reported by its index."
    )
    session_id = SessionIdField(
        required=False,
        allow_null=True,
        help_text="Your own id of the piece of work; without it nothing is learned.",
    )
    user_id = serializers.CharField(
        required=False,
        allow_null=True,
        max_length=256,
        help_text="Your own id of the end user; omitted: the client's default end user. Members must name "
        "one.",
    )
    session_tag = serializers.ChoiceField(
        SessionTag.choices,
        required=False,
        allow_null=True,
        error_messages={"invalid_choice": "Must be task or conversation."},
        help_text="What the session is; a conversation is never learned from.",
    )
    filter_tags = ObjectField(
        required=False,
        allow_null=True,
        help_text="Merged into the session's, the later request wins key by key. A `session_id` in it must "
        "equal the field.",
    )
    occurred_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When it happened; kept with the turns."
    )
    history = serializers.ChoiceField(
        [choice for choice in History.choices if choice[0]],
        required=False,
        allow_null=True,
        error_messages={"invalid_choice": "Must be delta or full."},
        help_text="`delta`: the messages are new. `full`: they are the session from its start, and what is "
        "stored must be what they begin with. Omitted: a longer request that begins with all (two or more) "
        "stored turns counts as full.",
    )
    meta_agent_id = IgnoredField()
    chaining = IgnoredField()
    verbose = IgnoredField()
    use_cache = IgnoredField()
    block_filter_tags = IgnoredField()
    block_filter_tags_update_mode = IgnoredField()

    def envelope(self) -> Envelope:
        """Return what intake takes; raises Django's `ValidationError` for what only shows as a whole."""
        data = self.validated_data
        return checked(
            messages=data["messages"],
            session_id=data.get("session_id") or "",
            session_tag=data.get("session_tag") or "",
            filter_tags=data.get("filter_tags"),
            occurred_at=data.get("occurred_at"),
            history=data.get("history") or "",
        )


class SkippedSerializer(serializers.Serializer):
    """A message without a turn."""

    index = serializers.IntegerField()
    reason = serializers.CharField()
    unreadable = serializers.BooleanField(
        required=False, help_text="True when nobody here understands the message; the request is kept."
    )


class TurnsReportSerializer(serializers.Serializer):
    """What became of every message."""

    stored = serializers.IntegerField(help_text="How many turns are new.")
    truncated = serializers.IntegerField(help_text="How many of these were cut.")
    duplicate = serializers.IntegerField(help_text="How many turns were there already.")
    skipped = SkippedSerializer(many=True)
    omitted = serializers.DictField(
        child=serializers.IntegerField(),
        required=False,
        help_text="How many texts of which kind (reasoning, …) are left out of messages with turns.",
    )
    roles = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many new turns of which role."
    )
    truncated_at = SpansField(required=False, help_text="Which messages were cut, as spans `[first, last]`.")
    duplicate_at = SpansField(required=False, help_text="Which messages were there already, as spans.")
    unread_at = SpansField(
        required=False,
        help_text="Which messages have turns, and a part that nobody here can read, as spans; the request "
        "is kept.",
    )
    unread_turns = serializers.DictField(
        child=SpansField(),
        required=False,
        help_text="Of each message in `unread_at`, by index: the sequence numbers of its turns, as spans.",
    )

    def to_representation(self, instance: Any) -> Any:
        """Return what can be read of a report; nothing of what is none."""
        return super().to_representation(readable(instance)) if isinstance(instance, dict) else None


class SessionBriefSerializer(serializers.Serializer):
    """The session after a request."""

    session_id = serializers.CharField()
    state = serializers.CharField(help_text="`open`, `sealed`, `distilled`, `dead`, or `missed`.")
    turn_count = serializers.IntegerField(required=False)
    reason = serializers.CharField(required=False, help_text="Why the turns were missed.")


class AddAnswer(serializers.Serializer):
    """What the caller is told."""

    success = serializers.BooleanField()
    message = serializers.CharField()
    status = serializers.ChoiceField(["processed", "queued"])
    message_count = serializers.IntegerField()
    intake_id = serializers.CharField()
    session = SessionBriefSerializer(allow_null=True)
    turns = TurnsReportSerializer(allow_null=True)


PARAMETERS = [
    USER_ID,
    OpenApiParameter(
        IDEMPOTENCY_KEY,
        location=OpenApiParameter.HEADER,
        description="Of at most 255 characters. The same request under the same key is answered as at first "
        "and changes nothing; another request under it is a conflict.",
    ),
]
REFUSALS = {
    400: OpenApiResponse(description="Invalid, naming the field."),
    409: OpenApiResponse(description="The idempotency key belongs to another request."),
}


class _AddView(APIView):
    required_permission = Permission.WRITE
    wait: bool

    def accept(self, request: Request) -> Response:
        body = AddRequest(data=request.data)
        body.is_valid(raise_exception=True)
        envelope = body.envelope()
        key = _idempotency_key(request)
        owner = owner_to_write(request, body.validated_data.get("user_id"))
        try:
            accepted = accept(
                client=client_of(principal=principal_of(request)),
                owner=owner,
                envelope=envelope,
                wait=self.wait,
                idempotency_key=key,
            )
        except KeyReused as error:
            raise Conflict(f"{IDEMPOTENCY_KEY} was used for another request.") from error
        return Response(accepted.answer)


def _idempotency_key(request: Request) -> str:
    key: Any = clean_text(request.headers.get(IDEMPOTENCY_KEY, "")).strip()
    if len(key) > MAX_KEY_CHARS:
        raise ValidationError({IDEMPOTENCY_KEY: [f"May have at most {MAX_KEY_CHARS} characters."]})
    return str(key)


class AddSyncView(_AddView):
    """Accept messages and store their turns before answering."""

    wait = True

    @extend_schema(
        operation_id="memory_add_sync",
        tags=["memory"],
        summary="Add messages and wait until their turns are stored",
        parameters=PARAMETERS,
        request=AddRequest,
        responses={200: AddAnswer, **REFUSALS},
        examples=[*REQUESTS, *ADDED_SYNC],
    )
    def post(self, request: Request) -> Response:
        """Answer what became of every message."""
        return self.accept(request)


class AddView(_AddView):
    """Accept messages; the worker stores their turns."""

    wait = False

    @extend_schema(
        operation_id="memory_add",
        tags=["memory"],
        summary="Add messages; the worker stores their turns",
        description="What became of every message stands at `/v1/intake/{id}` afterwards.",
        parameters=PARAMETERS,
        request=AddRequest,
        responses={200: AddAnswer, **REFUSALS},
        examples=[*REQUESTS, *ADDED],
    )
    def post(self, request: Request) -> Response:
        """Answer that the request is kept."""
        return self.accept(request)
