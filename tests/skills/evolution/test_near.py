"""Near-duplicates: slug stems, shingles, and where the border lies."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.content import Content
from skills.evolution.near import (
    NEAR_COSINE,
    NEAR_JACCARD,
    Fingerprint,
    Nearness,
    jaccard,
    named_after,
    nearest,
    pairs_by_text,
    shingles,
    slug_stem,
)


def content(name: str, description: str = "", instructions: str = "") -> Content:
    return Content(name=name, description=description, instructions=instructions)


def is_near(left: Content, right: Content) -> bool:
    return Fingerprint.of(left).is_near(Fingerprint.of(right))


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("update-reservation-flights", "updat-reserv-flight"),
        ("updating-the-reservation-flight", "updat-reserv-flight"),
        ("update-reservation-flights-2", "updat-reserv-flight"),
        ("update-reservation-flights-v3", "updat-reserv-flight"),
        ("update-reservation-flights-copy-2", "updat-reserv-flight"),
        ("guide-to-updating-reservation-flights", "updat-reserv-flight"),
        ("update-reservation", "updat-reserv"),
        ("staging-to-production", "stage-product"),
        ("production-to-staging", "product-stage"),
        ("use-http-2-push", "use-http-2-push"),
        ("how-to", "how-to"),
        ("2", "2"),
        ("", ""),
    ],
)
def test_slug_stem(name, stem):
    assert slug_stem(name) == stem


def test_same_stem_is_near_whatever_the_text_says():
    assert is_near(content("refund-order", "a", "b"), content("refunding-orders-2", "c", "d"))


def test_shingles_are_runs_of_five_words():
    assert shingles("One two, three four five SIX") == {
        ("one", "two", "three", "four", "five"),
        ("two", "three", "four", "five", "six"),
    }


def test_a_short_text_is_one_shingle_and_no_text_is_none():
    assert shingles("too short") == {("too", "short")}
    assert shingles(" … ") == frozenset()


def test_a_script_without_blanks_is_compared_by_character():
    assert len(shingles("支払い方法を変更する")) == 6
    assert len(shingles("API支払い方法v2")) == 3


def test_border_of_similar_texts():
    # Twelve words make eight shingles; a text that keeps the first n of them shares n - 4.
    full = "a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12"
    half, less = " ".join(full.split()[:8]), " ".join(full.split()[:7])
    assert jaccard(shingles(full), shingles(half)) == 0.5 == NEAR_JACCARD
    assert jaccard(shingles(full), shingles(less)) == 0.375
    # As contents, the names of one word stand in front and cost five shingles on either side.
    assert not is_near(content("x", "", full), content("y", "", full.replace("a6", "b6")))


def test_paraphrased_twin_under_another_name():
    text = (
        "1. Look up the reservation and read the saved payment methods before you call the tool.\n"
        "2. Choose a method that covers the whole price difference.\n"
        "3. Tell the user the amount and wait for a clear yes."
    )
    twin = content("change-booking", "Use when a flight is changed.", text + "\n4. Then call the tool.")
    assert is_near(content("modify-trip", "Use when a flight is changed.", text), twin)
    assert not is_near(content("modify-trip", "Use when a bag is lost.", "1. Ask for the tag."), twin)


def test_nearest_takes_the_most_similar_and_the_first_of_equals():
    wanted = content("a-one", "one two three four five six seven eight nine ten")
    others = [
        ("far", Fingerprint.of(content("b-two", "nothing of the kind"))),
        ("close", Fingerprint.of(content("c-three", "one two three four five six seven eight nine ten"))),
        ("same name", Fingerprint.of(content("a-one-2"))),
        ("same name again", Fingerprint.of(content("a-one-3"))),
    ]
    assert nearest_key(Fingerprint.of(wanted), others) == "same name"
    assert nearest_key(Fingerprint.of(wanted), others[:2]) == "close"
    assert nearest_key(Fingerprint.of(wanted), others[:1]) is None
    assert nearest_key(Fingerprint.of(wanted), []) is None


def nearest_key(*given: Any, **options: Any) -> str | None:
    found = nearest(*given, **options)
    return found[0] if found else None


def at(name: str, degrees: float, **fields) -> Fingerprint:
    """A text whose name and description lie at an angle."""
    vector = (math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))
    return Fingerprint.of(replace(content(name), **fields), vector)


def test_border_of_similar_meanings():
    border = math.degrees(math.acos(NEAR_COSINE))
    near, far = border - 0.01, border + 0.01
    assert at("refund-money", 0).nearness(at("return-payment", near)) == Nearness(
        measure="meaning", score=pytest.approx(NEAR_COSINE, abs=1e-3)
    )
    assert at("refund-money", 0).nearness(at("return-payment", far)) is None
    assert at("refund-money", 0).nearness(at("return-payment", far), cosine=0.9) is not None


def test_meaning_needs_vectors_of_one_model():
    unknown, other = Fingerprint.of(content("return-payment")), at("pay-back", 0)
    assert at("refund-money", 0).nearness(unknown) is None
    assert unknown.nearness(Fingerprint.of(content("pay-back"))) is None
    assert other.nearness(replace(other, stem="x", shingles=frozenset(), vector=(1.0, 0.0, 0.0))) is None


def test_two_that_are_named_after_tools_of_their_own_mean_different_things():
    flights = at("update-flights", 0, description="When `update_flights` fails.")
    bags = at("update-bags", 0, triggers=["update_bags"])
    assert flights.nearness(bags) is None
    assert flights.nearness(at("change-bookings", 0)) is not None
    assert flights.nearness(at("update-flights-2", 90, triggers=["update_bags"])) is not None


@pytest.mark.parametrize(
    ("fields", "tool"),
    [
        ({"description": "Use when you call `get_user` with `name`."}, "get_user"),
        ({"triggers": ["get_user"]}, "get_user"),
        ({"triggers": ["getUser"]}, "getUser"),
        ({"triggers": ["get user"]}, ""),
        ({"description": "Use when `get_users` fails."}, ""),
        ({}, ""),
    ],
)
def test_the_tool_that_a_skill_is_named_after(fields, tool):
    assert named_after(replace(content("get-user"), **fields)) == tool


def test_what_says_most_makes_the_nearest():
    wanted = at("refund-order", 0, description="one two three four five six seven eight nine ten")
    wanted = replace(wanted, named=frozenset({"refund_order"}))
    others = [
        ("steps", replace(at("pay-back-to-card", 90), named=frozenset({"refund_order", "order_id"}))),
        ("meaning", at("pay-back", 0)),
        ("words", at("b-two", 90, description="one two three four five six seven eight nine ten")),
        ("name", at("refunding-orders", 90)),
    ]
    assert nearest_key(wanted, others) == "name"
    assert nearest_key(wanted, others[:3]) == "words"
    assert nearest_key(wanted, others[:2]) == "meaning"
    assert nearest_key(wanted, others[:2], cosine=1.1) == "steps"
    assert nearest_key(wanted, []) is None


def told(name: str, text: str, *triggers: str) -> Fingerprint:
    return Fingerprint.of(replace(content(name, "", text), triggers=list(triggers)))


STEPS = told("cancel-order", "1. Ask for the reason.\n2. Call `cancel_order` with it.")


@pytest.mark.parametrize(
    ("other", "score"),
    [
        (told("call-off", "Never use cancel_order blindly: find out why."), 1.0),
        (told("call-off", "Find out why, then say so.", "cancel_order"), 1.0),
        (told("call-off", "Give `cancel_order` why in `cancel_reason`."), 0.5),
        (told("call-off", "Give `cancel_order` why in `cancel_reason`, by `order_id`."), None),
        (told("call-off", "Find out why, then cancel the order."), None),
        (told("call-off", "Use `cancelOrder`."), None),
    ],
)
def test_other_words_that_name_the_same_tools_are_a_paraphrase(other, score):
    assert STEPS.nearness(other) == (score and Nearness(measure="steps", score=score))


def test_commands_and_paths_count_as_tools_do():
    one = told("free-disk", "Run `docker system prune -f` when /var/lib/docker is full.")
    two = told("no-space-left", "A full /var/lib/docker is emptied by `docker system  prune -f`.")
    assert one.nearness(two) == Nearness(measure="steps", score=1.0)
    assert one.nearness(told("no-space-left", "Run `docker volume prune`.")) is None


def test_nothing_named_is_nothing_in_common():
    assert told("a-one", "Say it.").nearness(told("b-two", "Tell it.")) is None


def test_two_that_are_named_after_tools_of_their_own_are_two_whatever_else_both_name():
    flights = replace(at("update-flights", 0, triggers=["update_flights"]), named=frozenset({"a_b", "c_d"}))
    bags = replace(at("update-bags", 90, triggers=["update_bags"]), named=frozenset({"a_b", "c_d"}))
    assert flights.nearness(bags) is None


texts = st.text(max_size=60)
few_words = st.lists(st.sampled_from(["a", "b", "c", "d_e", "f_g", "hI"]), max_size=9).map(" ".join)


@given(st.lists(st.builds(content, st.sampled_from(["x", "xs", "y-z", "w"]), few_words), max_size=8))
def test_pairs_are_those_of_comparing_all_with_all(contents):
    prints = [Fingerprint.of(item) for item in contents]
    near = {
        (one, other, prints[one].nearness(prints[other]))
        for one, other in combinations(range(len(prints)), 2)
        if prints[one].is_near(prints[other])
    }
    assert set(pairs_by_text(prints)) == near


@given(texts, texts, texts, texts)
def test_similarity_is_symmetric_and_a_text_is_near_itself(name, left, other, right):
    one, two = Fingerprint.of(content(name, left)), Fingerprint.of(content(other, right))
    assert one.similarity(two) == two.similarity(one)
    assert 0.0 <= one.similarity(two) <= 1.0
    assert one.is_near(one)
    assert not one.shingles or jaccard(one.shingles, one.shingles) == 1.0
