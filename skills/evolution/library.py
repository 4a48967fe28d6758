"""What an owner's skills say, when a run looks for what to edit and for what would be one too many.

A snapshot: skills of every status, open proposals, rejected revisions. Read anew after each write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from django.conf import settings
from django.db.models import Q

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.evolution.cards import skill_name
from skills.evolution.clusters import error_of, kind_of_error, says_of_the_same, task_words
from skills.evolution.facts import topic_parts
from skills.evolution.meaning import Meaning
from skills.evolution.memory import rejected_of
from skills.evolution.near import NEAR_JACCARD, Fingerprint, Nearness, nearest, slug_stem
from skills.evolution.rejected import Line, Rejected, Return, holds, lines_back
from skills.evolution.types import ExperienceView, Operation, SkillView
from skills.evolution.views import experience_view
from skills.evolution.voices import voices
from skills.evolution.words import content_words
from skills.models import (
    ExperienceStatus,
    RevisionState,
    SignalType,
    Skill,
    SkillExperience,
    SkillRevision,
    SkillStatus,
)
from skills.search.service import search
from skills.selectors.skills import merged_skills

MAX_CANDIDATES = 8
MAX_FOUND = 4
MAX_TITLES = 5
MAX_SUPPORT = 500
MAX_QUOTES = 5_000
MIN_SHARED_WORDS = 2


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One skill or pending new skill: the text to edit, and every text that counts for nearness.

    A new text that is near to a skill which was merged into another one belongs to that one.
    """

    view: SkillView
    own: tuple[Content, ...]
    """What it says today: its published text, and that of its open proposal."""
    taken_in: tuple[Content, ...] = ()
    """What the skills said that were merged into it."""
    revision_id: str | None
    """The revision that says what the view does: the open proposal, or the published one."""

    @property
    def texts(self) -> tuple[Content, ...]:
        """Every text that counts for nearness."""
        return self.own + self.taken_in

    @cached_property
    def prints(self) -> tuple[Fingerprint, ...]:
        """The fingerprints of `texts`, without vectors."""
        return tuple(map(Fingerprint.of, self.texts))

    @property
    def key(self) -> str:
        """The skill's id; of a pending new skill, its open revision's."""
        return key_of(self.view)


def key_of(view: SkillView) -> str:
    """Return what identifies a text that may be edited, across the revisions of its proposal."""
    return view.key


