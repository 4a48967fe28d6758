"""Near-duplicates: slug stems, shingles, and where the border lies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.content import Content
from skills.evolution.near import NEAR_JACCARD, Fingerprint, jaccard, nearest, shingles, slug_stem


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
    assert nearest(wanted, others) == "same name"
    assert nearest(wanted, others[:2]) == "close"
    assert nearest(wanted, others[:1]) is None
    assert nearest(wanted, []) is None


texts = st.text(max_size=60)


@given(texts, texts, texts, texts)
def test_similarity_is_symmetric_and_a_text_is_near_itself(name, left, other, right):
    one, two = Fingerprint.of(content(name, left)), Fingerprint.of(content(other, right))
    assert one.similarity(two) == two.similarity(one)
    assert 0.0 <= one.similarity(two) <= 1.0
    assert one.is_near(one)
    assert not one.shingles or jaccard(one.shingles, one.shingles) == 1.0
