"""The distiller that asks a model, through the real client against a scripted endpoint."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from mirix.llm.tokens import about_tokens
from skills.distillation import get_distiller
from skills.distillation.llm import LlmDistiller
from skills.distillation.prompt import system_prompt
from skills.distillation.types import DistillerReply, Dropped, KnownSkill, Lesson, Surroundings
from skills.evolution.offline import OfflineProposer
from skills.evolution.types import ExperienceView
from skills.search.fingerprints import MASK, ServedText
from tests.endpoints import ChatAnswer
from tests.skills.distillation import sessions
from tests.skills.distillation.answers import answer, told
from tests.skills.distillation.sessions import assistant, tool, user

SESSION = sessions.turns(
    user("Please cancel my order 17."),
    tool("cancel_order", {"order": 17}, "Error: reason is required"),
    assistant("I should have asked for the reason first. Why do you want to cancel?"),
    user("It came too late. And always say the amount before you refund."),
    tool("cancel_order", {"order": 17, "reason": "late"}, "cancelled"),
    user("Perfect, that was right."),
)
ERROR = "Error: reason is required"


@pytest.fixture
def distiller(chat_server) -> LlmDistiller:
    made = get_distiller()
    assert isinstance(made, LlmDistiller)
    return made


def distil(
    chat_server, text: Any, *, turns=SESSION, first_seq: int = 1, **surroundings: Any
) -> DistillerReply:
    chat_server.answer = lambda request: text
    return get_distiller().distil(turns, first_seq=first_seq, surroundings=Surroundings(**surroundings))


def test_one_question_gives_the_lessons_with_what_evolution_needs_of_them(chat_server):
    text = answer(told(3, ERROR))
    reply = distil(chat_server, text)
    assert reply.lessons == [
        Lesson(
            experience_type="worth_avoiding",
            title="Do not cancel before the reason is known",
            content="The tool refuses a call without a reason.",
            topic="tool:cancel_order",
            details={"request": "Please cancel my order 17."},
            importance=0.8,
            credibility=0.5,
            signal_type="tool_error",
            quote=ERROR,
            turn_seq=3,
        )
    ]
    assert (reply.verdict, reply.dropped, reply.flags, reply.error) == ("ok", [], [], "")
    assert (reply.raw_reply, reply.calls) == (text, 1)
    assert (reply.prompt_tokens, reply.completion_tokens) == (100, 10)
    assert [turn.seq for turn in reply.seen or ()] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert chat_server.calls == 1


def test_the_model_gets_the_rules_and_the_session_and_nothing_else(chat_server):
    skills = [KnownSkill(name="refund-order", description="How to refund.")]
    distil(chat_server, "[]", skills=skills)
    (request,) = chat_server.requests
    assert request.system.startswith(system_prompt())
    assert "\n- refund-order: How to refund.\n" in request.user
    assert re.search(rf"\n\[turn 3 tool cancel_order error \w+\]\n\[cancel_order\] {ERROR}\n", request.user)
    assert [message["role"] for message in request.body["messages"]] == ["system", "user"]
    assert request.body["response_format"]["json_schema"]["name"] == "experiences"


def test_text_that_our_search_served_is_masked_and_no_evidence(chat_server):
    text = "Cancelling an order needs a reason, so ask the customer for it before you call the tool."
    turns = sessions.turns(user("Cancel it."), tool("search_skills", {}, f"Found: {text}"), user("No, stop."))
    reply = distil(chat_server, answer(told(3, text)), turns=turns, served=ServedText.of([text]))
    assert text not in chat_server.requests[0].user
    assert MASK in chat_server.requests[0].user
    assert reply.seen is not None
    assert text not in reply.seen[2].content


@pytest.mark.parametrize("text", ["[]", '{"experiences": []}', "```json\n[]\n```"])
def test_an_explicit_nothing_is_empty(chat_server, text):
    reply = distil(chat_server, text)
    assert (reply.verdict, reply.lessons, reply.raw_reply, reply.calls) == ("empty", [], text, 1)


@pytest.mark.parametrize(
    "text",
    [
        "I see nothing that is worth keeping.",
        "I'm sorry, but I can't help with that.",
        "<html><body>Bad gateway</body></html>",
        '{"experiences": [{"experience_type": "worth_avo',
    ],
)
def test_what_cannot_be_understood_is_to_be_asked_for_again(chat_server, text):
    reply = distil(chat_server, text)
    assert (reply.verdict, reply.lessons, reply.raw_reply, reply.calls) == ("retry", [], text, 1)
    assert reply.error
    assert reply.fault == "session"


def test_a_refusal_is_named(chat_server):
    reply = distil(chat_server, ChatAnswer(text=None, message={"refusal": "I will not."}))
    assert (reply.verdict, reply.calls, reply.fault) == ("retry", 1, "session")
    assert "refuse" in reply.error


def test_a_reply_that_was_cut_keeps_what_is_whole(chat_server):
    whole = answer(told(3, ERROR), told(5, "always say the amount", signal="user_critique"))
    reply = distil(chat_server, ChatAnswer(text=whole[: whole.rindex("importance")], finish="length"))
    assert reply.verdict == "ok"
    assert [lesson.turn_seq for lesson in reply.lessons] == [3]


def test_valid_items_survive_invalid_ones_which_are_kept_with_the_reason(chat_server):
    reply = distil(
        chat_server,
        answer(told(3, ERROR, experience_type="unsure"), told(3, ERROR), told(3, ERROR, title="")),
    )
    assert [lesson.turn_seq for lesson in reply.lessons] == [3]
    assert [found.reason for found in reply.dropped] == [
        "experience_type is none of worth_learning, worth_avoiding",
        "the title is blank",
    ]


def test_a_reply_without_one_valid_item_is_no_empty_one(chat_server):
    reply = distil(chat_server, answer(told(3, ERROR, title=" "), {"experience_type": "unsure"}))
    assert reply.verdict == "retry"
    assert reply.error == "no lesson of the reply can be used: the title is blank"
    assert len(reply.dropped) == 2


def test_a_lesson_that_is_told_twice_is_one(chat_server):
    reply = distil(chat_server, answer(told(3, ERROR), told(3, f" {ERROR}", importance=0.1)))
    assert len(reply.lessons) == 1
    assert [found.reason for found in reply.dropped] == ["the reply tells it twice"]


@pytest.mark.parametrize(
    ("item", "fault"),
    [
        (ChatAnswer(status=401), "endpoint"),
        (ChatAnswer(status=404), "endpoint"),
        (ChatAnswer(status=400, body=b'{"error": "context length exceeded"}'), "session"),
        (ChatAnswer(closes=True), "either"),
        (ChatAnswer(status=500), "either"),
    ],
)
def test_an_endpoint_that_fails_is_a_retry_with_whose_fault_it_is(chat_server, item, fault):
    reply = distil(chat_server, item)
    assert (reply.verdict, reply.fault, reply.lessons) == ("retry", fault, [])
    assert reply.error
    assert reply.calls == chat_server.calls > 0


def test_an_endpoint_that_wants_to_be_left_alone_says_for_how_long(chat_server):
    reply = distil(chat_server, ChatAnswer(status=429, headers={"Retry-After": "120"}))
    assert (reply.verdict, reply.fault, reply.retry_after, reply.calls) == ("retry", "endpoint", 120, 1)


def test_where_the_endpoint_counts_no_tokens_they_are_estimated(chat_server):
    reply = distil(chat_server, ChatAnswer(text="[]", usage=None))
    assert reply.prompt_tokens == about_tokens(chat_server.requests[0].user + system_prompt())
    assert reply.completion_tokens == 1


def test_an_estimate_is_rather_too_high_and_bounded(chat_server, distiller, settings):
    settings.MIRIX_DISTILLER_MAX_TRANSCRIPT_CHARS = 10_000
    distil(chat_server, ChatAnswer(text="[]", usage=None))
    request = chat_server.requests[0]
    shown = sum(len(turn.content) for turn in SESSION)
    assert distiller.estimate(characters=shown) * 4 >= len(request.system) + shown
    assert distiller.estimate(characters=10**9) == distiller.estimate(characters=10_000)


def test_an_estimate_knows_turns_and_scripts(distiller, settings):
    settings.MIRIX_DISTILLER_MAX_TRANSCRIPT_CHARS = 10_000
    none = distiller.estimate(characters=0)
    assert distiller.estimate(characters=4_000, octets=4_000) == none + 1_000
    assert distiller.estimate(characters=4_000, octets=12_000) == none + 4_000
    assert distiller.estimate(characters=4_000, octets=4_000, turns=100) == none + 2_000
    assert distiller.estimate(characters=40_000, octets=120_000) == none + 10_000


@pytest.mark.parametrize(
    ("given", "times"),
    [
        (ChatAnswer(closes=True), 3),
        (ChatAnswer(sent=9), 3),
        (ChatAnswer(body=b'{"choices": null}'), 1),
        (ChatAnswer(body=b"x" * 10_500_000), 1),
        (ChatAnswer(status=503), 0),
        (ChatAnswer(status=429), 0),
        (ChatAnswer(status=400), 0),
    ],
)
def test_a_question_that_may_have_cost_something_counts_though_no_answer_says_so(chat_server, given, times):
    reply = distil(chat_server, given)
    sent = about_tokens(chat_server.requests[0].user + system_prompt())
    assert (reply.verdict, reply.prompt_tokens, reply.completion_tokens) == ("retry", times * sent, 0)


def test_so_does_one_before_the_answer_came(chat_server):
    chat_server.answer = lambda request: ChatAnswer(closes=True) if request.number == 1 else ChatAnswer()
    reply = get_distiller().distil(SESSION, first_seq=1)
    sent = about_tokens(chat_server.requests[0].user + system_prompt())
    assert (reply.verdict, reply.calls, reply.prompt_tokens) == ("empty", 2, sent + 100)


def test_an_endpoint_that_cannot_be_reached_costs_nothing(chat_server, settings):
    settings.MIRIX_LLM_BASE_URL = "http://127.0.0.1:9/v1"
    assert distil(chat_server, "[]").prompt_tokens == 0


# Evidence


def test_a_quote_is_looked_for_in_the_named_turn_then_in_others(chat_server):
    reply = distil(
        chat_server, answer(told(1, ERROR), told(99, "that was  right", signal="user_confirmation"))
    )
    assert [(lesson.turn_seq, lesson.signal_type) for lesson in reply.lessons] == [
        (3, "tool_error"),
        (8, "user_confirmation"),
    ]


def test_a_signal_that_its_turn_cannot_give_is_inferred_and_what_was_claimed_is_kept(chat_server):
    items = [
        told(7, "[cancel_order] cancelled", signal="tool_error", title="a"),
        told(3, ERROR, signal="user_confirmation", title="b"),
        told(4, "I should have asked", signal="user_critique", title="c"),
        told(5, "It came too late.", signal="self_correction", title="d"),
        told(4, "I should have asked", signal="self_correction", title="e"),
    ]
    reply = distil(chat_server, answer(*items))
    found = [(lesson.signal_type, lesson.details.get("claimed_signal")) for lesson in reply.lessons]
    assert found == [
        ("inferred", "tool_error"),
        ("inferred", "user_confirmation"),
        ("inferred", "user_critique"),
        ("inferred", "self_correction"),
        ("self_correction", None),
    ]


def test_what_only_earlier_turns_say_was_learned_before(chat_server):
    items = [told(3, ERROR), told(5, "always say the amount", signal="user_critique")]
    reply = distil(chat_server, answer(*items), first_seq=4)
    assert [lesson.turn_seq for lesson in reply.lessons] == [5]
    assert [found.reason for found in reply.dropped] == [
        "its evidence stands in turns that were learned from before"
    ]
    nothing_new = distil(chat_server, answer(told(3, ERROR)), first_seq=4)
    assert (nothing_new.verdict, nothing_new.lessons) == ("ok", [])


def test_words_that_earlier_and_new_turns_say_count_as_new(chat_server):
    turns = [*SESSION, replace(SESSION[2], seq=9)]
    reply = distil(chat_server, answer(told(3, ERROR)), turns=turns, first_seq=9)
    assert [lesson.turn_seq for lesson in reply.lessons] == [9]


def test_a_session_without_anything_new_is_not_sent(chat_server):
    reply = distil(chat_server, "unused", first_seq=9)
    assert (reply.verdict, reply.calls, chat_server.calls) == ("empty", 0, 0)
    assert distil(chat_server, "unused", turns=[]).verdict == "empty"
    assert chat_server.calls == 0


def test_secrets_are_not_sent_and_evidence_is_looked_up_without_them(chat_server):
    key = "sk-proj-a1b2c3d4e5f6g7h8i9j0k1l2"
    turns = sessions.turns(user(f"Use the key {key} for the shop, and never print it."))
    chat_server.answer = lambda request: answer(
        told(1, re.search(r"Use the key .* print it\.", request.user)[0], signal="user_critique")
    )
    (lesson,) = get_distiller().distil(turns, first_seq=1).lessons
    assert key not in json.dumps([request.body for request in chat_server.requests])
    assert lesson.turn_seq == 1
    assert "[redacted: " in lesson.quote


# What evolution makes of it


def views(lessons: list[Lesson], session_id: str) -> list[ExperienceView]:
    return [
        ExperienceView(
            id=f"{session_id}-{number}",
            session_id=session_id,
            experience_type=lesson.experience_type,
            title=lesson.title,
            content=lesson.content,
            topic=lesson.topic,
            details=lesson.details,
            importance=lesson.importance,
            credibility=lesson.credibility,
            signal_type=lesson.signal_type,
            quote=lesson.quote,
            verified=True,
        )
        for number, lesson in enumerate(lessons)
    ]


def test_a_models_lessons_become_a_skill_by_the_rules(chat_server):
    learned = told(
        5,
        "always say the amount before you refund",
        signal="user_critique",
        experience_type="worth_learning",
        title="Say the amount before you refund",
        content="Users want to know what they get back; say it before the call.",
        topic="Tool: Cancel Order",
    )
    lessons = distil(chat_server, answer(learned, told(3, ERROR))).lessons
    experiences = views(lessons, "s-1")
    proposer = OfflineProposer()
    assert proposer.is_ready(experiences, [])
    (operation,) = proposer.propose(experiences, [])
    assert operation.action == "create"
    assert operation.content.name == "cancel-order"
    assert "cancel_order" in operation.content.triggers
    assert "Say the amount before you refund." in operation.content.instructions
    assert "Users want to know what they get back" in operation.content.instructions
    assert "Do not cancel before the reason is known" in operation.content.instructions
    assert set(operation.experience_ids) == {"s-1-0", "s-1-1"}


def test_dropped_parts_are_told_as_they_came(chat_server):
    reply = distil(chat_server, answer("just words", told(3, ERROR)))
    assert len(reply.lessons) == 1
    (dropped,) = reply.dropped
    assert isinstance(dropped, Dropped)
    assert "just words" in dropped.text
