"""Cells of lists. Everything in them was written by models or callers, so `format_html` alone builds them."""

from __future__ import annotations

from django.utils.html import format_html


def plus_minus(added: int, removed: int) -> str:
    """Return the size of a change in words."""
    plus = format_html('<span class="mx-plus">+{}</span>', added)
    return format_html('{} <span class="mx-minus">−{}</span>', plus, removed) if removed else plus


def per_cent(share: float) -> str:
    """Return a share of one in per cent."""
    return f"{round(share * 100)} %"
