"""The worker's door: runs that wait for it, and regular looks at what was lost or is due."""

from __future__ import annotations

import logging

from procrastinate import JobContext
from procrastinate.contrib.django import app

from mirix.llm.embeddings import EmbeddingFailed
from skills import triggers, unasked
from skills.dream import Stopped, dream
from skills.models import AutoDreamRun
from skills.runs import LostRun, OwnerBusy, RunOver, claim_run
from skills.search import embedding

logger = logging.getLogger(__name__)


@app.task(name=triggers.RUN_DREAM, queue=triggers.QUEUE, pass_context=True)
def run_dream(context: JobContext, run_id: str) -> None:
    """Do a queued run, or go on with one whose worker died.

    A job may run twice and late: what decides is the claim on the row. A run that fails has its reason in its
    row, and fails the job too.
    """
    try:
        claim = claim_run(run_id=run_id)
    except (OwnerBusy, RunOver, AutoDreamRun.DoesNotExist) as error:
        # A waiting run stays queued, and `recover_runs` makes its job anew.
        logger.info("Nothing to do for %s: %s", run_id, error)
        return
    try:
        dream(claim=claim, should_stop=context.should_abort)
    except (LostRun, Stopped) as error:
        logger.info("%s goes on elsewhere: %s", run_id, type(error).__name__)
    else:
        triggers.go_on(owner=claim.owner)  # one may have waited, or more be sealed than one run takes


@app.periodic(cron="* * * * * */10")
@app.task(name="skills.recover_runs", queue=triggers.QUEUE, queueing_lock="skills.recover_runs")
def recover_runs(timestamp: int) -> None:
    """Take over what a dead process left."""
    if recovered := triggers.recover():
        logger.info("%d lost runs were taken care of", recovered)


@app.periodic(cron="* * * * *")
@app.task(name="skills.trigger_runs", queue=triggers.QUEUE, queueing_lock="skills.trigger_runs")
def trigger_runs(timestamp: int) -> None:
    """Start the runs that are due although nothing was sealed just now."""
    if started := triggers.trigger_all_due():
        logger.info("%d runs were due", started)


@app.periodic(cron="23 * * * *")
@app.task(name="skills.trigger_unasked", queue=triggers.QUEUE, queueing_lock="skills.trigger_unasked")
def trigger_unasked(timestamp: int) -> None:
    """Start runs for lessons that no model was asked about for a day."""
    if started := unasked.trigger_unasked():
        logger.info("%d runs go on with lessons that no model was asked about", started)


@app.task(name=embedding.EMBED_SKILLS, queue=embedding.QUEUE)
def embed_skills(skill_ids: list[str]) -> None:
    """Embed skills that were just published; where the endpoint fails, the regular look does it later."""
    try:
        embedding.embed_skills(skill_ids)
    except EmbeddingFailed as error:
        logger.warning("%d skills wait for their embedding: %s", len(skill_ids), error.reason)


@app.periodic(cron="* * * * *")
@app.task(
    name="skills.embed_missing",
    queue=embedding.QUEUE,
    queueing_lock="skills.embed_missing",
    lock="skills.embed_missing",
    pass_context=True,
)
def embed_missing(context: JobContext, timestamp: int) -> None:
    """Embed what has no vector of the present model, and of its present text."""
    try:
        done = embedding.embed_missing(should_stop=context.should_abort)
    except EmbeddingFailed as error:
        logger.warning("Embedding rests until the next minute: %s", error.reason)
    else:
        if done.stored:
            logger.info("%d skills were embedded", done.stored)
