"""One run with a small real model: what is kept of it is in order, whatever the model says.

It is a model of 135 million parameters: nothing is expected of its wisdom. `./run test --model` serves it.
"""

from __future__ import annotations

import os
from itertools import islice

import pytest

from conversations.intake import import_session
from conversations.models import Session
from mirix.tenants.usage import tokens_used
from skills.demo import sample_sessions
from skills.distillation.prompt import prompt_version
from skills.distillation.reply import reply_schema
from skills.dream import dream
from skills.models import DistillationAttempt, SkillExperience, SkillRevision
from skills.runs import claim
from tests.model.server import NAME

URL = os.environ.get("MIRIX_TEST_MODEL_URL", "")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not URL, reason="./run test --model serves the model that it needs"),
]
SESSIONS = 2


def test_whatever_a_small_model_answers_is_kept_in_order(owner, client_row, settings):
    settings.MIRIX_LLM_MODEL, settings.MIRIX_LLM_BASE_URL, settings.MIRIX_LLM_API_KEY = NAME, URL, ""
    settings.MIRIX_LLM_TIMEOUT_SECONDS, settings.MIRIX_LLM_MAX_RETRIES = 1_800.0, 0
    settings.MIRIX_DISTILLER, settings.MIRIX_DISTILLER_MAX_CONCURRENCY = "llm", 1
    settings.MIRIX_DISTILLER_MAX_TRANSCRIPT_CHARS = 4_000  # of what 8,192 tokens hold, the answer needs some
    for sample in islice(sample_sessions(), SESSIONS):
        import_session(client=client_row, owner=owner, **sample)

    run = dream(claim=claim(owner=owner, trigger="command", parameters={"last_n_sessions": SESSIONS}))

    attempts = list(DistillationAttempt.objects.select_related("session"))
    assert run.state == "finished"
    assert len({attempt.session_id for attempt in attempts}) == len(attempts) == SESSIONS
    for attempt in attempts:
        check_attempt(attempt)
    for experience in SkillExperience.objects.all():
        check_experience(experience)
    for revision in SkillRevision.objects.all():
        assert revision.experiences.filter(verified=True).exists()
        assert revision.state == "proposed"
    assert run.counts["experiences"] == SkillExperience.objects.count()
    assert sum(run.counts["sessions"].values()) == SESSIONS
    spent = sum(attempt.prompt_tokens + attempt.completion_tokens for attempt in attempts)
    assert tokens_used(organization=owner.organization) >= spent > 0


def check_attempt(attempt: DistillationAttempt) -> None:
    """An answer came, and the session's state follows from what could be made of it."""
    assert (attempt.distiller, attempt.model, attempt.prompt_version) == ("llm", NAME, prompt_version())
    assert attempt.raw_reply, attempt.error
    assert attempt.prompt_tokens > 0
    assert attempt.completion_tokens > 0
    assert attempt.calls >= 1
    learned = SkillExperience.objects.filter(attempt=attempt).count()
    session: Session = attempt.session
    if attempt.verdict == "retry":
        assert attempt.error
        assert (session.state, session.attempts, learned) == ("sealed", 1, 0)
    else:
        assert attempt.verdict == ("ok" if learned else "empty")
        assert (session.state, session.attempts) == ("distilled", 0)


def check_experience(experience: SkillExperience) -> None:
    """It has the schema's shape, and is believed no further than its quote goes."""
    kinds = reply_schema()["properties"]["experiences"]["items"]["properties"]["experience_type"]["enum"]
    assert experience.experience_type in kinds
    assert experience.title
    assert 0 <= experience.importance <= 1
    assert 0 <= experience.credibility <= 1
    if experience.verified:
        assert experience.turn is not None
        assert experience.quote
    else:
        assert experience.credibility <= 0.3
