"""Lessons that a newer one takes the place of: which one did is named, and shown both ways.

Nothing else makes an experience superseded. What is pending alone gives way: what stands behind a text was
used, and stays what it rests on.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from conversations.models import Session
from mirix.tenants.owners import Owner
from skills.evolution.words import content_words, words
from skills.models import ExperienceStatus, SkillExperience

SAME_TITLE = 0.8
"""The share of the words of two titles that is in both, from which on they say the same."""


class NotSuperseded(Exception):
    """The other one cannot take its place; the text says why."""


@transaction.atomic
def supersede(*, experience: SkillExperience, by: SkillExperience) -> None:
    """Let a newer experience of the same owner take the place of a pending one; evolution uses that then.

    Refreshes `experience`. Raises `NotSuperseded`, and writes nothing, where it is not pending, or the other
    is gone, older, set aside, superseded itself, or unverified beside one that is verified.
    """
    rows = SkillExperience.objects.with_owner_of(experience).select_related("session")
    rows = rows.select_for_update(no_key=True, of=("self",)).order_by("pk")
    locked = {row.pk: row for row in rows.filter(pk__in=[experience.pk, by.pk])}
    old, new = locked.get(experience.pk), locked.get(by.pk)
    if old is None or new is None:
        raise NotSuperseded(f"{experience.pk} and {by.pk} are not both there.")
    if reason := _unfit(old, new):
        raise NotSuperseded(reason)
    old.status = ExperienceStatus.SUPERSEDED
    old.superseded_by = new
    old.save(update_fields=["status", "superseded_by"])
    experience.refresh_from_db()


def supersede_retold(*, session: Session, experiences: Sequence[SkillExperience]) -> int:
    """Let what a session teaches anew take the place of what it taught before; return of how much.

    A session that went on speaks once for one lesson, in its latest words. In the caller's transaction.
    """
    new = [experience.pk for experience in experiences]
    earlier = SkillExperience.objects.filter(session=session, status=ExperienceStatus.PENDING)
    count = 0
    for old in earlier.exclude(pk__in=new).order_by("pk"):
        for experience in experiences:
            if is_retold(old, experience):
                try:
                    supersede(experience=old, by=experience)
                except NotSuperseded:
                    continue
                count += 1
                break
    return count


def is_retold(old: SkillExperience, new: SkillExperience) -> bool:
    """Return whether two lessons are of one topic and kind, and say the same in their titles."""
    if (old.topic, old.experience_type) != (new.topic, new.experience_type):
        return False
    if _numbers(old.title) != _numbers(new.title):
        return False
    mine, theirs = content_words(old.title), content_words(new.title)
    return bool(mine) and len(mine & theirs) >= SAME_TITLE * len(mine | theirs)


def _numbers(text: str) -> list[str]:
    return sorted(word for word in words(text) if word.isdigit())


def revive_orphans(*, owner: Owner) -> int:
    """Make those pending again whose newer one was erased: nothing stands in their place; return how many.

    Those that were imported as superseded never named one, and stay so.
    """
    orphans = SkillExperience.objects.for_owner(owner).filter(
        status=ExperienceStatus.SUPERSEDED, superseded_by=None, attempt__isnull=False
    )
    return orphans.update(status=ExperienceStatus.PENDING, considered_by="")


def _unfit(old: SkillExperience, new: SkillExperience) -> str:
    """Return why `new` cannot take the place of `old`; nothing where it can."""
    if old.status != ExperienceStatus.PENDING:
        return f"{old.pk} is {old.get_status_display().lower()} already."
    if not _is_newer(new, old):
        return f"{new.pk} is not newer than {old.pk}."
    if new.quarantined:
        return f"{new.pk} is quarantined."
    if new.status == ExperienceStatus.SUPERSEDED:
        return f"{new.pk} is superseded itself."
    if old.verified and not new.verified:
        return f"{new.pk} is not verified, and {old.pk} is."
    return ""


def _is_newer(one: SkillExperience, other: SkillExperience) -> bool:
    """Return whether the words that one rests on were said later."""
    if one.session_id == other.session_id:
        return (one.turn_seq or 0) > (other.turn_seq or 0)
    one_at, other_at = one.session.last_turn_at, other.session.last_turn_at
    return one_at is not None and other_at is not None and one_at > other_at
