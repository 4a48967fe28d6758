"""What became of every failed call of a session. Pure.

Each failure has exactly one outcome, decided in this order:

- `CHANGED`: the first later success of the same tool that can be another try at it has other arguments;
- `RETRIED`: that success has the same arguments;
- `REPEATED`: no such success, and the very same call had failed before;
- `GIVEN_UP`: no such success, and the call had not been made before.

So a call that fails three times unchanged and never succeeds is given up once and repeated twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, pairwise

from skills.distillation.calls import Call
from skills.distillation.changes import is_related

MAX_SAME_FAILURES = 3
"""A third identical failure shows a loop; a fourth would say nothing new and gives no lesson."""


NO_STEP = {"think", "calculate", "finish", "submit", "final_answer", "done", "exit", "attempt_completion"}
"""Tools that change and find out nothing: no step of a procedure, no way out of a failure."""
LOOK_AHEAD = 10
"""How many later successes of the tool are looked at; who tries again does so soon."""


class Outcome(StrEnum):
    """What became of a failed call."""

    CHANGED = "changed_arguments"
    RETRIED = "retried_call"
    REPEATED = "repeated_call"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, kw_only=True)
class Struggle:
    """One failed call and what followed it."""

    outcome: Outcome
    call: Call
    same_failures: int
    """How often this very call had failed by now, itself included: 1 for the first time."""
    total_same: int
    """How often this very call fails in the whole session without a success between."""
    attempts: int
    """Failures from the first of this series to the last before the success or the end."""
    fix: Call | None = None
    """The success, for `CHANGED` and `RETRIED`."""
    next_try: Call | None = None
    """The next call of the tool, where it is not the fix and failed as well."""
    overcome: tuple[Call, Call] | None = None
    """The last attempt that met this very complaint, and the one after it, which met another or none."""
    is_last_of_message: bool = True
    """Whether no later failure of the series says the same."""
    between: tuple[str, ...] = ()
    """Other tools that succeeded between this call and the fix, in order, each once."""
    other_success: Call | None = None
    """The first later success of the tool where none can be another try at this call."""
    instead: Call | None = None
    """The first call of another tool after the last failure of the series, where nothing fixed it."""

    @property
    def learned_at(self) -> int:
        """The seq at which this was known: of the success, else of the failure itself."""
        return self.fix.answered_at if self.fix else self.call.answered_at


def struggles(calls: Sequence[Call]) -> list[Struggle]:
    """Return every failed call with what became of it, in order; `calls` as `pair_calls` returns them."""
    found = []
    for call in calls:
        if call.failure is None:
            continue
        fix = _fix(calls, call)
        series = _series(calls, call, fix)
        later = [other for other in series if other.position > call.position]
        same = [other for other in series if other.key == call.key]
        so_far = 1 + same.index(call)
        found.append(
            Struggle(
                outcome=_outcome(call, fix, so_far),
                call=call,
                same_failures=so_far,
                total_same=len(same),
                attempts=len(series),
                fix=fix,
                next_try=later[0] if later else None,
                overcome=_overcome([call, *later, *([fix] if fix else [])]),
                is_last_of_message=all(other.message != call.message for other in later),
                between=_between(calls, call, fix),
                other_success=None if fix else next(_successes(calls, call), None),
                instead=None if fix else _instead(calls, series[-1]),
            )
        )
    return found


def _outcome(call: Call, fix: Call | None, so_far: int) -> Outcome:
    if fix is not None:
        return Outcome.RETRIED if fix.key == call.key else Outcome.CHANGED
    return Outcome.REPEATED if so_far > 1 else Outcome.GIVEN_UP


def _fix(calls: Sequence[Call], failed: Call) -> Call | None:
    """Return the first later success that can be another try at a failed call."""
    for call in islice(_successes(calls, failed), LOOK_AHEAD):
        known = call.arguments is not None and failed.arguments is not None
        if known and is_related(failed, call):
            return call
    return None


def _successes(calls: Sequence[Call], failed: Call) -> Iterator[Call]:
    later = calls[failed.position + 1 :]
    return (call for call in later if call.tool == failed.tool and call.succeeded)


def _series(calls: Sequence[Call], failed: Call, fix: Call | None) -> list[Call]:
    """Return the failures around one that share its tool and its fix: one struggle in several attempts."""
    start = failed.position
    while start > 0 and not (calls[start - 1].tool == failed.tool and calls[start - 1].succeeded):
        start -= 1
    end = fix.position if fix else len(calls)
    return [call for call in calls[start:end] if call.tool == failed.tool and call.failure is not None]


def _overcome(attempts: Sequence[Call]) -> tuple[Call, Call] | None:
    """Return the first two neighbours of which the second no longer meets the complaint of the first."""
    return next(((one, other) for one, other in pairwise(attempts) if other.message != one.message), None)


def _between(calls: Sequence[Call], call: Call, fix: Call | None) -> tuple[str, ...]:
    if fix is None:
        return ()
    span = calls[call.position + 1 : fix.position]
    return tuple(dict.fromkeys(other.tool for other in span if other.tool != call.tool and other.succeeded))


def _instead(calls: Sequence[Call], last: Call) -> Call | None:
    later = (call for call in calls[last.position + 1 :] if call.tool != last.tool)
    return next((call for call in later if call.tool.casefold() not in NO_STEP), None)
