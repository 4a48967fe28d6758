"""Experiences that evolution leaves alone until a person has looked at them.

A lesson is quarantined where it is stored, with the reason; who has the permission `release_quarantined`
releases it, and the next run may use it.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from mirix.tenants import audit
from mirix.tenants.audit import Act, Actor
from skills.models import SkillExperience, SkillRevision
from skills.review.reasons import require_reason

MAX_REASON_CHARS = 2_000


@transaction.atomic
def release_experience(*, experience: SkillExperience, actor: Actor, reason: str) -> bool:
    """Let evolution use an experience from now on; return whether it was quarantined.

    One that is not is left as it is, without an event: of two who release it the first one did. Why it was
    quarantined stays. Locks the row, and refreshes `experience`. Raises `ReasonRequired` for a blank reason
    and `SkillExperience.DoesNotExist` where it was erased meanwhile.
    """
    require_reason(reason, "a release")
    # What it supports counts one session more: revisions are locked before experiences, as everywhere.
    supported = SkillRevision.objects.with_owner_of(experience).filter(experiences=experience)
    list(supported.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk", flat=True))
    rows = SkillExperience.objects.with_owner_of(experience).select_for_update(no_key=True)
    locked = rows.get(pk=experience.pk)
    if was_quarantined := locked.quarantined:
        locked.quarantined = False
        locked.released_at = timezone.now()
        locked.released_by_name = actor.name
        locked.release_reason = reason.strip()
        locked.save(update_fields=["quarantined", "released_at", "released_by_name", "release_reason"])
        # The trail outlives the experience: what people wrote about it stays with the row.
        audit.record(
            organization=experience.organization,
            actor=actor,
            action=Act.EXPERIENCE_RELEASED,
            target=locked,
        )
    experience.refresh_from_db()
    return was_quarantined
