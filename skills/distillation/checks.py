"""A system check of the distiller that the settings ask for."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks

DISTILLER_WITHOUT_MODEL = "skills.E001"


@checks.register
def check_distiller(**_: Any) -> list[checks.CheckMessage]:
    """Refuse to wait until the first run to say that there is no model to distil with."""
    if settings.MIRIX_DISTILLER != "llm" or settings.MIRIX_LLM_MODEL:
        return []
    return [
        checks.Error(
            "MIRIX_DISTILLER=llm needs a model, and MIRIX_LLM_MODEL names none.",
            hint="Set MIRIX_LLM_MODEL, or MIRIX_DISTILLER=auto for rules until there is one.",
            id=DISTILLER_WITHOUT_MODEL,
        )
    ]
