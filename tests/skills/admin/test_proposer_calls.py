"""The admin's page of a question to a proposer's model: all that was answered, as text."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.factories import make_experience, make_member, make_proposer_call, make_run

pytestmark = pytest.mark.django_db

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def operator(owner, client):
    client.force_login(make_member(owner.organization, "operator"))
    return client


def test_it_shows_lessons_refusals_and_the_answer_as_text(owner, operator):
    lesson = make_experience(owner, title="Ask for the reason")
    call = make_proposer_call(
        make_run(owner),
        topic=f"task:{EVIL}",
        raw_reply=f'{{"operations": "{EVIL}"}}',
        experience_ids=[lesson.pk, "sexp-gone"],
        refused=[{"reason": f"It cites {EVIL}.", "text": EVIL}],
    )
    page = operator.get(reverse("admin:skills_proposercall_change", args=[call.pk])).content.decode()
    assert "Ask for the reason" in page
    assert "sexp-gone" not in page
    assert "1 refused" in page
    assert EVIL not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3


def test_the_run_lists_its_questions(owner, operator):
    run = make_run(owner)
    call = make_proposer_call(run, topic="tool:pay_order", operations=2, prompt_tokens=7, completion_tokens=5)
    page = operator.get(reverse("admin:skills_autodreamrun_change", args=[run.pk])).content.decode()
    assert reverse("admin:skills_proposercall_change", args=[call.pk]) in page
    assert "tool:pay_order" in page


def test_a_long_answer_is_cut_and_a_pruned_one_named(owner, operator):
    call = make_proposer_call(make_run(owner), raw_reply="a" * 150_000)
    url = reverse("admin:skills_proposercall_change", args=[call.pk])
    page = operator.get(url).content.decode()
    assert "50000 characters in between are not shown" in page.replace(",", "")
    type(call).objects.update(raw_reply="", pruned_at=call.created_at)
    assert "was pruned on" in operator.get(url).content.decode()


def test_the_api_tells_of_it_with_its_run(owner, api):
    run = make_run(owner)
    make_proposer_call(
        run,
        experience_ids=["sexp-1"],
        operations=1,
        refused=[{"reason": "It cites no experience.", "text": "{}"}],
    )
    (told,) = api.get(f"/v1/runs/{run.pk}").json()["proposer_calls"]
    assert (told["topic"], told["verdict"], told["operations"]) == ("tool:cancel_order", "ok", 1)
    assert (told["experience_ids"], told["refused"]) == (["sexp-1"], ["It cites no experience."])
    assert "raw_reply" not in told
