"""Distillation: from the turns of one session to lessons, each with the words that ground it."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from skills.distillation.offline import OfflineDistiller
from skills.distillation.types import Distiller


def get_distiller(model: str = "") -> Distiller:
    """Return the distiller that `MIRIX_DISTILLER` asks for; `model` is one for this once.

    `auto` and `offline` are the rules; `llm` raises `ImproperlyConfigured`: this release learns by rules
    alone, and a setting that could not be honoured must not look as if it were.
    """
    match settings.MIRIX_DISTILLER:
        case "auto" | "offline":
            return OfflineDistiller()
        case "llm":
            raise ImproperlyConfigured(
                "MIRIX_DISTILLER=llm: this release has no distiller that uses a model, so MIRIX_LLM_MODEL "
                "has no effect on it. Set MIRIX_DISTILLER=offline, or leave it unset."
            )
    raise ImproperlyConfigured(
        f"MIRIX_DISTILLER={settings.MIRIX_DISTILLER}: expected one of auto, llm, offline."
    )
