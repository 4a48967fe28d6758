"""A Django project of one view that answers a line of JSON: what a request costs without mirix."""

from __future__ import annotations

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path


def bare(request: HttpRequest) -> JsonResponse:
    """Answer whatever is asked."""
    return JsonResponse({"status": "ok"})


urlpatterns = [path("<path:anything>", lambda request, anything: bare(request))]
settings.configure(ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__, MIDDLEWARE=[])
application = get_wsgi_application()
