"""What every view of the API is made of; a view that is made of Django REST framework's own would differ."""

from __future__ import annotations

from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import generics, views, viewsets
from rest_framework.request import Request


class APIView(views.APIView):
    """A view that offers no OPTIONS, and counts a request before it asks what its caller may do.

    The schema describes the routes, so that `Allow` names what a route really has. Counted first, a caller
    who may not do something is slowed down like everybody else.
    """

    http_method_names = [name for name in views.APIView.http_method_names if name != "options"]

    def check_permissions(self, request: Request) -> None:
        """Count the request, then see whether its caller may do this."""
        super().check_throttles(request)
        super().check_permissions(request)

    def check_throttles(self, request: Request) -> None:
        """Do nothing: it was counted before its permissions."""


class ListAPIView(APIView, generics.ListAPIView):
    """A list."""


class ReadOnlyModelViewSet(APIView, viewsets.ReadOnlyModelViewSet):
    """A list and its rows."""


class SchemaView(APIView, SpectacularAPIView):
    """The schema of the routes."""


class DocsView(APIView, SpectacularSwaggerSplitView):
    """The routes as a page, whose script is a file of its own: `mirix.headers` allows none within pages."""
