"""Filters for the admin's pages."""

from __future__ import annotations

import json
import re
from collections.abc import ItemsView
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince

from mirix.markdown import render
from mirix.phrases import cut
from mirix.shapes import as_dict, as_texts

register = template.Library()


@register.filter
def ago(moment: datetime | None) -> str:
    """Return how long ago a moment was, in its largest unit."""
    if moment is None:
        return "–"
    now = timezone.now()
    if now - moment < timedelta(minutes=1):
        return "just now"
    return f"{timesince(moment, now, depth=1)} ago"


@register.filter
def plainly(value: Any) -> str:
    """Return a JSON value as people read it: text as it is, everything else as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


ITEM = re.compile(r"\s*(?:[-*]|\d+[.)])\s")
CODE = re.compile(r"(`[^`\n]+`)")
IN_NO_SESSION = "occurs in no supporting session"


@register.filter
def coded(text: str) -> SafeString:
    """Return a text with what stands in backticks set as code; not a character of it is lost."""
    pieces = enumerate(CODE.split(text))  # every second piece is code
    shown = ((format_html("<code>{}</code>", piece) if number % 2 else piece,) for number, piece in pieces)
    return format_html_join("", "{}", shown)


@register.filter
def written(text: str) -> SafeString:
    """Return instructions line by line: headings stand out, items hang, every character shows."""
    return format_html_join(
        "",
        '<span class="mx-line mx-line--{}">{}</span>',
        ((_kind(line), coded(line)) for line in text.split("\n")),
    )


def _kind(line: str) -> str:
    if line.startswith("#"):
        return "heading"
    return "item" if ITEM.match(line) else "plain"


@register.filter
def pairs(value: object) -> ItemsView[str, Any]:
    """Return the keys and values of an object; `value.items` would be those of a key `items`."""
    return as_dict(value).items()


@register.filter
def rendered(text: str, phrases: object = ()) -> SafeString:
    """Return Markdown as it reads; where one of the phrases stands, it is marked as in no session."""
    # All text passes one gate, which escapes it (`mirix.markdown`).
    return mark_safe(render(text, phrases=as_texts(phrases), mark=doubted))  # noqa: S308


@register.filter
def coded_with(text: str, phrases: object = ()) -> SafeString:
    """Return a text as `coded` does; where one of the phrases stands, it is marked as in no session."""
    shown = ((doubted(part) if marked else coded(part),) for part, marked in cut(text, as_texts(phrases)))
    return format_html_join("", "{}", shown)


@register.filter
def doubted(text: str) -> SafeString:
    """Return a text marked as one that no supporting session holds: for the eye, and in words."""
    return format_html(
        '<mark class="mx-doubt" title="{}">{}<span class="mx-doubt__sign" aria-hidden="true">?</span>'
        '<span class="mx-sr"> ({})</span></mark>',
        IN_NO_SESSION,
        text,
        IN_NO_SESSION,
    )
