"""What a transcript may hold that tries to pass for more than a transcript. Pure.

Two things are done about it: it is named, as a flag, and what could be taken for the frame that a transcript
is shown in is made harmless. Text that looks like the frame keeps its length: the bracket that opens it
becomes a round one.
"""

from __future__ import annotations

import re

from mirix.text import HIDDEN

FLAGS: dict[str, str] = {
    "hidden_characters": "Characters that cannot be seen or that turn the reading direction",
    "closing_fence": "Text that looks like the end of the transcript",
    "fake_turn": "A turn that looks as if somebody else had spoken",
    "control_tokens": "Markup by which models tell roles apart",
    "instructions_in_tool_output": "Output of a tool that tells its reader what to do",
}
"""Each flag with what it means, in the order in which they are told."""

# Terminals write escapes and web pages soft hyphens: those hide nothing from a reader.
_COMMON = re.compile("[\x00-\x1f\x7f-\x9f\xad]")
# What a model may read as an ordinary character: full width, small forms, other angle brackets.
_LIKE_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | str.maketrans(
    {"‹": "<", "〈": "<", "⟨": "<", "《": "<", "«": "<", "﹤": "<", "›": ">", "〉": ">", "⟩": ">", "》": ">"}
    | {"»": ">", "﹥": ">", "［": "[", "【": "[", "〔": "[", "∕": "/", "⁄": "/", "｜": "|", "│": "|"}
)

_FENCE = re.compile(r"<(?=\s{0,20}/?\s{0,20}(?:transcript|context|new[\s_-]?turns)\b)", re.IGNORECASE)
_CLOSING = re.compile(
    r"<\s{0,20}/\s{0,20}(?:transcript|context|new[\s_-]?turns|conversation|session)\b", re.IGNORECASE
)
_HEADER = re.compile(r"\[(?=\s*(?:turn\s*#?\d|\d[\d,]*\s+(?:turns?|characters)\s+left\s+out))", re.IGNORECASE)
_FAKE_HEADER = re.compile(r"\[\s*turn\s*#?\d", re.IGNORECASE)
_TOKENS = re.compile(
    r"<(?=\|[\w ]{1,40}\|>)|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS)\])|<(?=<\/?SYS>>)"
    r"|<(?=/?(?:start|end)_of_turn>)"
)
_SPOKEN = re.compile(
    r"^[ \t]*(?:[#*>=\-|\[(<]{1,6}[ \t]*)?(?:user|human|system|assistant|developer)\b"
    r"[ \t]*[\])>*]{0,3}[ \t]*:[ \t*]*(?:\w[^\n]{0,40}?[ ,]){2}\w",
    re.IGNORECASE | re.MULTILINE,
)
_AS_MESSAGE = re.compile(
    r"[\"']role\\*[\"']\s*:\s*\\*[\"'](?:user|system|assistant|developer)\\*[\"']\s*,\s*\\*[\"']content\b"
)
_ABOVE = (
    r"(?:(?:all|any|the|your|these|those|everything)\s+){0,3}(?:of\s+)?(?:(?:the|your|my)\s+)?"
    r"(?:above|previous|prior|earlier|preceding|foregoing|existing|system|instructions?|rules|guidelines"
    r"|prompt|directions|that\s+(?:came|was|were)\s+before)\b"
)
_ORDERS = re.compile(
    rf"\b(?:ignore|disregard|forget|override|bypass|overrule)\s+{_ABOVE}"
    r"|\b(?:new|updated|revised|important|urgent|real|actual|secret)\s+(?:system\s+)?(?:instructions?|orders|prompt)\s*"
    r"(?:[:\-–—]|for\s+(?:the\s+)?(?:ai|assistant|agent|model)\b|follow)"
    r"|\b(?:note|message|instructions?|attention)\s*(?:to|for)\s+(?:the\s+|any\s+|all\s+)?(?:ai|llm|language\s+model"
    r"|assistants?|agents?|models?)\b"
    r"|\byou\s+(?:are|must|should|will|shall)\s+(?:now|henceforth|from\s+now\s+on)\b|\bfrom\s+now\s+on\b"
    r"|\b(?:do\s+not|don't|never)\s+(?:tell|inform|mention\s+(?:this|it)\s+to|reveal\s+(?:this|it)\s+to)\s+"
    r"(?:the\s+|your\s+)?(?:user|customer|human|owner|operator)\b"
    r"|\b(?:as|for)\s+(?:an?\s+)?(?:ai|llm|language\s+model)\b.{0,40}\b(?:must|should|always|never)\b"
    r"|\b(?:record|remember|store|save|learn|memori[sz]e)\s+(?:this|the\s+following|that)\s+(?:as\s+)?"
    r"(?:an?\s+|the\s+|your\s+)?(?:new\s+)?(?:rule|skill|lesson|instruction|memory|best\s+practice)\b",
    re.IGNORECASE,
)


def attacks_in(text: str, *, role: str) -> set[str]:
    """Return the flags that one turn's own words raise."""
    found = set()
    if has_invisible(text):
        found.add("hidden_characters")
    plain = like_ascii(without_invisible(text))
    if _CLOSING.search(plain):
        found.add("closing_fence")
    if _TOKENS.search(plain):
        found.add("control_tokens")
    if _FAKE_HEADER.search(plain):
        found.add("fake_turn")
    if role == "tool":
        if _SPOKEN.search(plain) or _AS_MESSAGE.search(plain):
            found.add("fake_turn")
        if _ORDERS.search(plain):
            found.add("instructions_in_tool_output")
    return found


def has_invisible(text: str) -> bool:
    """Whether a text holds characters that a reader cannot see though a model can."""
    if text.isascii():
        return False
    return bool(HIDDEN.search(_COMMON.sub("", text.removeprefix("\ufeff"))))


def without_invisible(text: str) -> str:
    """Return a text without the characters that cannot be seen; tabs and line ends stay."""
    return HIDDEN.sub("", text)


def like_ascii(text: str) -> str:
    """Return a text of the same length in which characters that look like ASCII are ASCII."""
    return text if text.isascii() else text.translate(_LIKE_ASCII)


def harmless(text: str) -> str:
    """Return a text of the same length in which nothing looks like the frame of a transcript."""
    plain = like_ascii(text)
    places = {match.start() for form in (_FENCE, _HEADER, _TOKENS) for match in form.finditer(plain)}
    if not places:
        return text
    characters = list(text)
    for place in places:
        characters[place] = "("
    return "".join(characters)
