"""Filters for the admin's pages."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.timesince import timesince

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
