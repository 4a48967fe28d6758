"""No lesson holds a password or a key, but for its quote."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.distillation.evidence import ground
from skills.distillation.offline import OfflineDistiller
from skills.distillation.secrets import Secrets
from tests.skills.distillation.sessions import assistant, tool, turns, user

KEY = "sk-abcdefghijklmnopqrstuvwxyz123456"
TOKEN = "ghp_" + "a1" * 18


def learned(*parts):
    session = turns(*parts)
    return session, OfflineDistiller().distil(session, first_seq=1).lessons


@pytest.mark.parametrize(
    ("argument", "secret"),
    [
        ("cmd", KEY),
        ("header", TOKEN),
        ("password", "correct horse"),
        ("apiKey", "qwertz"),
        ("db_pwd", "hunter2"),
    ],
)
@pytest.mark.parametrize("works", [True, False])
def test_arguments_that_did_not_change_errors_and_requests_hold_none(argument, secret, works):
    session, lessons = learned(
        user(f"Please list the open orders of customer C-17 with {secret} as you did before."),
        tool("fetch", {argument: secret, "limit": "25"}, f"Error: limit of {secret} must be a number"),
        tool("fetch", {argument: secret, "limit": 25}, "[]") if works else [],
        tool("fetch", {argument: secret, "limit": "25"}, f"Error: limit of {secret} must be a number"),
        user(f"No, that's wrong, I meant the orders behind {secret}, not those."),
        assistant(f"I should have used {secret} from the start."),
    )
    assert len(lessons) >= 3
    for lesson in lessons:
        assert secret not in str(asdict(replace(lesson, quote="")))
        assert ground(lesson, session).verified
    assert any(secret in lesson.quote for lesson in lessons)


def test_two_secrets_stay_two():
    _, lessons = learned(
        tool("fetch", {"user": "mia", "token": "first-token"}, "Error: token has expired"),
        tool("fetch", {"user": "mia", "token": "second-token"}, "[]"),
    )
    assert [lesson.title for lesson in lessons] == [
        "After “token has expired”, do not call `fetch` again with the same `token`",
        "When `fetch` says “token has expired”, change `token`",
    ]
    assert lessons[0].details["changes"] == [
        {"argument": "token", "before": "[secret-1]", "after": "[secret-2]"}
    ]


def test_a_secret_with_words_in_front_leaves_the_words():
    session = turns(user("The password is hunter2hunter2, see [secret-1]."))
    secrets = Secrets(session)
    (turn,) = secrets.concealed
    assert turn.content.startswith("The password is [secret-2]")
    assert secrets.revealed(turn.content) == session[0].content


def test_a_quote_that_was_cut_within_a_cover_ends_before_it():
    secrets = Secrets(turns(user(f"Use {KEY}.")))
    assert secrets.revealed("Use [secret-") == "Use "


@given(st.lists(st.text(max_size=60) | st.just(f"key {KEY}!"), max_size=5))
def test_what_was_covered_can_be_told_again(texts):
    session = turns(*map(user, texts))
    secrets = Secrets(session)
    for turn, concealed in zip(session, secrets.concealed, strict=True):
        assert KEY not in concealed.content
        if KEY in turn.content:
            assert secrets.revealed(concealed.content) == turn.content
