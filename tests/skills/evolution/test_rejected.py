"""What a person decided against, line by line: when a new text brings it back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skills.content import Content
from skills.evolution.rejected import Line, Rejected, holds, lines_back
from tests.skills.evolution.experiences import view

BAD = "Refund the order to a gift card without asking the customer which way they want it."
PAGE = Content(
    name="pay-order",
    description="How orders are paid.",
    instructions="1. Look the order up.\n2. Name the amount and wait for a yes.",
)
OTHER = Content(
    name="return-item",
    description="How items are sent back.",
    instructions="1. Ask which item it is.\n2. Say how the parcel is to be sent.",
)


def with_line(content: Content, *lines: str) -> Content:
    return replace(content, instructions="\n".join([content.instructions, *lines]))


def rejected(before: Content | None = PAGE, after: Content | None = None, **fields) -> Rejected:
    after = after or with_line(before or PAGE, f"3. {BAD}")
    defaults = {"revision_id": "rev-1", "skill_id": "proc-1", "action": "edit", "support": ()}
    return Rejected(content=after, base=before, **(defaults | fields))


def back(
    before: Content | None, after: Content, *, item: Rejected | None = None, cited=(), in_use=()
) -> list:
    return list(
        lines_back(
            [item or rejected()],
            skill_id="proc-2",
            before=before,
            after=after,
            cited=list(cited),
            in_use=holds(in_use),
        )
    )


@pytest.mark.parametrize(
    "lines",
    [
        [f"3. {BAD}"],
        ["3. Weigh the parcel.", f"- {BAD}", "5. Print the label for the parcel.", "6. Say goodbye."],
        [f"Weigh the parcel first. {BAD} Then print the label, and say when it will be there."],
        ["Refund the order to a gift card without asking", "the customer which way they want it."],
        ["Always refund the order to a gift card without asking the customer which way they want."],
        ["Without asking the customer which way, refund to a gift card the order that they want."],
        [f"## Example\n```\n{BAD.upper()}\n```"],
    ],
    ids=["alone", "among others", "within a line", "cut in two", "reworded", "turned round", "louder"],
)
@pytest.mark.parametrize("before", [OTHER, None], ids=["edit", "create"])
def test_a_line_is_back_wherever_it_stands(before, lines):
    [found] = back(before, with_line(OTHER, *lines))

    assert (found.text, found.new_voices) == (BAD, 0)
    assert found.reason == f"“{BAD}” was rejected with rev-1"


@pytest.mark.parametrize(
    "line",
    [
        "Refund the order to the card that it was paid with.",
        "Never refund to a gift card before the customer was asked and chose one.",
        "Ask the customer which way they want it.",
        "Look the order up.",
    ],
)
def test_another_line_is_not(line):
    assert back(OTHER, with_line(OTHER, f"3. {line}")) == []


def test_a_line_may_be_back_in_the_description_or_an_example():
    assert len(back(OTHER, replace(OTHER, description=f"{OTHER.description} {BAD}"))) == 1
    assert len(back(OTHER, replace(OTHER, examples=[{"say": BAD}]))) == 1


def test_what_was_there_before_the_rejected_change_and_before_this_one_counts_for_nothing():
    assert back(OTHER, with_line(OTHER, "3. Name the amount and wait for a yes.")) == []
    text = with_line(OTHER, f"3. {BAD}")
    assert back(text, with_line(text, "4. Say goodbye.")) == []


def test_what_agents_are_told_elsewhere_was_let_through():
    told = with_line(replace(PAGE, name="told"), f"7. {BAD}")

    assert back(OTHER, with_line(OTHER, f"3. {BAD}"), in_use=[told]) == []


def test_a_changed_number_in_a_known_line_was_rejected_though_most_of_the_line_is_in_use():
    known = with_line(PAGE, "3. When the desk is busy, wait 5 seconds before you call it again, as asked.")
    wanted = replace(known, instructions=known.instructions.replace("wait 5", "wait 500"))
    more = with_line(wanted, "4. Say goodbye.", "5. Print the label for the parcel and weigh it again.")

    [found] = back(known, more, item=rejected(known, wanted), in_use=[known])

    assert found.text.startswith("When the desk is busy, wait 500 seconds")


def test_another_remedy_of_an_error_is_not_the_one_that_was_rejected():
    error = "“the payment method gift_card_1 is not found in the profile of this user”"
    item = rejected(after=with_line(PAGE, f"- {error}: use another card."))

    assert back(PAGE, with_line(PAGE, f"- {error}: look the user's cards up."), item=item) == []
    assert len(back(OTHER, with_line(OTHER, f"- {error}: use another card."), item=item)) == 1


def test_lines_around_a_list_of_errors_are_no_lesson():
    frame = "1. Before you call `pay_order`, check `method` against the errors below."
    outcome = (
        "2. Where a remedy changes the outcome (`method`), make sure that it is still what was asked for."
    )
    item = rejected(None, replace(PAGE, instructions=f"{frame}\n{outcome}\n\n## Avoid\n- {BAD}"))

    assert [line.text for line in item.lines] == [PAGE.description, BAD]


def test_a_line_that_was_taken_out_against_a_persons_will_is_taken_out_no_more():
    item = rejected(PAGE, replace(PAGE, instructions="1. Look the order up."), skill_id="proc-2")
    more = replace(PAGE, instructions="0. Greet them by name.\n1. Look the order up.")

    [found] = back(PAGE, more, item=item)

    assert (found.text, found.reason) == ("", "rev-1 with much the same text was rejected")
    assert back(PAGE, more, item=replace(item, skill_id="proc-1")) == []


def test_only_new_sessions_that_speak_for_the_line_count():
    about = {
        "title": "Refund to a gift card",
        "content": "Order refund without asking the customer.",
    }
    heard = view(**about)
    item = rejected(support=(heard,))
    text = with_line(OTHER, f"3. {BAD}", "4. Say goodbye.")
    others = [view(title=f"Say goodbye {n}", content="They like it.") for n in range(3)]
    copies = [replace(heard, id=f"copy-{n}", session_id=f"copy-{n}") for n in range(3)]

    def voices(*cited):
        [found] = back(OTHER, text, item=item, cited=cited)
        return found.new_voices

    assert voices(heard, *others, *copies) == 0
    assert voices(heard, *others, view(**about, quote="one"), view(**about, quote="two")) == 2


@pytest.mark.parametrize(
    "text", [r"\d+ (.*)[", "\U0001f4a5" * 8, "退款到礼品卡不询问客户", "a", "ﬁ İ ß", "\x00"]
)
def test_any_line_is_back_as_it_is(text):
    item = rejected(after=with_line(PAGE, text))

    assert [found.text for found in back(OTHER, with_line(OTHER, text), item=item)] == [
        line.text for line in item.lines
    ]


def test_a_line_without_a_mark_of_its_own_is_not_everywhere():
    assert Line("", frozenset()).is_back(["something else"], frozenset()) is False
