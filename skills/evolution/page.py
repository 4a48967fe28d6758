"""The page of a skill's instructions: numbered steps, errors with what gets past them, what to avoid. Pure.

A page is read from text and written back to it; whatever it does not know, prose of a person included, it
leaves as it is. Everything is added by line, and nothing that a line already says is added again, so that
the same lessons never change a page twice.

    1. Before you call `pay_order`, check `method` against the errors below.

    ## When it answers with an error
    - “balance is not enough”: use another `method`; if nothing helps, go on with `hand_over`.

    ## Avoid
    - Sending `pay_order` the same call again after “balance is not enough”.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from skills.evolution.words import content_words, words

ERRORS = "## When it answers with an error"
AVOID = "## Avoid"
ELSE = "; else "
LAST_RESORT = "if nothing helps, "
SETTLE = "settle what it objects to before you call again"
"""The remedy of an error that nothing is known about; any other takes its place."""

NO_SUPPORT: Mapping[str, int] = MappingProxyType({})

_STEP = re.compile(r"(\d+)([.)]) +(?=\S)")
MARKER = re.compile(r"^(?:[-*+]|\d+[.)]) +(?=\S)")
_HEADING = re.compile(r"#{1,6} +(?=\S)")
_SECTIONS = {
    ERRORS: re.compile(r"\b(?:errors?|fails?|failures?|refus\w+|troubleshooting)\b", re.IGNORECASE),
    AVOID: re.compile(r"\b(?:avoid|pitfalls?|mistakes?|do not|don't|never)\b", re.IGNORECASE),
}
_OTHERWISE = re.compile(r"(?:; else it answers “[^”]*”| from the start)\.?$")
_CODE = re.compile(r"`([^`]+)`")
_NEGATION = re.compile(r"\b(?:no|not|never|without|avoid|\w+n['’]t|cannot|stop)\b", re.IGNORECASE)
SAME_JACCARD = 0.8
MIN_COMPARED = 5


class Page:
    """The instructions of one skill while lessons are written into them."""

    def __init__(self, text: str = "") -> None:
        self.lines = text.rstrip().splitlines()
        self._before = list(self.lines)

    @property
    def text(self) -> str:
        """The page as it is stored: no blank line at its end."""
        return "\n".join(self.lines)

    @property
    def changed(self) -> bool:
        """Whether anything was written since the page was read."""
        return self.lines != self._before

    def says(self, text: str) -> bool:
        """Return whether one line says the same, as `says_same` tells."""
        return any(says_same(MARKER.sub("", line, count=1), text) for line in self.lines)

    def steps(self) -> list[tuple[int, str]]:
        """Return the numbered lines before the first heading: index of the line, and its text."""
        found = []
        for index, line in enumerate(self.lines):
            if _HEADING.match(line):
                break
            if step := _STEP.match(line):
                found.append((index, line[step.end() :]))
        return found

    def add_step(self, text: str, *, before: str = "") -> bool:
        """Add a numbered step behind the last one, in front of the step `before` where that is the last.

        Returns whether the page changed.
        """
        text = _one_line(text)
        if self.says(text):
            return False
        steps = self.steps()
        if not steps:
            end = self._end_of_preamble()
            self.lines[end:end] = [*([""] if end else []), f"1. {text}"]
            self._part(end + 1 + bool(end))
            return True
        index, last = steps[-1]
        found = _STEP.match(self.lines[index])
        assert found is not None
        number, mark = int(found[1]), found[2]
        if before and last == before:
            self.lines[index : index + 1] = [f"{number}{mark} {text}", f"{number + 1}{mark} {last}"]
        else:
            self.lines.insert(self._end_of_item(index), f"{number + 1}{mark} {text}")
        return True

    def replace_step(self, index: int, text: str) -> bool:
        """Replace the text of a step by its line index as `steps` gave it; return whether it changed."""
        found = _STEP.match(self.lines[index])
        assert found is not None
        changed = f"{found[0]}{text}"
        if changed == self.lines[index]:
            return False
        self.lines[index] = changed
        return True

    def add_pitfall(self, text: str) -> bool:
        """Add a line to what is to be avoided; return whether the page changed."""
        text = _one_line(text)
        if self.says(text):
            return False
        self._add_bullet(AVOID, text)
        return True

    def add_remedy(
        self,
        error: str,
        remedy: str,
        *,
        last_resort: bool = False,
        support: Mapping[str, int] = NO_SUPPORT,
    ) -> bool:
        """Add what gets past an error to the error's line; return whether the page changed.

        Remedies that change the outcome stand behind the others, one last resort behind all of them; among
        their like those with most `support` (sessions by remedy) go first, unless a person has added to
        them. Of two changes that were made at once nobody knows which one helped: where one of them is
        known to help by itself, it stands alone.
        """
        error, remedy = _one_line(error), _one_line(remedy)
        index = self._line_of_error(error)
        start = f"{quoted(error)}: "
        if index is None:
            self._add_bullet(ERRORS, f"{start}{LAST_RESORT if last_resort else ''}{remedy}.")
            return True
        head, _, tail = self.lines[index].partition(start)
        remedies, resort = _clauses(tail)
        if last_resort:
            if resort:
                return False
            resort = remedy
        else:
            kept = _with_remedy(remedies, remedy, support)
            if kept == remedies:
                return False
            remedies = kept
        parts = [ELSE.join(remedies), f"{LAST_RESORT}{resort}" if resort else ""]
        self.lines[index] = f"{head}{start}{'; '.join(filter(None, parts))}."
        return True

    def add_remedies(self, error: str, tail: str) -> None:
        """Add all that another page says about an error."""
        remedies, resort = _clauses(tail)
        for clause in remedies:
            self.add_remedy(error, clause)
        if resort:
            self.add_remedy(error, resort, last_resort=True)

    def _line_of_error(self, error: str) -> int | None:
        """Return the line that begins with an error in quotation marks."""
        start = quoted(error)
        for index, line in enumerate(self.lines):
            if MARKER.sub("", line, count=1).startswith(f"{start}:"):
                return index
        return None

    def _add_bullet(self, section: str, text: str) -> None:
        """Add a bullet at the end of a section; a missing one is made, what to avoid as the last."""
        start = self._section(section)
        if start is None:
            at = self._section(AVOID) if section == ERRORS else None
            at = len(self.lines) if at is None else at
            block = [section, f"- {text}"]
            if at < len(self.lines):
                block.append("")
            elif at and self.lines[at - 1].strip():
                block.insert(0, "")
            self.lines[at:at] = block
            return
        end = self._end_of_section(start)
        self.lines.insert(end, f"- {text}")

    def _section(self, section: str) -> int | None:
        """Return the line of a section's heading, as we write it or as a person would."""
        headings = [index for index, line in enumerate(self.lines) if _HEADING.match(line)]
        exact = [index for index in headings if self.lines[index].strip() == section]
        alike = [index for index in headings if _SECTIONS[section].search(self.lines[index])]
        return next(iter(exact or alike), None)

    def _end_of_section(self, heading: int) -> int:
        """Return the line behind the last written line of a section."""
        end = heading + 1
        for index in range(heading + 1, len(self.lines)):
            if _HEADING.match(self.lines[index]):
                break
            if self.lines[index].strip():
                end = index + 1
        return end

    def _end_of_preamble(self) -> int:
        end = 0
        for index, line in enumerate(self.lines):
            if _HEADING.match(line):
                break
            if line.strip():
                end = index + 1
        return end

    def _end_of_item(self, index: int) -> int:
        """Return the line behind a list item: lines that go on with it are indented."""
        end = index + 1
        while end < len(self.lines) and self.lines[end].startswith((" ", "\t")) and self.lines[end].strip():
            end += 1
        return end

    def _part(self, at: int) -> None:
        """Keep a blank line between what ends before `at` and a heading there."""
        if at < len(self.lines) and _HEADING.match(self.lines[at]):
            self.lines.insert(at, "")


