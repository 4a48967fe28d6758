"""GET `/` and `/admin`: people who open the address in a browser come to the admin."""

from __future__ import annotations

from django.http import HttpResponseRedirect
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

from mirix.api.views import APIView


class HomeView(APIView):
    """The way to the admin; a route of the API, so that other methods are answered as everywhere."""

    authentication_classes: list[type] = []
    permission_classes = [AllowAny]

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponseRedirect:
        """Redirect to the admin."""
        return HttpResponseRedirect(reverse("admin:index"))
