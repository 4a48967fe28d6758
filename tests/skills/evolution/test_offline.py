"""The offline proposer: whole skills, word for word, and what a second run makes of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skills.content import Content
from skills.evolution.cards import skill_name
from skills.evolution.clusters import clusters
from skills.evolution.gates import refusals, size_refusals
from skills.evolution.offline import OfflineProposer
from skills.review.validation import content_errors
from tests.skills.evolution.experiences import ABSENT, corrected, failed, skill, view

PROPOSER = OfflineProposer()


def create(*rows) -> Content:
    (operation,) = PROPOSER.propose(rows, [])
    assert operation.action == "create"
    assert set(operation.experience_ids) == {row.id for row in rows}
    return operation.content


def test_a_skill_about_a_tool():
    request = "Could you change the payment of my order 77812, please?"
    content = create(
        failed("amount must be a number", ("amount", "12.50", 12.5), request=request),
        failed("balance is not enough", ("method", "gift_card_11", "credit_card_22"), request=request),
        failed("balance is not enough", instead="hand_over_to_human"),
    )

    assert content == Content(
        name="pay-order",
        description=(
            "Call `pay_order` right the first time: pass `amount` as a number; "
            "when it refuses, use a `credit_card_…` as `method`. "
            "Use when you call `pay_order`, for requests such as “change the payment of my order” "
            "or when it answers “balance is not enough” or “amount must be a number”."
        ),
        instructions=(
            "1. When you call `pay_order`, pass `amount` as a number; "
            "else it answers “amount must be a number”.\n"
            "2. Before you call `pay_order`, check `method` against the errors below.\n"
            "\n"
            "## When it answers with an error\n"
            "- “balance is not enough”: use a `credit_card_…` as `method`; "
            "if nothing helps, go on with `hand_over_to_human`."
        ),
        triggers=[
            "change the payment of my order",
            "pay_order",
            "balance is not enough",
            "amount must be a number",
        ],
    )


def test_a_description_opens_with_what_most_sessions_learned():
    economy, priority = ("cabin", "first", "economy"), ("cabin", "first", "priority")
    rows = [failed("cabin is full", economy), *(failed("cabin is full", priority) for _ in range(2))]
    assert create(*rows).description == (
        "When `pay_order` refuses, set `cabin` to `priority` or set `cabin` to `economy`. "
        "Use when you call `pay_order` or when it answers “cabin is full”."
    )


def test_a_description_does_not_contradict_itself_over_the_remedies_of_two_errors():
    rows = [
        failed("balance is not enough", ("cabin", "business", "economy")),
        failed("no seats", ("cabin", "economy", "business")),
        failed("try later", pattern="retried_call"),
    ]
    assert create(*rows).description.startswith("When `pay_order` refuses, set `cabin` to `economy`. ")


def test_a_call_that_may_be_sent_again_is_not_forbidden_to_be_sent_again():
    content = create(
        failed("request timed out", pattern="retried_call", named=["host"]),
        failed("card has expired", pattern="repeated_call"),
    )

    assert content.instructions == (
        "## When it answers with an error\n"
        "- “request timed out”: send the same call once more, it can pass.\n"
        "- “card has expired”: settle what it objects to before you call again.\n"
        "\n"
        "## Avoid\n"
        "- Sending `pay_order` the same call again unchanged where no remedy says so; it was refused again."
    )


def test_a_page_without_remedies_announces_none():
    between = failed("no such table", pattern="retried_call", between=["run_migrations"])
    assert create(between).instructions == (
        "1. Call `run_migrations` before `pay_order`; else it answers “no such table”."
    )


def test_what_more_sessions_teach_stands_in_front():
    other_card, no_note = ("method", "gift_card_1", "credit_card_2"), ("note", "shop", 7)
    rows = [
        failed("card has expired", ("method", "x1", "y2")),
        failed("no funds", other_card),
        *(failed("no funds", no_note) for _ in range(3)),
        *(failed("no funds", ("amount", 9, 5)) for _ in range(5)),
    ]
    line = (
        "- “no funds”: use another `note`; else use a `credit_card_…` as `method`; else lower `amount`.\n"
        "- “card has expired”: use another `method`."
    )
    assert create(*rows).instructions.endswith(line)
    assert create(*reversed(rows)).instructions.endswith(line)


def test_what_supports_a_skill_already_counts_for_the_order_of_its_remedies():
    known = [failed("no funds", ("method", "gift_card_1", "credit_card_2")) for _ in range(2)]
    new = [failed("no funds", ("note", "shop", 7)) for _ in range(3)]
    own = create(*known)

    (edit,) = PROPOSER.propose(new, [skill(own, support=tuple(known))])
    assert "use another `note`; else use a `credit_card_…` as `method`." in edit.content.instructions
    (edit,) = PROPOSER.propose(new[:1], [skill(own, support=tuple(known))])
    assert "use a `credit_card_…` as `method`; else use another `note`." in edit.content.instructions


def test_a_skill_about_a_task():
    request = "I'd like to get a refund for the insurance I bought."
    said = "I don't want to cancel the flight, just the insurance."
    content = create(
        corrected(said, topic="task:refund-insurance", request=request),
        corrected("Again: just the insurance!", topic="task:refund-insurance"),
    )

    assert content == Content(
        name="refund-insurance",
        description=(
            "What earlier sessions taught about “refund insurance”. "
            "Use for requests such as “get a refund for the insurance I bought”."
        ),
        instructions=(
            "1. Before you act, say back what you understood: users had to correct it.\n"
            "\n"
            "## Avoid\n"
            f"- A misreading that a user had to correct: “{said}”\n"
            "- A misreading that a user had to correct: “Again: just the insurance!”"
        ),
        triggers=["get a refund for the insurance I bought"],
    )


def test_a_second_run_edits_what_exists():
    first = create(failed("balance is not enough", ("method", "gift_card_11", "credit_card_22")))
    new = failed("card has expired", ("method", "credit_card_22", "credit_card_33"))

    (edit,) = PROPOSER.propose([new], [skill(first)])

    assert (edit.action, edit.experience_ids) == ("edit", (new.id,))
    assert edit.content.instructions == first.instructions + "\n- “card has expired”: use another `method`."
    assert edit.content.description == first.description.replace(
        "“balance is not enough”.", "“balance is not enough” or “card has expired”."
    )
    assert edit.content.triggers == [*first.triggers, "card has expired"]
    assert edit.content.name == first.name


def test_the_same_lesson_of_another_session_is_support_and_no_edit():
    change = ("method", "gift_card_11", "credit_card_22")
    first = create(failed("balance is not enough", change))
    again = failed("balance is not enough", ("method", "gift_card_98", "credit_card_76"))

    (operation,) = PROPOSER.propose([again], [skill(first)])

    assert (operation.action, operation.content, operation.experience_ids) == ("confirm", first, (again.id,))


def test_a_confirmed_call_is_support():
    first = create(failed("balance is not enough", ("method", "gift_card_11", "credit_card_22")))
    worked = view(details={"pattern": "user_confirmation", "steps": ["pay_order"]})

    assert [item.action for item in PROPOSER.propose([worked], [skill(first)])] == ["confirm"]
    assert PROPOSER.propose([worked], []) == []


def test_a_skill_of_a_person_about_the_tool_is_edited_under_its_own_name():
    own = Content(
        name="settle-orders",
        description="Settles an order with `pay_order`.",
        instructions="Be kind.\n\n1. Read the amount back.",
    )
    change = ("method", "gift_card_11", "credit_card_22")

    (edit,) = PROPOSER.propose([failed("no funds", change)], [skill(own)])

    assert edit.content.name == "settle-orders"
    assert edit.content.instructions.startswith("Be kind.\n\n1. Read the amount back.\n2. Before you call")
    assert PROPOSER.propose([failed("no funds", change)], [skill(edit.content)])[0].action == "confirm"


def test_large_changes_come_in_steps_that_pass_the_gates():
    first = create(failed("balance is not enough", ("method", "gift_card_11", "credit_card_22")))
    rows = [
        failed(f"{word} is not accepted for this order because of rule {word} " * 3, ("method", "a1", "b2"))
        for word in ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
    ]
    operations = PROPOSER.propose(rows, [skill(first)])

    assert len(operations) > 1
    text = first
    for operation in operations:
        assert operation.target is not None
        assert operation.target.content == text
        assert refusals(before=text, after=operation.content, experiences=rows) == []
        text = operation.content
    cited = [item for operation in operations for item in operation.experience_ids]
    assert sorted(cited) == sorted(row.id for row in rows)


def test_what_waits_for_more():
    wish = corrected("Just the insurance, not the flight.", topic="task:refund-insurance")
    other = corrected("Only the insurance.", topic="task:refund-insurance")
    rule = corrected("Use the other form instead of this one.", topic="task:refund-insurance")
    unexplained = failed("Message error")
    handed_over = failed("Message error", instead="page_oncall")

    assert not PROPOSER.is_ready([wish], [])
    assert PROPOSER.is_ready([wish, other], [])
    assert PROPOSER.is_ready([rule], [])
    assert PROPOSER.is_ready([wish], [skill(create(wish, other))])
    assert not PROPOSER.is_ready([unexplained], [])
    assert not PROPOSER.is_ready([unexplained, failed("Exceeded 30 redirects")], [])
    assert not PROPOSER.is_ready([handed_over, unexplained], [])
    assert PROPOSER.is_ready([handed_over, failed("Message error", pattern="repeated_call")], [])
    assert PROPOSER.is_ready([unexplained, failed("no funds", ("card", ABSENT, "x1"))], [])
    assert not PROPOSER.is_ready([], [])


def test_names_of_skills():
    assert skill_name("tool:update_reservation_flights") == "update-reservation-flights"
    assert skill_name("tool:getUserById") == "get-user-by-id"
    assert skill_name("tool:mcp__github.create/issue") == "mcp-github-create-issue"
    assert skill_name("task:change passenger name") == "change-passenger-name"
    assert skill_name("tool:支払い") == "lessons-99aedd2b"
    assert len(skill_name("tool:" + "a_very_long_name" * 20)) <= 64


PATTERNS = [
    "changed_arguments",
    "retried_call",
    "repeated_call",
    "given_up",
    "user_correction",
    "user_confirmation",
    "self_correction",
]
text = st.text(max_size=80)
words = st.sampled_from(["refund the order", "I need to pay with another card", "don't do that", "…", ""])
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
paths = st.sampled_from(["card", "flights[0].date", "a.b", ""])
change = st.fixed_dictionaries({"argument": paths | json}, optional={"before": json, "after": json})
details = st.dictionaries(text, json, max_size=3) | st.fixed_dictionaries(
    {
        "pattern": st.sampled_from(PATTERNS) | json,
        "tool": st.just("pay_order") | text,
        "error": text | words | json,
    },
    optional={
        "error_pattern": text | words | json,
        "changes": st.lists(change | json, max_size=4) | json,
        "telling": st.lists(paths, max_size=2) | json,
        "named": st.lists(text, max_size=2) | json,
        "compared": st.fixed_dictionaries(
            {
                "argument": paths | text,
                "summed": st.booleans(),
                "must": st.sampled_from(["equal", "limit"]),
                "against": text,
            }
        )
        | json,
        "between": st.lists(text, max_size=2) | json,
        "steps": st.lists(text, max_size=3) | json,
        "instead": text | st.just("transfer_to_human") | json,
        "request": words | text | json,
        "said": words | text | json,
    },
)
rows = st.builds(
    view,
    id=st.uuids().map(str),
    session_id=st.sampled_from(["s-1", "s-2"]),
    topic=st.sampled_from(["tool:pay_order", "task:refund-the-order", ""]) | text,
    title=text | words,
    content=text | words,
    quote=text | words,
    details=details,
    experience_type=st.sampled_from(["worth_learning", "worth_avoiding"]),
    importance=st.floats(0, 1),
    credibility=st.floats(0, 1),
)


def test_a_character_that_is_written_in_another_form_is_known_again():
    experience = failed("\U0002f800 was refused", ("card", "\U0002f800", "b"))
    [first] = PROPOSER.propose([experience], [])

    [again] = PROPOSER.propose([experience], [skill(first.content)])

    assert "\u4e3d was refused" in first.content.instructions
    assert again.action == "confirm"


@given(st.lists(rows, max_size=6, unique_by=lambda row: row.id))
def test_any_experiences_give_valid_skills_and_the_same_again_changes_nothing(experiences):
    for cluster in clusters(experiences):
        operations = PROPOSER.propose(cluster.experiences, [])
        assert len(operations) <= 1
        for operation in operations:
            assert content_errors(operation.content) == {}
            assert size_refusals(None, operation.content, PROPOSER.limits) == []
            again = PROPOSER.propose(cluster.experiences, [skill(operation.content)])
            assert [item.action for item in again] == ["confirm"]
            assert set(again[0].experience_ids) == set(operation.experience_ids)


@given(st.lists(rows, min_size=2, max_size=6, unique_by=lambda row: row.id), text)
def test_edits_of_any_text_pass_the_gates_in_their_order(experiences, prose):
    own = Content(name="pay-order", description="Pays with `pay_order`.", instructions=prose or "Pay.")
    target = skill(own)
    for cluster in clusters(experiences):
        now = target.content
        for operation in PROPOSER.propose(cluster.experiences, [target]):
            if operation.action == "create":
                continue
            assert operation.target is not None
            assert operation.target.content == now
            assert operation.experience_ids
            if not size_refusals(now, operation.content, PROPOSER.limits):
                now = operation.content
