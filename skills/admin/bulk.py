"""Acts on many proposals and skills at once: each row is a decision of its own, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.http import HttpRequest

from mirix.admin_bulk import Bulk, BulkAdmin, Refused
from skills.admin.editing import user_of
from skills.admin.forms import ReasonForm
from skills.admin.queue import deciding_ids
from skills.models import RevisionState, Skill, SkillRevision
from skills.review.errors import ReviewError
from skills.review.history import MOVES, move, moves_from
from skills.review.publishing import approve, reject
from skills.review.risks import RISK_LABELS

DECIDED = "It is decided already."
NOTHING_TO_WATCH = "Nothing"
MEANS = {
    "archive": "No agent finds them from then on; they stay here with their history, and can be restored.",
    "restore": "Agents find them again with their next search.",
    "quarantine": "No agent finds them until somebody has looked into them and releases them.",
    "release": "Agents find them again with their next search.",
}
DONE = {"archive": "archived", "restore": "restored", "quarantine": "quarantined", "release": "released"}
"""By the words of `MOVES`."""


class DecidingAdmin(BulkAdmin):
    """Lists with acts for those who decide."""

    def acting_ids(self, request: HttpRequest) -> list[str] | None:
        """Return the organizations in which the user decides."""
        return deciding_ids(request)

    def each(
        self, request: HttpRequest, rows: Sequence[Any], decide: Callable[[Any], str], *, log: str
    ) -> dict[str, str]:
        """Decide about each row in a transaction of its own; return what came of it, or why nothing did."""
        said: dict[str, str] = {}
        for row in rows:
            try:
                with transaction.atomic():
                    said[row.pk] = decide(row)
                    self.log_change(request, row, log)
            except ReviewError as error:
                said[row.pk] = Refused(error)
            except ObjectDoesNotExist:
                continue  # erased on the way: its line says that it has changed
        return said


def approving(admin: DecidingAdmin, request: HttpRequest) -> Bulk:
    """Return the act of publishing proposals."""

    def decide(revision: SkillRevision) -> str:
        skill = approve(revision=revision, decided_by=user_of(request))
        return f"Published as {skill.version}."

    return Bulk(
        verb="Approve",
        past="approved",
        noun="proposal",
        text="Agents get what they say with their next search. Read each one first.",
        column="To watch",
        about=_to_watch,
        refusal=_decided,
        perform=lambda rows, sent: admin.each(request, rows, decide, log="Approved"),
    )


def rejecting(admin: DecidingAdmin, request: HttpRequest) -> Bulk:
    """Return the act of turning proposals down, all for one reason."""

    def perform(rows: Sequence[SkillRevision], sent: dict[str, Any]) -> dict[str, str]:
        def decide(revision: SkillRevision) -> str:
            found = reject(revision=revision, decided_by=user_of(request), reason=sent["reason"])
            is_rejected = found.state == RevisionState.REJECTED
            return "Rejected." if is_rejected else "Lapsed: its skill says something else by now."

        return admin.each(request, rows, decide, log="Rejected")

    return Bulk(
        verb="Reject",
        past="rejected",
        noun="proposal",
        text="Their evidence will not propose them again.",
        column="To watch",
        about=_to_watch,
        refusal=_decided,
        perform=perform,
        form=ReasonForm,
    )


def moving(admin: DecidingAdmin, request: HttpRequest, act: str) -> Bulk:
    """Return one of the acts that take skills out of use or back, all for one reason."""

    def perform(rows: Sequence[Skill], sent: dict[str, Any]) -> dict[str, str]:
        def decide(skill: Skill) -> str:
            revision = move(skill=skill, act=act, decided_by=user_of(request), reason=sent["reason"])
            return f"{DONE[act].capitalize()}, as {revision.version}."

        return admin.each(request, rows, decide, log=act.capitalize())

    return Bulk(
        verb=act.capitalize(),
        past=DONE[act],
        noun="skill",
        text=MEANS[act],
        column="Status",
        about=lambda skill: f"{skill.get_status_display()}, {skill.version}",
        refusal=lambda skill: "" if act in moves_from(skill.status) else f"It {MOVES[act].refusal}.",
        perform=perform,
        form=ReasonForm,
    )


def _to_watch(revision: Any) -> str:
    found = [RISK_LABELS.get(flag, flag) for flag in revision.risk_flags]
    if revision.takes_in:
        found.append(f"Approving it also archives “{revision.takes_in}”")
    return "; ".join(found) or NOTHING_TO_WATCH


def _decided(revision: SkillRevision) -> str:
    return "" if revision.state == RevisionState.PROPOSED else DECIDED
