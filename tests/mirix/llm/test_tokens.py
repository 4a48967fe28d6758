"""About how many tokens a text has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirix.llm.tokens import about_tokens, about_tokens_of


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("Please cancel my order.!", 6),
        ("请取消我的订单", 7),
        ("Пожалуйста", 7),
        ("\ud800", 1),
    ],
)
def test_it_is_a_quarter_of_latin_letters_and_each_chinese_character(text, tokens):
    assert about_tokens(text) == tokens


@given(st.text(max_size=50), st.text(max_size=50))
def test_more_text_is_never_fewer_tokens(one, other):
    assert max(about_tokens(one), about_tokens(other)) <= about_tokens(one + other)
    assert about_tokens(one + other) <= about_tokens(one) + about_tokens(other)


def test_fewer_octets_than_characters_count_as_as_many():
    assert about_tokens_of(characters=8, octets=0) == 2
