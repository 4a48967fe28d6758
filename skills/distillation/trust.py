"""Which lessons are set aside until a person has looked at them. Pure.

Anybody may have written what a tool returns: a web page, a ticket, a file. So a lesson for which nothing but
tool output speaks is quarantined where that output tells its reader what to do, or where the lesson names
an outside address that no person and no earlier move of the assistant brought in. A plain error of a tool
is the world answering, also where it says what a call must have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mirix.text import fold
from skills.distillation.attacks import attacks_in
from skills.distillation.errors import body, failure
from skills.distillation.types import Lesson, TranscriptTurn
from skills.review.addresses import addresses
from skills.review.disguise import plain
from skills.review.risks import ORDER

MAX_READ_CHARS = 200_000
NEAR_CHARS = 200
"""How far around a quote the tone of a result is listened to."""

TELLS_WHAT_TO_DO = "Only tool output speaks for it, and that tells the agent what to do."
SPEAKS_FOR_OTHERS = "Only tool output speaks for it, and that poses as a person or as the system."
NEW_ADDRESS = "It names an outside address that no person brought in."

POSING = {"fake_turn", "control_tokens", "closing_fence"}

# Of a result anything in this tone counts, of an error what goes beyond the call that failed.
_COMMANDING = re.compile(
    rf"{ORDER.pattern}|\b(?:always|never|must(?: not)?|shall|should|do not|don['’]t|make sure|be sure to"
    r"|remember to|(?:are|is) required to|ha(?:ve|s) to|needs? to|please)\s+\w",
    re.IGNORECASE,
)
_COMMANDING_ERROR = re.compile(
    rf"{ORDER.pattern}|(?:^|[.!?:;\n])\s*(?:please\s+)?(?:always|never|make sure to|be sure to|remember to)"
    r"\s+\w",
    re.IGNORECASE,
)
# What an error may say of its own call: that is no order.
_OF_THE_CALL = re.compile(
    r"\byou (?:must|should|need to|are required to)(?: first| also| either)?"
    r" (?:be|have|provide|specify|supply|pass|include|set|give|enter|choose|select|log ?in|sign in"
    r"|authenticate|wait|retry|try|accept|confirm|verify|upgrade|install|import|define|declare)\b"
    r"|\b(?:build|install(?:ation)?|usage|see|setup|the) instructions?:",
    re.IGNORECASE,
)


def quarantine_reason(lesson: Lesson, turn: TranscriptTurn | None, turns: Sequence[TranscriptTurn]) -> str:
    """Return why a lesson is to be set aside; "" where it is not.

    `turn` is the one that holds its quote, None where no turn does; `turns` are those of the session, as they
    were said.
    """
    output = _output_behind(lesson.quote, turn, turns) if turn else None
    if output is not None and (reason := _of_output(lesson.quote, output)):
        return reason
    if _brought_by_nobody(lesson, turns):
        return NEW_ADDRESS
    return ""


def _output_behind(
    quote: str, turn: TranscriptTurn, turns: Sequence[TranscriptTurn]
) -> TranscriptTurn | None:
    """Return the tool output that a quote comes from: also where the assistant only says it after a tool."""
    if turn.role != "assistant":
        return turn if turn.role == "tool" else None
    words = fold(quote)
    before = (other for other in turns if other.role == "tool" and other.seq < turn.seq)
    return next((other for other in before if words in fold(other.content[:MAX_READ_CHARS])), None)


def _of_output(quote: str, turn: TranscriptTurn) -> str:
    """Return what is wrong with the tool output that a lesson rests on."""
    text = body(turn)[:MAX_READ_CHARS]
    found = attacks_in(text, role="tool")
    if failure(turn) is None:
        orders = _COMMANDING.search(_around(quote.strip(), text))
    else:
        # `User: bob is unknown here` is how errors begin, and "you must pass an id" how they go on.
        found -= POSING - attacks_in(text.partition("\n")[2], role="tool")
        orders = _COMMANDING_ERROR.search(_OF_THE_CALL.sub(" ", plain(quote)))
    if orders or "instructions_in_tool_output" in found:
        return TELLS_WHAT_TO_DO
    return SPEAKS_FOR_OTHERS if found & POSING else ""


def _around(quote: str, text: str) -> str:
    """Return a quote with what stands around it in a text; alone where the text does not have it."""
    place = text.find(quote)
    if place < 0:
        return plain(quote)
    return plain(text[max(0, place - NEAR_CHARS) : place + len(quote) + NEAR_CHARS])


def _brought_by_nobody(lesson: Lesson, turns: Sequence[TranscriptTurn]) -> bool:
    """Whether the lesson's own words name an address that neither a user nor the assistant brought in.

    The assistant brings in what it names before any tool does: the address that it calls, say.
    """
    wanted = set(_places(f"{lesson.title}\n{lesson.content}"))
    if not wanted:
        return False
    known: set[str] = set()
    foreign: set[str] = set()
    for turn in turns:
        named = set(_places(turn.content[:MAX_READ_CHARS]))
        if turn.role == "tool":
            foreign |= named - known
        elif turn.role == "user":
            known |= named
        else:
            known |= named - foreign
    return any(not _is_known(place, known) for place in wanted)


def _places(text: str) -> Iterator[str]:
    """Yield the hosts and the e-mail addresses that a text names."""
    for address in addresses(plain(text), reserved=True):
        if "://" in address:
            address = re.split(r"[/?#]", address.split("://", 1)[1], maxsplit=1)[0].rpartition("@")[2]
            address = address.split(":", 1)[0]
        yield address.removeprefix("www.")


def _is_known(place: str, known: set[str]) -> bool:
    return place in known or ("@" not in place and any(place.endswith(f".{other}") for other in known))
