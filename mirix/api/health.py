"""GET `/health`: the process is alive and answers."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from mirix.api.views import APIView


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
