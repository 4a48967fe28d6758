"""The worker's door: the care for what is stored of tokens, and notifications."""

from __future__ import annotations

import logging

from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from mirix.tenants import erasure, notifications, tokens

logger = logging.getLogger(__name__)


@app.periodic(cron="23 * * * *")
@app.task(name="tenants.forget_expired_tokens", queue="care", queueing_lock="tenants.forget_expired_tokens")
def forget_expired_tokens(timestamp: int) -> None:
    """Delete the rows of expired tokens."""
    if deleted := tokens.forget_expired():
        logger.info("%d rows of expired tokens were deleted", deleted)


@app.periodic(cron="*/5 * * * *")
@app.task(name="tenants.notify", queue=notifications.QUEUE, queueing_lock="tenants.notify")
def notify(timestamp: int) -> None:
    """Make the notifications that are due, and have all that wait sent."""
    made = notifications.make_due()
    started = notifications.start_due()
    notifications.remove_old()
    if started:
        logger.info("%d notifications made, %d on their way", len(made), started)


@app.task(name=notifications.DELIVER, queue=notifications.QUEUE)
def deliver_notification(notification_id: str, attempt: int) -> None:
    """Send one notification; a job that comes twice or late finds its attempt over."""
    row = notifications.deliver(notification_id=notification_id, attempt=attempt)
    if row is not None and row.error:
        logger.warning("%s was not sent at attempt %d; its row says why", row.pk, row.attempts)


@app.task(name=erasure.FINISH, queue=erasure.QUEUE, retry=RetryStrategy(max_attempts=30, wait=60))
def finish_erasure(tables: list[str]) -> None:
    """Drop what is kept of erased rows outside of them; tried again while Redis is out of reach."""
    if not erasure.finish(tables=tables):
        raise erasure.Unfinished
