"""From one session's words to anybody's: values of that session leave, what was wanted stays. Pure."""

from __future__ import annotations

import re

from skills.distillation.wording import discreet, inert
from skills.evolution.words import content_words

GAP = "…"
MAX_PHRASE_CHARS = 120

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    rf"\b(?:{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{4}})?"
    r"|\d{4}-\d{2}-\d{2}(?:[T ][\d:.Z+-]+)?|\d{1,2}[/.]\d{1,2}(?:[/.]\d{2,4})?"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\b\.?)?|\d{1,2} ?[ap]\.?m\b)",
    re.IGNORECASE,
)
_ID = re.compile(
    r"(?<![\w-])[#$€£]?(?:\d[\d.,]*\d{2,}|(?=[\w-]*\d)[\w-]*[A-Za-z_][\w-]*\d[\w-]*|\d[\w-]*[A-Za-z][\w-]*)(?!\w)"
)
_NAME = re.compile(
    r"(?<![.!?…“\"'(] )(?<!^)(?<![\w/.-])[A-Z][a-z]+(?:['’]s)?(?:[ -][A-Z][a-z]+)*(?![\w/(.]\w|\w)"
)
_GAPS = re.compile(rf"{GAP}(?:[\s,]*(?:and |or )?{GAP})+")
_BEFORE_GAP = r"\b(?:on|from|to|for|at|in|by|with|of|until|since|before|after|about|under|through|via)"
_DETERMINER = r"(?:the|my|a|an|our|your|their|his|her)\b"
# "from Denver", "for order 77" go with their value; "at our Utrecht warehouse" does not.
_TAIL = re.compile(
    rf"[ ,]*{_BEFORE_GAP}(?: (?!{_DETERMINER})\w+)? {GAP}"
    rf"|[ ,]*{_BEFORE_GAP} {_DETERMINER} {GAP}(?=\s*(?:$|[,.;:!?)–-]|and\b|or\b|{_BEFORE_GAP}))",
    re.IGNORECASE,
)
_BRACKETED_GAP = re.compile(rf" ?\([^()]*{GAP}[^()]*\)")
_POLITE = re.compile(r",? ?\b(?:please|thanks|thank you|if (?:possible|that helps|you can))$", re.IGNORECASE)
_FILLER = re.compile(r"^(?:(?:please|kindly|just|also|go ahead and) )+", re.IGNORECASE)
_POINTING_END = re.compile(
    rf" {_BEFORE_GAP} (?:it|them|this|that|these|those|the same)(?: \w+)?$", re.IGNORECASE
)
_LOOSE_END = re.compile(
    r"(?: (?:on|from|to|for|at|in|by|with|of|through|via|and|or|the|a|an))+$", re.IGNORECASE
)
_DEICTIC = re.compile(r"\b(?:it|its|them|that|this|these|those|there|the one|same|again)\b", re.IGNORECASE)

# What stands in an error and is of that day alone: quoted names, paths, a named thing at the end, amounts.
_QUOTED_NAME = re.compile(r"(?<!\w)(['\"‘’])(?=[^'\"‘’]*\w)[\w./@:~ -]{1,80}\1(?!\w)")
_PATH = re.compile(r"(?<![\w<])(?:~|\.{1,2})?/?(?:[\w@.-]+/)+[\w@.*-]*|(?<!\w)/(?:[\w.-]+/?)+")
_LAST_NAME = re.compile(r"(?<=: )[A-Za-z_][\w-]*_[\w-]*\.?$")
_AMOUNT = re.compile(r"(?<![\w.,-])\d{4,}(?:\.\d+)?(?!\w)|(?<![\w.,-])\d+\.\d{2}(?![\w.])")

