"""What a person decided against, and whether a new text brings any of it back. Pure.

A decision is held against a text as a whole and line by line, wherever the line would stand: behind others,
in another skill, in a new one. A line is back where half of its runs of five words are (the measure of
near-duplicates), or where a new line says the same in much the same words. What agents are told already was
let through by a person, and lines that our own rules put around others say nothing by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from skills.content import Content
from skills.evolution.near import NEAR_JACCARD, SHINGLE_WORDS, Fingerprint, shingles
from skills.evolution.page import MARKER, is_heading, says_same
from skills.evolution.points import is_frame
from skills.evolution.types import ExperienceView
from skills.evolution.voices import voices
from skills.evolution.words import content_words, words

Shingles = frozenset[tuple[str, ...]]

SPEAKS_FOR = 0.5
"""The share of a line's words of meaning that an experience holds which speaks for it."""
_QUOTED = re.compile(r"^“[^”]*”:")


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """A change that a person decided against: from which text to which, and on whose word."""

    revision_id: str
    skill_id: str | None
    action: str
    content: Content
    base: Content | None
    support: tuple[ExperienceView, ...]
    is_whole: bool = True
    """Whether all of it was turned down, and not some lines of it struck out."""

    @property
    def added(self) -> Shingles:
        """The shingles that it would have added."""
        before = Fingerprint.of(self.base).shingles if self.base else frozenset()
        return Fingerprint.of(self.content).shingles - before

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The lines that it would have added."""
        known = _marks(_lines(self.base)) if self.base else frozenset()
        return tuple(Line(text, known) for text in added_lines(self.base, self.content))

    @cached_property
    def dropped(self) -> tuple[str, ...]:
        """The lines that it would have taken out, with nothing in their place."""
        return _dropped(self.base, self.content) if self.base else ()


@dataclass(frozen=True)
class Line:
    """A line that was turned down, and the shingles of the text that it was to stand in."""

    text: str
    known: Shingles

    @cached_property
    def marks(self) -> Shingles:
        """What is new in it, but for the error that it begins with: others may help against that too."""
        error = _QUOTED.match(self.text)
        return shingles(self.text) - self.known - (shingles(error[0]) if error else frozenset())

    @cached_property
    def _words(self) -> list[str]:
        return words(self.text)

    def is_back(self, added: Sequence[str], marks: Shingles) -> bool:
        """Return whether it stands in new lines with these shingles, by its words or near enough."""
        is_long = len(self._words) >= SHINGLE_WORDS and bool(self.marks)
        if is_long and len(marks & self.marks) >= NEAR_JACCARD * len(self.marks):
            return True
        if _QUOTED.match(self.text):
            return any(words(line) == self._words for line in added)
        return any(says_same(line, self.text) for line in added)

    def is_said(self, marks: Shingles, lines: Collection[tuple[str, ...]]) -> bool:
        """Return whether texts with these shingles, of lines with these words, say it word for word."""
        is_long = len(self._words) >= SHINGLE_WORDS and bool(self.marks)
        return (is_long and self.marks <= marks) or tuple(self._words) in lines

    def is_spoken_for_by(self, experience: ExperienceView) -> bool:
        """Return whether an experience is about what the line says."""
        wanted = content_words(self.text)
        told = content_words(f"{experience.title} {experience.content} {experience.quote}")
        return len(wanted & told) >= SPEAKS_FOR * len(wanted)


@dataclass(frozen=True, kw_only=True)
class Return:
    """Something that is back: what, and by which decision it was out."""

    rejected: Rejected
    text: str
    """The line, as it was; of a text that is back as a whole ""."""
    new_voices: int
    """How many new sessions speak for it."""

    @property
    def reason(self) -> str:
        """What stands against it, without the number of sessions that would do."""
        if not self.text:
            return f"{self.rejected.revision_id} with much the same text was rejected"
        how = "was rejected with" if self.rejected.is_whole else "was struck out of"
        return f"“{self.text}” {how} {self.rejected.revision_id}"


def lines_back(
    rejected: Iterable[Rejected],
    *,
    skill_id: str | None,
    before: Content | None,
    after: Content,
    cited: Sequence[ExperienceView],
    in_use: Callable[[Line], bool],
) -> Iterator[Return]:
    """Yield the lines that a change brings back, and those of its skill that it drops as was turned down.

    A line that is `in_use` elsewhere counts for nothing.
    """
    added = added_lines(before, after)
    marks = _marks(added)
    dropped = set(_dropped(before, after)) if before else set()
    for item in rejected:
        for line in item.lines if added else ():
            if line.is_back(added, marks) and not in_use(line):
                speaking = [view for view in cited if line.is_spoken_for_by(view)]
                heard = voices(speaking, heard=item.support)
                yield Return(rejected=item, text=line.text, new_voices=heard)
        if item.skill_id == skill_id and dropped.intersection(item.dropped):
            yield Return(rejected=item, text="", new_voices=voices(cited, heard=item.support))


def holds(texts: Iterable[Content]) -> Callable[[Line], bool]:
    """Return the function that tells whether any of these texts says a line, word for word."""
    lines = [line for text in texts for line in _lines(text)]
    marks, said = _marks(lines), {tuple(words(line)) for line in lines}
    return lambda line: line.is_said(marks, said)


def added_lines(before: Content | None, after: Content) -> list[str]:
    """Return the lines of `after` that `before` has not, those that say something by themselves."""
    known = set(_lines(before)) if before else set()
    return [line for line in dict.fromkeys(_lines(after)) if line not in known]


def _lines(content: Content) -> list[str]:
    """Return what a text says, line by line, without headings, markers and the frame of our own rules."""
    text = [*content.description.splitlines(), *content.instructions.splitlines()]
    text += [line for example in content.examples for line in str(example).splitlines()]
    plain = (MARKER.sub("", line.strip(), count=1).strip() for line in text if not is_heading(line.strip()))
    return [line for line in plain if content_words(line) and not is_frame(line)]


def _marks(lines: Sequence[str]) -> Shingles:
    """Return the shingles of lines by themselves, and of all in one: a line may have been cut in two."""
    return frozenset().union(*map(shingles, lines), shingles("\n".join(lines)))


def _dropped(before: Content, after: Content) -> tuple[str, ...]:
    """Return the lines that are taken out with nothing in their place."""
    old, new = _lines(before), _lines(after)
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return tuple(line for tag, i, j, _, _ in codes if tag == "delete" for line in old[i:j])
