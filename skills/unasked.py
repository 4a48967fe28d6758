"""Lessons that no model was asked about yet, for want of budget, of tokens or of an answer.

A run leaves them pending, and the owner's next one goes on. Where no session comes that would begin one, the
worker begins it after a day.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from mirix.tenants.models import EndUser
from mirix.tenants.owners import Owner
from skills.evolution.llm import LlmProposer, get_proposer
from skills.models import AutoDreamRun, ExperienceStatus, SkillExperience
from skills.triggers import OPEN, request_automatic

REST = timedelta(days=1)
"""How long an owner's last run must be over; the day's tokens are others by then."""


def trigger_unasked() -> int:
    """Queue a run for every owner who has such lessons and had no run for a day; return how many.

    Only a verified lesson makes a question. What rules leave waits for more, and not for a run.
    """
    by_itself = settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD > 0
    if not by_itself or not isinstance(get_proposer(), LlmProposer):
        return 0
    waiting = SkillExperience.objects.filter(
        status=ExperienceStatus.PENDING, quarantined=False, verified=True, considered_by=""
    )
    own = AutoDreamRun.objects.filter(end_user=OuterRef("pk"))
    end_users = EndUser.objects.select_related("organization").filter(
        ~Exists(own.filter(OPEN)),
        ~Exists(own.filter(finished_at__gt=Now() - REST)),
        pk__in=waiting.values("end_user"),
    )
    found = list(end_users.order_by("pk"))
    owners = [Owner(organization=end_user.organization, end_user=end_user) for end_user in found]
    return sum(request_automatic(owner=owner) is not None for owner in owners)
