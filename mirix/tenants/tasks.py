"""The worker's care for what is stored of tokens."""

from __future__ import annotations

import logging

from procrastinate.contrib.django import app

from mirix.tenants import tokens

logger = logging.getLogger(__name__)


@app.periodic(cron="23 * * * *")
@app.task(name="tenants.forget_expired_tokens", queue="care", queueing_lock="tenants.forget_expired_tokens")
def forget_expired_tokens(timestamp: int) -> None:
    """Delete the rows of expired tokens."""
    if deleted := tokens.forget_expired():
        logger.info("%d rows of expired tokens were deleted", deleted)
