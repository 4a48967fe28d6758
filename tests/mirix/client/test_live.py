"""The Python client against a running mirix: a session comes in, is learned from, and is found again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mirix.client import BadRequest, Conflict, Forbidden, Mirix, NotFound, TooLarge, Unauthorized
from tests.mirix.served import Served

pytestmark = pytest.mark.processes


def call(number: int, method: str) -> dict[str, Any]:
    arguments = json.dumps({"order": "4711", "method": method})
    function = {"name": "refund_order", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number: int, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "name": "refund_order", "content": content}


REFUND = [
    {"role": "system", "content": "You help customers."},
    {"role": "user", "content": "Refund order 4711, please."},
    call(1, "voucher"),
    result(1, "Error: orders paid by card are refunded to the card"),
    call(2, "card"),
    result(2, '{"refunded": true}'),
]


@pytest.fixture(scope="module")
def key(served: Served) -> Callable[..., str]:
    """Makes a key of the organization `acme`."""
    return lambda *more: served.manage("create_api_key", "--organization", "acme", *more)


@pytest.fixture(scope="module")
def mirix(served: Served, key: Callable[..., str]) -> Iterator[Mirix]:
    with Mirix(served.url, key()) as client:
        yield client


def test_a_session_is_learned_from_and_found_again(mirix: Mirix, served: Served):
    added = mirix.add_sync(REFUND, session_id="order-4711", user_id="desk-7", filter_tags={"shop": "süd"})
    assert (added["status"], added["session"]) == (
        "processed",
        {"session_id": "order-4711", "state": "open", "turn_count": 5},
    )
    assert added["turns"] is not None
    assert added["turns"]["roles"] == {"user": 1, "assistant": 2, "tool": 2}
    assert added["turns"]["skipped"] == [{"index": 0, "reason": "system message"}]
    assert mirix.close_session("order-4711", user_id="desk-7")["state"] == "sealed"

    planned = mirix.auto_dream(user_id="desk-7", dry_run=True)
    assert (planned["run_id"], planned["would_distil"]["sessions"]) == (None, 1)
    dream = mirix.auto_dream(user_id="desk-7")
    assert (dream["state"], dream["sessions"]["distilled"]) == ("finished", 1)
    (proposal,) = dream["proposals"]
    assert mirix.search("refund a card payment", user_id="desk-7")["results"] == []

    served.manage("review", "approve", "--organization", "acme", proposal)
    found = mirix.search("how do I refund an order that was paid by card?", user_id="desk-7", explain=True)
    (row,) = found["results"]
    assert row["revision_id"] == proposal
    assert row["filter_tags"] == {"shop": "süd"}
    assert "refund_order" in row["instructions"]
    assert "refund" in row["explain"]["matched_terms"]
    assert (found["count"], found["total_count"], found["search_method"]) == (1, 1, "hybrid")

    (listed,) = mirix.search("refund", user_id="desk-7", view="catalog", search_method="bm25")["results"]
    assert "instructions" not in listed
    assert mirix.skill(listed["id"])["instructions"] == row["instructions"]
    narrowed = {
        "süd": mirix.search("refund", user_id="desk-7", filter_tags={"shop": {"$in": ["süd", "nord"]}}),
        "nord": mirix.search("refund", user_id="desk-7", filter_tags={"shop": "nord"}),
    }
    assert {shop: answer["count"] for shop, answer in narrowed.items()} == {"süd": 1, "nord": 0}
    assert mirix.search("refund", user_id="desk-7", token_budget=1)["count"] == 0
    everywhere = mirix.search_all_users("refund")
    assert [(other["id"], other["user_id"]) for other in everywhere["results"]] == [(row["id"], "desk-7")]


def test_what_is_queued_is_stored_before_its_session_is_closed(mirix: Mirix):
    added = mirix.add(REFUND, session_id="queued-1", user_id="desk-8")
    assert (added["status"], added["turns"]) == ("queued", None)
    session = mirix.close_session("queued-1", user_id="desk-8")
    assert (session["state"], session["turn_count"]) == ("sealed", 5)
    dream = mirix.auto_dream(user_id="desk-8", wait=0)
    assert dream["run_id"] is not None
    run = mirix.wait_for_run(dream["run_id"], every=0.05)
    assert (run["state"], run["user_id"]) == ("finished", "desk-8")


def test_a_request_that_comes_twice_is_done_once(mirix: Mirix):
    first = mirix.add_sync(REFUND, session_id="twice-1", user_id="desk-9", idempotency_key="order-4711")
    assert (
        mirix.add_sync(REFUND, session_id="twice-1", user_id="desk-9", idempotency_key="order-4711") == first
    )
    with pytest.raises(Conflict):
        mirix.add_sync(REFUND, session_id="twice-2", user_id="desk-9", idempotency_key="order-4711")
    again = mirix.add_sync(REFUND[1:2], session_id="twice-1", user_id="desk-9", history="delta")
    assert again["session"] == {"session_id": "twice-1", "state": "open", "turn_count": 6}


def test_what_is_erased_is_gone(mirix: Mirix, served: Served, key: Callable[..., str]):
    mirix.add_sync(REFUND, session_id="gone-1", user_id="desk-10")
    assert mirix.retry_session("gone-1", user_id="desk-10")["state"] == "open"
    with pytest.raises(Forbidden):
        mirix.erase_user("desk-10")
    with Mirix(served.url, key("--permission", "admin")) as admin:
        erased = admin.erase_user("desk-10")
        assert (erased["receipt"]["kind"], erased["receipt"]["counts"]["conversations.session"]) == (
            "end_user",
            1,
        )
        for gone in (
            lambda: admin.erase_user("desk-10"),
            lambda: admin.erase_client("client-none"),
            lambda: admin.erase_skill("proc-none"),
            lambda: mirix.close_session("gone-1", user_id="desk-10"),
        ):
            with pytest.raises(NotFound):
                gone()


def test_any_text_goes_through(mirix: Mirix):
    texts = ["größer 漢字 🙂", "half \ud83d", "both \ud83d\ude42", "nul \x00"]
    added = mirix.add_sync(
        [{"role": "user", "content": text} for text in texts], session_id="texts-1", user_id="desk-ü"
    )
    assert added["turns"] is not None
    assert added["turns"]["stored"] == 4
    assert mirix.close_session("texts-1", user_id="desk-ü")["user_id"] == "desk-ü"
    for text in [*texts, "🙂" * 2000, "漢" * 2000, "' OR 1=1 -- \" & | ! ( ) : * % _ \\"]:
        assert mirix.search(text, user_id="desk-ü")["results"] == []
    assert mirix.search("half \ud83d", user_id="desk-ü")["query"] == "half \ufffd"


def test_what_the_server_refuses_is_an_error_of_its_kind(
    mirix: Mirix, served: Served, key: Callable[..., str]
):
    with pytest.raises(BadRequest) as raised:
        mirix.search("x", limit=0, filter_tags={"k": {"$like": "v"}})
    assert sorted(raised.value.fields) == ["filter_tags", "limit"]
    with pytest.raises(BadRequest) as raised:
        mirix.add_sync([])
    assert raised.value.fields == {"messages": ["May not be empty."]}
    for missing in (
        lambda: mirix.close_session("nowhere", user_id="desk-7"),
        lambda: mirix.close_session("../../health"),
        lambda: mirix.auto_dream(user_id="nobody"),
        lambda: mirix.run("run-none"),
        lambda: mirix.skill("proc-none"),
    ):
        with pytest.raises(NotFound):
            missing()
    assert mirix.search("x", user_id="nobody")["results"] == []
    with pytest.raises(TooLarge):
        mirix.add_sync([{"role": "user", "content": "x" * 20_000_000}], session_id="large-1")
    with Mirix(served.url, key("--permission", "read")) as reader, pytest.raises(Forbidden):
        reader.add_sync(REFUND)
    with Mirix(served.url, "mirix_wrong") as nobody, pytest.raises(Unauthorized):
        nobody.search("x")


def test_another_organization_finds_nothing_of_it(mirix: Mirix, served: Served):
    mirix.add_sync(REFUND, session_id="theirs-1", user_id="desk-11")
    other_key = served.manage("create_api_key", "--organization", "umbrella")
    with Mirix(served.url, other_key) as stranger:
        assert stranger.search("refund", user_id="desk-11")["results"] == []
        assert stranger.search_all_users("refund")["results"] == []
        with pytest.raises(NotFound):
            stranger.close_session("theirs-1", user_id="desk-11")
