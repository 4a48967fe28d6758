"""The page on which a person edits a skill or a proposal, and what it shows where another was faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from mirix.admin_base import roles
from mirix.admin_forms import ManagedAdmin
from mirix.tenants.principal import DECIDING_ROLES, OPERATING_ROLES
from skills.admin.changes import FIELD_LABELS
from skills.admin.forms import EditForm
from skills.admin.queue import may_decide
from skills.content import Content
from skills.models import RevisionState, Skill, SkillRevision
from skills.review.diffs import field_diffs
from skills.review.editing import Outcome, edit_proposal, edit_skill, latest_of, outcome_of_edit
from skills.review.errors import EditConflict, InvalidContent, ReasonRequired, ReviewError
from skills.review.rebasing import merged

WRITING_ROLES = DECIDING_ROLES | OPERATING_ROLES
WHAT_BECOMES = {
    Outcome.PUBLISHED: "",
    Outcome.PUBLISHED_WITHOUT_RISK: "Yours is published at once where it carries no risk flag; "
    "else somebody who decides looks at it first.",
    Outcome.PROPOSED: "Somebody who decides looks at it first.",
    Outcome.PROPOSED_TO_OTHERS: "Yours waits until somebody else than you has approved it.",
}
SUBMIT = {
    Outcome.PUBLISHED: "Publish",
    Outcome.PUBLISHED_WITHOUT_RISK: "Send",
    Outcome.PROPOSED: "Propose",
    Outcome.PROPOSED_TO_OTHERS: "Propose",
}
EDIT_TEMPLATE = "admin/skills/edit.html"


def may_edit(request: HttpRequest, row: Skill | SkillRevision) -> bool:
    """Return whether the user may write: who decides publishes, any other member proposes."""
    return may_decide(request, row) or roles(request).get(row.organization_id) in WRITING_ROLES


def user_of(request: HttpRequest) -> User:
    """Return who is logged in."""
    assert isinstance(request.user, User)  # nobody else passes the admin's door
    return request.user


def as_validation_error(error: ReviewError) -> ValidationError:
    """Return what a service refused as forms show it, at its field."""
    if isinstance(error, InvalidContent):
        return ValidationError(error.errors)
    if isinstance(error, ReasonRequired):
        return ValidationError({"reason": [str(error)]})
    return ValidationError(str(error))


class WritingAdmin(ManagedAdmin):
    """Rows with a page that only reads, and pages of their own that write."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let nobody change a row on its own page."""
        return False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the row's page."""
        return super(ManagedAdmin, self).change_view(request, object_id, form_url, extra_context)

    def editable(self, request: HttpRequest, object_id: str) -> Any:
        """Return the row that the user may edit; 404 for a stranger, 403 for who only reads."""
        row = self.visible_object(request, object_id)
        if not may_edit(request, row):
            raise PermissionDenied
        return row

    def edit_page(
        self,
        request: HttpRequest,
        row: Any,
        base: SkillRevision,
        save: Callable[[SkillRevision, EditForm], SkillRevision],
        *,
        published: Callable[[SkillRevision], HttpResponse | None] = lambda revision: None,
    ) -> HttpResponse:
        """Show the form on GET; on POST save it, or show what was wrong, or what somebody else wrote.

        `published` says what was published and where to go on, None where that is the skill's page.
        """
        named = _named(row, request.POST.get("seen", ""))
        began = named or base
        outcome = outcome_of_edit(row=row, may_decide=may_decide(request, row))

        def write(form: EditForm) -> HttpResponse:
            if named is None:
                _refuse_unnamed(row, base)
            try:
                with transaction.atomic():
                    revision = save(began, form)
                    self.log_change(request, row, "Edited")
            except EditConflict:
                raise
            except ReviewError as error:
                raise as_validation_error(error) from error
            return published(revision) or _led_on(request, revision)

        def show(form: EditForm, status: int, **extra: Any) -> HttpResponse:
            return self.form_page(
                request,
                form,
                title="Edit",
                text=f"{_stays(row)} {WHAT_BECOMES[outcome]}".strip(),
                submit=SUBMIT[outcome],
                obj=row,
                status=status,
                template=EDIT_TEMPLATE,
                may_wait=outcome == Outcome.PUBLISHED and isinstance(row, SkillRevision),
                name=row.name,
                waiting=_waiting_for(row),
                **extra,
            )

        try:
            return self.serve_form(
                request,
                lambda data: EditForm(data, began=Content.of(began), seen=began.pk),
                write,
                show,
            )
        except EditConflict as conflict:
            form = EditForm(request.POST, began=Content.of(began), seen=began.pk)
            form.is_valid()
            return self._conflict_page(request, conflict, form.content, show)

    def _conflict_page(
        self, request: HttpRequest, conflict: EditConflict, mine: Content, show: Callable[..., HttpResponse]
    ) -> HttpResponse:
        """Show base, theirs and mine; the form goes on from theirs with what both sides changed."""
        base = Content.of(conflict.base or conflict.theirs)
        theirs = Content.of(conflict.theirs)
        merge = merged(base=base, theirs=theirs, mine=mine)
        form = EditForm(None, began=merge.content, seen=conflict.theirs.pk)
        form.initial["reason"] = request.POST.get("reason", "")
        their_diffs = {diff.field: diff for diff in field_diffs(base, theirs)}
        my_diffs = {diff.field: diff for diff in field_diffs(base, mine)}
        changed = [
            (FIELD_LABELS[name], their_diffs.get(name), my_diffs.get(name), name in merge.both)
            for name in FIELD_LABELS
            if any(side.get(name) and side[name].changed for side in (their_diffs, my_diffs))
        ]
        return show(
            form,
            409,
            conflict=str(conflict),
            base=conflict.base,
            theirs=conflict.theirs,
            sides=changed,
            both=[FIELD_LABELS[name].lower() for name in FIELD_LABELS if name in merge.both],
            action=_address(conflict.theirs),
        )


