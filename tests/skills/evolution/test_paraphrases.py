"""One lesson in six tellings, each under a topic of its own, and a model that wants a new skill of each.

What ties tellings together is the error that they rest on, the tools and steps that they name, their words,
and what they mean where an endpoint knows. A telling that shares none of these is a skill of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from mirix.tenants.owners import Owner
from skills.evolution.clusters import clusters, kind_of_error, says_of_the_same
from skills.evolution.curator import evolve
from skills.evolution.types import EvolutionReport
from skills.models import ProposerCall, RevisionState, RunTrigger, Skill, SkillExperience, SkillRevision
from skills.review.publishing import approve, reject
from skills.runs import claim
from tests.endpoints import ChatRequest
from tests.factories import make_experience, make_session
from tests.skills.evolution.answers import answer, create
from tests.skills.evolution.experiences import view

pytestmark = pytest.mark.django_db

ERROR = "Error: a reason is required to cancel"

# topic, title of the lesson, name, description, instructions
TELLINGS = [
    (
        "tool:cancel_order",
        "Give `cancel_order` a reason",
        "cancel-order",
        "How to cancel an order with a reason. Use when a user wants to cancel an order.",
        "1. Ask the user why the order is to be cancelled.\n2. Call `cancel_order` with the reason.\n",
    ),
    (
        "task:annul a purchase",
        "Find out why before annulling",
        "annul-purchase",
        "Annulling a purchase that was already placed. Use when a customer no longer wants it.",
        "- Find out the customer's motive before anything else.\n- Then invoke `cancel_order`, passing it.\n",
    ),
    (
        "task:order cancellation",
        "A cancellation wants grounds",
        "order-cancellation",
        "Order cancellation: grounds are mandatory. Use for cancellation requests.",
        "Before cancelling, get the grounds. Pass them to `cancel_order`. Afterwards state the refund.\n",
    ),
    (
        "task:refund handling",
        "State why when calling off",
        "call-off-deals",
        "Calling off deals. Use when somebody asks to call one off.",
        "1. Never call `cancel_order` blindly.\n2. Learn the cause.\n3. Report the refunded sum.\n",
    ),
    (
        "task:revoke booking",
        "Revoking requires a justification",
        "revoke-booking",
        "Revocation of something a shopper booked. Use when they changed their mind.",
        "* Obtain the justification.\n* Submit it through cancel_order.\n* Mention the reimbursement.\n",
    ),
    (
        "task:undo checkout",
        "Undoing takes an explanation",
        "undo-checkout",
        "Undoing a checkout. Use when the buyer regrets.",
        "First request an explanation, next hand it over while undoing, lastly quote what is credited.\n",
    ),
]


TOPICS = [
    "annul purchase",
    "reverse sale",
    "refund handling",
    "revoke booking",
    "unwind deal",
    "undo checkout",
]


def tell(owner: Owner, number: int, **fields) -> SkillExperience:
    topic, title, *_ = TELLINGS[number]
    session = make_session(
        owner,
        [
            {"role": "tool", "content": ERROR, "tool_name": "cancel_order", "is_error": True},
            {"role": "user", "content": f"No, case {number} needs more than that."},
        ],
    )
    defaults = {"topic": topic, "title": title, "content": title, "experience_type": "worth_avoiding"}
    return make_experience(owner, session, **(defaults | fields))


def on_the_error(owner: Owner, number: int) -> SkillExperience:
    return tell(owner, number, signal_type="tool_error", quote=ERROR)


def on_a_remark(owner: Owner, number: int) -> SkillExperience:
    return tell(owner, number, signal_type="user_critique", quote=f"case {number} needs more")


def wants_a_skill_of_each(chat_server, told: Iterable[SkillExperience]) -> None:
    """Have the model answer every question with a new skill for each lesson that it is shown."""
    number = {lesson.pk: place for place, lesson in enumerate(told)}

    def reply(request: ChatRequest) -> str:
        shown = [word for word in dict.fromkeys(request.user.split()) if word in number]
        return answer(*(new_skill(pk, number[pk]) for pk in shown[:4]))

    chat_server.answer = reply


def new_skill(pk: str, number: int) -> dict:
    _, _, name, description, instructions = TELLINGS[number]
    return create(pk, name=name, description=description, instructions=instructions, triggers=[])


def run(owner: Owner) -> EvolutionReport:
    held = claim(owner=owner, trigger=RunTrigger.COMMAND)
    report = evolve(owner=owner, claim=held)
    held.end("finished")
    return report


def texts(owner: Owner) -> list[str]:
    """The names of what is a skill or will be one."""
    skills = Skill.objects.for_owner(owner).values_list("name", flat=True)
    new = SkillRevision.objects.for_owner(owner).filter(state=RevisionState.PROPOSED, skill=None)
    return sorted([*skills, *new.values_list("name", flat=True)])


def test_lessons_that_rest_on_one_error_come_to_one_skill_whatever_they_are_called(owner, chat_server):
    told = [on_the_error(owner, number) for number in range(6)]
    wants_a_skill_of_each(chat_server, told)

    reports = [run(owner) for _ in range(3)]

    [name] = texts(owner)
    reasons = [refusal.reason for report in reports for refusal in report.refused]
    assert reasons
    assert all("is about this" in reason for reason in reasons)
    approve(revision=SkillRevision.objects.get(state=RevisionState.PROPOSED))
    assert (run(owner).proposed, texts(owner)) == ([], [name])


def test_tellings_that_name_the_same_tool_amend_the_first_and_say_why(owner, chat_server):
    told = [on_a_remark(owner, number) for number in range(5)]
    wants_a_skill_of_each(chat_server, told)

    report = run(owner)

    [name] = texts(owner)
    assert len(report.proposed) == 1
    amended = SkillRevision.objects.filter(supersedes__isnull=False)
    came = [revision.rationale.split("Because. ")[1] for revision in amended]
    assert came
    assert all(reason.startswith("It came as a new skill, “") for reason in came)
    assert all("which is near to this one by " in reason for reason in came)
    written = {row.pk for row in SkillRevision.objects.get(pk=report.proposed[0]).experiences.all()}
    turned_down = {pk for refusal in report.refused for pk in refusal.experience_ids}
    assert written | turned_down == {lesson.pk for lesson in told}
    assert name in {telling[2] for telling in TELLINGS}


def test_a_paraphrase_of_what_was_rejected_waits_for_two_new_sessions(owner, chat_server):
    told = [on_a_remark(owner, 0)]
    wants_a_skill_of_each(chat_server, told)
    [pk] = run(owner).proposed
    reject(revision=SkillRevision.objects.get(pk=pk), reason="Not here.")
    told.append(on_a_remark(owner, 4))
    wants_a_skill_of_each(chat_server, [told[0], *[told[1]] * 4])

    report = run(owner)

    assert (report.proposed, texts(owner)) == ([], [])
    assert report.refused[0].reason.startswith(f"{pk} with much the same text was rejected")


def test_with_embeddings_no_word_need_be_shared(owner, chat_server, endpoint):
    def embed(text: str) -> list[float]:
        known = [name for _, _, name, *_ in TELLINGS]
        angle = math.radians(known.index(name) if (name := text.partition(":")[0]) in known else 180)
        return [math.cos(angle), math.sin(angle)]

    endpoint.script.embed = embed
    told = [on_a_remark(owner, number) for number in range(6)]
    wants_a_skill_of_each(chat_server, told)

    report = run(owner)

    assert (len(texts(owner)), len(report.proposed)) == (1, 1)
    support = SkillRevision.objects.get(pk=report.proposed[0]).experiences.count()
    assert support + sum(len(refusal.experience_ids) for refusal in report.refused) == 6


def test_without_them_what_shares_no_word_no_step_and_no_error_is_another_skill(owner, chat_server):
    told = [on_a_remark(owner, number) for number in range(6)]
    wants_a_skill_of_each(chat_server, told)

    run(owner)

    assert len(texts(owner)) == 2
    assert "undo-checkout" in texts(owner)


def test_new_skills_of_one_answer_about_the_same_are_turned_down_but_one(owner, chat_server):
    told = [tell(owner, number, topic="task:call it off", quote=f"case {number}") for number in (4, 5)]
    known = {told[0].pk: 4, told[1].pk: 5}
    chat_server.answer = lambda request: answer(
        *(new_skill(pk, known[pk]) for pk in dict.fromkeys(request.user.split()) if pk in known)
    )

    report = run(owner)

    assert len(texts(owner)) == 1
    [reason] = [refusal.reason for refusal in report.refused]
    assert "is about this already" in reason  # of the answer after: by then it is a text that waits
    assert chat_server.calls == 2
    first = ProposerCall.objects.for_owner(owner).order_by("created_at")[0]
    assert first.refused[0]["reason"].endswith("of this answer is about this: make them one.")


def test_a_model_is_shown_what_waits_and_shares_words_with_a_lesson(owner, chat_server):
    first = on_a_remark(owner, 5)
    wants_a_skill_of_each(chat_server, [*[first] * 5, first])
    [pk] = run(owner).proposed
    make_experience(owner, title="A checkout that a buyer regrets", topic="task:give up", quote="other card")
    chat_server.answer = lambda request: answer()

    run(owner)

    assert f"[skill {pk}" in chat_server.requests[-1].user


class TestOffline:
    """The rules write from topics and users' words."""

    def test_lessons_about_one_tool_are_one_skill_however_they_are_told(self, owner, settings):
        settings.MIRIX_PROPOSER = "offline"
        for number in range(6):
            tell(
                owner, number, topic="tool:cancel_order", details={"pattern": "user_correction", "said": "x"}
            )
        run(owner)
        assert len(texts(owner)) <= 1


