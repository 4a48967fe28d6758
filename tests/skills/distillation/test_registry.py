"""Which distiller a setting gives."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from skills.distillation import checks, get_distiller
from skills.distillation.llm import LlmDistiller
from skills.distillation.offline import OfflineDistiller
from skills.distillation.prompt import prompt_version


@pytest.fixture(autouse=True)
def no_model(settings):
    settings.MIRIX_LLM_MODEL = ""
    settings.MIRIX_LLM_BASE_URL = ""
    settings.MIRIX_LLM_API_KEY = "a stray key"


@pytest.fixture
def model(settings):
    settings.MIRIX_LLM_MODEL = "small"
    settings.MIRIX_LLM_BASE_URL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize("name", ["auto", "offline"])
@pytest.mark.parametrize("override", ["", "large"])
def test_without_a_model_the_rules_distil_whatever_keys_lie_about(settings, name, override):
    settings.MIRIX_DISTILLER = name
    distiller = get_distiller(override)
    assert isinstance(distiller, OfflineDistiller)
    assert (distiller.name, distiller.model, distiller.prompt_version) == ("offline", "", "rules-1")


@pytest.mark.parametrize("name", ["auto", "llm"])
def test_with_a_model_the_model_distils_though_its_endpoint_may_be_down(settings, model, name):
    settings.MIRIX_DISTILLER = name
    distiller = get_distiller()
    assert isinstance(distiller, LlmDistiller)
    assert (distiller.name, distiller.model) == ("llm", "small")
    assert distiller.prompt_version == prompt_version()


def test_another_model_of_the_same_endpoint_may_be_asked_for(settings, model):
    settings.MIRIX_DISTILLER = "auto"
    distiller = get_distiller("large")
    assert isinstance(distiller, LlmDistiller)
    assert distiller.model == "large"
    assert distiller.chat.config.base_url == "http://127.0.0.1:9/v1"


def test_who_asks_for_rules_gets_rules_though_there_is_a_model(settings, model):
    settings.MIRIX_DISTILLER = "offline"
    assert isinstance(get_distiller("large"), OfflineDistiller)


def test_a_model_that_is_wanted_and_not_named_is_an_error_in_one_line(settings):
    settings.MIRIX_DISTILLER = "llm"
    with pytest.raises(ImproperlyConfigured, match=r"MIRIX_DISTILLER=llm needs a model: set MIRIX_LLM_MODEL"):
        get_distiller("large")


def test_the_checks_at_the_start_say_so_before_the_first_run(settings):
    settings.MIRIX_DISTILLER = "llm"
    assert [found.id for found in checks.check_distiller()] == ["skills.E001"]
    settings.MIRIX_LLM_MODEL = "small"
    assert checks.check_distiller() == []
    settings.MIRIX_LLM_MODEL, settings.MIRIX_DISTILLER = "", "auto"
    assert checks.check_distiller() == []


def test_an_unknown_name_lists_the_known_ones(settings):
    settings.MIRIX_DISTILLER = "magic"
    with pytest.raises(
        ImproperlyConfigured, match="MIRIX_DISTILLER=magic: expected one of auto, llm, offline"
    ):
        get_distiller()
