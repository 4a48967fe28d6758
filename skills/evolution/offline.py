"""The offline proposer: experiences of one topic become one skill, or a better one, by rules. Pure.

What it writes is a page (`page`) with a card (`cards`); each experience adds its points (`points`) unless the
page says them already. So it edits its own pages and those of people alike, and the same lessons again
change nothing. An edit stays within the gates: what does not fit makes another operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mirix.text import clean_json, clean_text
from skills.content import Content
from skills.evolution import cards
from skills.evolution.clusters import main_topic, overlap, task_words, weight
from skills.evolution.facts import Facts, topic_parts
from skills.evolution.gates import DEFAULT_LIMITS, Limits, size_refusals
from skills.evolution.near import slug_stem
from skills.evolution.page import Page
from skills.evolution.points import (
    Point,
    Remedy,
    frame,
    is_actionable,
    is_constructive,
    points,
    shared_points,
    support_of,
)
from skills.evolution.types import Action, ExperienceView, Operation, SkillView
from skills.evolution.voices import voices
from skills.evolution.words import content_words


class OfflineProposer:
    """Proposes by rules; needs no model and no network."""

    name = "offline"

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits

    def is_ready(self, experiences: Sequence[ExperienceView], candidates: Sequence[SkillView]) -> bool:
        """Return whether experiences of one topic are enough to propose from; else they wait for more.

        What one user had to correct once, and did not put as a rule, waits for a second session or for a
        skill on its topic: a skill of its own for every such remark would bury the others; a copy of the
        session is no second one. An error that nothing is known to help against waits for as long as that
        is so.
        """
        usable = _usable(experiences)
        if usable and find_target(main_topic(usable), usable, candidates):
            return True
        telling = [experience for experience in usable if is_actionable(experience)]
        return any(map(is_constructive, telling)) or voices(telling) > 1

    def propose(
        self, experiences: Sequence[ExperienceView], candidates: Sequence[SkillView]
    ) -> list[Operation]:
        """Return the operations that write these experiences, all of one topic, into one skill.

        A create, or edits in a chain, each of which starts from the text that the one before leaves. A
        `confirm` comes first where experiences say what the text says already.
        """
        usable = _usable(experiences)
        if not usable:
            return []
        topic = main_topic(usable)
        target = find_target(topic, usable, candidates)
        writer = _Writer(topic, usable, self.limits, target.support if target else ())
        return writer.edits(target) if target else writer.create()


def bears_out(experience: ExperienceView) -> bool:
    """Return whether an experience supports what its topic's skill says without adding to it: it worked."""
    return Facts.of(experience).pattern == "user_confirmation"


def _usable(experiences: Sequence[ExperienceView]) -> list[ExperienceView]:
    """Return the experiences that say something or bear something out, the weightiest first.

    Their texts are cleaned like those that are written, or what was written would not be known again.
    """
    clean = map(_cleaned, experiences)
    usable = [experience for experience in clean if points(experience) or bears_out(experience)]
    return sorted(usable, key=lambda experience: (-weight(experience), experience.id))


def _cleaned(experience: ExperienceView) -> ExperienceView:
    return replace(
        experience,
        topic=clean_text(experience.topic),
        title=clean_text(experience.title),
        content=clean_text(experience.content),
        quote=clean_text(experience.quote),
        details=clean_json(experience.details),
    )


def find_target(
    topic: str, experiences: Sequence[ExperienceView], candidates: Sequence[SkillView]
) -> SkillView | None:
    """Return the candidate that a topic belongs to: of its name, else about the tool or task; or None."""
    stem = slug_stem(cards.skill_name(topic))
    named = [view for view in candidates if slug_stem(view.content.name) == stem]
    if named:
        return named[0]
    kind, name = topic_parts(topic)
    if kind == "tool":
        return next((view for view in candidates if is_about_tool(view.content, name)), None)
    wanted = task_words(topic, experiences)
    return next((view for view in candidates if overlap(wanted, _card_words(view.content))), None)


def is_about_tool(content: Content, tool: str) -> bool:
    """Return whether a skill says by its triggers or its description that it is about a tool."""
    return tool in content.triggers or f"`{tool}`" in content.description


def _card_words(content: Content) -> frozenset[str]:
    return content_words(" ".join([content.name, content.description, *map(str, content.triggers)]))


