"""What changes between two texts, as pages show it: in one column or side by side, as the reader chose."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from mirix.shapes import as_texts
from skills.content import Content
from skills.models import SkillRevision
from skills.review.diffs import changed_words, field_diffs
from skills.review.passages import passage_of

FIELD_LABELS = {
    "name": "Name",
    "entry_type": "Kind",
    "description": "Description",
    "instructions": "Instructions",
    "triggers": "Triggers",
    "examples": "Examples",
    "filter_tags": "Filter tags",
}
VIEWS = {"inline": "In one column", "side": "Side by side"}
PARAMETER = COOKIE = "diff"
COOKIE_SECONDS = 365 * 24 * 3600


def changes_context(
    request: HttpRequest, *, revision: SkillRevision, before: Content | None, after: Content
) -> dict[str, Any]:
    """Return what `changes.html` shows of a revision that makes `after` of `before`."""
    diffs = field_diffs(before, after)
    added, removed = changed_words(diffs)
    doubted = as_texts(revision.unsupported)
    return {
        "is_new": before is None,
        "revision": revision,
        "shown": after,
        "passages": [(FIELD_LABELS[diff.field], passage_of(diff, doubted)) for diff in diffs if diff.changed],
        "unchanged": [(FIELD_LABELS[diff.field], diff) for diff in diffs if not diff.changed],
        "added": added,
        "removed": removed,
        "diff_view": chosen_view(request),
        "diff_views": [(name, label, _address(request, name)) for name, label in VIEWS.items()],
    }


def chosen_view(request: HttpRequest) -> str:
    """Return how the reader wants to see differences: as the address says, else as they chose before."""
    asked = (request.GET.get(PARAMETER), request.COOKIES.get(COOKIE))
    return next((name for name in asked if name in VIEWS), "inline")


def remember_view(request: HttpRequest, response: HttpResponseBase) -> None:
    """Have the browser remember what the address chose."""
    if request.GET.get(PARAMETER) in VIEWS:
        response.set_cookie(
            COOKIE,
            chosen_view(request),
            max_age=COOKIE_SECONDS,
            path="/admin/",
            secure=request.is_secure(),
            httponly=True,
            samesite="Lax",
        )


def _address(request: HttpRequest, view: str) -> str:
    query = request.GET.copy()
    query[PARAMETER] = view
    return f"?{query.urlencode()}"
