"""The table of known shapes. The first family that matches a message reads it."""

from __future__ import annotations

from typing import Any

from conversations.extraction import (
    agent_events,
    anthropic,
    bedrock,
    codex_log,
    coding_log,
    gemini,
    langchain,
    langsmith,
    mistral,
    openai_chat,
    openai_responses,
    pydantic_ai,
    replies,
    sharegpt,
    typed_speech,
    vercel,
)
from conversations.extraction.agent_events import as_message
from conversations.extraction.reading import Family, find_family

FAMILIES: tuple[Family, ...] = (
    mistral.FAMILY,
    langsmith.FAMILY,
    codex_log.FAMILY,
    coding_log.FAMILY,
    agent_events.FAMILY,
    langchain.FAMILY,
    sharegpt.FAMILY,
    openai_responses.FAMILY,
    anthropic.FAMILY,
    bedrock.FAMILY,
    pydantic_ai.FAMILY,
    vercel.FAMILY,
    gemini.FAMILY,
    replies.FAMILY,
    typed_speech.FAMILY,
    openai_chat.FAMILY,
)


def family_of(message: Any) -> Family | None:
    """Return the family that reads a message; None for what nobody here knows."""
    return find_family(as_message(message), FAMILIES)
