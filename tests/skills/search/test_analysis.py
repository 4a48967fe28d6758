from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.search.analysis import MAX_TERMS, is_stop_word, query_terms, term_counts, terms

ANY_TEXT = st.text(max_size=200)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cancelling the bookings", ["cancel", "the", "book"]),
        ("CAFÉ café cafe", ["cafe", "cafe", "cafe"]),
        ("Straße ＡＢＣ ﬁle", ["strass", "abc", "file"]),
        ("ECONNRESET", ["econnreset"]),
        ("--no-verify", ["noverifi", "no", "verifi"]),
        ("getUserById", ["getuserbyid", "get", "user", "by", "id"]),
        ("get_user_by_id", ["getuserbyid", "get", "user", "by", "id"]),
        ("HTTPServer OAuth2", ["httpserver", "http", "server", "oauth2", "o", "auth", "2"]),
        ("the APIs and URLs", ["the", "api", "and", "url"]),
        ("src/auth/login.ts", ["srcauthlogint", "src", "auth", "logint", "login", "ts"]),
        (r"C:\Temp", ["ctemp", "c", "temp"]),
        ("v1.2.3", ["v1.2.3", "v", "1.2.3", "1", "2", "3"]),
        ("python3.11", ["python3.11", "python", "3.11", "3", "11"]),
        ("utf-8 utf8", ["utf8", "utf", "8", "utf8", "utf", "8"]),
        ("C++ and C# or c", ["c++", "and", "c#", "or", "c"]),
        ("it's the user’s", ["it", "s", "the", "user", "s"]),
        ("foo & bar | !baz:* <-> %_", ["foo", "bar", "baz"]),
        ("東京都", ["東", "京", "都", "東京", "京都"]),
        ("git提交", ["git", "提", "交", "提交"]),
        ("がぎ", ["が", "ぎ", "がぎ"]),
        ("한국", ["한", "국", "한국"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("🚀 deploy", ["🚀", "deploy"]),
        ("a\x00b \ud800", ["a", "b"]),
        (" …—!?\n", []),
    ],
)
def test_text_becomes_terms(text, expected):
    assert terms(text) == expected


def test_one_identifier_meets_itself_in_every_spelling():
    spellings = ["noVerify", "no-verify", "--no-verify", "no_verify", "NO_VERIFY", "no.verify"]
    assert {frozenset(terms(spelling)) for spelling in spellings} == {frozenset({"noverifi", "no", "verifi"})}


@given(ANY_TEXT)
def test_terms_are_short_and_never_empty_or_broken(text):
    for term in terms(text):
        assert 0 < len(term) <= 64
        assert not any(char.isspace() or unicodedata.category(char) == "Cs" for char in term)
        assert "\x00" not in term


@given(ANY_TEXT)
def test_spelling_of_accents_makes_no_difference(text):
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))


@given(st.text(alphabet="abcdefghij \n", max_size=100))
def test_case_makes_no_difference_to_plain_words(text):
    assert terms(text.upper()) == terms(text)


@given(ANY_TEXT, ANY_TEXT)
def test_lines_are_analysed_apart(first, second):
    assert terms(f"{first}\n{second}") == terms(first) + terms(second)


@given(ANY_TEXT)
def test_a_document_has_every_term_of_a_query_that_it_contains(text):
    assert set(query_terms(text, 1_000)) == set(term_counts(text))


@pytest.mark.parametrize(
    "piece", ["word ", "a-", "a/", "1.", "aB", "/", "漢", "ﷺ", "é", "x", "🚀", "'", "a's "]
)
def test_huge_texts_are_bounded(piece):
    found = terms(piece * 200_000)
    assert len(found) <= MAX_TERMS
    assert all(len(term) <= 64 for term in found)


def test_words_too_long_to_be_terms_still_find_each_other():
    assert terms("x" * 100) == ["x" * 64]
    assert terms("1" * 100) == ["1" * 64]


def test_stop_words_weigh_a_tenth_and_repetition_counts():
    assert query_terms("the card and the card number", 10) == {
        "card": 2.0,
        "number": 1.0,
        "the": 0.2,
        "and": 0.1,
    }


def test_too_many_query_terms_leave_the_heaviest_first_ones():
    assert query_terms("the card or another number of the user", 2) == {"card": 1.0, "number": 1.0}


def test_stop_words_are_known_in_their_stemmed_form():
    assert all(is_stop_word(term) for term in terms("Does the other have this, doing it again?"))
    assert not any(is_stop_word(term) for term in terms("cancel booking error verify"))
