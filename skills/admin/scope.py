"""Whose figures a page shows: those of one organization that was asked for, else of all that one sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from mirix.admin_base import organization_ids
from mirix.tenants.models import Organization
from mirix.text import clean_text

PARAMETER = "organization"
MAX_TOGETHER = 50
"""Of so many organizations days are told together; of more, of the one that is chosen."""
MAX_CHOICES = 200


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The organizations of a page."""

    chosen: Organization | None
    """The one that was asked for, or the only one."""
    choices: list[Organization]
    """What the user may choose from, by name; at most `MAX_CHOICES`."""
    ids: list[str] | None
    """None stands for all, where they are too many to be named."""
    unknown: bool
    """Whether one was asked for that is not there, or not the user's."""

    most = MAX_TOGETHER

    @property
    def is_choice(self) -> bool:
        """Return whether there is anything to choose."""
        return len(self.choices) > 1

    def rows(self, model: Any) -> QuerySet:
        """Return the rows of a model that belong to these organizations."""
        return model.objects.for_organizations(self.ids)

    def link(self, model: str, **filters: Any) -> str:
        """Return the address of a model's list (`skills_skill`), filtered, and to these organizations."""
        if self.is_choice and self.chosen is not None:
            filters[PARAMETER] = self.chosen.pk
        query = urlencode(filters, safe=":")
        return reverse(f"admin:{model}_changelist") + (f"?{query}" if query else "")


def scope_of(request: HttpRequest) -> Scope:
    """Return what the address asks for, of what the user may see; at most two queries."""
    visible = Organization.objects.for_organizations(organization_ids(request))
    choices = list(visible.order_by("name", "pk")[: MAX_CHOICES + 1])
    asked = clean_text(request.GET.get(PARAMETER, "")).strip()
    chosen = next((each for each in choices if each.pk == asked), None)
    if chosen is None and asked and len(choices) > MAX_CHOICES:
        chosen = visible.filter(pk=asked).first()
    if chosen is None and len(choices) == 1:
        chosen = choices[0]
    return Scope(
        chosen=chosen,
        choices=choices[:MAX_CHOICES],
        ids=[chosen.pk] if chosen else _together(request, choices),
        unknown=bool(asked) and (chosen is None or chosen.pk != asked),
    )


def _together(request: HttpRequest, choices: list[Organization]) -> list[str] | None:
    if len(choices) <= MAX_TOGETHER:
        return [each.pk for each in choices]
    return organization_ids(request)
