"""What a model is told: a versioned text file, filled in with one session and the skills known before. Pure.

The file is `prompts/<VERSION>.txt`. `prompt_version` adds a digest of it and of the reply's schema to its
number, so that no attempt made with an edited prompt passes for one made with another.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from string import Template

from skills.distillation.reply import reply_schema
from skills.distillation.types import KnownSkill
from skills.distillation.wording import inert

VERSION = "distil-1"
PROMPTS = Path(__file__).parent / "prompts"
SYSTEM_MARK, USER_MARK = "=== system ===\n", "=== user ===\n"
MAX_SKILLS = 10
MAX_SKILL_CHARS = 140
NO_SKILLS = "(none)"


def system_prompt() -> str:
    """Return the rules, the same for every session."""
    return _parts()[0]


def user_prompt(*, transcript: str, skills: Sequence[KnownSkill]) -> str:
    """Return the message with the session's transcript, fence included, and the known skills.

    Of these the first `MAX_SKILLS`, one short line each: a library that grows makes no prompt longer.
    """
    lines = [inert(f"- {skill.name}: {skill.description}", MAX_SKILL_CHARS) for skill in skills[:MAX_SKILLS]]
    return Template(_parts()[1]).substitute(transcript=transcript, skills="\n".join(lines) or NO_SKILLS)


@cache
def prompt_version() -> str:
    """Return the version of prompt and schema, with a digest of both: `distil-1-0123456789ab`."""
    told = [*_parts(), json.dumps(reply_schema(), sort_keys=True)]
    return f"{VERSION}-{blake2b(json.dumps(told).encode(), digest_size=6).hexdigest()}"


@cache
def _parts() -> tuple[str, str]:
    """Return the system message and the template of the user message."""
    text = (PROMPTS / f"{VERSION}.txt").read_text(encoding="utf-8")
    system, _, user = text.removeprefix(SYSTEM_MARK).partition(USER_MARK)
    return system.strip(), user.strip()
