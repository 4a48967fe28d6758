"""Base64 in running text: where it may stand, and whether what stands there surely is some.

A false alarm costs a person's words, so that an alphabet and a length alone prove nothing: long identifiers,
paths and slugs have both. What counts is what a run decodes to: a known kind of file, text, many zeros, or
bytes as even as only packed ones are.
"""

from __future__ import annotations

import math
import re
from binascii import a2b_base64
from collections import Counter
from collections.abc import Callable

MIN_CHARS = 100
"""Of a run that nothing else tells of; what is shorter is a key, a hash or a token, and means something."""
MIN_FILE_CHARS = 64
"""Of a run that begins as a known kind of file."""
LONG = 400
"""From here on a run may have been cut, and need not end where base64 does."""
SAMPLE_CHARS = 2_048
MIN_LINE_CHARS = 40
MIN_REST_CHARS = 16
"""Of a last line that is shorter than the others and not padded; else it may be a word that follows."""

ANY = r"A-Za-z0-9+/_\-"
ESCAPED = r"\\{1,3}(?:/|u002[bBfF])|%2[bBfF]"
RUN = re.compile(rf"(?<![{ANY}])[{ANY}]{{{MIN_LINE_CHARS},}}")
ESCAPED_RUN = re.compile(rf"(?<![{ANY}])(?=[{ANY}\\%]{{{MIN_LINE_CHARS}}})(?:[{ANY}]++|{ESCAPED})++")
PIECE = re.compile(rf"(?:[{ANY}]++|{ESCAPED})++")
PADDING = re.compile(r"(?:=|\\{1,3}u003[dD]|%3[dD]){1,2}")
ESCAPE = re.compile(r"(?:\\{1,3}u00|%)(?P<code>2[bBfF]|3[dD])|\\{1,3}/")
BREAK = re.compile(r"(?:\r?\n|(?:\\{1,3}r)?\\{1,3}n|(?:%0[dD])?%0[aA])(?:[ \t>]|\\{1,3}t){0,64}|[ \t]")
STANDARD_RUN = re.compile(rf"[A-Za-z0-9+/]{{{MIN_FILE_CHARS},}}={{0,2}}")
TO_STANDARD = str.maketrans("-_", "+/")

FILES = re.compile(
    r"iVBORw0KGgo|/9j/|JVBERi0|R0lGOD[dl]|UklGR|UEsDB|SUQz|T2dnUw|H4sI|f0VMR|SUkqA|TU0AK|N3q8ry|/Td6WF|QlpoO"
    r"|KLUv/|GkXfo|ZkxhQ|AAEAAAA|d09GR|U1FMaXRl|LS0tLS1CRUdJTi|AAABAA|AAAA[A-Za-z0-9+/]GZ0eX"
)
UPPER, LOWER, DIGIT = re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]")
TURN = re.compile(r"[A-Z](?![A-Z])|[a-z](?![a-z])|[0-9](?![0-9])|[+/_-](?![+/_-])")
SIGN = re.compile(r"[+/_-]")
UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
MIN_BLANKS = 0.08
MIN_DIFFERENT = 8
MIN_WIDE = 0.4
MIN_TURNS = 0.45
MAX_SIGNS = 0.1
ENTROPY_MISSING = 45.4
"""By how much, over their number, characters taken at random from 64 seem less random than they are."""
ENTROPY_SPARE, ENTROPY_SPARE_LONG = 0.4, 0.6


def replace_base64(text: str, stand_in: Callable[[str], str]) -> str:
    """Return `text` with each stretch that surely is base64 replaced by what `stand_in` makes of it.

    A stretch may be in lines, indented or quoted, or in pieces with a blank between, all of one length but
    the last; its characters and line ends may be escaped as in JSON. `stand_in` gets it without all that.
    """
    may_escape = ("\\" in text and ("\\/" in text or "\\u002" in text)) or "%2" in text
    pattern = ESCAPED_RUN if may_escape else RUN
    if pattern.search(text) is None:  # as in most texts
        return text
    pieces: list[str] = []
    done = at = 0
    while found := pattern.search(text, at):
        start, at = found.start(), found.end()
        if text[start] in "nrt" and text[start - 1 : start] == "\\":
            start += 1  # the end of an escaped blank
        run = _plain(text[start:at])
        joined, end = _joined(text, run, at, enough=LONG)
        if not is_base64(joined):
            replaced = STANDARD_RUN.sub(lambda inner: _if_base64(inner, stand_in), run)
            if replaced != run:  # among signs of the other alphabet, such as the dashes around a certificate
                pieces += [text[done:start], replaced]
                done = at
            else:
                at = end
            continue
        joined, end = _joined(text, run, at)
        pieces += [text[done:start], stand_in(joined)]
        done = at = end
    return "".join([*pieces, text[done:]])


