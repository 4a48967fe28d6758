"""System checks of the endpoints that the settings name."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks

KEY_MISSING = "mirix.E002"
MODEL_MISSING = "mirix.W002"
LLM_KEY_MISSING = "mirix.E003"
LLM_MODEL_MISSING = "mirix.W003"


@checks.register
def check_embedding_endpoint(**_: Any) -> list[checks.CheckMessage]:
    """Refuse an endpoint that cannot work, and warn of one that is never asked."""
    if settings.MIRIX_EMBEDDING_MODEL:
        if settings.MIRIX_EMBEDDING_BASE_URL or settings.MIRIX_EMBEDDING_API_KEY:
            return []
        return [
            checks.Error(
                "MIRIX_EMBEDDING_MODEL is set, but there is neither an address nor a key for it.",
                hint="Set MIRIX_EMBEDDING_BASE_URL for a server of your own, or MIRIX_EMBEDDING_API_KEY.",
                id=KEY_MISSING,
            )
        ]
    if settings.MIRIX_EMBEDDING_BASE_URL:
        return [
            checks.Warning(
                "MIRIX_EMBEDDING_BASE_URL is set without MIRIX_EMBEDDING_MODEL: search works by words alone.",
                hint="Name the model, or unset the address.",
                id=MODEL_MISSING,
            )
        ]
    return []


@checks.register
def check_chat_endpoint(**_: Any) -> list[checks.CheckMessage]:
    """Refuse a chat endpoint that cannot work, and warn of one that is never asked."""
    if settings.MIRIX_LLM_MODEL:
        if settings.MIRIX_LLM_BASE_URL or settings.MIRIX_LLM_API_KEY:
            return []
        return [
            checks.Error(
                "MIRIX_LLM_MODEL is set, but there is neither an address nor a key for it.",
                hint="Set MIRIX_LLM_BASE_URL for a server of your own, or MIRIX_LLM_API_KEY.",
                id=LLM_KEY_MISSING,
            )
        ]
    if settings.MIRIX_LLM_BASE_URL:
        return [
            checks.Warning(
                "MIRIX_LLM_BASE_URL is set without MIRIX_LLM_MODEL: no model is ever asked.",
                hint="Name the model, or unset the address.",
                id=LLM_MODEL_MISSING,
            )
        ]
    return []
