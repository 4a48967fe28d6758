"""The pages of a skill's past: two versions beside each other, and what brings one back or takes it out."""

from __future__ import annotations

from copy import copy
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from mirix.text import clean_text
from skills.admin.bulk import DONE, DecidingAdmin, moving
from skills.admin.changes import changes_context, remember_view
from skills.admin.editing import WritingAdmin, as_validation_error, may_edit, save_skill, user_of
from skills.admin.forms import MergeForm, ReasonForm
from skills.admin.queue import may_decide
from skills.admin.timeline import timeline_of
from skills.content import Content
from skills.models import RevisionState, Skill, SkillRevision, SkillStatus
from skills.review.errors import BaseConflict, ReviewError
from skills.review.history import MOVES, move, moves_from, rollback
from skills.review.merges import propose_merge
from skills.selectors.history import NoSuchRevision, find_of, pair_of
from skills.selectors.skills import others_of

SAID = {
    "archive": "No agent finds it from then on; it stays here with its history, and can be restored.",
    "restore": "Agents find it again with their next search.",
    "quarantine": "No agent finds it until somebody has looked into it and releases it.",
    "release": "Agents find it again with their next search.",
}


MERGING = (
    "Once somebody has approved it, the other skill also says what this one says, with the same evidence. "
    "This one is archived then; its history stays."
)


