"""The log of searches: what was asked, and what was returned. See `skills.search.log`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils import timezone

from mirix.ids import id_factory
from mirix.tenants.constraints import SameOwner
from mirix.tenants.models import Client, EndUser, Organization, TenantModel
from mirix.tenants.querysets import OwnedQuerySet


class SearchSource(models.TextChoices):
    """The door through which a search came."""

    API = "api", "API"
    ADMIN = "admin", "Admin"
    COMMAND = "command", "Command"


class AnswerView(models.TextChoices):
    """What of each skill was returned: all of it, or what is needed to choose one."""

    FULL = "full", "Whole skills"
    CATALOG = "catalog", "Catalog"


class Returned(NamedTuple):
    """One skill that a search returned, its rank from 1."""

    rank: int
    skill_id: str
    revision_id: str
    """Empty where the skill had none."""
    score: float | None
    """None where nothing was ranked."""


class SearchEvent(TenantModel):
    """One search that was answered. Written after the answer was sent; a row never changes.

    Without an end user it went across the organization. What was returned lies in three lists of one length,
    best first: names of skills and revisions by value, so that an event outlives them. It goes with its end
    user, with the client that asked, and with its time (`MIRIX_SEARCH_LOG_RETENTION_DAYS`).
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("search"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    end_user = models.ForeignKey(
        EndUser, null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    client = models.ForeignKey(Client, null=True, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    """The person who asked, where it was no client."""
    source = models.CharField(max_length=8, choices=SearchSource.choices)
    query = models.TextField(blank=True)
    """As it was asked, cut to `skills.search.log.MAX_QUERY_CHARS`."""
    method = models.CharField(max_length=16)
    field = models.CharField(max_length=16, blank=True)
    filter_tags = models.JSONField(default=dict, blank=True)
    """As they were asked for; of long ones the beginning, as text under `skills.search.log.CUT_TAGS`."""
    similarity_threshold = models.FloatField(null=True)
    limit = models.PositiveSmallIntegerField()
    token_budget = models.PositiveIntegerField(null=True)
    view = models.CharField(max_length=8, choices=AnswerView.choices, default=AnswerView.FULL)
    skill_ids = ArrayField(models.CharField(max_length=128), default=list)
    revision_ids = ArrayField(models.CharField(max_length=64, blank=True), default=list)
    scores = ArrayField(models.FloatField(null=True), default=list)
    total_count = models.PositiveIntegerField()
    """How many skills matched, before the limit and the token budget."""
    degraded = models.CharField(max_length=256, blank=True)
    """What the search had to do without; empty where nothing was missing."""
    duration_ms = models.FloatField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = OwnedQuerySet.as_manager()  # type: ignore[misc]  # a class variable, as everywhere

    class Meta:
        verbose_name = "search"
        verbose_name_plural = "searches"
        constraints = [
            models.CheckConstraint(
                condition=Q(source__in=SearchSource.values), name="searchevent_source_valid"
            ),
            models.CheckConstraint(condition=Q(view__in=AnswerView.values), name="searchevent_view_valid"),
            models.CheckConstraint(
                condition=Q(skill_ids__len=models.F("revision_ids__len"))
                & Q(skill_ids__len=models.F("scores__len")),
                name="searchevent_lists_of_one_length",
            ),
            SameOwner(field="end_user", name="searchevent_end_user_same_organization"),
            SameOwner(field="client", name="searchevent_client_same_organization"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="searchevent_org_recent"),
            models.Index(fields=["end_user", "-created_at", "id"], name="searchevent_end_user_recent"),
            models.Index(fields=["-created_at", "id"], name="searchevent_recent"),
            models.Index(
                fields=["organization", "created_at"],
                condition=Q(end_user__isnull=True),
                name="searchevent_across",
            ),
            models.Index(
                fields=["organization", "created_at"],
                condition=~Q(degraded=""),
                name="searchevent_degraded",
            ),
            GinIndex(fields=["skill_ids"], name="searchevent_skills"),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def results(self) -> Iterator[Returned]:
        """What was returned, best first."""
        returned = zip(self.skill_ids, self.revision_ids, self.scores, strict=True)
        for rank, (skill_id, revision_id, score) in enumerate(returned, start=1):
            yield Returned(rank, skill_id, revision_id, score)
