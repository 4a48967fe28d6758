"""Telling an organization that something waits: by e-mail to its people and by a webhook, off by default.

What waits is counted by `counters`. At most once a day, and only while something waits, an organization gets
one notification by each way it turned on. A notification is a row: it is claimed by a conditional update, so
that of workers at once one sends it, and tried again later when it fails, with the reason in the row. A
worker that dies between sending and noting so sends twice.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from mirix import queue
from mirix.tenants import messages
from mirix.tenants.counters import waiting
from mirix.tenants.models import (
    Channel,
    Membership,
    Notification,
    NotificationState,
    Organization,
    OrganizationSettings,
)
from mirix.tenants.preferences import webhook_host
from mirix.tenants.selectors import deciding_roles, settings_of
from mirix.tenants.webhooks import WebhookError, post, sign
from mirix.text import shorten

DELIVER = "tenants.deliver_notification"
QUEUE = "care"
EVERY = timedelta(days=1)
PAUSES = (1, 5, 30, 120, 360)
"""Minutes after each failed attempt before the next; after the last attempt there is none."""
MAX_ATTEMPTS = len(PAUSES) + 1
KEPT = timedelta(days=90)
LEASE = timedelta(minutes=10)
"""After which an attempt that nobody finished is made again."""


class Undeliverable(Exception):
    """Trying again would not help; the message says why."""


def make_due(*, now: datetime | None = None) -> list[Notification]:
    """Make the notifications of all organizations for which something waits and which had none for a day."""
    now = now or timezone.now()
    due = Q(notified_at=None) | Q(notified_at__lte=now - EVERY)
    wanting = OrganizationSettings.objects.filter(due).exclude(email_digest=False, webhook_url="")
    made = []
    for chosen in wanting.select_related("organization").order_by("pk"):
        if counts := waiting(chosen.organization):
            made += _make(chosen, due, counts, now)
    return made


@transaction.atomic
def _make(chosen: OrganizationSettings, due: Q, counts: dict[str, int], now: datetime) -> list[Notification]:
    """Make the rows unless another worker did since."""
    if not OrganizationSettings.objects.filter(due, pk=chosen.pk).update(notified_at=now):
        return []
    channels = [Channel.EMAIL] if chosen.email_digest else []
    channels += [Channel.WEBHOOK] if chosen.webhook_url else []
    return [
        Notification.objects.create(
            organization=chosen.organization, channel=channel, counts=counts, next_attempt_at=now
        )
        for channel in channels
    ]


def start_due(*, now: datetime | None = None) -> int:
    """Queue a job for every notification whose time has come; return how many."""
    started = 0
    for pk in due_ids(now=now):
        with transaction.atomic():
            attempt = claim(notification_id=pk, now=now)
            if attempt is not None:
                queue.defer(DELIVER, queue=QUEUE, notification_id=pk, attempt=attempt)
                started += 1
    return started


def remove_old(*, now: datetime | None = None) -> int:
    """Delete notifications of long ago; return how many."""
    old = Notification.objects.filter(created_at__lt=(now or timezone.now()) - KEPT)
    return old.delete()[0]


def due_ids(*, now: datetime | None = None) -> list[str]:
    """Return the ids of the notifications whose time has come, the longest due first."""
    due = _due(now or timezone.now()).order_by("next_attempt_at", "pk")
    return list(due.values_list("pk", flat=True))


def _due(now: datetime) -> QuerySet[Notification]:
    return Notification.objects.filter(state=NotificationState.WAITING, next_attempt_at__lte=now)


def claim(*, notification_id: str, now: datetime | None = None) -> int | None:
    """Take a notification whose time has come; return the number of this attempt, None if it is not ours.

    One whose last attempt nobody finished has failed.
    """
    now = now or timezone.now()
    due = _due(now).filter(pk=notification_id)
    if due.filter(attempts__gte=MAX_ATTEMPTS).update(
        state=NotificationState.FAILED, error="No attempt came to an end; the log of the worker says why."
    ):
        return None
    with transaction.atomic():
        if not due.update(attempts=F("attempts") + 1, next_attempt_at=now + LEASE):
            return None
        return Notification.objects.values_list("attempts", flat=True).get(pk=notification_id)


def deliver(*, notification_id: str, attempt: int) -> Notification | None:
    """Send a claimed notification and note how it went; None when that attempt is over already."""
    rows = Notification.objects.filter(pk=notification_id, state=NotificationState.WAITING, attempts=attempt)
    notification = rows.select_related("organization").first()
    if notification is None:
        return None
    send = {Channel.EMAIL.value: _send_email, Channel.WEBHOOK.value: _send_webhook}[notification.channel]
    try:
        recipient = send(notification)
    except Undeliverable as error:
        rows.update(state=NotificationState.FAILED, error=str(error))
    except (WebhookError, SMTPException, OSError) as error:
        rows.update(error=_reason(error), **_after_failure(attempt))
    else:
        rows.update(state=NotificationState.SENT, recipient=recipient, sent_at=timezone.now(), error="")
    notification.refresh_from_db()
    return notification


def _after_failure(attempt: int) -> dict[str, str | datetime]:
    if attempt >= MAX_ATTEMPTS:
        return {"state": NotificationState.FAILED}
    return {"next_attempt_at": timezone.now() + timedelta(minutes=PAUSES[attempt - 1])}


def _reason(error: Exception) -> str:
    """Return what a person reads: our own words, or what the mail server said."""
    if isinstance(error, WebhookError):
        return str(error)
    return shorten(f"The mail server: {type(error).__name__}: {error}", 500)


def _send_email(notification: Notification) -> str:
    """Send one mail to all who decide; return how many they are."""
    organization = notification.organization
    if not settings_of(organization=organization).email_digest:
        raise Undeliverable("E-mail was turned off in the meantime.")
    recipients = addresses_of(organization)
    if not recipients:
        raise Undeliverable("No reviewer or administrator has an e-mail address.")
    EmailMessage(
        subject=f"mirix: {messages.title(notification)}",
        body=messages.mail_text(notification),
        bcc=recipients,  # none of them is told the addresses of the others
        headers={"To": "undisclosed-recipients:;", "Auto-Submitted": "auto-generated"},
    ).send()
    return f"{len(recipients)} {'person' if len(recipients) == 1 else 'people'}"


def addresses_of(organization: Organization) -> list[str]:
    """Return the e-mail addresses of those who decide in an organization, in order."""
    deciding = Membership.objects.for_organization(organization).filter(
        role__in=deciding_roles(organization=organization)
    )
    members = deciding.filter(user__is_active=True).exclude(user__email="")
    return sorted(set(members.values_list("user__email", flat=True)))


def _send_webhook(notification: Notification) -> str:
    """Post the counts, signed; return the host they went to."""
    organization = notification.organization
    chosen = settings_of(organization=organization)
    if not chosen.webhook_url:
        raise Undeliverable("The webhook was removed in the meantime.")
    body = messages.webhook_body(notification)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "mirix",
        "X-Mirix-Delivery": notification.pk,
        "X-Mirix-Signature": sign(secret=chosen.webhook_secret, body=body, timestamp=int(time.time())),
    }
    post(url=chosen.webhook_url, body=body, headers=headers)
    return webhook_host(chosen.webhook_url)