class _Writer:
    """Writes the experiences of one topic."""

    def __init__(
        self,
        topic: str,
        experiences: Sequence[ExperienceView],
        limits: Limits,
        support: Sequence[ExperienceView],
    ) -> None:
        self.topic, self.experiences, self.limits = topic, experiences, limits
        self.sessions = support_of({row.id: row for row in [*support, *experiences]}.values())
        self.remedies: dict[str, dict[str, int]] = {}
        for point, count in self.sessions.items():
            if isinstance(point, Remedy):
                self.remedies.setdefault(point.error, {})[point.clause] = count
        self.extra = shared_points(experiences)
        kind, name = topic_parts(topic)
        self.tool = name if kind == "tool" else ""

    def create(self) -> list[Operation]:
        """Write a new skill of as many experiences as its limit takes, what most sessions teach first."""
        page, cited = Page(), []
        for experience in sorted(self.experiences, key=self._sessions_behind, reverse=True):
            trial = Page(page.text)
            self._write(trial, experience)
            if len(trial.text) <= self.limits.max_instructions_chars:
                page = trial
                cited.append(experience)
        if not page.text:
            return []
        content = Content(
            name=cards.skill_name(self.topic),
            description=clean_text(cards.describe(self.topic, cited)),
            instructions=clean_text(page.text),
            triggers=[clean_text(trigger) for trigger in cards.triggers_for(self.topic, cited)],
        )
        return [self._operation("create", content, cited, None)]

    def edits(self, target: SkillView) -> list[Operation]:
        """Write what is new into an existing text, in steps that pass the gates."""
        operations: list[Operation] = []
        confirming: list[ExperienceView] = []
        start, draft, cited = target, target.content, list[ExperienceView]()
        for experience in self.experiences:
            widened = self._widened(draft, experience)
            if widened == draft:
                (cited if draft != start.content else confirming).append(experience)
                continue
            if size_refusals(start.content, widened, self.limits) and draft != start.content:
                operations.append(self._operation("edit", draft, cited, start))
                start, cited = replace(start, content=draft), []
                widened = self._widened(draft, experience)
            if size_refusals(start.content, widened, self.limits):
                # Too large for any edit of this text: refused alone, on the record.
                operations.append(self._operation("edit", widened, [experience], start))
                continue
            draft = widened
            cited.append(experience)
        if draft != start.content:
            operations.append(self._operation("edit", draft, cited, start))
        if confirming:
            operations.insert(0, self._operation("confirm", target.content, confirming, target))
        return operations

    def _widened(self, content: Content, experience: ExperienceView) -> Content:
        """Return a content with what an experience adds to it; itself where that is nothing."""
        page = Page(content.instructions)
        if not self._write(page, experience):
            return content
        return replace(
            content,
            instructions=clean_text(page.text),
            description=clean_text(cards.widen_description(content.description, [experience])),
            triggers=[
                clean_text(text) for text in cards.widen_triggers(self.topic, content.triggers, [experience])
            ],
        )

    def _write(self, page: Page, experience: ExperienceView) -> bool:
        """Write the points of an experience on a page; return whether that changed anything."""
        mine: list[Point] = [*points(experience), *self.extra.get(experience.id, [])]
        changed = frame(page, self.tool, experience)
        for point in mine:
            if isinstance(point, Remedy):
                changed |= point.add_to(page, self.remedies.get(point.error, {}))
            else:
                changed |= point.add_to(page)
        return changed

    def _sessions_behind(self, experience: ExperienceView) -> int:
        """Return how many sessions teach what an experience teaches, the best supported point of it."""
        return max((self.sessions[point] for point in points(experience)), default=0)

    def _operation(
        self, action: Action, content: Content, cited: Sequence[ExperienceView], target: SkillView | None
    ) -> Operation:
        sessions = len({experience.voice for experience in cited})
        lessons = "1 lesson" if len(cited) == 1 else f"{len(cited)} lessons"
        origin = "1 session" if sessions == 1 else f"{sessions} sessions"
        return Operation(
            action=action,
            content=content,
            experience_ids=tuple(experience.id for experience in cited),
            rationale=f"{lessons} from {origin} about {cards.words_of_topic(self.topic) or 'this task'}.",
            target=target,
        )