@pytest.mark.parametrize(
    ("quote", "kind"),
    [
        (ERROR, "reason is required to cancel"),
        ("Error: order A-1742 is not open", "order is not open"),
        ("ERROR: Order  B-9999 is not open.", "order is not open"),
        ("Request failed with status code 404", "request failed with status code 404"),
        ("Request failed with status code 500", "request failed with status code 500"),
        ("Payment of 12345 exceeds balance", "payment of exceeds balance"),
        ("Error: reservation not found", ""),
        ("Permission denied", ""),
        ("Error 500", ""),
        ("", ""),
    ],
)
def test_an_error_is_known_again_whatever_its_values_were(quote, kind):
    assert kind_of_error(quote) == kind


def test_lessons_on_one_kind_of_error_come_to_one_skill(owner, chat_server):
    told = []
    for number in (4, 5):
        error = f"Error: order {number}1742 needs a reason to be cancelled"
        session = make_session(owner, [{"role": "tool", "content": error, "is_error": True}])
        topic, title = TELLINGS[number][:2]
        told.append(
            make_experience(owner, session, topic=topic, title=title, quote=error, signal_type="tool_error")
        )
        wants_a_skill_of_each(chat_server, [*[told[0]] * 4, *told])
        run(owner)
    assert texts(owner) == ["revoke-booking"]


def test_errors_that_tell_little_and_those_of_two_tools_tie_nothing():
    def lesson(topic: str, quote: str, **fields):
        return view(topic=topic, quote=quote, title=topic, **fields)

    one, other = lesson("task:annul it", ERROR), lesson("task:revoke it", ERROR)
    assert says_of_the_same(one, other)
    assert len(clusters([one, other])) == 1
    assert says_of_the_same(one, lesson("tool:cancel_order", ERROR))
    for different in (
        [lesson("tool:cancel_order", ERROR), lesson("tool:cancel_trip", ERROR)],
        [lesson("task:annul it", "Error: not found"), lesson("task:revoke it", "Error: not found")],
        [one, lesson("task:revoke it", ERROR, verified=False)],
        [one, lesson("task:revoke it", ERROR, signal_type="user_critique")],
        [lesson("", "x"), lesson("", "y")],
    ):
        assert not says_of_the_same(*different)
        assert len(clusters(different)) == 2 or not different[0].topic
