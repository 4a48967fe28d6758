"""Acts on many proposals and skills at once: each row is a decision of its own, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.http import HttpRequest

from mirix.admin_bulk import Bulk, BulkAdmin, Refused
from mirix.shapes import as_texts
from mirix.tenants.selectors import Effective, effective
from skills.admin.columns import plus_minus
from skills.admin.editing import user_of
from skills.admin.forms import ReasonForm
from skills.admin.queue import deciding_ids
from skills.content import next_patch
from skills.models import RevisionAction, RevisionState, Skill, SkillRevision, SkillStatus
from skills.review.diffs import changed_words, field_diffs
from skills.review.errors import ReviewError
from skills.review.forecast import Forecast, approval_of, lapses, with_what_decides
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
    ahead = _forecasts(request)

    def decide(revision: SkillRevision) -> str:
        skill = approve(revision=revision, decided_by=user_of(request))
        out_of_use = "" if skill.status == SkillStatus.ACTIVE else f"; the skill stays {skill.status}"
        merged = f" “{revision.merged_from.name}” is archived." if revision.merged_from else ""
        return f"Published as {skill.version}{out_of_use}.{merged}"

    return Bulk(
        verb="Approve",
        past="approved",
        noun="proposal",
        text="Read each one first.",
        columns=_columns(ahead),
        will=lambda revision: _of_approval(revision, ahead(revision)),
        refusal=lambda revision: _decided(revision) or ahead(revision).refusal,
        perform=lambda rows, sent: admin.each(request, rows, decide, log="Approved"),
        title=attrgetter("name"),
        fetched=with_what_decides,
    )


def rejecting(admin: DecidingAdmin, request: HttpRequest) -> Bulk:
    """Return the act of turning proposals down, all for one reason."""

    def perform(rows: Sequence[SkillRevision], sent: dict[str, Any]) -> dict[str, str]:
        def decide(revision: SkillRevision) -> str:
            found = reject(revision=revision, decided_by=user_of(request), reason=sent["reason"])
            is_rejected = found.state == RevisionState.REJECTED
            return "Rejected." if is_rejected else "Lapsed: its skill says something else by now."

        return admin.each(request, rows, decide, log="Rejected")

    def will(revision: SkillRevision) -> str:
        if lapses(revision):
            return "Lapses: its skill says something else by now. Its evidence may propose anew."
        return "Rejected: its evidence will not propose it again."

    return Bulk(
        verb="Reject",
        past="rejected",
        noun="proposal",
        text="All for the one reason that you give below.",
        columns=_columns(_forecasts(request)),
        will=will,
        refusal=_decided,
        perform=perform,
        form=ReasonForm,
        title=attrgetter("name"),
        fetched=with_what_decides,
    )


def _forecasts(request: HttpRequest) -> Callable[[SkillRevision], Forecast]:
    """Return what tells of a proposal what approving it would do; settings are read once per organization."""
    settings: dict[str, Effective] = {}
    found: dict[str, Forecast] = {}

    def ahead(revision: SkillRevision) -> Forecast:
        if revision.organization_id not in settings:
            settings[revision.organization_id] = effective(revision.organization)
        if revision.pk not in found:
            chosen = settings[revision.organization_id]
            found[revision.pk] = approval_of(revision, decided_by=user_of(request), chosen=chosen)
        return found[revision.pk]

    return ahead


def _columns(ahead: Callable[[SkillRevision], Forecast]) -> dict[str, Callable[[Any], str]]:
    def words(revision: SkillRevision) -> str:
        if _decided(revision):
            return ""
        return plus_minus(*changed_words(field_diffs(ahead(revision).before, ahead(revision).after)))

    return {"Action": _action, "Words": words, "To watch": _to_watch}


def _action(revision: SkillRevision) -> str:
    skill = revision.skill
    if skill is None:
        return f"New {revision.get_entry_type_display().lower()}"
    if revision.merged_from:
        return f"Merge of “{revision.merged_from.name}” into {skill.version}"
    return f"{revision.get_action_display()} of {skill.version}"


def _of_approval(revision: SkillRevision, ahead: Forecast) -> str:
    said = [f"Published as {ahead.version}."]
    skill = revision.skill
    if skill is not None and skill.status != SkillStatus.ACTIVE:
        restores = revision.action == RevisionAction.RESTORE
        said.append("The skill comes into use again." if restores else f"The skill stays {skill.status}.")
    else:
        said.append("Agents get it with their next search.")
    if skill is not None and ahead.is_rebased:
        said.append(f"Its change was made before {skill.version}, fits that, and goes on top of it.")
    if revision.merged_from:
        said.append(f"“{revision.merged_from.name}” is archived, and what waits for it lapses.")
    return " ".join(said)


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
        columns={"Status": lambda skill: f"{skill.get_status_display()}, {skill.version}"},
        will=lambda skill: f"{DONE[act].capitalize()}, as {next_patch(skill.version)}.",
        refusal=lambda skill: "" if act in moves_from(skill.status) else f"It {MOVES[act].refusal}.",
        perform=perform,
        form=ReasonForm,
    )


def _to_watch(revision: Any) -> str:
    found = [RISK_LABELS.get(flag, flag) for flag in as_texts(revision.risk_flags)]
    if revision.merged_from:
        found.append(f"Approving it also archives “{revision.merged_from.name}”")
    return "; ".join(found) or NOTHING_TO_WATCH


def _decided(revision: SkillRevision) -> str:
    return "" if revision.state == RevisionState.PROPOSED else DECIDED
