"""POST `/memory/auto_dream`: learn from an owner's sealed sessions now."""

from __future__ import annotations

from threading import BoundedSemaphore
from time import monotonic, sleep

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api.fields import IgnoredField, StrictBody
from conversations.api.owners import owner_to_read
from mirix.api.errors import Conflict
from mirix.api.numbers import WholeNumberField
from mirix.api.views import APIView
from skills.answers import dream_answer, dry_run_answer
from skills.dream import DEFAULT_SESSIONS, MAX_SESSIONS, plan
from skills.models import AutoDreamRun, RunState, RunTrigger
from skills.progress import is_open
from skills.selectors.runs import runs_of
from skills.triggers import request_run

MODE = "procedural"
MAX_WAIT_SECONDS = 25
FIRST_LOOK_SECONDS = 0.05
SLOWEST_LOOK_SECONDS = 1.0
_places = BoundedSemaphore(3)
"""Callers that may wait at once: of a process's threads, most must stay free for intake."""


class DreamQuery(serializers.Serializer):
    """Query parameters of `/memory/auto_dream`."""

    user_id = serializers.CharField(
        max_length=256,
        required=False,
        help_text="Your own id of the user; omitted: the client's default. Members must name one.",
    )
    wait = WholeNumberField(
        min_value=0,
        default=MAX_WAIT_SECONDS,
        help_text=f"Seconds to wait for the run to end, at most {MAX_WAIT_SECONDS}.",
    )


class DreamRequest(StrictBody):
    """Body of `/memory/auto_dream`; every field may be left out."""

    user_id = serializers.CharField(
        max_length=256, required=False, help_text="The same as in the query; where both stand they agree."
    )
    mode = serializers.CharField(default=MODE, help_text=f"`{MODE}`, the one mode held here.")
    dry_run = serializers.BooleanField(default=False, help_text="Only say what would be distilled.")
    last_n_sessions = WholeNumberField(
        min_value=0,
        max_value=MAX_SESSIONS,
        default=0,
        allow_null=True,
        help_text=f"At most so many sealed sessions, oldest first; 0 is {DEFAULT_SESSIONS}.",
    )
    model = serializers.CharField(
        max_length=128,
        default="",
        allow_blank=True,
        allow_null=True,
        help_text="Another model of the same endpoint. Where sessions are distilled by rules it is not used, "
        "and the message says so.",
    )

    start_date = IgnoredField()
    end_date = IgnoredField()

    def validate_mode(self, mode: str) -> str:
        """Refuse the original's other modes by name."""
        if mode.lower() != MODE:
            raise serializers.ValidationError(f"There is no mode {mode!r} here; the one mode is “{MODE}”.")
        return MODE


class _Processed(serializers.Serializer):
    total = serializers.IntegerField(help_text="New experiences.")
    removed = serializers.IntegerField()
    merged = serializers.IntegerField()
    conflicts_resolved = serializers.IntegerField()


class _ProcessedByMemory(serializers.Serializer):
    procedural = _Processed()


class _Changes(serializers.Serializer):
    created = serializers.ListField(child=serializers.CharField())
    edited = serializers.ListField(child=serializers.CharField())
    deleted = serializers.ListField(child=serializers.CharField())


class _Sessions(serializers.Serializer):
    distilled = serializers.IntegerField(help_text="Sessions that gave experiences.")
    empty = serializers.IntegerField(help_text="Sessions that were read and held nothing worth keeping.")
    retry = serializers.IntegerField(help_text="Sessions that failed and will be tried again.")
    dead = serializers.IntegerField(help_text="Sessions that failed for the last time.")
    deferred = serializers.IntegerField(help_text="Sessions that rest for now; the message says why.")


class _WouldDistil(serializers.Serializer):
    sessions = serializers.IntegerField()
    turns = serializers.IntegerField()
    characters = serializers.IntegerField()
    tokens = serializers.IntegerField(help_text="About how many, prompts and answers; 0 without a model.")
    proposer_tokens = serializers.IntegerField(help_text="The same for evolving the skills after it.")


