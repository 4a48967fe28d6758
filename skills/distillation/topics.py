"""What a model's lesson is about, as evolution groups lessons: `tool:<name>` or `task:<slug>`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mirix.text import slugify
from skills.distillation.intent import STOP_WORDS
from skills.distillation.types import TranscriptTurn

MAX_SLUG_CHARS = 48
MAX_SLUG_WORDS = 5

_PREFIX = re.compile(r"\W*(tool|function|task)\s*[:=/]\s*", re.IGNORECASE)
_SAYS_NOTHING = {
    "", "task", "this-task", "tool", "general", "misc", "miscellaneous", "other", "unknown", "none", "null",
    "n-a", "slug", "name", "lesson", "session", "topic",
}  # fmt: skip


def tools_of(turns: Sequence[TranscriptTurn]) -> list[str]:
    """Return the names of the tools that a session called, each once, in order."""
    names: dict[str, None] = {}
    for turn in turns:
        for call in turn.tool_calls:
            if isinstance(call, dict) and isinstance(call.get("name"), str):
                names[call["name"]] = None
        names[turn.tool_name] = None
    return [name for name in names if name.strip()]


def topic_of(claimed: str, *, title: str, tool: str, tools: Sequence[str]) -> str:
    """Return a lesson's topic from what the model claims it is.

    A tool counts when the session called it, by whatever spelling; else the claim names a task. Where it
    says nothing, `tool`, the one that the evidence comes from, is the topic, and without that the title.
    "" where no slug can be made, as of a title in Chinese.
    """
    prefix = _PREFIX.match(claimed)
    kind, name = (prefix[1].lower(), claimed[prefix.end() :]) if prefix else ("", claimed)
    if kind != "task" and (known := _known(name, tools)):
        return f"tool:{known}"
    slug = _slug(name)
    if slug in _SAYS_NOTHING and tool:
        return f"tool:{tool}"
    if slug in _SAYS_NOTHING:
        slug = _slug(title)
    return f"task:{slug}" if slug else ""


def _known(name: str, tools: Sequence[str]) -> str:
    """Return the tool that a name means: `functions.Get User` is `get_user`."""
    wanted = _bare(name)
    exact = next((tool for tool in tools if _bare(tool) == wanted), "")
    last = _bare(re.split(r"[.:/]", name)[-1])
    return exact or next((tool for tool in tools if last and _bare(tool) == last), "")


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _slug(text: str) -> str:
    words = [word for word in slugify(text, 400).split("-") if word not in STOP_WORDS]
    return slugify(" ".join(words[:MAX_SLUG_WORDS]), MAX_SLUG_CHARS)
