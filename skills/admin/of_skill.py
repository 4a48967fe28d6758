"""What lists are filtered by where the page of a skill leads to them: what stands behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from mirix.admin_base import organization_ids
from mirix.tenants.querysets import OwnedQuerySet
from skills.models import Skill, SkillRevision
from skills.selectors.lineage import experiences_behind, sessions_behind


class OfSkillFilter(admin.SimpleListFilter):
    """By one skill. It is offered by links alone: a skill among very many is no choice for a list."""

    title = "skill"
    parameter_name = "skill"
    behind: Callable[..., OwnedQuerySet]
    """Returns what belongs to the skill."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Name the skill that was asked for."""
        if not (asked := self.value()):
            return []
        skill = self._skill(request)
        return [(asked, skill.name if skill else "none of yours")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Narrow the list to what belongs to the skill; to nothing where there is none, or a stranger's."""
        if not self.value():
            return queryset
        skill = self._skill(request)
        return (
            queryset.filter(pk__in=type(self).behind(skill=skill).values("pk")) if skill else queryset.none()
        )

    def _skill(self, request: HttpRequest) -> Skill | None:
        if "_found" not in self.__dict__:
            rows = Skill.objects.for_organizations(organization_ids(request))
            self.__dict__["_found"] = rows.filter(pk=self.value()).first()
        found: Skill | None = self.__dict__["_found"]
        return found


def _revisions(*, skill: Skill) -> OwnedQuerySet:
    rows: OwnedQuerySet = SkillRevision.objects.with_owner_of(skill)
    return rows.filter(skill=skill)


class SessionsOfSkill(OfSkillFilter):
    """The sessions that a skill was learned from."""

    behind = staticmethod(sessions_behind)


class ExperiencesOfSkill(OfSkillFilter):
    """The experiences that a skill rests on."""

    behind = staticmethod(experiences_behind)


class RevisionsOfSkill(OfSkillFilter):
    """The revisions of a skill."""

    behind = staticmethod(_revisions)
