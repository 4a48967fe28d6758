"""The page of instructions: what is added where, and that nothing is said twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skills.evolution.page import SETTLE, Page, section_of

OURS = """\
1. Before you call `pay_order`, check `method` against the errors below.
2. Wait for a yes.

## When it answers with an error
- “balance is not enough”: use another `method`; if nothing helps, go on with `hand_over`.

## Avoid
- Paying twice."""


def test_an_empty_page_takes_all_three():
    page = Page()
    page.add_pitfall("Paying twice.")
    page.add_step("Ask for the card.")
    page.add_remedy("card has expired", "use another `method`")

    assert page.text == (
        "1. Ask for the card.\n\n"
        "## When it answers with an error\n- “card has expired”: use another `method`.\n\n"
        "## Avoid\n- Paying twice."
    )


def test_steps_go_behind_the_last_one():
    page = Page(OURS)

    assert page.add_step("Say what it costs.")
    assert page.text == OURS.replace("2. Wait for a yes.", "2. Wait for a yes.\n3. Say what it costs.")


def test_steps_go_in_front_of_the_closing_one():
    page = Page(OURS)

    assert page.add_step("Say what it costs.", before="Wait for a yes.")
    assert page.text == OURS.replace("2. Wait for a yes.", "2. Say what it costs.\n3. Wait for a yes.")


def test_a_step_with_lines_of_its_own_is_not_torn_apart():
    page = Page("1) Ask.\n   Be kind.\n\nThen rest.")
    page.add_step("Pay.")

    assert page.text == "1) Ask.\n   Be kind.\n2) Pay.\n\nThen rest."


def test_the_prose_of_a_person_stays_as_it_is():
    prose = "Talk to the customer first.\n\n## Notes\nMind the *time zone*."
    page = Page(prose)
    page.add_step("Ask for the card.")

    assert page.text == (
        "Talk to the customer first.\n\n1. Ask for the card.\n\n## Notes\nMind the *time zone*."
    )


def test_a_persons_own_headings_are_used():
    page = Page("1. Pay.\n\n### Common mistakes\n* Paying twice.\n\n### If it fails\n* Wait.")
    page.add_pitfall("Paying late.")
    page.add_remedy("card has expired", "use another `method`")

    assert page.text == (
        "1. Pay.\n\n### Common mistakes\n* Paying twice.\n- Paying late.\n\n"
        "### If it fails\n* Wait.\n- “card has expired”: use another `method`."
    )


def test_remedies_of_one_error_stand_in_one_line_the_mildest_first():
    page = Page()
    page.add_remedy("no seats", "set `cabin` to `business`")
    page.add_remedy("no seats", "go on with `hand_over`", last_resort=True)
    page.add_remedy("no seats", "use another `flight`")
    page.add_remedy("no seats", "check `flight` before you call again")

    assert page.lines[-1] == (
        "- “no seats”: check `flight` before you call again; else use another `flight`; "
        "else set `cabin` to `business`; if nothing helps, go on with `hand_over`."
    )


def test_a_remedy_takes_the_place_of_mere_caution():
    page = Page()
    page.add_remedy("no seats", SETTLE)
    assert page.lines[-1] == f"- “no seats”: {SETTLE}."
    page.add_remedy("no seats", "use another `flight`")
    assert page.lines[-1] == "- “no seats”: use another `flight`."
    assert not page.add_remedy("no seats", SETTLE)


def test_of_two_changes_at_once_the_one_known_to_help_alone_stays():
    page = Page()
    page.add_remedy("no seats", "use another `flight` and set `cabin` to `business`")
    page.add_remedy("no seats", "use another `flight`")
    assert page.lines[-1] == "- “no seats”: use another `flight`."
    assert not page.add_remedy("no seats", "set `cabin` to `business` and use another `flight`")


def test_one_last_resort_is_enough():
    page = Page()
    page.add_remedy("no seats", "go on with `hand_over`", last_resort=True)
    assert not page.add_remedy("no seats", "go on with `call_boss`", last_resort=True)
    page.add_remedy("no seats", "use another `flight`")
    assert page.lines[-1] == ("- “no seats”: use another `flight`; if nothing helps, go on with `hand_over`.")


def test_nothing_is_said_twice():
    page = Page(OURS)

    assert not page.add_step("Wait for a yes.")
    assert not page.add_step("wait for a YES")
    assert not page.add_pitfall("Paying twice")
    assert not page.add_remedy("balance is not enough", "use another `method`")
    assert not page.changed


def test_a_paraphrase_with_the_same_words_is_the_same():
    page = Page("1. Always confirm the delivery address with the customer before shipping.")

    assert page.says("Confirm the customer's delivery address, always, before shipping.")
    assert not page.says("Never confirm the delivery address with the customer before shipping.")
    assert not page.says("Confirm the delivery date with the customer.")


def test_lines_about_other_names_are_never_the_same():
    page = Page("1. When you call `list`, pass `start` as a number; else it answers “must be an integer”.")

    assert not page.says(
        "When you call `list`, pass `end` as a number; else it answers “must be an integer”."
    )
    assert page.says("When you call `list`, pass `start` as a number; else it answers “is not a number”.")
    assert page.says("When you call `list`, pass `start` as a number from the start.")


def test_sections_of_headings():
    assert section_of("## Avoid") == "## Avoid"
    assert section_of("# Pitfalls") == "## Avoid"
    assert section_of("### Troubleshooting") == "## When it answers with an error"
    assert section_of("## Notes") == ""
    assert section_of("- Avoid this") is None


lines = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40).filter(str.strip)
parts = st.one_of(
    st.tuples(st.just("step"), lines, st.just("")),
    st.tuples(st.just("pitfall"), lines, st.just("")),
    st.tuples(st.just("remedy"), lines, lines),
    st.tuples(st.just("resort"), lines, lines),
)


def add(page: Page, part: tuple[str, str, str]) -> bool:
    match part:
        case ("step", text, _):
            return page.add_step(text)
        case ("pitfall", text, _):
            return page.add_pitfall(text)
        case ("remedy", error, clause):
            return page.add_remedy(error, clause)
        case (_, error, clause):
            return page.add_remedy(error, clause, last_resort=True)


@given(st.text(max_size=120), st.lists(parts, max_size=6))
def test_writing_the_same_again_changes_nothing(prose, added):
    page = Page(prose)
    for part in added:
        add(page, part)
    again = Page(page.text)
    assert [add(again, part) for part in added] == [False] * len(added)
    assert again.text == page.text


@given(st.lists(lines.map(lambda line: f"Note {line}"), max_size=5), st.lists(parts, max_size=6))
def test_prose_stays(prose, added):
    page = Page("\n\n".join(prose))
    for part in added:
        add(page, part)
    kept = iter(page.lines)
    assert all(line in kept for line in "\n\n".join(prose).rstrip().splitlines())
