"""GET /v1/usage: the tokens of the caller's organization, and nobody else's."""

from __future__ import annotations

import pytest

from mirix.tenants.usage import count_tokens, today

pytestmark = pytest.mark.django_db
URL = "/v1/usage"


def test_it_tells_what_was_used_and_what_is_left(read_api, owner, settings):
    settings.MIRIX_DAILY_TOKEN_BUDGET = 1_000
    count_tokens(organization=owner.organization, prompt=100, completion=20, calls=2)
    answer = read_api.get(URL)
    assert answer.status_code == 200
    assert answer.json() == {
        "daily_token_budget": 1_000,
        "tokens_today": 120,
        "tokens_left": 880,
        "days": [
            {
                "day": today().isoformat(),
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "tokens": 120,
                "calls": 2,
            }
        ],
    }


def test_a_stranger_sees_none_of_it(stranger_api, owner):
    count_tokens(organization=owner.organization, prompt=100, completion=20)
    answer = stranger_api.get(URL)
    assert answer.json() == {"daily_token_budget": 0, "tokens_today": 0, "tokens_left": None, "days": []}