_OPENING = re.compile(
    r"^(?:(?:hi|hello|hey|yes|no|ok|okay|sure|great|thanks|thank you|also|so|well|actually|alright|and|but"
    r"|please|sorry|go ahead and|unfortunately|i understand(?: that)?|in that case)\b[,.!: ]+)+",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"^.{0,80}?\b(?:i(?:'d| would) (?:really |also |still )?(?:like|love|prefer) (?:you )?"
    r"(?:to (?:have )?)?"
    r"|i(?:'m| am) (?:looking|trying|hoping|calling|here|writing) (?:to|for|about|in order to) "
    r"|i (?:really |also |just |still )?(?:need|want|wanted|have) (?:some |your )?(?:help |assistance )?"
    r"(?:you )?(?:to |with |in )?"
    r"|we (?:need|want) (?:you )?to "
    r"|(?:can|could|would|will) (?:you|we|i) (?:please |also |just |kindly )?"
    r"(?:help (?:me|us) (?:to |with )?)?"
    r"|help (?:me|us) (?:to |with )?|let's |let us |please )",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(rf"(?:(?<=\w\w)|(?<={GAP}))[.!](?:\s|$)|[?](?:\s|$)")


def without_values(text: str) -> str:
    """Return text with e-mail addresses, long numbers, dates, times and ids as `…`."""
    return _GAPS.sub(GAP, _ID.sub(GAP, _DATE.sub(GAP, discreet(text))))


def without_names(text: str) -> str:
    """Return text without values, and without capitalised words inside a sentence."""
    return _GAPS.sub(GAP, _NAME.sub(GAP, without_values(text)))


def without_particulars(error: str) -> str:
    """Return an error with what differs from one time to the next as `…`; its wording stays exact.

    >>> without_particulars("no such table: invoice_line")
    'no such table: …'
    """
    text = _QUOTED_NAME.sub(rf"\1{GAP}\1", error)
    for pattern in (_PATH, _LAST_NAME, _AMOUNT):
        text = pattern.sub(GAP, text)
    return _GAPS.sub(GAP, text)


def phrases_in(request: str) -> list[str]:
    """Return what a request asks for or tells, sentence by sentence, as phrases to search with.

    Wishes come first. Values of that session are left out, and sentences of which nothing general is left.

    >>> phrases_in("I was charged twice for order #77. Could you refund the second payment, please?")
    ['refund the second payment', 'I was charged twice']
    """
    text = _PATH.sub(GAP, without_names(inert(request, 400)))
    text = _BRACKETED_GAP.sub("", text)
    found: list[tuple[bool, str]] = []
    for sentence in _SENTENCE_END.split(text):
        opened = _OPENING.sub("", sentence.strip())
        core = _WISH.sub("", opened, count=1)
        if phrase := _phrase(core):
            is_wish = len(core) < len(opened) or opened != sentence.strip()
            found.append((not is_wish, phrase))
    return [phrase for _, phrase in sorted(found, key=lambda item: item[0])]


def phrase_of(request: str) -> str:
    """Return the first phrase of a request, "" where nothing general is left.

    >>> phrase_of("I need to change my flight back from Denver to Houston to be the quickest one on May 27.")
    'change my flight back to be the quickest one'
    """
    return next(iter(phrases_in(request)), "")


def _phrase(core: str) -> str:
    """Return a sentence without its gaps and what they leave behind; "" where too little stays."""
    text, previous = core, ""
    while previous != text:
        previous, text = text, _TAIL.sub("", text)
    text = re.sub(rf"\s*{GAP}\s*", " ", text)
    text = re.sub(r"\s+([,.;:!?])", r"\1", " ".join(text.split()))
    text = _POLITE.sub("", text.strip(" ,;:-–.!?\"'“”"))
    text = _FILLER.sub("", text, count=1)
    text = _LOOSE_END.sub("", _POINTING_END.sub("", text))
    text = inert(text, MAX_PHRASE_CHARS).rstrip("…").rstrip(" ,")
    if len(text.split()) < 3 or len(content_words(text)) < 2:
        return ""
    return text if re.match(r"[A-Z]{2}|I\b", text) else text[:1].lower() + text[1:]


def leans_on_context(phrase: str) -> bool:
    """Return whether a phrase points at something said before (`it`, `that flight`)."""
    return _DEICTIC.search(phrase) is not None