class HistoryAdmin(DecidingAdmin, WritingAdmin):
    """Skills with a past that can be compared and brought back."""

    def get_urls(self) -> list[URLPattern]:
        """Add editing, comparing, rolling back, merging, and a page for each change of status."""
        wrap = self.admin_site.admin_view
        return [
            path("<path:object_id>/edit/", wrap(self.edit_view), name="skills_skill_edit"),
            path("<path:object_id>/compare/", wrap(self.compare_view), name="skills_skill_compare"),
            path("<path:object_id>/rollback/", wrap(self.rollback_view), name="skills_skill_rollback"),
            path("<path:object_id>/merge/", wrap(self.merge_view), name="skills_skill_merge"),
            *(
                path(f"{act}/", wrap(self._moving_many(act)), name=f"skills_skill_{act}_many")
                for act in MOVES
            ),
            *(
                path(f"<path:object_id>/{act}/", wrap(self._moving(act)), name=f"skills_skill_{act}")
                for act in MOVES
            ),
            *super().get_urls(),
        ]

    def history_context(
        self, request: HttpRequest, skill: Skill, *besides: SkillRevision | None
    ) -> dict[str, Any]:
        """Return what the page of a skill offers to do with it, and its past with `besides` in it."""
        decides = may_decide(request, skill)
        return {
            "may_edit": (edits := may_edit(request, skill)),
            "may_merge": edits and skill.status != SkillStatus.ARCHIVED and others_of(skill=skill).exists(),
            "may_decide": decides,
            "moves": moves_from(skill.status) if decides else [],
            "timeline": timeline_of(skill, besides=besides),
        }

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the text in a form, and publish or propose what was made of it."""
        skill = self.editable(request, object_id)
        if skill.current_revision is None:
            raise Http404
        return self.edit_page(request, skill, skill.current_revision, save_skill(request, skill))

    def compare_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what differs between two revisions, word by word. It only reads."""
        skill = self.visible_object(request, object_id)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        asked = {name: clean_text(request.GET.get(name, "")) for name in ("from", "to")}
        try:
            old, new = pair_of(skill=skill, old=asked["from"], new=asked["to"])
        except NoSuchRevision as error:
            raise Http404 from error
        before = Content.of(old) if old else None
        context = {
            **changes_context(request, revision=new, before=before, after=Content.of(new)),
            "skill": skill,
            "original": skill,
            "old": old,
            "new": new,
            "title": "Compare",
        } | self.history_context(request, skill, old, new)
        response = self.render(request, "admin/skills/skill/compare.html", context, skill, "Compare", 200)
        remember_view(request, response)
        return response

    def rollback_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask why, and say what it changes; then publish the earlier version anew."""
        skill = self._decided_by(request, object_id)
        name = clean_text(request.GET.get("to", ""))
        try:
            target = find_of(skill=skill, name=name)
        except NoSuchRevision as error:
            raise Http404 from error
        if target.state != RevisionState.PUBLISHED:
            raise Http404
        changes = changes_context(
            request, revision=target, before=Content.of(skill), after=Content.of(target)
        )
        return self._act(
            request,
            skill,
            lambda seen, reason, user: rollback(skill=seen, to=target, decided_by=user, reason=reason),
            title=f"Roll back to {target.version}",
            text=f"What version {target.version} said becomes a new version; {skill.version} stays in the "
            "history. This is what changes:",
            done=f"{skill.name} says what {target.version} said.",
            is_dangerous=False,
            **changes | {"unchanged": []},
            template="admin/skills/skill/rollback.html",
        )

    def merge_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask into which of its owner's skills it goes, and propose that; whoever decides reads it first."""
        skill: Skill = self.editable(request, object_id)

        def save(form: MergeForm) -> HttpResponse:
            try:
                with transaction.atomic():
                    proposal = propose_merge(
                        source=skill,
                        target=form.cleaned_data["target"],
                        author=user_of(request),
                        reason=form.cleaned_data["reason"],
                    )
                    self.log_change(request, skill, "Proposed to merge")
            except ReviewError as error:
                raise as_validation_error(error) from error
            self.message_user(request, f"That {skill.name} goes into {proposal.name} waits for a decision.")
            return HttpResponseRedirect(reverse("admin:skills_skillrevision_change", args=[proposal.pk]))

        return self.serve_form(
            request,
            lambda data: MergeForm(
                data, among=others_of(skill=skill), chosen=clean_text(request.GET.get("into", ""))
            ),
            save,
            lambda form, status: self.form_page(
                request, form, title="Merge into another skill", text=MERGING, submit="Propose", obj=skill,
                status=status,
            ),
        )  # fmt: skip

    def _moving(self, act: str) -> Any:
        def view(request: HttpRequest, object_id: str) -> HttpResponse:
            skill = self._decided_by(request, object_id)
            return self._act(
                request,
                skill,
                lambda seen, reason, user: move(skill=seen, act=act, decided_by=user, reason=reason),
                title=act.capitalize(),
                text=SAID[act],
                done=f"{skill.name} is {DONE[act]}.",
                is_dangerous=act in ("archive", "quarantine"),
            )

        return view

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Offer to take many out of use or back, to those who decide."""
        decides = self.acting_ids(request) != []
        acts = {
            f"{act}_selected": (_leading(act), f"{act}_selected", f"{act.capitalize()} selected skills")
            for act in (MOVES if decides else ())
        }
        return super().get_actions(request) | acts

    def _moving_many(self, act: str) -> Any:
        return lambda request: self.serve_bulk(request, moving(self, request, act))

    def _decided_by(self, request: HttpRequest, object_id: str) -> Skill:
        """Return the skill that the user may decide about; 404 for a stranger, 403 for who only reads."""
        skill: Skill = self.visible_object(request, object_id)
        if not may_decide(request, skill):
            raise PermissionDenied
        return skill

    def _act(
        self, request: HttpRequest, skill: Skill, act: Any, *, title: str, text: str, done: str, **extra: Any
    ) -> HttpResponse:
        """Show the form that asks why; on POST do it, to the skill as the page showed it."""
        shown = skill.current_revision_id or ""

        def save(form: ReasonForm) -> HttpResponse:
            seen = form.cleaned_data["seen"]
            try:
                if shown and not seen:
                    raise BaseConflict(
                        f"This form does not say which version of “{skill.name}” it showed; look again."
                    )
                as_seen = copy(skill)
                as_seen.current_revision_id = seen or None
                with transaction.atomic():
                    act(as_seen, form.cleaned_data["reason"], user_of(request))
                    self.log_change(request, skill, title)
            except ReviewError as error:
                raise as_validation_error(error) from error
            return self.done(request, done, skill)

        return self.serve_form(
            request,
            lambda data: ReasonForm(data, initial={"seen": shown}),
            save,
            lambda form, status: self.form_page(
                request, form, title=title, text=text, obj=skill, status=status, **extra
            ),
        )


def _leading(act: str) -> Any:
    """Return the action of the list that leads to the page which asks."""

    def lead(admin: HistoryAdmin, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        return admin.lead_to(f"admin:skills_skill_{act}_many", request, queryset)

    return lead
