"""What was learned of a client's sessions goes; what others' sessions speak for as well goes back to review.

A lesson goes with the session that it was drawn from, where the client had any part in it, and what rests on
it as `clearing` says. Of a skill of which nothing but that is known, everything goes. Where no text stays,
the remaining lessons are pending again, and the next run proposes from them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from conversations.erasure import touched_sessions
from mirix.tenants.erasure import Erasing
from mirix.tenants.models import Client, EndUser
from mirix.tenants.owners import Owner
from skills.erasure.clearing import Clearing
from skills.erasure.owners import SUPPORT, lock_owned
from skills.erasure.runs import drop_answers, end_runs
from skills.erasure.traces import words_of
from skills.models import (
    DistillationAttempt,
    ExperienceStatus,
    RunTrigger,
    SearchEvent,
    Skill,
    SkillExperience,
    SkillRevision,
)
from skills.triggers import automatic_parameters, request_run


def end_users_of_client(client: Client) -> set[str]:
    """Return the ids of the end users of whose sessions with a client something was learned, or asked."""
    found: set[str] = set()
    for model in (SkillExperience, SearchEvent):
        rows: Any = model.objects.with_organization_of(client)
        found.update(rows.filter(client=client).order_by().values_list("end_user", flat=True).distinct())
    return found - {None}


def lock_client(client: Client, end_users: Collection[str]) -> None:
    """Lock what belongs to these end users."""
    lock_owned(client.organization, end_users)


def erase_client(client: Client, end_users: Collection[str], erasing: Erasing) -> None:
    """Erase it, before the sessions themselves go."""
    searches = SearchEvent.objects.with_organization_of(client)
    erasing.delete(searches.filter(client=client))
    sessions = list(touched_sessions(client).values_list("pk", flat=True))
    experiences = SkillExperience.objects.with_organization_of(client)
    going = experiences.filter(session__in=sessions) | experiences.filter(client=client)
    erased = {row.pk: row for row in going.distinct()}
    learned = sorted(
        {
            *Skill.objects.with_organization_of(client)
            .filter(end_user__in=end_users)
            .values_list("end_user", flat=True),
            *SkillRevision.objects.with_organization_of(client)
            .filter(end_user__in=end_users)
            .values_list("end_user", flat=True),
        }
    )
    end_runs(end_users, erasing)
    for end_user in EndUser.objects.with_organization_of(client).filter(pk__in=learned):
        own = {pk: row for pk, row in erased.items() if row.end_user_id == end_user.pk}
        if own:
            _clear(client, end_user, own, erasing)
    drop_answers(end_users, erasing)
    erasing.delete(SUPPORT.objects.filter(skillexperience__in=list(erased)))
    erasing.delete(experiences.filter(pk__in=list(erased)))
    attempts = DistillationAttempt.objects.with_organization_of(client)
    erasing.delete(attempts.filter(session__in=sessions))


def _clear(client: Client, end_user: EndUser, erased: dict[str, SkillExperience], erasing: Erasing) -> None:
    owner = Owner(organization=client.organization, end_user=end_user)
    clearing = Clearing(owner=owner, erasing=erasing, lessons=erased.keys())
    clearing.words = words_of(clearing.said_by(erased.values(), client=client))
    clearing.clear()


def settle(end_user: EndUser) -> None:
    """Have a run look at the lessons that wait."""
    waiting = SkillExperience.objects.with_organization_of(end_user).filter(end_user=end_user)
    if waiting.filter(status=ExperienceStatus.PENDING).exists():
        owner = Owner(organization=end_user.organization, end_user=end_user)
        request_run(owner=owner, trigger=RunTrigger.AUTOMATIC, parameters=automatic_parameters())


def is_left(end_user: EndUser) -> bool:
    """Return whether anything that was learned for an end user is left."""
    return any(
        rows.with_organization_of(end_user).filter(end_user=end_user).exists()
        for rows in (Skill.objects, SkillRevision.objects, SkillExperience.objects, SearchEvent.objects)
    )