class DreamAnswer(serializers.Serializer):
    """What a run came to, or has come to so far."""

    success = serializers.BooleanField(help_text="False when the run failed.")
    message = serializers.CharField()
    run_id = serializers.CharField(allow_null=True, help_text="Null for a dry run, which leaves no trace.")
    state = serializers.ChoiceField(choices=RunState.choices, allow_null=True)
    dry_run = serializers.BooleanField()
    last_dream_at = serializers.DateTimeField(allow_null=True)
    start_date = serializers.DateTimeField(allow_null=True)
    end_date = serializers.DateTimeField(allow_null=True)
    processed = _ProcessedByMemory()
    skills_changed = serializers.IntegerField()
    changes = _Changes(help_text="Ids of the skills that were published.")
    proposals = serializers.ListField(
        child=serializers.CharField(), help_text="Ids of the revisions that wait for a person."
    )
    sessions = _Sessions()
    would_distil = _WouldDistil(required=False, help_text="Dry runs only.")


class DreamView(APIView):
    """Start a run in the worker, and wait a little for it."""

    route_kind = "dream"

    @extend_schema(
        operation_id="auto_dream",
        tags=["memory"],
        summary="Learn from the sealed sessions of an end user",
        description=(
            "The run is done by the worker. While one of this end user goes on or waits already, that one is "
            "answered; 409 when it was asked for with other parameters."
        ),
        parameters=[DreamQuery],
        request=DreamRequest,
        responses={
            200: OpenApiResponse(DreamAnswer, description="The run has ended, or it was a dry run."),
            202: OpenApiResponse(DreamAnswer, description="The run goes on; look it up under `/v1/runs`."),
            400: OpenApiResponse(description="Invalid, naming the field."),
            404: OpenApiResponse(description="No such end user."),
            409: OpenApiResponse(description="Another run of this end user, with other parameters, goes on."),
        },
    )
    def post(self, request: Request) -> Response:
        """Run, or say what a run would do."""
        query = DreamQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        body = DreamRequest(data=request.data)
        body.is_valid(raise_exception=True)
        owner = owner_to_read(request, body.validated_data.get("user_id"))
        if owner is None:
            raise NotFound
        asked = {name: value for name in ("last_n_sessions", "model") if (value := body.validated_data[name])}
        parameters = {"last_n_sessions": DEFAULT_SESSIONS} | asked
        if body.validated_data["dry_run"]:
            model = asked.get("model", "")
            planned = plan(owner=owner, last_n_sessions=parameters["last_n_sessions"], model=model)
            return Response(dry_run_answer(owner=owner, plan=planned, model=model))
        run = request_run(owner=owner, trigger=RunTrigger.API, parameters=parameters)
        if not asked.items() <= run.parameters.items():
            raise Conflict(
                f"{run.pk} of this end user is {run.state}, with other parameters: {run.parameters}. "
                "Wait for it to end."
            )
        run = wait_for(run, seconds=min(query.validated_data["wait"], MAX_WAIT_SECONDS))
        return Response(dream_answer(run), status=202 if is_open(run) else 200)


def wait_for(run: AutoDreamRun, *, seconds: float) -> AutoDreamRun:
    """Return the run as it stands once it has ended, or when the time is up; 404 when it is erased.

    Returns at once while too many others wait in this process.
    """
    if seconds <= 0 or not _places.acquire(blocking=False):
        return run
    try:
        deadline = monotonic() + seconds
        pause = FIRST_LOOK_SECONDS
        while is_open(run) and (left := deadline - monotonic()) > 0:
            sleep(min(pause, left))
            pause = min(pause * 2, SLOWEST_LOOK_SECONDS)
            run = get_object_or_404(runs_of(organization=run.organization), pk=run.pk)
        return run
    finally:
        _places.release()
