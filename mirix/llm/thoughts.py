"""Parts a model's answer from its thoughts. Pure."""

from __future__ import annotations

import re

NAMES = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
OPENING = re.compile(rf"<({NAMES})>|\[(THINK)\]|◁(think)▷|<\|begin_of_(thought)\|>", re.IGNORECASE)
CLOSING = re.compile(rf"</(?:{NAMES})>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>", re.IGNORECASE)
CHANNELS = re.compile(r"(?:<\|start\|>assistant)?\s*<\|channel\|>")
SPEAKING = re.compile(r"<\|channel\|>\s*(?:final|commentary)[^\n]{0,200}?<\|message\|>")
RUN_TOGETHER = re.compile(r"analysis\b.*?assistantfinal", re.DOTALL)


def spoken(text: str) -> str:
    """Return `text` without the thoughts before its answer; empty where there are only thoughts.

    What looks like the mark of a thought inside the answer, in a quote, stays.
    """
    text = text.strip()
    if CHANNELS.match(text):
        messages = list(SPEAKING.finditer(text))
        return text[messages[-1].end() :].strip() if messages else ""
    if found := RUN_TOGETHER.match(text):
        return text[found.end() :].strip()
    while (opening := OPENING.search(text)) and not _answered(text[: opening.start()]):
        closing = _closing(opening).search(text, opening.end())
        if closing is None:
            return ""
        text = text[closing.end() :].strip()
    closing = CLOSING.search(text)
    if closing and not text.startswith(("[", "{", "```")) and not _in_quotes(text[: closing.start()]):
        return text[closing.end() :].strip()
    return text


def _answered(before: str) -> bool:
    """Return whether the answer began `before` a mark."""
    return "{" in before or "[" in before


def _closing(opening: re.Match[str]) -> re.Pattern[str]:
    if opening.group(1):
        return re.compile(rf"</{opening.group(1)}>", re.IGNORECASE)
    return CLOSING


def _in_quotes(before: str) -> bool:
    return before.rpartition("\n")[2].count('"') % 2 == 1
