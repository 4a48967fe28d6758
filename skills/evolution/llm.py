"""The proposer that asks a model: one question about each topic, and nothing in the answer is taken on trust.

What the model says is read item by item. Ids must be of what it was shown, an edit's old texts must stand in
the skill, and a new skill must not be about what a skill is about already; whatever else there is to check,
the curator does. What is turned down may go back once, with the reasons.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from django.conf import settings

from mirix.llm.chat import ChatEndpoint, ChatFailed, ChatReply, get_chat
from mirix.llm.replies import parse_reply
from mirix.llm.tokens import about_tokens, about_tokens_of
from mirix.text import shorten, slugify, truncate
from skills.content import MAX_NAME_CHARS, MAX_TRIGGERS, Content
from skills.distillation.wording import number
from skills.evolution.anchors import AnchorsRefused, Replacement, apply
from skills.evolution.cards import MAX_TRIGGER_CHARS, words_of_topic
from skills.evolution.clusters import main_topic, says_of_the_same, weight
from skills.evolution.gates import DEFAULT_LIMITS, Limits
from skills.evolution.offline import OfflineProposer, find_target
from skills.evolution.prompt import Material, Turned, material, prompt_version, system_prompt, user_prompt
from skills.evolution.reply import (
    MAX_OPERATIONS,
    SCHEMA_NAME,
    Field,
    OperationItem,
    read_item,
    reply_schema,
    shown,
)
from skills.evolution.types import Action, ExperienceView, Operation, Proposer, SkillView
from skills.evolution.words import content_words

ANSWER_TOKENS = 2_000
MAX_RAW_CHARS = 1_000_000
MAX_REASON_CHARS = 500
MAX_STAMP_CHARS = 200
SAID_ALREADY = 0.5
"""The share of the words of a lesson's title that a skill holds which says it already."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One item of an answer: the operation that it asks for, or why there is none."""

    item: str
    """As the model wrote it, shortened."""
    operation: Operation | None = None
    reason: str = ""
    """Why it is no operation; for a `none`, why the model wants none."""
    name: str = ""
    experience_ids: tuple[str, ...] = ()
    is_none: bool = False
    """Whether the model wants nothing written: that is no mistake."""
    superseded: tuple[tuple[str, str], ...] = ()
    """Lessons, each with the newer one that the model puts in its place."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of one question."""

    shown: tuple[ExperienceView, ...]
    """The lessons that the question showed."""
    input_hash: str
    """SHA-256 (hex) over the model, the prompt's version and the message."""
    drafts: list[Draft] = field(default_factory=list)
    error: str = ""
    """Why there is no answer; empty where there is one."""
    fault: Literal["session", "endpoint", "either"] = "session"
    """Whose fault that is: an endpoint's, and others need not be tried now."""
    raw_reply: str = ""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    duration_ms: int = 0


class LlmProposer:
    """Proposes by a model behind an OpenAI-compatible endpoint."""

    name = "llm"

    def __init__(self, chat: ChatEndpoint, limits: Limits = DEFAULT_LIMITS) -> None:
        self.chat, self.limits = chat, limits
        self.model = chat.model
        self.prompt_version = prompt_version()
        self.stamp = f"{self.model} {self.prompt_version}"[:MAX_STAMP_CHARS]
        """What experiences bear that were asked about and stay pending."""

    def is_ready(self, experiences: Sequence[ExperienceView], candidates: Sequence[SkillView]) -> bool:
        """Return whether there is something to ask: a verified lesson, and one not asked about yet."""
        return any(item.verified for item in experiences) and any(
            item.considered_by != self.stamp for item in experiences
        )

    def estimate(self, experiences: Sequence[ExperienceView], candidates: Sequence[SkillView]) -> int:
        """Return about how many tokens a question and its answer take, rather too many than too few."""
        return about_tokens("".join(self._question(experiences, candidates, ())[1:])) + ANSWER_TOKENS

    def estimate_unseen(self, *, characters: int) -> int:
        """Return the same of a question about lessons that are not there yet, of so many characters."""
        nothing = Material(text="", lessons=(), skills=())
        frame = system_prompt(self.limits) + user_prompt(topic="", material=nothing, refused=())
        return about_tokens(frame) + about_tokens_of(characters=characters, octets=0) + ANSWER_TOKENS

    def ask(
        self,
        experiences: Sequence[ExperienceView],
        candidates: Sequence[SkillView],
        refused: Sequence[Turned] = (),
    ) -> Answer:
        """Ask about lessons of one topic and the skills that they may belong to.

        `refused` are the operations of an answer before that go back. Not inside a transaction.
        """
        shown_material, system, user = self._question(experiences, candidates, refused)
        told = json.dumps([self.model, self.prompt_version, system, user])
        base = Answer(shown=shown_material.lessons, input_hash=hashlib.sha256(told.encode()).hexdigest())
        sent = about_tokens(system + user)
        started = time.perf_counter()
        try:
            reply = self.chat.complete(
                system=system, user=user, schema=reply_schema(), schema_name=SCHEMA_NAME
            )
        except ChatFailed as failed:
            return replace(
                base,
                error=failed.reason,
                fault=failed.fault,
                raw_reply=truncate(failed.raw, MAX_RAW_CHARS)[0],
                calls=failed.calls,
                prompt_tokens=failed.prompt_tokens + failed.uncounted * sent,
                completion_tokens=failed.completion_tokens,
                duration_ms=_since(started),
            )
        asked = replace(
            base,
            raw_reply=truncate(reply.text if reply.text.strip() else reply.raw, MAX_RAW_CHARS)[0],
            calls=reply.calls,
            prompt_tokens=(reply.prompt_tokens or sent) + reply.uncounted * sent,
            completion_tokens=reply.completion_tokens or about_tokens(reply.text),
            duration_ms=_since(started),
        )
        return _understood(asked, reply, shown_material)

    def _question(
        self,
        experiences: Sequence[ExperienceView],
        candidates: Sequence[SkillView],
        refused: Sequence[Turned],
    ) -> tuple[Material, str, str]:
        # What it was not asked about comes first, so that nothing waits behind what it left before.
        lessons = sorted(
            experiences, key=lambda item: (item.considered_by == self.stamp, -weight(item), item.id)
        )
        told = material(lessons, candidates, max_chars=settings.MIRIX_DISTILLER_MAX_TRANSCRIPT_CHARS)
        user = user_prompt(topic=main_topic(told.lessons), material=told, refused=refused)
        return told, system_prompt(self.limits), user


