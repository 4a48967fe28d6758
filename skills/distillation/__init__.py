"""Distillation: from the turns of one session to lessons, each with the words that ground it."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from mirix.llm.chat import get_chat
from skills.distillation.llm import LlmDistiller
from skills.distillation.offline import OfflineDistiller
from skills.distillation.types import Distiller


def has_model() -> bool:
    """Return whether sessions are distilled by a model, as the settings stand."""
    return bool(settings.MIRIX_DISTILLER != "offline" and settings.MIRIX_LLM_MODEL)


def get_distiller(model: str = "") -> Distiller:
    """Return the distiller that `MIRIX_DISTILLER` asks for; `model` is another one of the same endpoint.

    `auto` is the model that `MIRIX_LLM_MODEL` names, and the rules where it names none: an endpoint that is
    down is no reason to change over. `offline` is the rules. `llm` without a model raises
    `ImproperlyConfigured`, and so does any other value.
    """
    match settings.MIRIX_DISTILLER:
        case "offline":
            return OfflineDistiller()
        case "auto" | "llm":
            chat = get_chat(model)
        case other:
            raise ImproperlyConfigured(f"MIRIX_DISTILLER={other}: expected one of auto, llm, offline.")
    if chat is not None:
        return LlmDistiller(chat)
    if settings.MIRIX_DISTILLER == "llm":
        raise ImproperlyConfigured(
            "MIRIX_DISTILLER=llm needs a model: set MIRIX_LLM_MODEL, or MIRIX_DISTILLER=offline."
        )
    return OfflineDistiller()
