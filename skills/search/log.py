"""The log of searches. It is kept beside the answers and never in their way: what fails here is counted."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User

from mirix.metrics import Counts, Durations, publish
from mirix.tenants.models import Client, Organization
from mirix.tenants.owners import Owner
from mirix.text import truncate
from skills.models import AnswerView, SearchEvent, SearchSource
from skills.search.service import Hit, SearchResult

MAX_QUERY_CHARS = 4_096
MAX_TAGS_CHARS = 4_096
CUT_TAGS = "(too long)"
MAX_DEGRADED_CHARS = 256
MAX_TOKEN_BUDGET = 2_147_483_647
"""What its column holds; more limits nothing."""

logger = logging.getLogger(__name__)


class Failures:
    """How many searches could not be logged, since the process began."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def add(self) -> int:
        """Count one more; return the count."""
        with self._lock:
            self.count += 1
            return self.count


failures = Failures()
publish("mirix_search_log_failures_total", "Searches that could not be logged.", lambda: failures.count)

took = Durations("mirix_search_seconds", "How long searches took, by method.")
degraded = Counts("mirix_search_degraded_total", "Searches that had to do without something, by method.")


def log_search(
    *,
    organization: Organization,
    owner: Owner | None,
    source: SearchSource,
    client: Client | None = None,
    user: User | None = None,
    query: str,
    field: str = "",
    filter_tags: Mapping[str, Any] | None = None,
    similarity_threshold: float | None = None,
    limit: int,
    token_budget: int | None = None,
    view: str = AnswerView.FULL,
    result: SearchResult,
    returned: Sequence[Hit],
    seconds: float,
) -> SearchEvent | None:
    """Store what was asked, and what of the result was returned; one INSERT. None where that failed.

    `owner` is None for a search across the organization. Never raises: call it when the answer is sent
    (`mirix.sent.when_sent`).
    """
    took.add(seconds, method=result.method)
    if result.degraded:
        degraded.add(method=result.method)
    try:
        return SearchEvent.objects.create(
            organization=organization,
            end_user=owner.end_user if owner else None,
            client=client,
            user=user,
            source=source,
            query=truncate(query, MAX_QUERY_CHARS)[0],
            method=result.method,
            field=field,
            filter_tags=_bounded(filter_tags or {}),
            similarity_threshold=similarity_threshold,
            limit=limit,
            token_budget=None if token_budget is None else min(token_budget, MAX_TOKEN_BUDGET),
            view=view,
            skill_ids=[hit.skill.pk for hit in returned],
            revision_ids=[hit.skill.current_revision_id or "" for hit in returned],
            scores=[hit.score for hit in returned],
            total_count=result.total_count,
            degraded=truncate(result.degraded or "", MAX_DEGRADED_CHARS)[0],
            duration_ms=round(seconds * 1_000, 3),
        )
    except Exception as error:  # noqa: BLE001  (counted and logged; the answer is sent already)
        # The database's words could repeat the row, and with it what was asked.
        number = failures.add()
        logger.error(  # noqa: TRY400
            "A search was not logged (%s, failure %d of this process)", type(error).__name__, number
        )
        return None


def _bounded(filter_tags: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(filter_tags, ensure_ascii=False)
    cut, is_cut = truncate(text, MAX_TAGS_CHARS)
    return {CUT_TAGS: cut} if is_cut else dict(filter_tags)