def save_skill(request: HttpRequest, skill: Skill) -> Callable[[SkillRevision, EditForm], SkillRevision]:
    """Return what saves an edit of a skill."""
    return lambda began, form: edit_skill(
        skill=skill,
        base=began,
        content=form.content,
        author=user_of(request),
        may_decide=may_decide(request, skill),
        reason=form.cleaned_data["reason"],
    )


def save_proposal(
    request: HttpRequest, proposal: SkillRevision
) -> Callable[[SkillRevision, EditForm], SkillRevision]:
    """Return what saves an edit of a proposal."""
    return lambda began, form: edit_proposal(
        proposal=began,
        content=form.content,
        author=user_of(request),
        may_decide=may_decide(request, proposal),
        publish="wait" not in request.POST,
        reason=form.cleaned_data["reason"],
    )


def _named(row: Any, seen: str) -> SkillRevision | None:
    """Return the revision that the author began with, of this row's own; None where none is named."""
    if not seen or "\x00" in seen:
        return None
    own = SkillRevision.objects.with_owner_of(row)
    own = own.filter(skill=row) if isinstance(row, Skill) else own.filter(name=row.name, skill=row.skill_id)
    return own.select_related("organization", "end_user", "skill").filter(pk=seen).first()


def _refuse_unnamed(row: Any, base: SkillRevision) -> None:
    """Raise `EditConflict`: who does not say what they began with may not have read what is there."""
    theirs = base if isinstance(row, Skill) else latest_of(base)
    if theirs.state != RevisionState.REJECTED:  # of which the service says so
        raise EditConflict(
            f"This form does not say which text of “{row.name}” you began with.", base=None, theirs=theirs
        )


def _address(theirs: SkillRevision) -> str:
    """Return where to go on from what somebody else wrote."""
    if theirs.state == RevisionState.PUBLISHED:
        return reverse("admin:skills_skill_edit", args=[theirs.skill_id])
    return reverse("admin:skills_skillrevision_edit", args=[theirs.pk])


def _waiting_for(row: Any) -> SkillRevision | None:
    """Return the proposal that waits for a skill and is to be edited in its stead."""
    if not isinstance(row, Skill):
        return None
    return row.revisions.filter(state=RevisionState.PROPOSED).select_related("merged_from").first()


def _led_on(request: HttpRequest, revision: SkillRevision) -> HttpResponse:
    if revision.state == RevisionState.PUBLISHED:
        messages.success(request, f"Published {revision.name} {revision.version}.")
        return HttpResponseRedirect(reverse("admin:skills_skill_change", args=[revision.skill_id]))
    messages.success(request, f"Your text of {revision.name} waits for a decision.")
    return HttpResponseRedirect(reverse("admin:skills_skillrevision_change", args=[revision.pk]))


def _stays(row: Any) -> str:
    if isinstance(row, SkillRevision):
        return "Your text takes the place of the proposal, whose evidence stays with it."
    return f"Version {row.version} stays in its history."
