"""What the user wanted: the request behind a call, and a name for the task. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mirix.text import slugify
from skills.distillation.types import TranscriptTurn
from skills.distillation.wording import discreet, inert

MAX_REQUEST_CHARS = 200
MAX_TURN_CHARS = 4_000
FIRST_TURNS, LAST_TURNS = 3, 12
"""What a long session is about was said at its beginning or lately."""

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?=\S)[^.!?\n]+)*[.!?]*")
_GREETING = re.compile(
    r"^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks|thank you|sure|ok|okay|yes|great"
    r"|alright|additionally|also|and|lastly|finally|actually)"
    r"(?: there| again| so much| team| all)?[,.!:; ]+)+",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\b(?:i(?:'d| would) (?:really |also )?(?:like|love|prefer|appreciate)"
    r"|i(?:'m| am) (?:looking|trying|hoping)"
    r"|i (?:really |also |just )?(?:need|want|wanted|have to|must)|we (?:need|want)"
    r"|(?:can|could|would|will) you|(?:can|could) (?:we|i)|please|help me|let's"
    r"|how (?:do|can|should) (?:i|we)|what(?:'s| is)|my (?:goal|focus) is)\b"
    r"|^(?:how|what|where|when|which|who|why|is|are|does|do)\b[^?]*\?$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^.*?\b(?:i(?:'d| would) (?:really |also )?(?:like|love|prefer) (?:you )?to"
    r"|i(?:'m| am) (?:looking|trying|hoping) (?:to|for)"
    r"|i (?:really |also |just )?(?:need|want|wanted|have) (?:help |assistance )?(?:you )?(?:to|with)"
    r"|we (?:need|want) (?:you )?to"
    r"|(?:can|could|would|will) (?:you|we|i) (?:please |also )?(?:help (?:me|us) (?:to |with )?)?"
    r"|help (?:me|us) (?:to |with )?|let's|please)\s+",
    re.IGNORECASE,
)
_OBJECTION = re.compile(
    r"\b(?:don't|do not|instead|wrong|i meant|misunderstanding|mix-?up|confusion)\b|^no\b", re.IGNORECASE
)
_VAGUE = re.compile(
    r"\b(?:some|a few|any) (?:help|assistance|changes)|need (?:help|assistance)|assist me\b", re.I
)
_DEICTIC = re.compile(r"\b(?:this|that|these|those|it|also|same)\b", re.IGNORECASE)
_APPROVAL = re.compile(
    r"\b(?:go ahead|proceed|sounds good|confirm|that works|try again|once more)\b", re.IGNORECASE
)
_COMMON = """
    long many much often
    a about again all also am an and any are as assist assistance at back be been but by can could did
    do does for from get getting give go had has have help her here hi him his how i if in into is it
    its just kind let like look looking make me my need now of off on one ones only or our out over
    please really recent right same should so some something still sure than thank thanks that the their
    them then there these they thing things this those through to today tomorrow too trying up upcoming
    us use using very want was we were what when where which while who why will with would yes yesterday
    you your
"""
STOP_WORDS = frozenset(_COMMON.split())
"""Words that do not tell one task from another."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, verbatim, without surrounding white space."""
    return [part.strip() for part in _SENTENCE.findall(text[:MAX_TURN_CHARS]) if part.strip()]


def request_before(turns: Sequence[TranscriptTurn], seq: int, tool: str = "") -> str:
    """Return what the user wanted before `seq`, in the user's words; "" where nothing says so.

    Of the user's sentences so far that ask for something, the concrete one that shares words with the
    tool's name wins; of equals the latest. A short sentence in front of it comes along: it says why.
    """
    topic = _stems(tool)
    spoken = [turn for turn in turns if turn.role == "user" and turn.seq < seq]
    if len(spoken) > FIRST_TURNS + LAST_TURNS:
        spoken = spoken[:FIRST_TURNS] + spoken[-LAST_TURNS:]
    best, best_rank = "", 0
    for turn in spoken:
        reason = ""
        for text in sentences(turn.content):
            # Where nobody asks in so many words, the session's first sentence says what it is about.
            rank = _rank(text, topic) or (not best and len(text.split()) >= 4)
            if rank and rank >= best_rank:
                best, best_rank = f"{reason} {text}".strip(), rank
            reason = _reason(text)
    return inert(discreet(_GREETING.sub("", best)), MAX_REQUEST_CHARS)


def _reason(text: str) -> str:
    """Return a sentence that may stand in front of the next one; "" for greetings, objections, long ones."""
    text = _GREETING.sub("", text)
    fits = len(text.split()) >= 4 and len(text) <= MAX_REQUEST_CHARS // 2
    return text if fits and not _OBJECTION.search(text) else ""


def _rank(text: str, topic: set[str]) -> int:
    """Return how well a sentence serves as a request; 0 for not at all."""
    length = len(text.split())
    if length < 4 or length > 60 or not _WISH.search(text):
        return 0
    rank = 4 + 2 * min(2, len(_stems(text) & topic)) + (length >= 8)
    if _OBJECTION.search(text):
        return 0
    for weakness in (_APPROVAL, _VAGUE, _DEICTIC):
        rank -= bool(weakness.search(text))
    return rank


def _stems(text: str) -> set[str]:
    """Return the words of a text by their first five letters: enough to see that two are akin."""
    words = re.findall(r"[a-z]{3,}", text.lower().replace("_", " "))
    return {word[:5] for word in words if word not in STOP_WORDS}


def task_slug(request: str) -> str:
    """Return a name for a task made of the words that say what is to be done: `change-passenger-name`."""
    core = _LEAD.sub("", request, count=1) or request
    kept = [
        word
        for word in re.findall(r"[^\W\d_]+(?:'[a-z]+)?", core)
        if word.lower() not in STOP_WORDS and len(word) > 1 and "'" not in word
    ]
    return slugify(" ".join(kept[:4]), 48) or "this-task"
