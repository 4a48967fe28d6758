"""GET `/health`: the process is alive and answers. GET `/ready`: it can serve, and what it does without."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from mirix import readiness
from mirix.api.views import APIView

RETRY_AFTER_SECONDS = "5"


class HealthSerializer(serializers.Serializer):
    """What `/health` answers."""

    status = serializers.CharField()
    service = serializers.CharField()
    skill_trigger_session_threshold = serializers.IntegerField()


class HealthView(APIView):
    """Liveness; needs no credentials and touches no database."""

    authentication_classes: list[type] = []
    permission_classes = [AllowAny]
    throttle_classes: list[type] = []

    @extend_schema(operation_id="health", tags=["operations"], responses=HealthSerializer, auth=[])
    def get(self, request: Request) -> Response:
        """Answer 200 while the process serves."""
        return Response(
            {
                "status": "healthy",
                "service": "mirix-api",
                "skill_trigger_session_threshold": settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD,
            }
        )


class PartSerializer(serializers.Serializer):
    """One thing that was looked at."""

    state = serializers.ChoiceField(choices=["ok", "failed", "unknown"])
    detail = serializers.CharField()


class PartsSerializer(serializers.Serializer):
    """Each of them by name."""

    database = PartSerializer()
    migrations = PartSerializer()
    worker = PartSerializer()
    cache = PartSerializer()
    distiller = PartSerializer()
    embeddings = PartSerializer()


class ReadySerializer(serializers.Serializer):
    """What `/ready` answers."""

    status = serializers.ChoiceField(choices=["ready", "degraded", "unavailable"])
    checks = PartsSerializer()


class ReadyView(APIView):
    """Readiness; needs no credentials, and tells no more than which part is at fault."""

    authentication_classes: list[type] = []
    permission_classes = [AllowAny]
    throttle_classes: list[type] = []

    @extend_schema(
        operation_id="ready",
        tags=["operations"],
        responses={200: ReadySerializer, 503: ReadySerializer},
        auth=[],
    )
    def get(self, request: Request) -> Response:
        """Answer 200 while requests can be served, else 503; `degraded` where something else is wrong."""
        found = readiness.look()
        return Response(
            {
                "status": found.status,
                "checks": {
                    name: {"state": part.state, "detail": part.detail} for name, part in found.parts.items()
                },
            },
            status=200 if found.is_ready else 503,
            headers={} if found.is_ready else {"Retry-After": RETRY_AFTER_SECONDS},
        )
