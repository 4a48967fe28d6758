"""The transcript that a model reads: one session's turns as text within a budget. Pure.

    <transcript 5e1f0c2a>
    <context 5e1f0c2a>
    [turn 1 user 5e1f0c2a]
    Cancel my order A-17, please.
    </context 5e1f0c2a>
    <new turns 5e1f0c2a>
    [turn 2 tool cancel_order error 5e1f0c2a]
    [cancel_order] Error: reason is required
    </new turns 5e1f0c2a>
    </transcript 5e1f0c2a>

Turns carry the numbers that evidence names. The code in every line of the frame is made of what the frame
holds and stands nowhere in it, so nothing that was said in a session can end the frame, begin a turn or pass
for one of ours. Before a turn is shown, its invisible characters are taken out, what our own search served is
masked, and its secrets are redacted.

What is too long loses its middle, with a marker there. Of a turn the words that fail, correct or confirm
stay; of a session, the first and the last turns, and between them those that fail, correct or confirm, each
with the turn before it. Earlier turns, which were learned from before, go before new ones.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from mirix.redaction import redact_json, redaction_of
from skills.distillation.attacks import FLAGS, attacks_in, harmless, without_invisible
from skills.distillation.elision import Choice, Spot, choose, shortened, spots
from skills.distillation.errors import Failure, failure
from skills.distillation.types import TranscriptTurn
from skills.search.fingerprints import ServedText

MIN_TRANSCRIPT_CHARS = 1_000
MIN_MESSAGE_CHARS = 200
"""Less than this has no room for what a cut leaves and its marker."""
MAX_TOOL_NAME_CHARS = 64
ROLES = ("user", "assistant", "tool")
CODE_CHARS = 8
NO_CODE = "0" * CODE_CHARS


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """A session as a model is shown it."""

    text: str
    """At most as long as the budget."""
    seen: list[TranscriptTurn]
    """The turns that stand in it, each exactly as shown; evidence is looked up in these."""
    flags: list[str]
    """Of `skills.distillation.attacks.FLAGS`, those that the turns raise, shown or not."""


@dataclass(frozen=True, kw_only=True)
class _Block:
    """A turn as it is shown."""

    turn: TranscriptTurn
    failure: Failure | None = field(repr=False)

    def text(self, code: str) -> str:
        """Return header and words, with the line end behind them."""
        turn = self.turn
        parts = ["turn", str(turn.seq), turn.role]
        if turn.role == "tool":
            parts += [_label(turn.tool_name)] if turn.tool_name else []
            parts += ["error"] if self.failure else []
        return f"[{' '.join([*parts, code])}]\n{turn.content}\n"

    def cut(self, limit: int, spot: Spot | None) -> _Block:
        """Return the block with at most `limit` characters of the turn's words."""
        content = shortened(self.turn.content, limit, spot)
        return (
            self if content is self.turn.content else replace(self, turn=replace(self.turn, content=content))
        )


def render(
    turns: Sequence[TranscriptTurn],
    *,
    first_seq: int,
    served: ServedText,
    max_chars: int,
    max_message_chars: int,
) -> Transcript:
    """Return the transcript of a session; turns from `first_seq` on are its subject, earlier ones context.

    `max_chars` bounds the whole text, `max_message_chars` the words of a turn; they count as at least
    `MIN_TRANSCRIPT_CHARS` and `MIN_MESSAGE_CHARS`. Turns without words and those of other roles are left out.
    """
    spoken = [turn for turn in turns if turn.role in ROLES and (turn.content.strip() or turn.tool_calls)]
    flags = set().union(*(attacks_in(turn.content, role=turn.role) for turn in spoken))
    blocks = _blocks(spoken, served)
    first_new = sum(block.turn.seq < first_seq for block in blocks)
    kept = _within(
        blocks,
        first_new,
        max_chars=max(max_chars, MIN_TRANSCRIPT_CHARS),
        max_message_chars=max(max_message_chars, MIN_MESSAGE_CHARS),
    )
    return Transcript(
        text=_text(kept, first_new, len(blocks), _code(kept.values())),
        seen=[block.turn for block in kept.values()],
        flags=[flag for flag in FLAGS if flag in flags],
    )


