"""Text to index terms, one analysis for documents and for queries. Pure.

- Folding: NFKD, accents and vowel points dropped, NFC, case folded. `Café`, `CAFE` and `cafe` are one term.
- Words are stemmed (Snowball, English); words of other alphabets pass through it unchanged.
- Identifiers are kept whole and split: a whole drops its joints, so that `getUserById`, `get_user_by_id` and
  `get-user-by-id` meet in `getuserbyid`, and `--no-verify` in `noverify`; numbers keep theirs (`3.11`).
  The parts are what stands between joints, at changes of case, and between letters and digits.
- Scripts written without spaces become single characters and pairs of neighbours.
- Emoji are terms of their own.

A term has at most 64 characters, a text at most `MAX_TERMS` terms.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice, pairwise

import snowballstemmer

MAX_TEXT_CHARS = 100_000
MAX_TERMS = 30_000
MAX_TERM_CHARS = 64
MAX_KEPT_CHARS = 256
STOP_WEIGHT = 0.1
END_CHARS = 100
END_WEIGHT = 1.5

# Han, kana, hangul, and the scripts of South-East Asia that put no space between words.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u3099\u309a\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U000323af"
)
# Marks of Indic scripts are part of their words, though Python's \w leaves them out.
LETTER = rf"(?:[^\W_{UNSPACED}]|[\u0900-\u0963\u0966-\u0dff])"
JOINT = r"[-_./\\:@'’+&]"
TOKEN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<language>(?<![\w+#])[A-Za-z](?:\+\+|\#)(?![\w+#]))"
    rf"|(?P<compound>{LETTER}+(?:{JOINT}{{1,3}}{LETTER}+)*)"
    r"|(?P<emoji>[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff])"
)
LOOSE_JOINT = re.compile(rf"(?<!\d){JOINT}+|{JOINT}+(?!\d)")
SEGMENT_JOINT = re.compile(r"[/\\:@]+")
PART = re.compile(rf"(?P<number>\d+(?:{JOINT}\d+)*)|(?:(?!\d){LETTER})+")
# Words run together by case; a plural of capitals (`APIs`) is one word. Only ASCII is ever written so.
CASED = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
DIGITS = re.compile(r"\d+")

_STOP_WORDS = """
    a about after again all also am an and another any anything are as at be because been before
    being both but by can could d did do does doing done down during each either else every few for
    from further get got had has have having he help her here hers him his how i if in into is it
    its just let like ll m make me more most my need no nor not now of off on once only or other our
    out over own please re s same she should so some something such t than that the their them then
    there these they this those through to too under until up us use using ve very want was way we
    were what when where which while who whom why will with would you your
"""


def terms(text: str) -> list[str]:
    """Return the terms of a text in their order, repetitions included."""
    folded = _drop_accents(text[:MAX_TEXT_CHARS])[:MAX_TEXT_CHARS]
    return list(islice(chain.from_iterable(map(_token_terms, TOKEN.finditer(folded))), MAX_TERMS))


def term_counts(text: str) -> Counter[str]:
    """Return how often each term stands in a text."""
    return Counter(terms(text))


def query_terms(text: str, limit: int) -> dict[str, float]:
    """Return at most `limit` terms of a query, each with its weight.

    A term weighs how often it is asked for, a stop word a tenth of that. Where there are too many, the
    heaviest stay, and of equal ones those that come first.
    """
    weights = {
        term: count * (STOP_WEIGHT if is_stop_word(term) else 1.0)
        for term, count in term_counts(text).items()
    }
    return dict(sorted(weights.items(), key=lambda item: -item[1])[:limit])


def long_query_terms(text: str, limit: int) -> dict[str, float]:
    """Return at most `limit` terms of a long query that are no stop words, each with its weight.

    What is asked may stand before or behind a log or a letter that says the same words again and again. So a
    term counts once, and half as much again where it stands in the first or last `END_CHARS` characters.
    Where there are too many, those near to either end stay. The order is that of their nearness.
    """
    found = [term for term in terms(text) if not is_stop_word(term)]
    from_ends = zip(dict.fromkeys(found), dict.fromkeys(reversed(found)), strict=True)
    kept = islice(dict.fromkeys(chain.from_iterable(from_ends)), limit)
    at_ends = {*terms(text[:END_CHARS]), *terms(text[-END_CHARS:])}
    return {term: END_WEIGHT if term in at_ends else 1.0 for term in kept}


def is_stop_word(term: str) -> bool:
    """Return whether a term is too common in English to find a skill by itself."""
    return term in STOP_TERMS


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a folded word, cut to the longest term."""
    # A stemmer keeps the word it works on in itself, so each call has its own.
    stemmed: str = snowballstemmer.stemmer("english").stemWord(word[:MAX_TERM_CHARS])
    return stemmed


STOP_TERMS = frozenset(map(stem, _STOP_WORDS.split()))


def _drop_accents(text: str) -> str:
    """Return `text` in NFC without accents and vowel points; voiced kana and Indic marks stay."""
    if text.isascii():
        return text
    kept = (
        char for char in unicodedata.normalize("NFKD", text) if not _is_accent(unicodedata.combining(char))
    )
    return unicodedata.normalize("NFC", "".join(kept))


def _is_accent(combining_class: int) -> bool:
    """Return whether a canonical combining class is one of points (10–36) or accents (200 and up)."""
    return 10 <= combining_class <= 36 or combining_class >= 200


def _token_terms(match: re.Match[str]) -> Iterable[str]:
    token = match.group()
    match match.lastgroup:
        case "unspaced":
            return chain(token, map("".join, pairwise(token)))
        case "compound":
            # What is longer than words are is read once and not again.
            read = _word_terms if len(token) <= MAX_KEPT_CHARS else _word_terms.__wrapped__
            return read(token)
        case _:
            return (token.casefold(),)


@lru_cache(maxsize=20_000)
def _word_terms(token: str) -> tuple[str, ...]:
    """Return the terms of a compound; a word that is its own only part counts once."""
    return tuple(dict.fromkeys(_compound_terms(token)))


def _compound_terms(token: str) -> Iterator[str]:
    """Yield the whole of a compound, of each segment of a path, and every part."""
    for whole in (token, *SEGMENT_JOINT.split(token)):
        joined = LOOSE_JOINT.sub("", whole).casefold()
        if len(joined) <= MAX_TERM_CHARS:
            yield stem(joined)
    for part in PART.finditer(token):
        text = part.group()
        if part.lastgroup == "number":
            if len(text) <= MAX_TERM_CHARS:
                yield text
            yield from (number[:MAX_TERM_CHARS] for number in DIGITS.findall(text))
        else:
            words = CASED.findall(text) if text.isascii() else [text]
            yield from (stem(word.casefold()) for word in words)
