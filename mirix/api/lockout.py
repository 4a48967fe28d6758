"""What is answered to somebody who tried too many passwords; django-axes counts them."""

from __future__ import annotations

from math import ceil
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone

from mirix.api.errors import COMPACT, PAGES

TOO_MANY = {"detail": "Too many failed logins; try again later."}


def locked_out(
    request: HttpRequest, response: HttpResponse | None = None, credentials: Any = None
) -> HttpResponse:
    """Answer 429 with Retry-After: programs in JSON, people under the admin with a page."""
    answer = (
        render(request, "429.html", status=429)
        if request.path_info.startswith(PAGES)
        else JsonResponse(TOO_MANY, status=429, json_dumps_params=COMPACT)
    )
    answer["Retry-After"] = str(_seconds_left(request, credentials))
    return answer


def _seconds_left(request: HttpRequest, credentials: Any) -> int:
    """Return after how many seconds the pair of name and address may try again.

    There is a row for each kind of browser, with its failures, which count until the row is old enough: of
    the newest ones together that reach the limit, the oldest has to go.
    """
    failures, last = 0, timezone.now()
    for rows in AxesDatabaseHandler().get_user_attempts(request, credentials):
        for row in rows.order_by("-attempt_time"):
            failures, last = failures + row.failures_since_start, row.attempt_time
            if failures >= settings.AXES_FAILURE_LIMIT:
                break
    return max(1, ceil((last + settings.AXES_COOLOFF_TIME - timezone.now()).total_seconds()))
