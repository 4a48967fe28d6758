"""The distiller that asks a model: one question a session, and nothing in the answer is taken on trust.

What the model says is read item by item, its quotes are looked up, its signals held against the turns that
they name, and what it is about is put as evolution groups lessons. What falls out is kept with the reason. An
answer that cannot be understood is to be asked for again; it never passes for a session that taught nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from mirix.llm.chat import ChatEndpoint, ChatFailed, ChatReply
from mirix.llm.replies import parse_reply
from mirix.llm.tokens import about_tokens, about_tokens_of
from mirix.text import fold, truncate
from skills.distillation.attacks import without_invisible
from skills.distillation.evidence import ground, suits
from skills.distillation.intent import request_before
from skills.distillation.prompt import MAX_SKILL_CHARS, MAX_SKILLS, prompt_version, system_prompt, user_prompt
from skills.distillation.reply import SCHEMA_NAME, ReplyItem, bounded, drop, read_items, reply_schema
from skills.distillation.topics import tools_of, topic_of
from skills.distillation.transcript import Transcript, render
from skills.distillation.types import (
    ALONE,
    DistillerReply,
    Dropped,
    Lesson,
    Surroundings,
    TranscriptTurn,
)

ANSWER_TOKENS = 1_000
"""What an answer is taken to need before it is there."""
HEADER_CHARS = 40
"""What the line above a turn takes."""
MAX_RAW_CHARS = 1_000_000


class LlmDistiller:
    """Distils by a model behind an OpenAI-compatible endpoint; threads may share it."""

    name = "llm"
    asks_model = True

    def __init__(self, chat: ChatEndpoint) -> None:
        self.chat = chat
        self.model = chat.model
        self.prompt_version = prompt_version()

    def distil(
        self, turns: Sequence[TranscriptTurn], *, first_seq: int, surroundings: Surroundings = ALONE
    ) -> DistillerReply:
        """Return the lessons of the turns from `first_seq` on, as the model tells them.

        `details` of a lesson: `request`, what the user wanted by then, and `claimed_signal`, where the turn
        that holds the quote does not fit the signal that the model named. Not inside a transaction.
        """
        transcript = render(
            turns,
            first_seq=first_seq,
            served=surroundings.served,
            max_chars=settings.MIRIX_DISTILLER_MAX_TRANSCRIPT_CHARS,
            max_message_chars=settings.MIRIX_DISTILLER_MAX_MESSAGE_CHARS,
        )
        base = DistillerReply(verdict="empty", seen=transcript.seen, flags=transcript.flags)
        if all(turn.seq < first_seq for turn in transcript.seen):
            return base
        system = system_prompt()
        user = user_prompt(transcript=transcript.text, skills=surroundings.skills)
        base = replace(base, prompt_hash=hashlib.sha256(json.dumps([system, user]).encode()).hexdigest())
        sent = about_tokens(system + user)
        try:
            answer = self.chat.complete(
                system=system, user=user, schema=reply_schema(), schema_name=SCHEMA_NAME
            )
        except ChatFailed as failed:
            return replace(
                base,
                verdict="retry",
                error=failed.reason,
                raw_reply=_raw(failed.raw),
                calls=failed.calls,
                prompt_tokens=failed.prompt_tokens + failed.uncounted * sent,
                completion_tokens=failed.completion_tokens,
                fault=failed.fault,
                retry_after=failed.retry_after,
            )
        asked = replace(
            base,
            raw_reply=_raw(answer.text if answer.text.strip() else answer.raw),
            calls=answer.calls,
            prompt_tokens=(answer.prompt_tokens or sent) + answer.uncounted * sent,
            completion_tokens=answer.completion_tokens or about_tokens(answer.text),
        )
        return _understood(asked, answer, transcript, first_seq)

    def estimate(self, *, characters: int, octets: int = 0, turns: int = 0) -> int:
        """Return about how many tokens it takes to distil a session of that size."""
        told = len(system_prompt()) + len(json.dumps(reply_schema()))
        told += len(user_prompt(transcript="", skills=())) + MAX_SKILLS * MAX_SKILL_CHARS
        session = characters + turns * HEADER_CHARS
        shown = min(session, settings.MIRIX_DISTILLER_MAX_TRANSCRIPT_CHARS)
        foreign = max(0, octets - characters) * shown // max(1, session)
        return about_tokens_of(characters=told + shown, octets=told + shown + foreign) + ANSWER_TOKENS


def _raw(text: str) -> str:
    return truncate(text, MAX_RAW_CHARS)[0]


def _understood(
    asked: DistillerReply, answer: ChatReply, transcript: Transcript, first_seq: int
) -> DistillerReply:
    """Return the reply with what the answer says: lessons, an explicit nothing, or what nobody can read."""
    parsed = parse_reply(answer.text, truncated=answer.finish == "length")
    dropped = [Dropped(reason=reason, text=text) for reason, text in parsed.dropped]
    if parsed.verdict == "unreadable":
        reason = "the model refused to answer" if answer.finish == "refusal" else parsed.reason
        return replace(asked, verdict="retry", error=reason, dropped=bounded(dropped))
    if parsed.verdict == "empty":
        return replace(asked, verdict="empty", dropped=bounded(dropped))
    items, misfits = read_items(parsed.items)
    if not items:
        first = (misfits or dropped or [Dropped(reason="it holds none", text="")])[0].reason
        error = f"no lesson of the reply can be used: {first}"
        return replace(asked, verdict="retry", error=error, dropped=bounded([*dropped, *misfits]))
    lessons, known = _Reader(transcript.seen, first_seq).lessons(items)
    return replace(asked, verdict="ok", lessons=lessons, dropped=bounded([*dropped, *misfits, *known]))


@dataclass(frozen=True)
class _Reader:
    """Holds the items of a reply against the turns that the model was shown."""

    seen: Sequence[TranscriptTurn]
    first_seq: int

    def lessons(self, items: Sequence[ReplyItem]) -> tuple[list[Lesson], list[Dropped]]:
        """Return the lessons of the items, each once, and the items that teach nothing new."""
        lessons: dict[Any, Lesson] = {}
        dropped: list[Dropped] = []
        for item in items:
            lesson = self._lesson(item)
            if lesson is None:
                dropped.append(
                    drop("its evidence stands in turns that were learned from before", _data(item))
                )
            elif (key := _key(lesson)) in lessons:
                dropped.append(drop("the reply tells it twice", _data(item)))
            else:
                lessons[key] = lesson
        return list(lessons.values()), dropped

    def _lesson(self, item: ReplyItem) -> Lesson | None:
        """Return the lesson of an item; None where earlier turns alone speak for it."""
        claimed = Lesson(
            experience_type=item.experience_type,
            title=without_invisible(item.title).strip(),
            content=without_invisible(item.content).strip(),
            topic="",
            details={},
            importance=item.importance,
            credibility=item.credibility,
            signal_type=item.evidence.signal_type,
            quote=without_invisible(item.evidence.quote),
            turn_seq=item.evidence.turn,
        )
        context, new = self._sections()
        turn = self._turn_of(claimed, new)
        if turn is None and self._turn_of(claimed, context):
            return None
        fits = turn is None or suits(claimed.signal_type, turn)
        topic = topic_of(
            without_invisible(item.topic),
            title=claimed.title,
            tool=turn.tool_name if turn else "",
            tools=tools_of(self.seen),
        )
        request = request_before(self.seen, turn.seq if turn else self.seen[-1].seq + 1, topic)
        details = {"request": request} if request else {}
        return replace(
            claimed,
            turn_seq=turn.seq if turn else claimed.turn_seq,
            signal_type=claimed.signal_type if fits else "inferred",
            topic=topic,
            details=details if fits else details | {"claimed_signal": claimed.signal_type},
        )

    def _sections(self) -> tuple[list[TranscriptTurn], list[TranscriptTurn]]:
        return (
            [turn for turn in self.seen if turn.seq < self.first_seq],
            [turn for turn in self.seen if turn.seq >= self.first_seq],
        )

    @staticmethod
    def _turn_of(lesson: Lesson, turns: Sequence[TranscriptTurn]) -> TranscriptTurn | None:
        """Return the turn of these that holds the lesson's quote."""
        proof = ground(lesson, turns)
        return next((turn for turn in turns if proof.verified and turn.seq == proof.turn_seq), None)


def _key(lesson: Lesson) -> tuple[str, str, str]:
    return (lesson.experience_type, fold(lesson.title).casefold(), fold(lesson.quote))


def _data(item: ReplyItem) -> dict[str, Any]:
    return item.model_dump()
