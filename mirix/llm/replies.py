"""Reads the list of objects out of what a model replied: strict first, tolerant after, repair last. Pure.

Models wrap their JSON in prose, fences, thoughts and tool calls, bend its syntax and break off in the middle.
What can be read in one way only is read; what was bent so that it must be mended is mended piece by piece,
and a mended piece counts only while it has every word of the original and no other. The rest is dropped with
its reason. To refuse a reply costs one more request, to guess wrong costs a false lesson.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from mirix import strict_json
from mirix.llm.lenient_json import MAX_DEPTH, Damaged, Exhausted, Reader, TooDeep
from mirix.llm.mending import Mender
from mirix.llm.payloads import Payload, Rank, gather, is_blank_list, payload
from mirix.llm.thoughts import spoken
from mirix.text import clean_json, clean_text, shorten

MAX_CHARS = 1_000_000
"""So much of a reply that is not plain JSON is read; no model writes more."""
MAX_WORK = 8_000_000
MAX_DROPPED = 100
MAX_DROPPED_CHARS = 200

WEB_PAGE = re.compile(r"<(?:!doctype\s+html|html|head|body|\?xml)\b", re.IGNORECASE)
REFUSAL = re.compile(
    r"\b(?:I['’]?m (?:very |really )?sorry|I am (?:very |really )?sorry|I apologi[sz]e|I can(?:no|['’])t"
    r"|I can not|I['’]?m (?:not able|unable)|I am (?:not able|unable)|I won['’]t|I will not|I must decline"
    r"|as an AI)\b",
    re.IGNORECASE,
)
NOTHING = re.compile(r"(?:null|none)", re.IGNORECASE)
BRACKET = re.compile(r"[\[{]")
OBJECT = re.compile(r"\{\s*[\"'“”„]?([\w-]{1,64})[\"'“”]?\s*[:：]")
LIST_OF_OBJECTS = re.compile(r"\[[\s,]*\{")
ESCAPED = re.compile(r"[\[{]\s*(?:\\n\s*)*[\[{]?\s*\\+\"")
GOES_ON = re.compile(r"[\s\]}]*[,:\"]")
MAX_SENTENCE = 1_000

BLANK = "the reply is blank"
PAGE = "the reply is a web page"
REFUSED = "the reply is a refusal"
THOUGHTS = "the reply is thoughts without an answer"
NO_JSON = "the reply has no JSON"
CUT_OFF = "cut off"
DAMAGED = "damaged JSON"
OUTSIDE = "outside the list"
MORE = "not listed"
DEEP = f"nested deeper than {MAX_DEPTH} levels"
LONG = f"beyond the first {MAX_CHARS} characters"


@dataclass(frozen=True, kw_only=True)
class ParsedReply:
    """What a reply came to."""

    verdict: Literal["ok", "empty", "unreadable"]
    """`empty` is an explicit nothing: an empty list, or null in its place."""
    items: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    """Parts that gave no item: the reason, and the part, shortened."""
    how: Literal["strict", "tolerant", "repaired"] = "strict"
    reason: str = ""
    """Why it is unreadable; holds nothing of the reply."""


def parse_reply(text: str, *, key: str = "experiences", truncated: bool = False) -> ParsedReply:
    """Return the objects that a reply lists, under `key` or bare; `truncated` = the model was stopped.

    Never raises. Takes time in proportion to the length, and at most some seconds on whatever it is.
    """
    body = text.strip("\ufeff \t\r\n")
    if not body.strip():
        return ParsedReply(verdict="unreadable", reason=BLANK)
    try:
        value = strict_json.loads(body)
    except (ValueError, RecursionError):
        return _tolerant(clean_text(body[: MAX_CHARS + 1]), key, truncated)
    found = payload(value, key)
    inside = isinstance(value, str)
    return _concluded(found, how="tolerant" if inside else "strict", key=key)


def _tolerant(body: str, key: str, truncated: bool) -> ParsedReply:
    first = BRACKET.search(body)
    if WEB_PAGE.search(body, 0, min(first.start() if first else 2000, 2000)):
        return ParsedReply(verdict="unreadable", reason=PAGE, how="tolerant")
    said = spoken(body)
    if not said:
        return ParsedReply(verdict="unreadable", reason=THOUGHTS, how="tolerant")
    if NOTHING.fullmatch(said.strip("`\n ")):
        return ParsedReply(verdict="empty", how="tolerant")
    if '"' not in said and "&quot;" in said:
        said = html.unescape(said)
    scan = _Scan(said[:MAX_CHARS], key, truncated)
    scan.run()
    if not scan.found and (escaped := ESCAPED.search(said)):
        scan = _Scan(_unescaped_once(said, escaped.start()), key, truncated)
        scan.run()
        scan.repaired = True
    if len(said) > MAX_CHARS:
        scan.drop(LONG, said[MAX_CHARS:])
    return scan.conclusion(said)


def _unescaped_once(text: str, start: int) -> str:
    """Return `text` from `start` on without the escapes of a string that it stood in."""
    inside = text[start : max(text.rfind("]"), text.rfind("}")) + 1]
    try:
        return str(json.loads(f'"{inside}"', strict=False))
    except ValueError:
        return ""


def _concluded(found: Payload, *, how: Literal["strict", "tolerant", "repaired"], key: str) -> ParsedReply:
    dropped = [(reason, _shown(part)) for reason, part in _bounded(found.dropped)]
    items = [clean_json(item) for item in found.items]
    if items:
        return ParsedReply(verdict="ok", items=items, dropped=dropped, how=how)
    if found.rank is not Rank.NONE and not dropped:
        return ParsedReply(verdict="empty", how=how)
    reason = (
        f"the reply has no list of {key}" if found.rank is Rank.NONE else f"no object in the list of {key}"
    )
    return ParsedReply(verdict="unreadable", dropped=dropped, how=how, reason=reason)


def _shown(part: Any) -> str:
    if not isinstance(part, str):
        try:
            part = json.dumps(clean_json(part), ensure_ascii=False)
        except (TypeError, ValueError):
            part = repr(part)
    return clean_text(shorten(part[: 10 * MAX_DROPPED_CHARS], MAX_DROPPED_CHARS))


def _bounded(dropped: list[tuple[str, str]]) -> list[tuple[str, str]]:
    if len(dropped) <= MAX_DROPPED:
        return dropped
    kept = dropped[: MAX_DROPPED - 1]
    return [*kept, (MORE, f"{len(dropped) - len(kept)} more")]


class _Scan:
    """One walk over a text from bracket to bracket; all values that it holds, best first."""

    def __init__(self, text: str, key: str, truncated: bool) -> None:
        self.text = text
        self.key = key
        self.truncated = truncated
        self.found: list[Payload] = []
        self.dropped: list[tuple[str, str]] = []
        self.repaired = False
        self._broken = False
        self._mender = Mender()
        self._reader = Reader(text, work=MAX_WORK)
        quote = "[\"'“”„]?"
        self._named_list = re.compile(rf"{quote}{re.escape(key)}{quote}\s*[:：]\s*\[", re.IGNORECASE)

    def drop(self, reason: str, part: str) -> None:
        self.dropped.append((reason, _shown(part)))

    def run(self) -> None:
        """Read every value of the text."""
        position = 0
        try:
            while bracket := BRACKET.search(self.text, position):
                position = self._read(bracket.start())
        except Exhausted:
            self.drop("too much work to read", self.text[position:])

    def _read(self, start: int) -> int:
        """Read what begins with the bracket at `start`; return where to go on."""
        try:
            value, end = self._reader.value(start)
        except Damaged as damage:
            return self._read_damaged(start, damage)
        found = payload(value, self.key)
        inside = self._broken and found.rank is Rank.OBJECT  # of an object that could not be read
        if (
            not inside
            and found.rank is not Rank.NONE
            and (not is_blank_list(value) or self._stands_alone(start, end))
        ):
            self.found.append(found)
        return end

    def _stands_alone(self, start: int, end: int) -> bool:
        """Return whether `[]` is an answer and no part of a sentence."""
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", end)
        before = self.text[max(line_start, start - MAX_SENTENCE) : start].replace("json", "").strip("` \t")
        after = self.text[end : min(line_end if line_end >= 0 else len(self.text), end + MAX_SENTENCE)]
        after = after.strip("` \t.")
        return not after and (not before or before.endswith((":", ">", "|")))

    def _read_damaged(self, start: int, damage: Damaged) -> int:
        if LIST_OF_OBJECTS.match(self.text, start):
            return self._read_list(start, Rank.LIST)
        if isinstance(damage, TooDeep):
            self.drop(DEEP, self.text[start : damage.position])
            return damage.position
        if not OBJECT.match(self.text, start):
            return start + 1
        if named := self._search(self._named_list, start):
            return self._read_list(named.end() - 1, Rank.NAMED)
        following = self._next_like(start)
        end = following or self._end(start)
        mended = self._mended(start, end)
        if mended is not None:
            self.found.append(payload(mended, self.key))
            return end
        self.drop(DAMAGED if end else CUT_OFF, self.text[start : end or len(self.text)])
        self._broken = True
        return following or start + 1

    def _read_list(self, start: int, rank: Rank) -> int:
        """Read a list of objects, of which one at least is damaged, one by one."""
        found = Payload(rank=rank)
        elements: list[Any] = []
        position = start
        try:
            for element, end in self._elements(start):
                position = end
                if element is not None:
                    elements.append(element)
        finally:
            gather(elements, self.key, found)
            if found.items:
                self.found.append(found)
        return position + 1

    def _elements(self, start: int) -> Iterator[tuple[Any, int]]:
        """Yield each element of the list at `start`, None where it cannot be read, and where it ends."""
        text = self.text
        position = self._reader.separator(start + 1)
        while position < len(text) and text[position] != "]":
            if text[position] == "}":
                position = self._reader.separator(position + 1)
                continue
            try:
                element, end = self._reader.value(position)
            except Damaged:
                end = self._next_like(position) or self._end(position, max(text.rfind("]"), position))
                element = self._mended(position, end)
                if element is None:
                    self.drop(DAMAGED if end else CUT_OFF, text[position : end or len(text)])
                end = end or len(text)
            yield element, end
            position = self._reader.separator(end)

    def _next_like(self, start: int) -> int:
        """Return where the next object begins that has the same first field as the one at `start`; else 0.

        Items of one list have one form, so that what is inside an item is not taken for the next item.
        """
        if opening := OBJECT.match(self.text, start):
            name = re.escape(opening.group(1))
            like = re.compile(rf"\{{\s*[\"'“”„]?{name}[\"'“”]?\s*[:：]")
            following = self._search(like, opening.end())
        else:
            following = self._search(OBJECT, start + 1)
        return following.start() if following else 0

    def _search(self, pattern: re.Pattern[str], start: int) -> re.Match[str] | None:
        found = pattern.search(self.text, start)
        self._reader.spend(start, found.end() if found else len(self.text))
        return found

    def _end(self, start: int, limit: int | None = None) -> int:
        """Return where the last object before `limit`, begun at `start`, ends; 0 where it was cut off."""
        last = self.text.rfind("}", start, limit)
        if last < 0 or self.truncated:
            return 0
        return 0 if GOES_ON.match(self.text, last + 1) else last + 1

    def _mended(self, start: int, end: int) -> dict[str, Any] | None:
        """Return the object in this part of the text, mended; None where it cannot be, or was cut off."""
        mended = self._mender.mend(self.text[start:end].rstrip(" \t\r\n,")) if end else None
        self.repaired = self.repaired or mended is not None
        return mended

    def conclusion(self, said: str) -> ParsedReply:
        """Return what all that was found comes to: the values of the highest rank, one after the other."""
        how: Literal["tolerant", "repaired"] = "repaired" if self.repaired else "tolerant"
        if not self.found:
            reason = (
                self.dropped[0][0] if self.dropped else REFUSED if REFUSAL.search(said[:2000]) else NO_JSON
            )
            return ParsedReply(verdict="unreadable", dropped=_bounded(self.dropped), how=how, reason=reason)
        rank = max(found.rank for found in self.found)
        chosen = Payload(rank=rank, dropped=list(self.dropped))
        seen: set[str] = set()
        for found in self.found:
            if found.rank < rank:
                chosen.dropped.extend((OUTSIDE, item) for item in found.items)
                continue
            chosen.dropped.extend(found.dropped)
            told = [json.dumps(item) for item in found.items]
            chosen.items.extend(
                item for item, text in zip(found.items, told, strict=True) if text not in seen
            )
            seen.update(told)
        result = _concluded(chosen, how=how, key=self.key)
        if result.verdict == "empty" and REFUSAL.search(said[:2000]):
            return ParsedReply(verdict="unreadable", how=how, reason=REFUSED)
        return result
