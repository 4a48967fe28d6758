"""What a model is told of one topic: a versioned text file, filled in with lessons and skills. Pure.

    <material 5e1f0c2a>
    [lesson sexp-… worth_avoiding tool_error verified importance 0.80 credibility 0.90 session 1 5e1f0c2a]
    Ask for a reason before you cancel
    The tool refuses a call without one.
    quote: Error: reason is required
    [skill proc-… active 5e1f0c2a]
    name: cancel-order
    …
    </material 5e1f0c2a>

The code in every line of the frame is made of what the frame holds and stands nowhere in it, so no lesson
and no skill can end the frame or pass for another. Secrets are covered up before anything is shown.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from hashlib import blake2b
from pathlib import Path
from string import Template

from mirix.redaction import redact
from mirix.text import truncate
from skills.distillation.attacks import harmless, like_ascii, without_invisible
from skills.distillation.wording import inert
from skills.evolution.gates import Limits
from skills.evolution.reply import MAX_OPERATIONS, reply_schema
from skills.evolution.types import ExperienceView, SkillView

VERSION = "evolve-1"
PROMPTS = Path(__file__).parent / "prompts"
MARKS = ("=== system ===\n", "=== user ===\n", "=== refused ===\n")
MAX_LESSONS = 20
MAX_LESSON_CHARS = 1_500
MAX_QUOTE_CHARS = 300
MAX_TOPIC_CHARS = 160
MAX_TRIGGERS = 20
CODE_CHARS = 8

_FRAME = re.compile(
    r"<(?=\s{0,20}/?\s{0,20}material\b)|\[(?=\s*(?:lesson|skill)\s+\w+-[0-9a-f])", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class Turned:
    """An operation that was not taken, as the model wrote it, and why."""

    item: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a question shows: text within a budget, and what it stands for."""

    text: str
    lessons: tuple[ExperienceView, ...]
    skills: tuple[SkillView, ...]
    """Those whose whole text is shown; others cannot be edited."""


def material(lessons: Sequence[ExperienceView], skills: Sequence[SkillView], *, max_chars: int) -> Material:
    """Return the material of a question, the first lessons and skills of each, as many as fit.

    Lessons take at most half of `max_chars`; one at least is shown. Sessions are numbered, so that their ids
    stay out of it.
    """
    sessions: dict[str, int] = {}
    blocks: list[tuple[str, str]] = []
    told: list[ExperienceView] = []
    room = max_chars // 2
    for lesson in lessons[:MAX_LESSONS]:
        number = sessions.setdefault(lesson.session_id, len(sessions) + 1)
        head, body = _lesson(lesson, number)
        room -= len(head) + len(body)
        if room < 0 and told:
            break
        blocks.append((head, body))
        told.append(lesson)
    room += max_chars - max_chars // 2
    shown: list[SkillView] = []
    for skill in skills:
        head, body = _skill(skill)
        if len(head) + len(body) > room:
            continue
        room -= len(head) + len(body)
        blocks.append((head, body))
        shown.append(skill)
    return Material(text=_framed(blocks), lessons=tuple(told), skills=tuple(shown))


def system_prompt(limits: Limits) -> str:
    """Return the rules with the numbers of the gates, the same for every topic."""
    return Template(_parts()[0]).substitute(
        max_operations=MAX_OPERATIONS,
        max_change_chars=limits.max_change_chars,
        major_ratio=limits.major_ratio,
        max_instructions_chars=limits.max_instructions_chars,
    )


def user_prompt(*, topic: str, material: Material, refused: Sequence[Turned] = ()) -> str:
    """Return the message about one topic; `refused` are the operations of an answer that go back."""
    again = ""
    if refused:
        blocks = [(f"[refused: {turned.reason}", harmless(turned.item)) for turned in refused]
        again = Template(_parts()[2]).substitute(operations=_framed(blocks, name="refused"))
    return Template(_parts()[1]).substitute(
        topic=inert(topic, MAX_TOPIC_CHARS), material=material.text, refused=again
    )


@cache
def prompt_version() -> str:
    """Return the version of prompt and schema, with a digest of both: `evolve-1-0123456789ab`."""
    told = [*_parts(), json.dumps(reply_schema(), sort_keys=True)]
    return f"{VERSION}-{blake2b(json.dumps(told).encode(), digest_size=6).hexdigest()}"


@cache
def _parts() -> tuple[str, str, str]:
    """Return the system message, the template of the user message and that of what goes back."""
    text = (PROMPTS / f"{VERSION}.txt").read_text(encoding="utf-8").removeprefix(MARKS[0])
    system, _, rest = text.partition(MARKS[1])
    user, _, refused = rest.partition(MARKS[2])
    return system.strip(), user.strip(), refused.rstrip()


def _lesson(lesson: ExperienceView, session: int) -> tuple[str, str]:
    """Return the header of a lesson, still without its code, and its words."""
    header = (
        f"[lesson {lesson.id} {lesson.experience_type} {lesson.signal_type} "
        f"{'verified' if lesson.verified else 'unverified'} importance {lesson.importance:.2f} "
        f"credibility {lesson.credibility:.2f} session {session}"
    )
    if lesson.said_at is not None:
        header += f" of {lesson.said_at.astimezone(UTC):%Y-%m-%dT%H:%MZ} turn {lesson.turn_seq or '?'}"
    content = truncate(lesson.content, MAX_LESSON_CHARS)[0]
    parts = [lesson.title, content, f"quote: {lesson.quote[:MAX_QUOTE_CHARS]}" if lesson.quote else ""]
    return header, _shown("\n".join(part for part in parts if part.strip()))


def _skill(skill: SkillView) -> tuple[str, str]:
    content = skill.content
    state = skill.status if skill.skill_id else "proposed"
    body = [
        f"name: {content.name}",
        f"description: {content.description}",
        f"triggers: {json.dumps(content.triggers[:MAX_TRIGGERS], ensure_ascii=False)}",
        "instructions:",
        content.instructions,
    ]
    return f"[skill {skill.key} {state}", _shown("\n".join(body))


def _shown(text: str) -> str:
    """Return text as a model may see it: no secret, nothing unseen, nothing that looks like the frame."""
    text = harmless(redact(without_invisible(text)))
    plain = like_ascii(text)
    characters = list(text)
    for match in _FRAME.finditer(plain):
        characters[match.start()] = "("
    return "".join(characters)


def _framed(blocks: Sequence[tuple[str, str]], *, name: str = "material") -> str:
    """Return blocks of header and words in a frame whose code stands in none of them."""
    whole = "".join(head + body for head, body in blocks)
    code = whole
    while code in whole:
        code = hashlib.sha256((whole + code).encode()).hexdigest()[:CODE_CHARS]
    inner = "".join(f"{head} {code}]\n{body}\n" for head, body in blocks)
    return f"<{name} {code}>\n{inner}</{name} {code}>"
