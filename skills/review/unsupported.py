"""Commands, paths, flags and addresses of a new text that nobody behind it ever said. Pure.

A model that writes a lesson down may add what sounds right. What an agent would type, open or call is
looked up in the words of the sessions that support the text; what stands in none of them is listed for the
reviewer. Whether it is wrong is for a person to say: it may be common knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mirix.text import fold
from skills.review.addresses import addresses

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
    r"|(?<![\w\\])[A-Za-z]:\\(?:[\w.$-]+\\)*[\w.$-]*\w"  # C:\temp
)
OPEN = re.compile(r"<[^<>]{1,40}>|\{[^{}]{1,40}\}|…|\.{3}|\[[^\[\]]{1,40}\]")
"""What a step leaves open for the case at hand."""
MIN_PIECE_CHARS = 3


def unsupported_steps(before: str, after: str, sources: Iterable[str]) -> list[str]:
    """Return what `after` tells an agent to use, in order, that neither `before` nor a source holds.

    Compared folded (NFKC, white space, case): a command counts as said where its fixed pieces, between the
    places it leaves open (`<id>`, `…`), all stand in one source. At most `MAX_LISTED`, each shortened.
    """
    old = set(steps(before))
    missing = [step for step in dict.fromkeys(steps(after)) if step not in old]
    for source in sources if missing else ():
        said = fold(source).casefold()
        missing = [step for step in missing if not _stands_in(step, said)]
        if not missing:
            break
    return [step[:MAX_STEP_CHARS] for step in missing[:MAX_LISTED]]


def steps(text: str) -> Iterator[str]:
    """Yield the commands, flags, paths and addresses that a text names, in that order of kinds."""
    commands = list(_commands(text))
    yield from commands
    # A flag or path of a command that is listed is not listed once more.
    rest = FENCED.sub(" ", text) if commands else text
    for command in commands:
        rest = rest.replace(command, " ")
    yield from addresses(rest)
    without = re.sub(r"\b[a-z][a-z0-9+.-]*://\S+", " ", rest, flags=re.IGNORECASE)
    for pattern in (FLAG, PATH):
        yield from (match.group() for match in pattern.finditer(without))


def _commands(text: str) -> Iterator[str]:
    """Yield what is to be typed: lines of shell blocks, and code of two words or more whose first runs."""
    for block in FENCED.finditer(text):
        if block["kind"].strip().lower() in SHELL:
            for line in block["text"].splitlines():
                if line.strip() and not line.lstrip().startswith("# "):
                    yield PROMPT.sub("", line).strip()
    for code in CODE.finditer(FENCED.sub("\n", text)):
        command = PROMPT.sub("", code["text"]).strip()
        first, _, rest = command.partition(" ")
        if rest.strip() and PROGRAM.fullmatch(first) and not rest.lstrip().startswith(("=", ":")):
            yield command


def _stands_in(step: str, source: str) -> bool:
    pieces: Sequence[str] = [fold(piece).casefold() for piece in OPEN.split(step)]
    whole = [piece for piece in pieces if len(piece) >= MIN_PIECE_CHARS] or [fold(step).casefold()]
    return all(piece in source for piece in whole)
