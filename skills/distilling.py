"""The first half of a run: its sessions on their way to the distiller and back, within what may be spent.

An answer is not lost because the database is restarted just then: each step waits for it to come back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime

from django.utils import timezone

from mirix.tenants.usage import next_day
from skills.asking import Asking, Stopped
from skills.distillation.types import Distiller
from skills.lessons import Answer, Reading, SessionOutcome, look_around, read, record
from skills.resting import ENDPOINT_PAUSE, count_no_failure, rest, rest_all, rest_of
from skills.runs import RunClaim
from skills.spending import Spending

FAILURES_TO_TELL = 2
"""Sessions at which an endpoint must fail in one run, and answer about none, to count as down."""
FAILURES_TO_STOP = 6
"""Sessions at which it must fail one after the other to count as down whatever it answered before: no more
are asked about."""


class Distilling:
    """Distils sessions for a run; what may not be asked now rests, and the run's notes say why."""

    def __init__(
        self,
        *,
        claim: RunClaim,
        distiller: Distiller,
        tell: Callable[[SessionOutcome], None],
        should_stop: Callable[[], bool],
        tend: Callable[[], None],
    ) -> None:
        self._claim = claim
        self._distiller = distiller
        self._tell = tell
        self._should_stop = should_stop
        self._tend = tend
        self._spending = Spending(claim)
        self._is_over = False
        self._failed: list[str] = []
        """Sessions at which the endpoint failed since its last answer, for a reason that may be its own."""
        self._is_answering = False

    def distil(self, session_pks: Sequence[str]) -> None:
        """Distil these sessions. Raises `LostRun`, and `Stopped` once all answers on their way are stored."""
        self._asking = Asking(
            self._distiller,
            session_pks,
            read=self._read,
            heard=self._hear,
            should_stop=self._should_stop,
            tend=self._tend,
        )
        with closing(self._spending), closing(self._asking.answers()) as answers:
            try:
                for reading, answer in answers:
                    self._store(reading, answer)
            except Stopped:
                self._judge_failures()
                raise
            self._judge_failures()

    def _read(self, session_pk: str) -> Reading | None:
        """Return a session that may be asked about now; None where it is gone, or rests."""
        reading = self._claim.lasting(lambda: read(self._claim.owner, session_pk))
        if reading is None:
            return None
        tokens = self._distiller.estimate(
            characters=reading.characters, octets=reading.octets, turns=len(reading.turns)
        )
        refusal = self._claim.lasting(lambda: self._spending.refusal(session_pk, tokens))
        if refusal is None:
            if not self._distiller.asks_model:
                return reading
            return self._claim.lasting(lambda: look_around(self._claim.owner, reading))
        if refusal.is_of_session:
            reason = refusal.reason
            self._claim.lasting(
                lambda: rest(claim=self._claim, session_pk=session_pk, until=next_day(), reason=reason)
            )
        else:
            self._no_more(until=next_day(), reason=refusal.reason)
        return None

    def _hear(self, reading: Reading, answer: Answer) -> None:
        self._claim.lasting(lambda: self._spending.spent(reading, answer))

    def _store(self, reading: Reading, answer: Answer) -> None:
        outcome = self._claim.lasting(
            lambda: record(claim=self._claim, distiller=self._distiller, reading=reading, answer=answer)
        )
        if outcome is not None:
            self._tell(outcome)
        if answer.is_doubtful:
            self._failed.append(reading.session.pk)
            if len(self._failed) >= FAILURES_TO_STOP:
                self._no_more(
                    until=timezone.now() + rest_of(answer.reply),
                    reason=f"The model's endpoint fails at one session after the other. {answer.reply.error}",
                )
        elif answer.reply.calls and not answer.is_endpoints_fault:
            self._is_answering = True
            self._failed.clear()
        if answer.is_endpoints_fault:
            self._no_more(
                until=timezone.now() + rest_of(answer.reply),
                reason=f"The model's endpoint cannot be asked now. {answer.reply.error}",
            )

    def _judge_failures(self) -> None:
        """Hold it against no session that the endpoint failed at several and answered about none since."""
        if len(self._failed) < (FAILURES_TO_STOP if self._is_answering else FAILURES_TO_TELL):
            return
        failed = self._failed
        # Where they are the cause after all, others shall come before them next time.
        pause = 2 * ENDPOINT_PAUSE if self._is_over else ENDPOINT_PAUSE
        self._claim.lasting(lambda: count_no_failure(claim=self._claim, session_pks=failed, pause=pause))

    def _no_more(self, *, until: datetime, reason: str) -> None:
        """Ask about nothing more: all that wait rest, but for those that are on their way."""
        if self._is_over:
            return
        self._is_over = True
        self._asking.no_more()
        besides = self._asking.on_their_way
        self._claim.lasting(lambda: rest_all(claim=self._claim, until=until, reason=reason, besides=besides))
