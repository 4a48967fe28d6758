"""Searching long lists by the words of their texts, by an index that PostgreSQL has built in.

A word is a run of letters and digits, so that `update-order-77` is three; in scripts without spaces each
character is one. A search finds what holds all of its words, in any case and order, each as the beginning of
one.
"""

from __future__ import annotations

import re

from django.contrib.postgres.search import SearchQuery, SearchVectorExact, SearchVectorField
from django.db.models import F, Func, Q

MAX_WORDS = 16
MAX_WORD_CHARS = 60
_MARKS = "-_./\\@:<>&~+=?#“”„‘’«»–—…·、。「」『』，：；（）！？"
"""What PostgreSQL would take for a part of a word, a number or an address."""
_SPACELESS = r"[\u3040-\u30ff\u3400-\u9fff]"
_WORD = re.compile(rf"{_SPACELESS}+|(?:(?!{_SPACELESS})[^\W_])+")


class Words(Func):
    """The words of text columns. Indexes hold it: another template needs a migration that makes them anew."""

    template = (
        f"to_tsvector('simple'::regconfig, regexp_replace(translate(%(expressions)s, '{_MARKS}', "
        f"'{' ' * len(_MARKS)}'), '({_SPACELESS})', ' \\1 ', 'g'))"
    )
    arg_joiner = " || ' ' || "
    output_field = SearchVectorField()


def says(term: str, *columns: str) -> Q:
    """Return the condition that the columns together say all words of `term`; false where it has none."""
    words = _WORD.findall(term)[:MAX_WORDS]
    if not words:
        return Q(pk__in=())
    query = SearchQuery(" & ".join(map(_part, words)), config="simple", search_type="raw")
    return Q(SearchVectorExact(Words(*map(F, columns)), query))


def _part(word: str) -> str:
    """Return a word as `to_tsquery` takes it; it holds letters and digits alone."""
    word = word[:MAX_WORD_CHARS]
    return f"({' <-> '.join(word)})" if re.match(_SPACELESS, word) else f"{word}:*"
