"""What is answered to somebody who tried too many passwords; django-axes counts them."""

from __future__ import annotations

from math import ceil
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from mirix.api.errors import COMPACT, PAGES

TOO_MANY = {"detail": "Too many failed logins; try again later."}


def locked_out(
    request: HttpRequest, response: HttpResponse | None = None, credentials: Any = None
) -> HttpResponse:
    """Answer 429 with Retry-After: programs in JSON, people under the admin with a page."""
    answer = (
        render(request, "429.html", status=429)
        if request.path.startswith(PAGES)
        else JsonResponse(TOO_MANY, status=429, json_dumps_params=COMPACT)
    )
    answer["Retry-After"] = str(ceil(settings.AXES_COOLOFF_TIME.total_seconds()))
    return answer
