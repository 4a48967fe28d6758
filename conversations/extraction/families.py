"""The table of known shapes. The first family that matches a message reads it."""

from __future__ import annotations

from conversations.extraction import openai_chat
from conversations.extraction.reading import Family

FAMILIES: tuple[Family, ...] = (openai_chat.FAMILY,)
