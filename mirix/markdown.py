"""Markdown as people read it, from text that nobody trusts. Pure.

What would hide something from its reader, be followed or be fetched is not rendered and stays as it was
written: HTML and comments, links, images and where they lead, entities, backslashes. So the result holds
elements of our own alone, without an address, and every letter and digit of the source. Where the form would
leave one out, as deep nesting and surplus cells do, the whole text is shown as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from mirix.phrases import cut

MAX_CHARS = 20_000
"""A longer text is shown as it was written: parsing what is made to be slow would take a second."""
AS_WRITTEN = [
    *("html_inline", "html_block", "link", "image", "autolink"),
    *("reference", "entity", "escape", "lheading"),
]
FIRST_HEADING, LAST_HEADING = 4, 6
"""What stands on a page under its own headings begins below them."""

Mark = Callable[[str], str]
"""Returns a phrase, which is text, as marked HTML."""


class _Renderer(RendererHTML):
    """Writes text through one gate, which escapes it and marks phrases."""

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _shown(tokens[idx].content, env)

    def code_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<code>{_shown(tokens[idx].content, env)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f'<pre class="mx-code">{_shown(tokens[idx].content, env)}</pre>'

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        language = tokens[idx].info.strip()
        head = f'<div class="mx-label">{_shown(language, env)}</div>' if language else ""
        return head + self.code_block(tokens, idx, options, env)

    def heading_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f'<{_heading(tokens[idx])} class="mx-md__{tokens[idx].tag}">'

    def heading_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"</{_heading(tokens[idx])}>"


def render(text: str, *, phrases: Sequence[str] = (), mark: Mark = escape) -> str:
    """Return a text as HTML; where one of `phrases` stands, it is what `mark` makes of it."""
    env = {"phrases": phrases, "mark": mark}
    tokens = _PARSER.parse(text, env) if len(text) <= MAX_CHARS else []
    if _letters(text) != _letters("".join(_said(tokens))):
        return f'<pre class="mx-code">{_shown(text, env)}</pre>'
    html: str = _PARSER.renderer.render(tokens, _PARSER.options, env)
    return html


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _said(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield what the rendered tokens say, the numbers of items included."""
    for token in tokens:
        if token.children is not None:
            yield from _said(token.children)
        elif token.type in ("list_item_open", "fence"):
            yield token.info
        if token.children is None:
            yield token.content


def _shown(text: str, env: Any) -> str:
    parts = cut(text, env["phrases"])
    return "".join(env["mark"](part) if marked else escape(part) for part, marked in parts)


def _heading(token: Token) -> str:
    return f"h{min(FIRST_HEADING - 1 + int(token.tag[1]), LAST_HEADING)}"


_PARSER = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
_PARSER.enable("table").disable(AS_WRITTEN)