def says_same(one: str, other: str) -> bool:
    """Return whether two lines say the same: equal words, or nearly the same words of meaning.

    Lines that name other things in backticks or differ in negation never say the same, however alike they
    are, nor do short ones that differ at all.
    """
    if words(one) == words(other) or _advice(one) == _advice(other):
        return True
    said, meaning = content_words(one), content_words(other)
    alike = len(meaning & said) >= SAME_JACCARD * len(meaning | said)
    return len(meaning) >= MIN_COMPARED and alike and _decisive(one) == _decisive(other)


def is_heading(line: str) -> bool:
    """Return whether a line is a heading."""
    return bool(_HEADING.match(line))


def section_of(line: str) -> str | None:
    """Return the section that a heading opens: `ERRORS`, `AVOID` or "" for any other; None for no heading."""
    if not _HEADING.match(line):
        return None
    return next((section for section, pattern in _SECTIONS.items() if pattern.search(line)), "")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _clauses(tail: str) -> tuple[list[str], str]:
    """Return the remedies and the last resort of an error's line, as they stand behind the error."""
    text = tail.removesuffix(".")
    if text.startswith(LAST_RESORT):
        return [], text.removeprefix(LAST_RESORT)
    plain, _, resort = text.partition(f"; {LAST_RESORT}")
    return plain.split(ELSE), resort


def _with_remedy(remedies: list[str], remedy: str, support: Mapping[str, int]) -> list[str]:
    """Return remedies with another one, unless it or a part of it is there; wholes give way to a part."""
    parts = _parts(remedy)
    if remedy == SETTLE:
        return remedies or [SETTLE]
    if any(_parts(known) <= parts for known in remedies if known != SETTLE):
        return remedies
    kept = [known for known in remedies if known != SETTLE and not parts < _parts(known)]

    def place(known: str) -> tuple[int, int, str]:
        return _rank(known), -support.get(known, 0), known

    if all(known in support for known in kept):
        return sorted([*kept, remedy], key=place)
    later = (index for index, known in enumerate(kept) if place(known) > place(remedy))
    kept.insert(next(later, len(kept)), remedy)
    return kept


def _rank(remedy: str) -> int:
    """Return where a remedy stands: a look first, then another way to the same end, then another end."""
    if remedy.startswith("check "):
        return 0
    other_end = remedy.startswith(("set ", "leave ", "lower ", "raise ", "send fewer ", "send all "))
    return 1 + other_end


def _parts(remedy: str) -> frozenset[str]:
    """Return the single changes that a remedy consists of."""
    return frozenset(re.split(r", | and ", remedy))


def quoted(error: str) -> str:
    """Return an error as it stands on a page."""
    return f"“{error}”"


def _advice(line: str) -> str:
    """Return what a line tells to do, without what happens otherwise."""
    return _OTHERWISE.sub("", line)


def _decisive(text: str) -> tuple[set[str], bool]:
    """Return what must be equal in two lines that say the same: the names in code, and the polarity."""
    return set(_CODE.findall(text)), bool(_NEGATION.search(text))
