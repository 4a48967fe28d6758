"""Words as evolution compares them: folded, stemmed, CJK by character. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from skills.search.analysis import stem

# A character of a script that writes no blanks is a word of its own.
CJK = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")


def words(text: str) -> list[str]:
    """Return the words of `text` in order: NFKC, case folded, underscores and hyphens separate."""
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold())


STOP_WORDS = frozenset(
    words(
        """a about after all also am an and any are as at be because been before being but by can cannot could
    did do does doing done dont don else for from get gets getting go going good got had has have having he
    her here hers him his how i id if im in instead into is it its ive just let like ll made make may me
    might mine more my need needs no not now of off ok okay on one only or other our out over please re really
    right s same see she should so some such t than thank thanks that thats the their them then there these
    they thing this those to too two up us use used using ve very want wants was way we well were what when
    where which while who why will with without wont would wrong yes yet you your yours"""
    )
)


@lru_cache(maxsize=20_000)
def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words of `text` that carry meaning: no stop words, no bare numbers."""
    return frozenset(
        stem(word)
        for word in words(text)
        if word not in STOP_WORDS and not word.isdigit() and (len(word) > 1 or not word.isascii())
    )