def get_proposer(model: str = "", limits: Limits = DEFAULT_LIMITS) -> Proposer | LlmProposer:
    """Return the proposer that `MIRIX_PROPOSER` asks for; `model` is another one of the same endpoint.

    `auto` is what the distiller is: a model, or the rules. `offline` is the rules.
    """
    if settings.MIRIX_PROPOSER == "offline" or settings.MIRIX_DISTILLER == "offline":
        return OfflineProposer(limits)
    chat = get_chat(model)
    return LlmProposer(chat, limits) if chat else OfflineProposer(limits)


def _since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


def _understood(asked: Answer, reply: ChatReply, told: Material) -> Answer:
    """Return the answer with what it says: drafts, an explicit nothing, or what nobody can read."""
    parsed = parse_reply(reply.text, key=SCHEMA_NAME, truncated=reply.finish == "length")
    if parsed.verdict == "unreadable":
        error = "the model refused to answer" if reply.finish == "refusal" else parsed.reason
        return replace(asked, error=error)
    broken = [Draft(item=text, reason=f"It cannot be read: {reason}.") for reason, text in parsed.dropped]
    return replace(asked, drafts=[*_Reader(told).drafts(parsed.items), *broken[:MAX_OPERATIONS]])


class _Reader:
    """Holds the items of an answer against the material that the model was shown."""

    def __init__(self, told: Material) -> None:
        self.lessons = {lesson.id: lesson for lesson in told.lessons}
        self.skills = {skill.key: skill for skill in told.skills}
        self.told = told
        self.created: list[tuple[str, Sequence[ExperienceView]]] = []
        """The new skills of this answer so far, each with the lessons that it cites."""

    def drafts(self, items: Sequence[dict[str, Any]]) -> list[Draft]:
        """Return a draft for every item; edits of one skill follow each other."""
        drafts = [self._draft(item) for item in items[:MAX_OPERATIONS]]
        reason = f"An answer may hold {MAX_OPERATIONS} operations."
        return [*drafts, *(Draft(item=shown(item), reason=reason) for item in items[MAX_OPERATIONS:])]

    def _draft(self, data: dict[str, Any]) -> Draft:
        item = read_item(data)
        if isinstance(item, str):
            return Draft(item=shown(data), reason=item)
        target = self.skills.get(item.skill)
        draft = Draft(
            item=shown(data),
            name=target.content.name if target else slugify(item.name, MAX_NAME_CHARS),
            experience_ids=tuple(dict.fromkeys(item.experiences)),
            superseded=tuple(dict.fromkeys((pair.old, pair.by) for pair in item.superseded)),
        )
        if reason := self._ids_refused(item, target):
            return replace(draft, reason=reason)
        cited = [self.lessons[id_] for id_ in draft.experience_ids]
        match item.action:
            case "none":
                return self._nothing(draft, item, target, cited)
            case "create":
                return self._create(draft, item, cited)
        assert target is not None
        return self._edit(draft, item, target, cited)

    def _ids_refused(self, item: OperationItem, target: SkillView | None) -> str:
        named = [id_ for pair in item.superseded for id_ in (pair.old, pair.by)]
        unknown = [id_ for id_ in (*item.experiences, *named) if id_ not in self.lessons]
        if unknown:
            return f"It cites what it was not shown: {shorten(', '.join(unknown), 200)}."
        if item.skill and target is None:
            return f"It names a skill that it was not shown: {shorten(item.skill, 100)}."
        given_up = {pair.old for pair in item.superseded} & set(item.experiences)
        if given_up:
            return f"It cites what it says is superseded: {shorten(', '.join(sorted(given_up)), 200)}."
        if item.action == "edit" and target is None:
            return "It names no skill to edit."
        if item.action != "none" and not item.experiences:
            return "It cites no experience."
        return ""

    def _nothing(
        self, draft: Draft, item: OperationItem, target: SkillView | None, cited: Sequence[ExperienceView]
    ) -> Draft:
        """Return what `none` comes to: lessons that a skill says already support it, others stay."""
        said = [lesson for lesson in cited if target and says_already(target.content, lesson)]
        reason = shorten(item.reason, MAX_REASON_CHARS)
        if target is None or not said:
            return replace(draft, is_none=True, reason=reason)
        return replace(
            draft,
            is_none=True,
            reason=reason,
            operation=_operation("confirm", target.content, said, target, reason),
        )

    def _create(self, draft: Draft, item: OperationItem, cited: Sequence[ExperienceView]) -> Draft:
        content = Content(
            name=draft.name,
            description=item.description.strip(),
            instructions=item.instructions.strip(),
            triggers=_triggers([], item.triggers),
        )
        if taken := self._about(cited):
            known = f"The skill {taken.key} (“{taken.content.name}”) is about this already"
            return replace(draft, reason=f"{known}: edit that one, or answer none.")
        twin = next((name for name, others in self.created if _of_the_same(cited, others)), "")
        if twin:
            return replace(
                draft, reason=f"The new skill “{twin}” of this answer is about this: make them one."
            )
        self.created.append((content.name, cited))
        return replace(draft, operation=_operation("create", content, cited, None, item.reason))

    def _about(self, cited: Sequence[ExperienceView]) -> SkillView | None:
        """Return the skill that is about what lessons are about: one that others about the same taught."""
        taught = (skill for skill in self.told.skills if _of_the_same(cited, skill.support))
        return next(taught, None) or find_target(main_topic(cited), cited, self.told.skills)

    def _edit(
        self, draft: Draft, item: OperationItem, target: SkillView, cited: Sequence[ExperienceView]
    ) -> Draft:
        if not item.replacements and not item.triggers:
            return replace(draft, reason="An edit consists of replacements, and there are none.")
        fields: dict[str, str] = {}
        for name in get_args(Field):
            wanted = [Replacement(old=r.old, new=r.new) for r in item.replacements if r.field == name]
            try:
                fields[name] = apply(getattr(target.content, name), wanted)
            except AnchorsRefused as refused:
                return replace(draft, reason=f"In the {name}: {refused}")
        content = replace(
            target.content,
            description=fields["description"],
            instructions=fields["instructions"],
            triggers=_triggers(target.content.triggers, item.triggers),
        )
        operation = _operation("edit", content, cited, target, item.reason)
        self.skills[target.key] = replace(target, content=content)
        return replace(draft, operation=operation)