def base64_from(text: str, start: int) -> tuple[str, int]:
    """Return the base64 that is known to begin at a place of a text, and where it ends."""
    found = ESCAPED_RUN.match(text, start)
    if not found:
        return "", start
    return _joined(text, _plain(found.group()), found.end())


def _if_base64(found: re.Match[str], stand_in: Callable[[str], str]) -> str:
    return stand_in(found.group()) if is_base64(found.group()) else found.group()


def _plain(run: str) -> str:
    """Return a run without escapes."""
    return ESCAPE.sub(lambda found: chr(int(found["code"] or "2f", 16)), run)


def _joined(text: str, run: str, end: int, *, enough: int = 0) -> tuple[str, int]:
    """Return a run with the pieces that go on with it, up to `enough` characters, and where they end."""
    pieces, width, size = [run], len(run), len(run)
    while len(pieces[-1]) == width and not (enough and size >= enough) and not PADDING.match(text, end):
        gap = BREAK.match(text, end)
        found = PIECE.match(text, gap.end()) if gap else None
        piece = _plain(found.group()) if found else ""
        if found is None or len(piece) > width or not _goes_on(piece, width, text, found.end()):
            break
        pieces.append(piece)
        size, end = size + len(piece), found.end()
    if padding := PADDING.match(text, end):
        pieces.append(_plain(padding.group()))
        end = padding.end()
    return "".join(pieces), end


def _goes_on(piece: str, width: int, text: str, end: int) -> bool:
    """Return whether a piece may go on with base64 in pieces of a width, or be its shorter end."""
    if len(piece) == width:
        return UPPER.search(piece) is not None  # unlike hashes and words, whatever their length
    return PADDING.match(text, end) is not None or (
        len(piece) >= MIN_REST_CHARS and len(piece) % 4 == 0 and _has_turns(piece)
    )


def _has_turns(run: str) -> bool:
    """Return whether letters of both cases, digits and signs change as often as in base64."""
    return len(TURN.findall(run)) >= MIN_TURNS * len(run)


def is_base64(run: str, *, at_least: int = MIN_CHARS, is_announced: bool = False) -> bool:
    """Return whether a run surely is base64; where something announces it, its length proves less."""
    body = run.rstrip("=")
    if not is_announced and len(body) < LONG and len(run) % 4:
        return False
    if ("+" in body or "/" in body) and ("-" in body or "_" in body):
        return False
    sample = body[:SAMPLE_CHARS]
    sample = sample[: len(sample) // 4 * 4].translate(TO_STANDARD)
    if len(body) >= MIN_FILE_CHARS and FILES.match(sample):
        return True
    if len(body) < at_least:
        return False
    decoded = a2b_base64(sample)
    if 2 * (decoded.count(b"\0\0") + decoded.count(b"\xff\xff")) >= MIN_BLANKS * len(decoded):
        return is_announced or len(set(sample)) >= MIN_DIFFERENT
    if not all(kind.search(sample) for kind in (UPPER, LOWER, DIGIT)):
        return False
    return _is_text(decoded) or _is_even(sample, is_long=len(body) >= LONG)


def _is_text(decoded: bytes) -> bool:
    if decoded[1::2].count(0) > len(decoded) * MIN_WIDE:  # two bytes a letter
        decoded = decoded[::2]
    return not UNREADABLE.search(decoded.decode(errors="replace").rstrip("\ufffd"))


def _is_even(sample: str, *, is_long: bool) -> bool:
    """Return whether characters are as mixed as those of packed or encrypted bytes, and not of words."""
    size = len(sample)
    entropy = -sum(count / size * math.log2(count / size) for count in Counter(sample).values())
    spare = ENTROPY_SPARE_LONG if is_long else ENTROPY_SPARE
    return (
        entropy >= 6 - ENTROPY_MISSING / size - spare
        and _has_turns(sample)
        and len(SIGN.findall(sample)) <= MAX_SIGNS * size
    )