def _blocks(turns: Sequence[TranscriptTurn], served: ServedText) -> list[_Block]:
    """Return the turns with what must not be shown taken out of them."""
    redact = redaction_of([turn.tool_calls for turn in turns])

    def shown(turn: TranscriptTurn) -> TranscriptTurn:
        content = served.mask(without_invisible(_with_calls(turn)))
        calls = redact_json(turn.tool_calls, redact)
        return replace(turn, content=harmless(redact(content)), tool_calls=calls)

    ready = [shown(turn) for turn in turns]
    return [_Block(turn=turn, failure=failure(turn)) for turn in ready]


def _with_calls(turn: TranscriptTurn) -> str:
    """Return the words of a turn with its calls, in which intake writes them as lines of their own."""
    lines = [turn.content] if turn.content.strip() else []
    for call in turn.tool_calls:
        head = f"[call {call.get('name') or ''}".rstrip()
        if f"{head}]" not in turn.content:
            arguments = call.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            lines.append(f"{head}] {text}")
    return "\n".join(lines)


def _within(
    blocks: Sequence[_Block], first_new: int, *, max_chars: int, max_message_chars: int
) -> dict[int, _Block]:
    """Return the blocks that the budgets leave, by their place; cut where they are too long."""
    frame = len(_text({}, first_new, len(blocks), NO_CODE, gaps=False))
    sizes = [len(block.text(NO_CODE)) for block in blocks]
    overheads = [size - len(block.turn.content) for size, block in zip(sizes, blocks, strict=True)]
    longest = [max_message_chars + overhead for overhead in overheads]
    if frame + sum(sizes) <= max_chars and all(
        size <= most for size, most in zip(sizes, longest, strict=True)
    ):
        return dict(enumerate(blocks))
    turns = [block.turn for block in blocks]
    telling = spots(turns, [block.failure for block in blocks])
    sizes = [min(size, most) for size, most in zip(sizes, longest, strict=True)]
    kept = dict(enumerate(sizes))
    if frame + sum(sizes) > max_chars:
        choice = Choice(
            sizes=sizes,
            overheads=overheads,
            first_new=first_new,
            room=max_chars - frame,
            gap=len(_gap(len(blocks), NO_CODE)),
        )
        kept = choose(choice, turns, telling)
    return {
        place: blocks[place].cut(kept[place] - overheads[place], telling.get(place)) for place in sorted(kept)
    }


def _text(kept: dict[int, _Block], first_new: int, count: int, code: str, *, gaps: bool = True) -> str:
    """Return the whole text; runs of missing turns have a line in their place."""
    sections = [("context", range(first_new)), ("new turns", range(first_new, count))]
    inner = (
        f"<{name} {code}>\n{''.join(_pieces(kept, places, code) if gaps else ())}</{name} {code}>\n"
        for name, places in sections
        if places
    )
    return f"<transcript {code}>\n{''.join(inner)}</transcript {code}>"


def _pieces(kept: dict[int, _Block], places: range, code: str) -> Iterator[str]:
    missing = 0
    for place in places:
        if place not in kept:
            missing += 1
            continue
        if missing:
            yield _gap(missing, code)
        missing = 0
        yield kept[place].text(code)
    if missing:
        yield _gap(missing, code)


def _gap(count: int, code: str) -> str:
    return f"[{count:,} turn{'s' * (count > 1)} left out {code}]\n"


def _label(name: str) -> str:
    """Return a tool's name as one word."""
    return re.sub(r"[^\w.:/-]+", "_", name)[:MAX_TOOL_NAME_CHARS]


def _code(blocks: Iterable[_Block]) -> str:
    """Return a word that is made of what is shown and occurs nowhere in it."""
    whole = "".join(block.text("") for block in blocks)
    code = whole
    while code in whole:
        code = hashlib.sha256((whole + code).encode()).hexdigest()[:CODE_CHARS]
    return code
