"""One skill goes, with its past and whatever was made of it; the lessons behind it stay used up."""

from __future__ import annotations

from mirix.tenants.audit import Actor
from mirix.tenants.erasure import Erasing, NothingThere, erase_rows
from mirix.tenants.models import ErasedKind, ErasureReceipt
from mirix.tenants.owners import Owner
from skills.erasure.clearing import Clearing
from skills.erasure.owners import lock_owned
from skills.erasure.runs import drop_answers, end_runs
from skills.models import Skill


def erase_skill(*, skill: Skill, actor: Actor, dry_run: bool = False) -> ErasureReceipt:
    """Erase a skill with all revisions and decisions, what it left in other skills, and its indexes.

    A skill that it was merged into loses what it had of it, and goes back to review. The experiences behind
    it are its sessions' and stay, as used up: no run makes the same skill of them again. A run of the owner
    that is going on ends. Raises `NothingThere` where it is gone by now.
    """

    def act(erasing: Erasing) -> None:
        end_runs([skill.end_user_id], erasing)
        lock_owned(skill.organization, [skill.end_user_id])
        if not Skill.objects.with_owner_of(skill).filter(pk=skill.pk).exists():
            raise NothingThere(f"{skill.pk} is not there any more.")
        owner = Owner(organization=skill.organization, end_user=skill.end_user)
        Clearing(owner=owner, erasing=erasing, skill=skill.pk).clear()
        drop_answers([skill.end_user_id], erasing)

    return erase_rows(
        organization=skill.organization,
        kind=ErasedKind.SKILL,
        subject=skill,
        actor=actor,
        act=act,
        dry_run=dry_run,
    )