def _of_the_same(cited: Sequence[ExperienceView], others: Sequence[ExperienceView]) -> bool:
    """Return whether any of these lessons is about the same as one of the others."""
    return any(says_of_the_same(lesson, other) for lesson in cited for other in others)


def says_already(content: Content, lesson: ExperienceView) -> bool:
    """Return whether a skill holds half of what a lesson's title says: then it may be taken to say it."""
    wanted = content_words(lesson.title)
    page = " ".join([content.name, content.description, content.instructions, *content.triggers])
    return len(wanted & content_words(page)) >= SAID_ALREADY * max(1, len(wanted))


def _triggers(known: Sequence[str], added: Sequence[str]) -> list[str]:
    """Return triggers with more of them behind, each of these once and on one short line."""
    merged = {trigger.casefold(): trigger for trigger in known}
    for trigger in added:
        if line := shorten(trigger, MAX_TRIGGER_CHARS):
            merged.setdefault(line.casefold(), line)
    return list(merged.values())[: max(MAX_TRIGGERS, len(known))]


def _operation(
    action: Action,
    content: Content,
    cited: Sequence[ExperienceView],
    target: SkillView | None,
    reason: str,
) -> Operation:
    sessions = len({experience.voice for experience in cited})
    topic = words_of_topic(main_topic(cited)) or "this task"
    origin = f"{number(len(cited), 'lesson')} from {number(sessions, 'session')} about {topic}."
    return Operation(
        action=action,
        content=content,
        experience_ids=tuple(experience.id for experience in cited),
        rationale=" ".join([origin, shorten(reason, MAX_REASON_CHARS)]).strip(),
        target=target,
    )
