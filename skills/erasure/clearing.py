"""What an owner's skills and proposals were made of goes: each text goes too, or stays without a word of it.

A text is touched where something that goes stands behind it, or behind a text that it was made of, its own
or another skill's that was merged into it. It stays only where it says nothing that what goes alone said
(`traces`). A skill that has to say something else then says the last text that stays, with the changes that
others made since as far as they stand without the rest; it is set aside, and a proposal asks whether it may
be used again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from conversations.models import ConversationMessage
from mirix.tenants.erasure import Erasing
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner
from skills.content import Content
from skills.erasure.carrying import carried
from skills.erasure.owners import SUPPORT
from skills.erasure.removal import remove_revisions, remove_skills
from skills.erasure.reviewing import back_to_review, give_back
from skills.erasure.traces import has_traces, words_of
from skills.models import (
    ReviewDecision,
    RevisionState,
    Skill,
    SkillDocument,
    SkillEmbedding,
    SkillExperience,
    SkillPosting,
    SkillRevision,
)
from skills.review.support import sessions_behind
from skills.review.validation import content_errors

SAID = ("title", "content", "topic", "quote", "details", "filter_tags", "release_reason", "quarantine_reason")
LINKS = ("base", "supersedes", "merged_from")
CHANGED = (Skill, SkillRevision, ReviewDecision, SkillDocument, SkillPosting, SkillEmbedding)
LOST_SUPPORT = "Some of the sessions behind it were erased."
LOST_TEXT = "A skill that was merged into it was erased, and what it had of that one went as well."

Group = str
"""A skill's key; of a proposal for a new one, its own."""


