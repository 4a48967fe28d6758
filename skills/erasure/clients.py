"""What was learned of a client's sessions goes; what others' sessions speak for as well goes back to review.

A lesson goes with the session that it was drawn from, where the client had any part in it. A revision is
touched where such a lesson stands behind it, or behind a text that it was made of. Of a skill of which
nothing but that is known, everything goes. Else a touched text stays only where it says nothing that the
erased lessons alone said (`traces`); a skill then says the last text that stays, is set aside, and a proposal
asks whether it may be used again. Where no text stays, the remaining lessons are pending again, and the next
run proposes from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from conversations.erasure import touched_sessions
from conversations.models import ConversationMessage
from mirix.tenants.erasure import Erasing
from mirix.tenants.models import Client, EndUser, Organization
from mirix.tenants.owners import Owner
from skills.content import Content
from skills.erasure.owners import SUPPORT, lock_owned
from skills.erasure.reviewing import back_to_review, give_back
from skills.erasure.runs import drop_answers, end_runs
from skills.erasure.single import remove_revisions, remove_skills
from skills.erasure.traces import has_traces, words_of
from skills.models import (
    DistillationAttempt,
    ExperienceStatus,
    ReviewDecision,
    RevisionState,
    RunTrigger,
    SearchEvent,
    Skill,
    SkillExperience,
    SkillRevision,
)
from skills.triggers import automatic_parameters, request_run

SAID = ("title", "content", "topic", "quote", "details", "filter_tags", "release_reason", "quarantine_reason")
LINKS = ("base_id", "supersedes_id", "merged_from_id")


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
            _Learned(client, end_user, own, erasing).clear()
    drop_answers(end_users, erasing)
    erasing.delete(SUPPORT.objects.filter(skillexperience__in=list(erased)))
    erasing.delete(experiences.filter(pk__in=list(erased)))
    attempts = DistillationAttempt.objects.with_organization_of(client)
    erasing.delete(attempts.filter(session__in=sessions))


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


@dataclass
class _Learned:
    """What an end user's skills and proposals say, and on whose word."""

    client: Client
    end_user: EndUser
    erased: Mapping[str, SkillExperience]
    erasing: Erasing
    dropped: set[str] = field(default_factory=set)

    @property
    def organization(self) -> Organization:
        return self.client.organization

    @cached_property
    def revisions(self) -> dict[str, SkillRevision]:
        """All of the end user's, the oldest first."""
        rows = SkillRevision.objects.for_organization(self.organization).filter(end_user=self.end_user)
        return {row.pk: row for row in rows.order_by("created_at", "pk")}

    @cached_property
    def support(self) -> dict[str, set[str]]:
        """The lessons behind each revision."""
        found: dict[str, set[str]] = defaultdict(set)
        rows = SUPPORT.objects.filter(skillrevision__in=list(self.revisions))
        for revision, experience in rows.values_list("skillrevision", "skillexperience"):
            found[revision].add(experience)
        return found

    @cached_property
    def touched(self) -> set[str]:
        """The revisions that an erased lesson stands behind, or behind a text that they were made of."""
        found = {pk for pk in self.revisions if self.support[pk] & self.erased.keys()}
        while True:
            more = {
                pk
                for pk, row in self.revisions.items()
                if pk not in found and any(getattr(row, link) in found for link in LINKS)
            }
            if not more:
                return found
            found |= more

    def clear(self) -> None:
        """Go through the skills and the proposals for new ones."""
        self.erasing.changed(Skill, SkillRevision, ReviewDecision)
        groups: dict[str, list[SkillRevision]] = defaultdict(list)
        for row in self.revisions.values():
            groups[row.skill_id or row.pk].append(row)
        skills = Skill.objects.for_organization(self.organization).filter(end_user=self.end_user)
        of_skill = {row.pk: row for row in skills.select_related("organization", "end_user")}
        for key, rows in groups.items():
            if self.touched & {row.pk for row in rows}:
                self._clear(of_skill.get(key), rows)

    def _clear(self, skill: Skill | None, rows: list[SkillRevision]) -> None:
        """Decide what stays of one skill, or of one proposal for a new one."""
        left = self._left(rows)
        is_known = bool(left) or any(row.pk not in self.touched for row in rows)
        erased = words_of(self._said_by(self.erased.values(), of_client=True))
        kept = words_of(self._said_by(left)) | words_of(
            value for row in rows if row.pk not in self.touched for value in _texts(row)
        )
        going = [
            row
            for row in rows
            if row.pk in self.touched and (not is_known or has_traces(_texts(row), erased=erased, kept=kept))
        ]
        staying = [row for row in rows if row not in going]
        self.erasing.forget_log(SkillRevision, [row.pk for row in staying])
        if skill is not None:
            self.erasing.forget_log(Skill, [skill.pk])
        for row in staying:
            if row.pk in self.touched:
                self._blank(row, erased, kept)
        published = [row for row in staying if row.state == RevisionState.PUBLISHED]
        if skill is not None and not published:
            remove_skills([skill.pk], self.erasing)
        else:
            if skill is not None and self._is_to_be_reviewed(skill, going):
                back_to_review(skill=skill, says=published[-1], support=self._left(published))
            remove_revisions([row.pk for row in going], self.erasing)
        give_back(organization=self.organization, end_user=self.end_user, experiences=left)

    def _is_to_be_reviewed(self, skill: Skill, going: Iterable[SkillRevision]) -> bool:
        """Whether what the skill says today has lost support, or goes."""
        current = skill.current_revision_id
        return current in self.touched or current in {row.pk for row in going}

    def _left(self, rows: Iterable[SkillRevision]) -> list[SkillExperience]:
        pks = {pk for row in rows for pk in self.support[row.pk]} - self.erased.keys()
        found = SkillExperience.objects.for_organization(self.organization).filter(pk__in=pks)
        return list(found.select_related("session").order_by("created_at", "pk"))

    def _said_by(self, experiences: Collection[SkillExperience], *, of_client: bool = False) -> Iterable[Any]:
        """Yield what lessons say, and the turns of their sessions; of erased ones those of the client."""
        for experience in experiences:
            yield from (getattr(experience, name) for name in SAID)
        sessions = {experience.session_id for experience in experiences}
        turns = ConversationMessage.objects.for_organization(self.organization).filter(session__in=sessions)
        if of_client:
            turns = turns.filter(client=self.client)
        for content, calls in turns.values_list("content", "tool_calls").iterator():
            yield content
            yield calls

    def _blank(self, row: SkillRevision, erased: frozenset[str], kept: frozenset[str]) -> None:
        """Take out of a touched revision whatever is said about it that has traces."""
        for name, empty in (("rationale", ""), ("unsupported", []), ("source", None)):
            if has_traces([getattr(row, name)], erased=erased, kept=kept):
                setattr(row, name, empty)
        row.save(update_fields=["rationale", "unsupported", "source"])
        for decision in ReviewDecision.objects.for_organization(self.organization).filter(revision=row):
            if has_traces([decision.reason], erased=erased, kept=kept):
                decision.reason = ""
                decision.save(update_fields=["reason"])


def _texts(row: SkillRevision) -> list[Any]:
    return list(Content.of(row).as_fields().values())
