"""Gates: sizes at their borders, support, and what could not be a skill at all."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.content import Content
from skills.evolution.gates import (
    SHORT_FIELD_CHARS,
    Change,
    Limits,
    content_refusals,
    cumulative_refusals,
    measure_change,
    refusals,
    rewritten,
    size_refusals,
    support_refusals,
)
from skills.evolution.types import ExperienceView


def content(**fields) -> Content:
    defaults = {"name": "pay-an-order", "description": "Use when paying.", "instructions": "1. Pay."}
    return Content(**(defaults | fields))


def experience(*, verified: bool = True) -> ExperienceView:
    return ExperienceView(
        id="sexp-1",
        session_id="s-1",
        experience_type="worth_avoiding",
        title="t",
        content="c",
        topic="tool:pay",
        details={},
        importance=0.8,
        credibility=0.9,
        signal_type="tool_error",
        quote="q",
        verified=verified,
    )


LONG = "\n".join(f"{n}. Step number {n} says what to do with item {n * 7919}." for n in range(1, 61))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", Change(0, 0.0)),
        ("same", "same", Change(0, 0.0)),
        ("", "new", Change(3, 1.0)),
        ("gone", "", Change(4, 1.0)),
        ("pay by card", "pay by cart", Change(1, 1 - 20 / 22)),
        ("one two three", "one 2 three", Change(3, 1 - 2 * 10 / 24)),
        ("a\nb\nc\n", "a\nc\n", Change(2, 1 - 2 * 4 / 10)),
        ("支払い方法を選ぶ", "支払い手段を選ぶ", Change(2, 1 - 2 * 6 / 16)),
    ],
)
def test_measure(before, after, expected):
    change = measure_change(before, after)
    assert (change.chars, round(change.ratio, 9)) == (expected.chars, round(expected.ratio, 9))


def test_a_small_insertion_into_a_repetitive_text_stays_small():
    repetitive = "check the order, then pay. " * 400
    assert measure_change(repetitive, "First " + repetitive).chars == 6


def test_a_hostile_text_is_measured_in_time():
    before, after = "a b " * 3000, "b b a " * 2000
    started = time.perf_counter()
    measure_change(before, after)
    assert time.perf_counter() - started < 20


@pytest.mark.parametrize(("added", "refused"), [(799, False), (800, False), (801, True)])
def test_changed_characters(added, refused):
    before, after = content(instructions=LONG), content(instructions=LONG + "x" * added)
    reasons = size_refusals(before, after, Limits())
    assert bool(reasons) is refused
    if refused:
        assert reasons == ["The edit changes 801 characters of the instructions; the limit is 800."]


@pytest.mark.parametrize(("replaced", "refused"), [(390, False), (399, False), (400, True), (410, True)])
def test_changed_ratio(replaced, refused):
    before = content(instructions="a" * 1_000)
    after = content(instructions="z" * replaced + "a" * (1_000 - replaced))
    assert bool(size_refusals(before, after, Limits())) is refused


def test_a_short_field_may_be_rewritten_whole():
    before, after = content(description="a" * SHORT_FIELD_CHARS), content(description="x" * 500)
    assert size_refusals(before, after, Limits()) == []
    longer = content(description="a" * (SHORT_FIELD_CHARS + 1))
    assert size_refusals(longer, after, Limits()) == [
        "The edit changes 1.00 of the description; the limit is 0.4."
    ]


@pytest.mark.parametrize(("length", "refused"), [(12_000, False), (12_001, True)])
def test_ceiling_of_the_instructions(length, refused):
    before = content(instructions="x" * 11_990)
    assert bool(size_refusals(before, content(instructions="x" * length), Limits())) is refused
    assert bool(size_refusals(None, content(instructions="x" * length), Limits())) is refused


def test_an_overlong_text_may_be_shortened():
    before, after = content(instructions="y " * 7_000), content(instructions="y " * 6_900)
    assert size_refusals(before, after, Limits()) == []


@pytest.mark.parametrize("name", ["", "Pay", "pay--order", "-pay", "pay-", "pay_order", "pay\n", "p" * 65])
def test_names_that_are_no_slugs(name):
    assert len(content_refusals(content(name=name))) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"description": " "},
        {"description": "x" * 1_025},
        {"instructions": "\n"},
        {"instructions": "x" * 65_537},
        {"entry_type": "process"},
        {"triggers": ["t"] * 51},
        {"triggers": ["t" * 513]},
        {"examples": [{}] * 51},
    ],
)
def test_contents_that_are_no_skills(fields):
    assert len(content_refusals(content(**fields))) == 1


def test_support():
    assert support_refusals([]) == ["The operation cites no experience."]
    assert support_refusals([experience(verified=False)]) == ["None of the cited experiences is verified."]
    assert support_refusals([experience(verified=False), experience()]) == []


def test_all_reasons_are_told_at_once():
    before = content(instructions=LONG)
    after = content(name="Pay", instructions=LONG + "x" * 900)
    assert refusals(before=before, after=after, experiences=[]) == [
        "The name: Lower-case ASCII letters, digits and single hyphens between them only.",
        "The edit changes 900 characters of the instructions; the limit is 800.",
        "The operation cites no experience.",
    ]


def test_an_edit_must_change_something():
    assert refusals(before=content(), after=content(), experiences=[experience()]) == [
        "The edit changes nothing."
    ]
    assert refusals(before=None, after=content(), experiences=[experience()]) == []


texts = st.text(max_size=80)


@given(texts, texts)
def test_measure_is_bounded_and_zero_only_for_equal_texts(before, after):
    change = measure_change(before, after)
    assert (change.chars == 0) is (before == after)
    assert abs(len(before) - len(after)) <= change.chars <= len(before) + len(after)
    assert 0.0 <= change.ratio <= 1.0


@given(texts, texts, texts)
def test_an_insertion_costs_at_most_its_length(head, inserted, tail):
    assert measure_change(head + "\n" + tail, head + "\n" + inserted + tail).chars <= len(inserted) + len(
        tail
    )


class TestEditsThatAddUp:
    PUBLISHED = "".join(f"{n}. Say the word number {n} of the list.\n" for n in range(1, 41))

    def rewritten_lines(self, number: int) -> Content:
        lines = self.PUBLISHED.splitlines(keepends=True)
        lines[:number] = [f"Nothing at all {n}!\n" for n in range(number)]
        return content(instructions="".join(lines))

    def test_take_out_no_more_than_one_edit_may(self):
        published = content(instructions=self.PUBLISHED)
        few, many = self.rewritten_lines(10), self.rewritten_lines(20)
        assert size_refusals(few, many, Limits()) == []
        assert cumulative_refusals(published, few, Limits()) == []
        [reason] = cumulative_refusals(published, many, Limits())
        assert reason.startswith("It is cumulative: with the edits before it, it takes ")
        assert "out of the published instructions; the limit is 800 and a share of 0.4." in reason

    @pytest.mark.parametrize(("lost", "refused"), [(399, False), (400, True)])
    def test_share_of_a_field(self, lost, refused):
        published = content(instructions="a" * 1_000)
        after = content(instructions="a" * (1_000 - lost))
        assert bool(cumulative_refusals(published, after)) is refused

    @pytest.mark.parametrize(("lost", "refused"), [(800, False), (801, True)])
    def test_characters(self, lost, refused):
        published = content(instructions="a" * 9_000)
        assert bool(cumulative_refusals(published, content(instructions="a" * (9_000 - lost)))) is refused

    def test_may_add_as_much_as_there_is_to_say_and_the_reviewer_is_told(self):
        published = content(instructions=self.PUBLISHED)
        longer = content(instructions=self.PUBLISHED + "z" * 3_000)
        assert cumulative_refusals(published, longer) == []
        assert rewritten(published, longer) == {"instructions": pytest.approx(0.4867, abs=1e-4)}
        assert rewritten(published, content(instructions=self.PUBLISHED + "z" * 800)) == {}

    def test_of_what_is_not_published_count_for_nothing(self):
        assert cumulative_refusals(None, self.rewritten_lines(20)) == []
        assert rewritten(None, self.rewritten_lines(20)) == {}
