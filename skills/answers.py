"""What a run comes to, in the shape that programs rely on; API and commands give the same answer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mirix.shapes import as_dict, as_list, as_numbers, as_texts
from mirix.tenants.owners import Owner
from mirix.tenants.usage import tokens_left
from skills.distillation import has_model
from skills.dream import Plan, tally_of
from skills.models import AutoDreamRun, RunState
from skills.selectors.runs import attempts_of, last_dream_at


def dream_answer(run: AutoDreamRun) -> dict[str, Any]:
    """Return the answer for a run in any state; of one that is not over, what it has done so far."""
    owner = Owner(organization=run.organization, end_user=run.end_user)
    counts = _readable(run.counts or tally_of(owner=owner, run_id=run.pk))
    finished = run.state == RunState.FINISHED
    return _answer(
        success=run.state not in {RunState.FAILED, RunState.INTERRUPTED, RunState.ABANDONED},
        message=_message(run, counts) + _about_rest(run) + _about_model(as_dict(run.parameters)),
        run_id=run.pk,
        state=run.state,
        dry_run=False,
        last_dream_at=run.finished_at if finished else last_dream_at(owner=owner),
        counts=counts,
    )


def dry_run_answer(*, owner: Owner, plan: Plan, model: str = "") -> dict[str, Any]:
    """Return the answer that says what a run would read, and that nothing was done."""
    message = (
        f"Nothing was done. A run would distil {_count(plan.sessions, 'session')} "
        f"with {_count(plan.turns, 'turn')} and {plan.characters:,} characters"
        + (f", for about {plan.tokens:,} tokens" if plan.tokens else "")
        + (f", and evolve skills for about {plan.proposer_tokens:,} tokens." if plan.proposer_tokens else ".")
    )
    left = tokens_left(organization=owner.organization) if plan.tokens or plan.proposer_tokens else None
    if left is not None:
        message += f" Today {left:,} are left of the organization's budget."
    return _answer(
        success=True,
        message=message + _about_model({"model": model}),
        run_id=None,
        state=None,
        dry_run=True,
        last_dream_at=last_dream_at(owner=owner),
        counts={},
    ) | {"would_distil": asdict(plan)}


def session_results(run: AutoDreamRun) -> list[dict[str, Any]]:
    """Return what became of each session that a run read, in the order in which they were done."""
    return [
        {
            "session_id": attempt.session.session_id,
            "verdict": attempt.verdict,
            "experiences": attempt.experience_count,
            "error": attempt.error,
        }
        for attempt in attempts_of(run=run)
    ]


def _readable(counts: object) -> dict[str, Any]:
    """Return all that a run counts, of whatever is stored about it."""
    found = as_dict(counts)
    sessions = dict.fromkeys(("distilled", "empty", "retry", "dead"), 0) | as_numbers(found.get("sessions"))
    return {
        "sessions": sessions,
        "experiences": as_numbers(found).get("experiences", 0),
        **{name: as_texts(found.get(name)) for name in ("created", "edited", "proposals")},
    }


def _answer(*, counts: dict[str, Any], **head: Any) -> dict[str, Any]:
    created, edited = counts.get("created", []), counts.get("edited", [])
    return head | {
        # A span of dates, removals and merges belong to the original's other modes.
        "start_date": None,
        "end_date": None,
        "processed": {
            "procedural": {
                "total": counts.get("experiences", 0),
                "removed": 0,
                "merged": 0,
                "conflicts_resolved": 0,
            }
        },
        "skills_changed": len(created) + len(edited),
        "changes": {"created": created, "edited": edited, "deleted": []},
        "proposals": counts.get("proposals", []),
        "sessions": {
            name: counts.get("sessions", {}).get(name, 0)
            for name in ("distilled", "empty", "retry", "dead", "deferred")
        },
    }


def _message(run: AutoDreamRun, counts: dict[str, Any]) -> str:
    match run.state:
        case RunState.QUEUED:
            return "The run waits for a worker."
        case RunState.RUNNING:
            return f"The run is going on. So far: {_summary(counts)}"
        case RunState.FAILED:
            reason = run.error.partition(": ")[0].rstrip(".")
            return f"The run failed ({reason}); what it had stored is kept. {_summary(counts)}"
        case RunState.INTERRUPTED:
            return f"The run was interrupted; the next one goes on from there. {_summary(counts)}"
        case RunState.ABANDONED:
            return f"The run's process died; what it had stored is kept. {_summary(counts)}"
    return _summary(counts)


def _summary(counts: dict[str, Any]) -> str:
    sessions = counts["sessions"]
    read = sessions["distilled"] + sessions["empty"]
    parts = [
        f"{_count(read, 'session')} distilled into {_count(counts['experiences'], 'experience')}"
        if read
        else "no session distilled",
        f"{sessions['retry']} to be tried again" if sessions["retry"] else "",
        f"{sessions['dead']} given up" if sessions["dead"] else "",
        f"{sessions['deferred']} deferred" if sessions.get("deferred") else "",
        f"{_count(len(counts['created']) + len(counts['edited']), 'skill')} changed"
        if counts["created"] or counts["edited"]
        else "",
        f"{_count(len(counts['proposals']), 'proposal')} waiting for review" if counts["proposals"] else "",
    ]
    text = ", ".join(filter(None, parts))
    return f"{text[0].upper()}{text[1:]}."


def _about_rest(run: AutoDreamRun) -> str:
    """Say why sessions were deferred, and until when."""
    notes = [as_dict(note) for note in as_list(run.notes)]
    resting = [note for note in notes if note.keys() >= {"deferred", "until", "reason"}]
    return "".join(f" Deferred until {note['until']}: {note['reason']}" for note in resting)


def _about_model(parameters: dict[str, Any]) -> str:
    """Say so where the model that was asked for is of no use."""
    model = parameters.get("model", "")
    return (
        "" if not model or has_model() else f" The model {model!r} was not used: this run distils by rules."
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
