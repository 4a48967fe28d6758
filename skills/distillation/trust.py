"""Which lessons are set aside until a person has looked at them. Pure.

Anybody may have written what a tool returns: a web page, a ticket, a file. So a lesson for which nothing but
tool output speaks is quarantined where that output tells its reader what to do, or where the lesson names
an outside address that no person and no earlier move of the assistant brought in. A plain error of a tool
is the world answering, also where it says what a call must have.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from mirix.text import HIDDEN
from skills.distillation.attacks import attacks_in
from skills.distillation.errors import body, failure
from skills.distillation.types import Lesson, TranscriptTurn
from skills.review.risks import ORDER, addresses

MAX_READ_CHARS = 200_000

TELLS_WHAT_TO_DO = "Only tool output speaks for it, and that tells the agent what to do."
SPEAKS_FOR_OTHERS = "Only tool output speaks for it, and that poses as a person or as the system."
NEW_ADDRESS = "It names an outside address that no person brought in."

POSING = {"fake_turn", "control_tokens", "closing_fence"}

_JOINERS = re.compile("[\u200c\u200d]")
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
    if turn is not None and turn.role == "tool" and (reason := _of_output(lesson.quote, turn)):
        return reason
    if _brought_by_nobody(lesson, turns):
        return NEW_ADDRESS
    return ""


def _of_output(quote: str, turn: TranscriptTurn) -> str:
    """Return what is wrong with the tool output that a lesson rests on."""
    text, words = body(turn)[:MAX_READ_CHARS], plain(quote)
    found = attacks_in(text, role="tool")
    if failure(turn) is not None:
        # `User: bob is unknown here` is how errors begin, and "you must pass an id" how they go on.
        found -= POSING - attacks_in(text.partition("\n")[2], role="tool")
        words = _OF_THE_CALL.sub(" ", words)
    if "instructions_in_tool_output" in found or ORDER.search(words):
        return TELLS_WHAT_TO_DO
    return SPEAKS_FOR_OTHERS if found & POSING else ""


def plain(text: str) -> str:
    """Return text as it reads: compatibility forms folded, what cannot be seen left out."""
    return _JOINERS.sub("", HIDDEN.sub("", unicodedata.normalize("NFKC", text)))


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