@dataclass
class Clearing:
    """One owner's skills and proposals, while something that they were made of goes."""

    owner: Owner
    erasing: Erasing
    lessons: Collection[str] = ()
    """Experiences that go: all that rests on them is touched."""
    skill: str = ""
    """A skill that goes: all that was made of it is touched. The lessons behind it stay, and stay used up."""
    words: frozenset[str] = frozenset()
    """Of what goes, apart from the texts of skills."""
    _groups: dict[Group, list[SkillRevision]] = field(default_factory=dict)

    @cached_property
    def links(self) -> dict[str, tuple[str | None, ...]]:
        """Each revision's skill and what it was made of; the oldest first."""
        rows = SkillRevision.objects.for_owner(self.owner).order_by("created_at", "pk")
        return {row[0]: row[1:] for row in rows.values_list("pk", "skill", *LINKS)}

    @cached_property
    def support(self) -> dict[str, set[str]]:
        """The lessons behind each revision."""
        found: dict[str, set[str]] = defaultdict(set)
        rows = SUPPORT.objects.filter(skillrevision__end_user=self.owner.end_user)
        for revision, experience in rows.values_list("skillrevision", "skillexperience"):
            found[revision].add(experience)
        return found

    @cached_property
    def touched(self) -> set[str]:
        """The revisions that rest on what goes, or on a text that does."""
        gone = set(self.lessons)
        return self._made_of(
            {pk for pk, links in self.links.items() if links[0] == self.skill or self.support[pk] & gone}
        )

    def _made_of(self, begun: Iterable[str]) -> set[str]:
        """Return these revisions and all that were made of them, be it by way of others."""
        later: dict[str, list[str]] = defaultdict(list)
        for pk, links in self.links.items():
            for link in links[1:]:
                if link is not None:
                    later[link].append(pk)
        found, waiting = set(), list(begun)
        while waiting:
            pk = waiting.pop()
            if pk not in found:
                found.add(pk)
                waiting += later[pk]
        return found

    def clear(self) -> None:
        """Go through the skills and the proposals for new ones; a skill that goes is last."""
        self.erasing.changed(*CHANGED)
        keys = {pk: self.links[pk][0] or pk for pk in self.touched}
        self._groups = self._read(set(keys.values()))
        of_skill = {row.pk: row for row in self._skills(self._groups)}
        whole = {key for key in self._groups if self._goes_whole(key)}
        for key in self._groups:
            if key not in whole:
                self._clear(of_skill.get(key), self._groups[key], self._words_for(key, whole))
        # Last, since what was made of their texts is told by their rows.
        remove_skills(sorted(whole & of_skill.keys()), self.erasing)
        remove_revisions(
            [row.pk for key in whole - of_skill.keys() for row in self._groups[key]], self.erasing
        )

    def _read(self, keys: Collection[Group]) -> dict[Group, list[SkillRevision]]:
        wanted = [pk for pk, links in self.links.items() if (links[0] or pk) in keys]
        rows = SkillRevision.objects.for_owner(self.owner).filter(pk__in=wanted)
        found: dict[Group, list[SkillRevision]] = defaultdict(list)
        for row in rows.order_by("created_at", "pk"):
            found[row.skill_id or row.pk].append(row)
        return found

    def _skills(self, keys: Iterable[Group]) -> Iterable[Skill]:
        rows = Skill.objects.for_owner(self.owner).filter(pk__in=list(keys))
        return rows.select_related("organization", "end_user")

    def _goes_whole(self, key: Group) -> bool:
        """Whether nothing is known of a skill but by what goes."""
        rows = self._groups[key]
        return key == self.skill or not (self._left(rows) or any(row.pk not in self.touched for row in rows))

    def _words_for(self, key: Group, whole: Collection[Group]) -> frozenset[str]:
        """Return the words of what goes, and of the skills that go and that this one took in."""
        found = self.words
        for other in whole:
            rows = self._groups[other]
            if self._made_of(row.pk for row in rows) & {row.pk for row in self._groups[key]}:
                found |= words_of(value for row in rows for value in _texts(row))
        return found

    def _clear(self, skill: Skill | None, rows: list[SkillRevision], erased: frozenset[str]) -> None:
        """Decide what stays of one skill, or of one proposal for a new one."""
        left = self._left(rows)
        # Transcripts may have what search served of a skill that goes: they vouch for none of its words.
        said = self.said_by(left) if self.lessons else _lessons(left)
        kept = words_of(said) | words_of(
            value for row in rows if row.pk not in self.touched for value in _texts(row)
        )
        going = [
            row
            for row in rows
            if row.pk in self.touched and has_traces(_texts(row), erased=erased, kept=kept)
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
                self._back_to_review(skill, published, rows, erased=erased, kept=kept)
            remove_revisions([row.pk for row in going], self.erasing)
        give_back(organization=self.owner.organization, end_user=self.owner.end_user, experiences=left)

    def _is_to_be_reviewed(self, skill: Skill, going: Iterable[SkillRevision]) -> bool:
        """Whether what the skill says today goes, or has lost support."""
        current = skill.current_revision_id
        if current in {row.pk for row in going}:
            return True
        return bool(self.lessons) and current in self.touched

    def _back_to_review(
        self,
        skill: Skill,
        published: list[SkillRevision],
        rows: list[SkillRevision],
        *,
        erased: frozenset[str],
        kept: frozenset[str],
    ) -> None:
        says = published[-1]
        content, since = Content.of(says), []
        for row in rows[rows.index(says) + 1 :]:
            change = self._change(row, content, erased=erased, kept=kept)
            if change != content and not content_errors(change):
                content = change
                since.append(row)
        support = self._left([*published, *since])
        reason, left = _why(sessions_behind(support), lost_support=bool(self.lessons))
        back_to_review(skill=skill, says=says, content=content, support=support, reason=reason, left=left)

    def _change(
        self, row: SkillRevision, content: Content, *, erased: frozenset[str], kept: frozenset[str]
    ) -> Content:
        """Return `content` with what a version changed and may stay; what it took in may not."""
        base = next(
            (found for found in self._groups[row.skill_id or row.pk] if found.pk == row.base_id), None
        )
        took_in = row.merged_from_id in self.touched or self.support[row.pk] & set(self.lessons)
        if row.state != RevisionState.PUBLISHED or base is None or took_in:
            return content
        return carried(
            base=Content.of(base),
            left=content,
            mine=Content.of(row),
            may_stay=lambda value: not has_traces([value], erased=erased, kept=kept),
        )

    def _left(self, rows: Iterable[SkillRevision]) -> list[SkillExperience]:
        """Return the lessons behind these that stay, and that they do not have from a skill that goes."""
        gone = set(self.lessons)
        for pk, links in self.links.items():
            if links[0] == self.skill:
                gone |= self.support[pk]
        for row in rows:
            if row.pk not in self.touched:
                gone -= self.support[row.pk]
        pks = {pk for row in rows for pk in self.support[row.pk]} - gone
        found = SkillExperience.objects.for_owner(self.owner).filter(pk__in=pks)
        return list(found.select_related("session").order_by("created_at", "pk"))

    def said_by(
        self, experiences: Collection[SkillExperience], *, client: Client | None = None
    ) -> Iterable[Any]:
        """Yield what lessons say, and the turns of their sessions; of a client, those that it sent."""
        yield from _lessons(experiences)
        sessions = {experience.session_id for experience in experiences}
        turns = ConversationMessage.objects.for_owner(self.owner).filter(session__in=sessions)
        if client is not None:
            turns = turns.filter(client=client)
        for content, calls in turns.values_list("content", "tool_calls").iterator():
            yield content
            yield calls

    def _blank(self, row: SkillRevision, erased: frozenset[str], kept: frozenset[str]) -> None:
        """Take out of a touched revision whatever is said about it that has traces."""
        is_merge = row.merged_from_id is not None and self.links[row.merged_from_id][0] == self.skill

        def has(value: Any) -> bool:
            return is_merge or has_traces([value], erased=erased, kept=kept)

        blanks: Mapping[str, Any] = {"rationale": "", "unsupported": [], "source": None}
        for name, empty in blanks.items():
            if has(getattr(row, name)):
                setattr(row, name, empty)
        row.save(update_fields=list(blanks))
        for decision in ReviewDecision.objects.for_organization(self.owner.organization).filter(revision=row):
            if has(decision.reason):
                decision.reason = ""
                decision.save(update_fields=["reason"])


def _lessons(experiences: Iterable[SkillExperience]) -> Iterable[Any]:
    """Yield what lessons say."""
    return (getattr(experience, name) for experience in experiences for name in SAID)


def _why(sessions: int, *, lost_support: bool) -> tuple[str, str]:
    """Return why a skill goes back to review, and what still speaks for it."""
    others = " others" if sessions != 1 else " other"
    who = f"{sessions}{others} still" if lost_support else f"{sessions} session{'s' * (sessions != 1)}"
    if not sessions:
        who = "no other" if lost_support else "no session"
    return LOST_SUPPORT if lost_support else LOST_TEXT, f"{who} speak{'s' * (sessions < 2)} for it"


def _texts(row: SkillRevision | Content) -> list[Any]:
    """Return what a revision says; its kind is none of anybody's words."""
    content = row if isinstance(row, Content) else Content.of(row)
    return [value for name, value in content.as_fields().items() if name != "entry_type"]
