"""Tell organizations what waits for them, without a worker."""

from __future__ import annotations

from typing import Any

from mirix.commands import DataCommand
from mirix.tenants import notifications
from mirix.tenants.models import Notification, NotificationState
from mirix.text import visible_line


class Command(DataCommand):
    """Make the notifications that are due and send all that wait, here and now."""

    help = "Send the notifications that are due; the worker does so by itself every five minutes."

    def handle(self, *args: Any, **options: Any) -> None:
        """Make, send and report; one that fails is tried again by the next call after its pause."""
        made = notifications.make_due()
        tried = [row for pk in notifications.due_ids() if (row := self._send(pk))]
        sent = sum(row.state == NotificationState.SENT for row in tried)
        for row in tried:
            if row.error:
                where = f"{row.get_channel_display()}, {row.organization}"
                self.stderr.write(visible_line(f"{row.pk} ({where}): {row.error}"))
        self.answer(
            {
                "made": len(made),
                "sent": sent,
                "failed": [{"id": row.pk, "error": row.error} for row in tried if row.error],
            },
            f"{len(made)} made, {sent} sent, {len(tried) - sent} not sent.",
        )

    @staticmethod
    def _send(pk: str) -> Notification | None:
        attempt = notifications.claim(notification_id=pk)
        return notifications.deliver(notification_id=pk, attempt=attempt) if attempt else None
