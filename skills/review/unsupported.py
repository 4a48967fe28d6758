"""Commands, paths, flags, variables and addresses of a new text that nobody behind it ever said. Pure.

A model that writes a lesson down may add what sounds right. What an agent would type, open or call is
looked up in the words of the sessions that support the text; what stands in none of them is listed for the
reviewer. Whether it is wrong is for a person to say: it may be common knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mirix.text import fold
from skills.review.addresses import addresses
from skills.review.disguise import plain

MAX_LISTED = 50
MAX_STEP_CHARS = 200
FENCED = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})(?P<kind>[^\n`]*)\n(?P<text>.*?)(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)",
    re.M | re.S,
)
CODE = re.compile(r"(?<!`)(?P<ticks>`{1,2})(?!`)(?P<text>[^`\n]{1,500}?)(?<!`)(?P=ticks)(?!`)")
PROGRAM = re.compile(r"(?:[./~]*[a-z][\w.+-]*/)*[a-z][\w.+-]*")
PROMPT = re.compile(r"^\s*(?:(?:[$#>%]|PS>|sudo|env|[A-Z_][A-Z0-9_]*=\S*)\s+(?=\S))+")
SHELL = frozenset(("", "sh", "bash", "shell", "console", "zsh", "powershell", "cmd", "terminal"))
FLAG = re.compile(r"(?<![\w/.-])--[A-Za-z][\w-]*|(?<=\S[ \t])-[A-Za-z][\w-]*")
PATH = re.compile(
    r"(?<![\w/.~@:$}-])(?:~?/|\.{1,2}/|\$\{?[A-Za-z_]\w*\}?/)(?:[\w.@+-]+/)*[\w.@+-]*\w"  # ./run, $HOME/x
    r"|(?<![\w/.~@:-])(?:[\w.@+-]+/)+[\w@+-]+(?:\.[A-Za-z]\w{0,5})+\b"  # src/app.py
    r"|(?<![\w\\])[A-Za-z]:[\\/](?:[\w.$-]+[\\/])*[\w.$-]*\w"  # C:\temp
    r"|(?<![\w\\])\\\\[\w.-]+(?:\\[\w.$-]+)+"  # \\server\share
)
TYPED = re.compile(r"^[ \t]*\$[ \t]+(?=[a-z./~]).+$", re.M)
RUN = re.compile(r"\b(?:run|execute)s? `([./~]*[a-z][\w./+-]*)`", re.IGNORECASE)
OPEN = re.compile(r"<[^<>]{1,40}>|\{[^{}]{1,40}\}|…|\.{3}|\[[^\[\]]{1,40}\]")
"""What a step leaves open for the case at hand."""
MIN_PIECE_CHARS = 3


ANYWHERE, ITSELF = r"(?<!\w)", r"(?!\w)"
ENV = re.compile(
    r"\$\{?(?:env:)?[A-Z][A-Z0-9_]{2,}\b\}?+(?!/)|%[A-Z][A-Z0-9_]{2,}%"  # $HOME, ${HOME}, $env:PATH, %PATH%
    r"|\b[A-Z][A-Z0-9_]*_[A-Z0-9_]*(?==)"  # LOG_LEVEL=debug
    r"|(?i:(?<=\bexport )|(?<=\bunset )|(?<=\bvariable )|(?<=\bvariable `)|(?<=\bset )|(?<=\bset `))"
    r"[A-Z][A-Z0-9]*_[A-Z0-9_]+\b"
)
SERVER = re.compile(
    r"(?<![\w.@/:-])(?:localhost|(?:\d{1,3}\.){3}\d{1,3}"
    r"|(?:[a-z][\w-]*\.)+(?!(?:py|js|ts|go|rs|rb|java|c|h|md):)[a-z]{2,})"  # main.py:12 is a line
    r":\d{2,5}(?!\w)",
    re.IGNORECASE,
)
NUMBERED = re.compile(r"(?<![\w.:/-])(?<!version )(?:\d{1,3}\.){3}\d{1,3}(?![\w:-]|\.\d)", re.IGNORECASE)


@dataclass(frozen=True)
class Step:
    """Something that a text tells to use, and what must not stand around it where it is said.

    Else `rm -rf /` would be said by `rm -rf /tmp/build`, and `--force` by `--force-with-lease`.
    """

    text: str
    before: str = ANYWHERE
    after: str = ITSELF

    def stands_in(self, source: str) -> bool:
        """Return whether a folded source says it, as a whole or in the pieces between its open places."""
        pieces = [fold(piece).casefold() for piece in OPEN.split(self.text)]
        if not any(len(piece) >= MIN_PIECE_CHARS for piece in pieces):
            pieces = [fold(self.text).casefold()]
        last = len(pieces) - 1
        for place, piece in enumerate(pieces):
            if len(piece) < MIN_PIECE_CHARS and last:
                continue
            start, end = self.before * (place == 0), self.after * (place == last)
            if piece not in source or not re.search(f"{start}{re.escape(piece)}{end}", source):
                return False
        return True


def unsupported_steps(before: str, after: str, sources: Iterable[str]) -> list[str]:
    """Return what `after` tells an agent to use, in order, that neither `before` nor a source holds.

    Compared folded (NFKC, white space, case), without what cannot be seen: a command counts as said where its
    fixed pieces, between the places it leaves open (`<id>`, `…`), all stand in one source. At most
    `MAX_LISTED`, each shortened.
    """
    old = {step.text for step in _steps(plain(before))}
    missing = [step for step in dict.fromkeys(_steps(plain(after))) if step.text not in old]
    for source in sources if missing else ():
        said = fold(plain(source)).casefold()
        missing = [step for step in missing if not step.stands_in(said)]
        if not missing:
            break
    texts = dict.fromkeys(step.text[:MAX_STEP_CHARS] for step in missing)
    return list(texts)[:MAX_LISTED]


def steps(text: str) -> Iterator[str]:
    """Yield the commands, addresses, variables, flags and paths that a text names, in that order of kinds."""
    return (step.text for step in _steps(text))


def _steps(text: str) -> Iterator[Step]:
    commands = list(_commands(text))
    yield from (Step(command, r"(?<![\w./~$-])", r"(?![\w/-]|\.\w)") for command in commands)
    # A flag or path of a command that is listed is not listed once more.
    rest = FENCED.sub(_without_commands, text)
    for command in commands:
        rest = rest.replace(command, " ")
    for address in addresses(rest, everywhere=True):
        yield Step(address, after=r"(?![^\W_]|\.[^\W_])")
    without = re.sub(r"\b[a-z][a-z0-9+.-]*://\S+", " ", rest, flags=re.IGNORECASE)
    for pattern, before, after in PATTERNS:
        yield from (Step(match.group(), before, after) for match in pattern.finditer(without))


PATTERNS = (
    (SERVER, ANYWHERE, ITSELF),
    (NUMBERED, ANYWHERE, ITSELF),
    (ENV, "", ""),
    (FLAG, r"(?<![\w./-])", r"(?![\w-])"),
    (PATH, ANYWHERE, ITSELF),
)


def _without_commands(block: re.Match[str]) -> str:
    """Return what is left of a block of code to be looked through: nothing of one that is typed."""
    return " " if block["kind"].strip().lower() in SHELL else f" {block['text']} "


def _commands(text: str) -> Iterator[str]:
    """Yield what is to be typed: lines of shell blocks, and code of two words or more whose first runs."""
    for block in FENCED.finditer(text):
        if block["kind"].strip().lower() in SHELL:
            for line in block["text"].splitlines():
                if line.strip() and not line.lstrip().startswith("# "):
                    yield PROMPT.sub("", line).strip()
    prose = FENCED.sub("\n", text)
    yield from (PROMPT.sub("", line[0]).strip() for line in TYPED.finditer(prose))
    yield from (match[1] for match in RUN.finditer(prose))
    for code in CODE.finditer(prose):
        command = PROMPT.sub("", code["text"]).strip()
        first, _, rest = command.partition(" ")
        if rest.strip() and PROGRAM.fullmatch(first) and not rest.lstrip().startswith(("=", ":")):
            yield command
