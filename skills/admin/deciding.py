"""The views that decide about one proposal, by POST alone, and what tells its page that others did."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseNotModified,
    HttpResponseRedirect,
    JsonResponse,
)
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from mirix.text import clean_text
from skills.admin.bulk import DecidingAdmin
from skills.admin.editing import WritingAdmin, as_validation_error, user_of
from skills.admin.forms import MergeForm
from skills.admin.queue import carried, may_decide, place_of
from skills.admin.reasons import reason_of
from skills.models import RevisionState, Skill, SkillRevision
from skills.review.errors import AlreadyDecided, ReasonRequired, ReviewError
from skills.review.merges import merge_proposal
from skills.review.publishing import approve, reject
from skills.review.undoing import undo_approval, undo_rejection
from skills.selectors.skills import others_of_owner

MERGING = (
    "What this says goes into the other skill, as a change of it that waits for a decision, with the same "
    "evidence. This proposal is rejected, with where it went as the reason."
)


class DecisionAdmin(DecidingAdmin, WritingAdmin):
    """Proposals that are decided one by one."""

    def decision_urls(self) -> list[URLPattern]:
        """Return the addresses of the decisions about one proposal."""
        wrap = self.admin_site.admin_view
        views = {
            "approve": self.approve_view,
            "reject": self.reject_view,
            "undo": self.undo_view,
            "merge": self.merge_view,
            "state": self.state_view,
        }
        return [
            path(f"<path:object_id>/{name}/", wrap(view), name=f"skills_skillrevision_{name}")
            for name, view in views.items()
        ]

    def approve_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Publish the proposal, then show the next one."""

        def publish(revision: SkillRevision) -> None:
            say_approved(request, approve(revision=revision, decided_by=user_of(request)))

        return self._decide(request, object_id, publish, log="Approved")

    def reject_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Turn the proposal down with a reason, then show the next one."""

        def turn_down(revision: SkillRevision) -> None:
            reason = reason_of(request.POST)
            say_rejected(request, reject(revision=revision, decided_by=user_of(request), reason=reason))

        return self._decide(request, object_id, turn_down, log="Rejected")

    def undo_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Take a decision back: show what was approved, or what waits again."""
        revision = self._decided_by_post(request, object_id)
        if isinstance(revision, HttpResponse):
            return revision
        was_rejected = revision.state == RevisionState.REJECTED
        shown = revision
        try:
            with transaction.atomic():
                if was_rejected:
                    shown = undo_rejection(revision=revision, decided_by=user_of(request))
                    said = f"Taken back: {shown.name} waits again."
                else:
                    said = _as_it_is(undo_approval(revision=revision, decided_by=user_of(request)))
                self.log_change(request, revision, "Taken back")
        except ReviewError as error:
            messages.warning(request, f"Nothing was changed. {error}")
        else:
            messages.success(request, said)
        return HttpResponseRedirect(page_of(request, shown.pk))

    def merge_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask into which skill of its owner a new one goes, and propose that in its place."""
        revision: SkillRevision = self.visible_object(request, object_id)
        if not may_decide(request, revision):
            raise PermissionDenied
        if request.method in ("GET", "HEAD") and revision.state != RevisionState.PROPOSED:
            messages.warning(request, f"{revision.name} is decided already, see below.")
            return HttpResponseRedirect(page_of(request, revision.pk))

        def save(form: MergeForm) -> HttpResponse:
            try:
                with transaction.atomic():
                    made = merge_proposal(
                        proposal=revision,
                        into=form.cleaned_data["target"],
                        decided_by=user_of(request),
                        reason=form.cleaned_data["reason"],
                    )
                    self.log_change(request, revision, "Merged")
            except ReviewError as error:
                raise as_validation_error(error) from error
            messages.success(request, f"{revision.name} goes into {made.name}: this is the change of it.")
            return HttpResponseRedirect(page_of(request, made.pk))

        return self.serve_form(
            request,
            lambda data: MergeForm(
                data, among=others_of_owner(revision), chosen=clean_text(request.GET.get("into", ""))
            ),
            save,
            lambda form, status: self.form_page(
                request, form, title="Merge into a skill", text=MERGING, submit="Propose", obj=revision,
                status=status,
            ),
        )  # fmt: skip

    def state_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Tell an open page whether its proposal still waits as it shows it; 304 where nothing changed."""
        revision: SkillRevision = self.visible_object(request, object_id)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        tag = state_tag(revision)
        if request.headers.get("If-None-Match") == tag:
            return HttpResponseNotModified(headers={"ETag": tag})
        return JsonResponse({"state": revision.state, "said": what_happened(revision)}, headers={"ETag": tag})

    def _decided_by_post(self, request: HttpRequest, object_id: str) -> SkillRevision | HttpResponse:
        """Return the revision that the user may decide about, or the answer to what is no POST."""
        revision: SkillRevision = self.visible_object(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may_decide(request, revision):
            raise PermissionDenied
        return revision

    def _decide(
        self, request: HttpRequest, object_id: str, decide: Callable[[SkillRevision], None], *, log: str
    ) -> HttpResponse:
        """Let a service decide; whatever it refuses is said on the proposal's page, in its own words."""
        revision = self._decided_by_post(request, object_id)
        if isinstance(revision, HttpResponse):
            return revision
        sent = {"sent": request.POST}
        if revision.state != RevisionState.PROPOSED:
            return self.page(request, revision, sent | {"overtaken": True}, status=409)
        following = self.place(request, revision).next
        try:
            with transaction.atomic():
                decide(revision)
                self.log_change(request, revision, log)
        except ReasonRequired as error:
            return self.page(request, revision, sent | {"reason_error": str(error)}, status=400)
        except AlreadyDecided:
            revision.refresh_from_db()
            return self.page(request, revision, sent | {"overtaken": True}, status=409)
        except ReviewError as error:
            return self.page(request, revision, sent | {"refused": str(error)}, status=409)
        return self.go_on(request, following)

    def place(self, request: HttpRequest, revision: SkillRevision) -> Any:
        """Return where the proposal stands in the queue that the address names."""
        return place_of(request, revision)

    def go_on(self, request: HttpRequest, following: str | None) -> HttpResponse:
        """Show the next proposal of the queue, or the queue where that was the last."""
        if following is None:
            return HttpResponseRedirect(reverse("admin:skills_skillrevision_changelist"))
        return HttpResponseRedirect(page_of(request, following))


def page_of(request: HttpRequest, pk: str) -> str:
    """Return the address of a proposal, within the queue that the request came from."""
    return reverse("admin:skills_skillrevision_change", args=[pk]) + carried(request)


def _as_it_is(skill: Skill) -> str:
    """Return what an approval that was taken back made of its skill."""
    url = reverse("admin:skills_skill_change", args=[skill.pk])
    now = format_html('<a href="{}">{}</a> {}', url, skill.name, skill.version)
    says = "says again what it said before" if skill.status == "active" else f"is {skill.status}"
    return format_html("Taken back: {} {}.", now, says)


def say_approved(request: HttpRequest, skill: Skill) -> None:
    """Say what was published on the next page, with a way to take it back."""
    url = reverse("admin:skills_skill_change", args=[skill.pk])
    said = format_html('Published <a href="{}">{}</a> {}.', url, skill.name, skill.version)
    _say_with_undo(request, said, str(skill.current_revision_id))


def say_rejected(request: HttpRequest, revision: SkillRevision) -> None:
    """Say what became of a proposal that was turned down, with a way to take that back."""
    if revision.state == RevisionState.REJECTED:
        _say_with_undo(request, f"Rejected {revision.name}.", revision.pk)
    else:
        messages.success(request, f"{revision.name} lapsed: its skill says something else by now.")


def _say_with_undo(request: HttpRequest, said: str, revision_id: str) -> None:
    undo = reverse("admin:skills_skillrevision_undo", args=[revision_id])
    messages.success(request, said, extra_tags=f"undo:{undo}{carried(request)}")


def state_tag(revision: SkillRevision) -> str:
    """Return what changes whenever a page of the revision would show another state."""
    skill = revision.skill
    parts = (revision.state, str(revision.decided_at), skill.current_revision_id if skill else "")
    return f'"{hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:24]}"'


def what_happened(revision: SkillRevision) -> str:
    """Return who decided what about a revision, and when; or that its skill was published anew."""
    decision = revision.decisions.order_by("-created_at", "-id").first()
    if decision is not None:
        who = decision.decided_by_name or decision.get_decided_by_kind_display()
        return f"{who} {decision.get_decision_display().lower()} this at {decision.created_at:%H:%M} UTC."
    if revision.state == RevisionState.SUPERSEDED:
        return "A later text took the place of this proposal."
    return "Its skill was published anew: reload to see what approving this would make of it."
