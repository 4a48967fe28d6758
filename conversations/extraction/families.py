"""The table of known shapes. The first family that matches a message reads it."""

from __future__ import annotations

from typing import Any

from conversations.extraction import (
    anthropic,
    bedrock,
    gemini,
    mistral,
    openai_chat,
    openai_responses,
    replies,
    vercel,
)
from conversations.extraction.reading import Family

FAMILIES: tuple[Family, ...] = (
    mistral.FAMILY,
    openai_responses.FAMILY,
    anthropic.FAMILY,
    bedrock.FAMILY,
    vercel.FAMILY,
    gemini.FAMILY,
    replies.FAMILY,
    openai_chat.FAMILY,
)


def family_of(message: Any) -> Family | None:
    """Return the family that reads a message; None for what nobody here knows."""
    if not isinstance(message, dict):
        return None
    return next((family for family in FAMILIES if family.matches(message)), None)
