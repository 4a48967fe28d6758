"""GET `/metrics`: what the web process has counted and the database knows, for Prometheus.

The numbers are of the installation and not of one organization, so that no key and no member's token reads
them, but a token of their own, `MIRIX_METRICS_TOKEN`. Without that setting there is no such page.
"""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpResponse
from django.utils.crypto import constant_time_compare
from drf_spectacular.utils import extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

from mirix.api.authentication import REFUSED
from mirix.api.negotiation import OneKind
from mirix.api.throttles import throttle_refused
from mirix.api.views import APIView
from mirix.measures import measured
from mirix.metrics import MEDIA_TYPE, exposition
from mirix.tenants.scope import outside_request_scope

OFFERED = ("GET", "HEAD")


class MetricsAuthentication(BaseAuthentication):
    """Lets in who shows `MIRIX_METRICS_TOKEN` as `Authorization: Bearer`."""

    def authenticate(self, request: Request) -> tuple[None, None] | None:
        """Raise `AuthenticationFailed` for any other, `Http404` where there is no such token."""
        if request.method not in OFFERED:
            return None  # a 405 for everybody
        if not settings.MIRIX_METRICS_TOKEN:
            raise Http404
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not constant_time_compare(
            token.strip(), settings.MIRIX_METRICS_TOKEN
        ):
            throttle_refused(request)
            raise AuthenticationFailed(REFUSED)
        return None, None

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge."""
        return 'Bearer realm="mirix"'


class MetricsView(APIView):
    """The metrics; where the database is out of reach, what this process has counted."""

    authentication_classes = [MetricsAuthentication]
    permission_classes = [AllowAny]
    throttle_classes: list[type] = []
    content_negotiation_class = OneKind

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Return the numbers as they stand."""
        with outside_request_scope():
            stored = measured()
        return HttpResponse(exposition(stored), content_type=MEDIA_TYPE)
