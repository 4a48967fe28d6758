"""What is kept of a request: its messages as they came, shown safely, and the job that will store them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left, Length
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations.intake import QUEUE, STORE_TURNS
from conversations.models import IntakeRecord

MAX_BODY_CHARS = 400_000
"""A body of more is shown as text, and only its beginning."""
MAX_MESSAGES = 200
MAX_SHOWN_CHARS = 20_000
JOB_STATES = {"todo": "Waiting for the worker", "doing": "The worker is at it", "failed": "Its job failed"}


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A body, ready for the page: messages by index, or the beginning of its text where it is large."""

    size: int
    """Of the whole body as JSON, in characters."""
    messages: list[tuple[int, str, bool]]
    """Index, the message as indented JSON, and whether that was cut."""
    beginning: str = ""
    more: int = 0
    """How many messages are not shown."""


def kept_messages(record: IntakeRecord) -> Kept | None:
    """Return what is kept of a request's body; None where it is gone. A large one stays in the database."""
    text = Cast("body", TextField())
    rows = IntakeRecord.objects.with_owner_of(record).filter(pk=record.pk, body__isnull=False)
    head = rows.values_list(Length(text), Left(text, MAX_SHOWN_CHARS)).first()
    if head is None:
        return None
    size, beginning = head
    if size > MAX_BODY_CHARS:
        return Kept(size=size, messages=[], beginning=beginning)
    body = rows.values_list("body", flat=True).first()
    found = body.get("messages") if isinstance(body, dict) else None
    messages = found if isinstance(found, list) else [body]
    shown = [(index, *_shown(message)) for index, message in enumerate(messages[:MAX_MESSAGES])]
    return Kept(size=size, messages=shown, more=max(0, len(messages) - MAX_MESSAGES))


def _shown(message: Any) -> tuple[str, bool]:
    text = json.dumps(message, ensure_ascii=False, indent=2)
    return text[:MAX_SHOWN_CHARS], len(text) > MAX_SHOWN_CHARS


def job_of(record: IntakeRecord) -> str:
    """Return in words how the job of a request that waits is doing."""
    jobs = ProcrastinateJob.objects.filter(
        queue_name=QUEUE, task_name=STORE_TURNS, args__intake_id=record.pk
    ).order_by("-id")
    status = jobs.values_list("status", flat=True).first()
    return JOB_STATES.get(status or "", "Its job is gone; the worker takes it over within a minute")
