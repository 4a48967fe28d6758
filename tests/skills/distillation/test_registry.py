"""Which distiller a setting gives."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from skills.distillation import get_distiller
from skills.distillation.offline import OfflineDistiller


@pytest.mark.parametrize("name", ["auto", "offline"])
def test_without_a_model_the_rules_distil(settings, name):
    settings.MIRIX_DISTILLER = name
    distiller = get_distiller()
    assert isinstance(distiller, OfflineDistiller)
    assert (distiller.name, distiller.model, distiller.prompt_version) == ("offline", "", "rules-1")


def test_a_model_distiller_is_refused_in_one_line_that_names_the_setting(settings):
    settings.MIRIX_DISTILLER = "llm"
    with pytest.raises(ImproperlyConfigured, match=r"MIRIX_DISTILLER=llm: .*MIRIX_LLM_MODEL"):
        get_distiller()


def test_an_unknown_name_lists_the_known_ones(settings):
    settings.MIRIX_DISTILLER = "magic"
    with pytest.raises(
        ImproperlyConfigured, match="MIRIX_DISTILLER=magic: expected one of auto, llm, offline"
    ):
        get_distiller()