class Library:
    """The texts of one owner at one moment; `meaning` knows what they mean, where anybody does."""

    def __init__(self, owner: Owner, meaning: Meaning | None = None) -> None:
        self.owner, self.meaning = owner, meaning
        self.entries = {entry.key: entry for entry in entries_of(owner)}
        self.rejected = rejected_of(owner)

    def get(self, key: str) -> SkillView | None:
        """Return the text of that key as it stands now; None when it is gone or decided."""
        entry = self.entries.get(key)
        return entry.view if entry else None

    def published(self, skill_id: str) -> Content | None:
        """Return what a skill says today, whatever waits for it."""
        entry = self.entries.get(skill_id)
        return entry.own[0] if entry else None

    def with_support(self, view: SkillView) -> SkillView:
        """Return a text with the latest experiences that it rests on, those of all its revisions.

        What is quarantined speaks for nothing.
        """
        behind = Q(revisions=view.revision_id) if view.revision_id else Q()
        if view.skill_id:
            behind |= Q(revisions__skill=view.skill_id)
        rows = SkillExperience.objects.for_owner(self.owner).filter(behind, quarantined=False)
        rows = rows.select_related("session")
        rows = rows.distinct().order_by("-pk")
        return replace(view, support=tuple(map(experience_view, rows[:MAX_SUPPORT])))

    def candidates(self, topic: str, experiences: Sequence[ExperienceView]) -> list[SkillView]:
        """Return the texts that lessons on a topic may belong to, the likeliest first.

        First those that bear its name, then those that mention the tool, then what search finds and what
        shares words with it or with its heaviest lessons: search knows active skills alone.
        """
        stem, (kind, name) = slug_stem(skill_name(topic)), topic_parts(topic)
        wanted = task_words(topic, experiences)
        told = content_words(" ".join([name, *(item.title for item in experiences[:MAX_TITLES])]))
        found = self._found_by_search(topic, experiences)
        ranked: list[tuple[tuple[bool, bool, int, int, int], SkillView]] = []
        for entry in self.entries.values():
            content = entry.view.content
            card = " ".join([content.name, content.description, *map(str, content.triggers)])
            named = any(print_.stem == stem for print_ in entry.prints)
            mentioned = kind == "tool" and name in f"{card}\n{content.instructions}"
            hit = found.get(entry.key, 0)
            words = content_words(card)
            shared, said = len(wanted & words), len(told & words)
            if named or mentioned or hit or max(shared, said) >= MIN_SHARED_WORDS:
                ranked.append(((named, mentioned, hit, shared, said), entry.view))
        ranked.sort(key=lambda item: item[0], reverse=True)
        return [view for _, view in ranked[:MAX_CANDIDATES]]

    def taught(self, lessons: Sequence[ExperienceView]) -> list[SkillView]:
        """Return the texts that others have taught which are about the same as these, active ones first.

        That is, lessons of their topics, or lessons that rest on the same error; with their support.
        """
        topics, errors = {lesson.topic for lesson in lessons} - {""}, set(map(error_of, lessons)) - {""}
        quotes = self._quotes_of(errors) if errors else []
        rows = SkillExperience.objects.for_owner(self.owner).filter(Q(topic__in=topics) | Q(quote__in=quotes))
        revisions = SkillRevision.objects.for_owner(self.owner).filter(
            state__in=(RevisionState.PROPOSED, RevisionState.PUBLISHED), experiences__in=rows.values("pk")
        )
        keys = {skill_id or pk for skill_id, pk in revisions.values_list("skill_id", "pk")}
        views = [self.with_support(view) for key in sorted(keys) if (view := self.get(key))]
        found = [
            (view.status != SkillStatus.ACTIVE, -akin, view)
            for view in views
            if (akin := sum(any(says_of_the_same(one, lesson) for lesson in lessons) for one in view.support))
        ]
        return [view for *_, view in sorted(found, key=lambda item: item[:2])[:MAX_CANDIDATES]]

    def _quotes_of(self, errors: Collection[str]) -> list[str]:
        """Return what lessons that are used quote where it is an error of one of these kinds."""
        used = SkillExperience.objects.for_owner(self.owner).filter(
            status=ExperienceStatus.CONSUMED, signal_type=SignalType.TOOL_ERROR
        )
        quotes = used.order_by("-pk").values_list("quote", flat=True)[:MAX_QUOTES]
        return [quote for quote in set(quotes) if kind_of_error(quote) in errors]

    def _found_by_search(self, topic: str, experiences: Sequence[ExperienceView]) -> dict[str, int]:
        """Return what search finds for a topic in the words of its heaviest lessons; the best has most."""
        words = [topic_parts(topic)[1], *(experience.title for experience in experiences[:MAX_TITLES])]
        result = search(
            organization=self.owner.organization,
            owner=self.owner,
            query=" ".join(words),
            method="hybrid",
            limit=MAX_FOUND,
        )
        return {hit.skill.pk: MAX_FOUND - place for place, hit in enumerate(result.hits)}

    def near(self, content: Content, *, except_key: str = "") -> tuple[SkillView, Nearness] | None:
        """Return the nearest near-duplicate among skills of every status and open proposals, and how near.

        May ask the embedding endpoint, and so may the others below: not within a transaction.
        """
        self._learn([content])
        cosine = settings.MIRIX_SKILL_NEAR_COSINE
        others = (pair for pair in self._prints() if pair[0] != except_key)
        found = nearest(self._print(content), others, cosine=cosine)
        return (self.entries[found[0]].view, found[1]) if found else None

    def newly_near(self, before: SkillView, after: Content) -> SkillView | None:
        """Return another text that an edit would come near to and that it was not near to before, or None.

        An edit may name the tools of another text: it goes on saying what it said before.
        """
        self._learn([before.content, after])
        own, cosine = key_of(before), settings.MIRIX_SKILL_NEAR_COSINE
        was, others = self._print(before.content), [pair for pair in self._prints() if pair[0] != own]
        near_already = {key for key, print_ in others if was.nearness(print_, cosine=cosine)}
        rest = (pair for pair in others if pair[0] not in near_already)
        found = nearest(replace(self._print(after), named=frozenset()), rest, cosine=cosine)
        return self.entries[found[0]].view if found else None

    def brought_back(self, operation: Operation, cited: Sequence[ExperienceView]) -> Iterator[Return]:
        """Yield what of an operation a person decided against, and how many new sessions speak for it.

        As a whole, where the rejected wanted the same: a near new skill, or as good as this change; taking a
        skill into use again is the same whatever it would say then. And line by line, wherever it stood.
        """
        for item in self._rejected_like(operation):
            yield Return(rejected=item, text="", new_voices=voices(cited, heard=item.support))
        yield from self.lines_back(operation, cited)

    def lines_back(self, operation: Operation, cited: Sequence[ExperienceView]) -> Iterator[Return]:
        """Yield the lines of an operation that a person decided against, but for what agents are told."""
        before = operation.target
        yield from lines_back(
            self.rejected,
            skill_id=before.skill_id if before else None,
            before=before.content if before else None,
            after=operation.content,
            cited=cited,
            in_use=self._in_use,
        )

    @cached_property
    def _in_use(self) -> Callable[[Line], bool]:
        active = (entry for entry in self.entries.values() if entry.view.status == SkillStatus.ACTIVE)
        return holds(entry.own[0] for entry in active)

    def _rejected_like(self, operation: Operation) -> list[Rejected]:
        before, after = operation.target, operation.content
        whole = [item for item in self.rejected if item.is_whole]
        if before is None:
            self._learn([after])
            own, cosine = self._print(after), settings.MIRIX_SKILL_NEAR_COSINE
            return [item for item in whole if own.nearness(self._print(item.content), cosine=cosine)]
        of_skill = [item for item in whole if item.skill_id == before.skill_id]
        if operation.action == "restore":
            return [item for item in of_skill if item.action == "restore"]
        added = Fingerprint.of(after).shingles - Fingerprint.of(before.content).shingles
        return [item for item in of_skill if added and len(added & item.added) >= NEAR_JACCARD * len(added)]

    def _learn(self, contents: Sequence[Content]) -> None:
        """Have it known what these texts mean, and those that they are compared with."""
        if self.meaning is not None:
            texts = [text for entry in self.entries.values() for text in entry.texts]
            self.meaning.learn(
                [*contents, *texts, *(item.content for item in self.rejected if item.is_whole)]
            )

    def _print(self, content: Content) -> Fingerprint:
        return Fingerprint.of(content, self.meaning.of(content) if self.meaning else ())

    def _prints(self) -> Iterator[tuple[str, Fingerprint]]:
        for entry in self.entries.values():
            for text, print_ in zip(entry.texts, entry.prints, strict=True):
                vector = self.meaning.of(text) if self.meaning else ()
                yield entry.key, replace(print_, vector=vector)


