"""The worker's door to intake and sealing."""

from __future__ import annotations

import logging

from procrastinate import JobContext
from procrastinate.contrib.django import app

from conversations import intake, operating, retention, sealing
from mirix.collisions import through_collisions
from mirix.tenants.audit import Actor

logger = logging.getLogger(__name__)


@app.task(name=intake.STORE_TURNS, queue=intake.QUEUE)
def store_turns(intake_id: str) -> None:
    """Store the turns of one accepted request. The job may run twice or late; the record's state decides."""
    intake.store_queued(intake_id=intake_id)


@app.task(name=operating.REPLAY, queue=intake.QUEUE)
def replay(intake_ids: list[str], actor: dict[str, str]) -> None:
    """Replay requests for an operator who did not wait. Those that are stored meanwhile are passed over."""
    operating.replay_by_id(intake_ids=intake_ids, actor=Actor(**actor))


@app.periodic(cron="* * * * *")
@app.task(
    name="conversations.store_overdue",
    queue=intake.QUEUE,
    queueing_lock="conversations.store_overdue",
    pass_context=True,
)
def store_overdue(context: JobContext, timestamp: int) -> None:
    """Store requests whose job died with its worker, failed, or was lost."""
    if done := intake.store_overdue(should_stop=context.should_abort):
        logger.info("%d overdue requests were taken over", done)


@app.periodic(cron="* * * * *")
@app.task(name="conversations.seal_sessions", queue=intake.QUEUE, queueing_lock="conversations.seal_sessions")
def seal_sessions(timestamp: int) -> None:
    """Seal sessions that have been idle for long enough."""
    if sealed := through_collisions(sealing.seal_sessions):
        logger.info("%d sessions were sealed", sealed)


@app.periodic(cron="41 * * * *")
@app.task(name="conversations.prune", queue="care", queueing_lock="conversations.prune", pass_context=True)
def prune(context: JobContext, timestamp: int) -> None:
    """Prune what is due in every organization. Two at once share the work."""
    if gone := retention.prune_all(should_stop=context.should_abort):
        logger.info("%d rows went after their time", gone)