def entries_of(owner: Owner) -> list[Entry]:
    """Return the owner's skills of every status and pending new skills, the oldest first."""
    proposals = {
        revision.skill_id or revision.pk: revision
        for revision in SkillRevision.objects.for_owner(owner).filter(state=RevisionState.PROPOSED)
    }
    found: list[Entry] = []
    taken_in: dict[str, list[Content]] = {}
    into = merged_skills(owner=owner)
    for skill in Skill.objects.for_owner(owner).order_by("created_at", "pk"):
        published, proposal = Content.of(skill), proposals.pop(skill.pk, None)
        if proposal is None and skill.pk in into:
            taken_in.setdefault(into[skill.pk], []).append(published)
            continue
        content = Content.of(proposal) if proposal else published
        view = SkillView(
            skill_id=skill.pk,
            revision_id=proposal.pk if proposal else None,
            status=skill.status,
            content=content,
        )
        own = (published,) if content == published else (published, content)
        current = proposal.pk if proposal else skill.current_revision_id
        found.append(Entry(view=view, own=own, revision_id=current))
    found = [replace(entry, taken_in=tuple(taken_in.get(entry.key, ()))) for entry in found]
    for revision in sorted(proposals.values(), key=lambda revision: (revision.created_at, revision.pk)):
        content = Content.of(revision)
        view = SkillView(skill_id=None, revision_id=revision.pk, status="proposed", content=content)
        found.append(Entry(view=view, own=(content,), revision_id=revision.pk))
    return found
