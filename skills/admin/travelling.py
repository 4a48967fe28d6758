"""Skills that travel: they leave as SKILL.md files, many in a ZIP; uploaded ones arrive as proposals."""

from __future__ import annotations

import io
from itertools import islice
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from mirix.admin_base import PageAdmin
from mirix.admin_forms import ScopedChoice, ServiceForm, operated_ids
from mirix.tenants.models import EndUser
from mirix.tenants.owners import Owner
from skills.interop.exporting import skill_md, top_of, tree
from skills.interop.importing import ImportOutcome, ImportStatus, counts_of, import_skills
from skills.interop.skill_md import FILE_NAME, MEDIA_TYPE
from skills.interop.sources import MAX_ARCHIVE_BYTES, Found, find_in_upload
from skills.interop.targets import write_zip
from skills.models import Skill

MAX_EXPORTED = 1_000
MAX_UPLOADED = 500
TITLE = "Import skills"
TEXT = (
    "A SKILL.md, or a ZIP of folders with one each. Everything arrives as a proposal: nothing is published "
    "before somebody approves it."
)
COLOURS = {
    ImportStatus.NEW: ("New skill", "success"),
    ImportStatus.EDIT: ("Edit", "info"),
    ImportStatus.UNCHANGED: ("Unchanged", ""),
    ImportStatus.REFUSED: ("Refused", "danger"),
}


class EndUserChoice(ScopedChoice):
    """A choice among end users; its label names the organization too."""

    def label_from_instance(self, obj: Any) -> str:
        """Return `Acme: alice`."""
        return f"{obj.organization.name}: {obj.user_id}"


class UploadForm(ServiceForm):
    """A file or a text, and whose skills it holds."""

    end_user = EndUserChoice(queryset=EndUser.objects.none(), label="End user")
    file = forms.FileField(required=False, allow_empty_file=True, help_text="SKILL.md or ZIP.")
    text = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}),
        help_text="Or paste one SKILL.md.",
    )

    def __init__(self, *args: Any, end_users: QuerySet, chosen: str = "") -> None:
        super().__init__(*args)
        field = self.fields["end_user"]
        assert isinstance(field, EndUserChoice)
        self.initial["end_user"] = field.scope(end_users, chosen)

    def clean_file(self) -> Any:
        """Return the file, if it is not too large to be looked at."""
        file = self.cleaned_data["file"]
        if file and file.size > MAX_ARCHIVE_BYTES:
            raise ValidationError(f"The file is larger than {MAX_ARCHIVE_BYTES:,} bytes.")
        return file

    def clean(self) -> dict[str, Any]:
        """Return what was sent: a file or a text."""
        sent = super().clean() or self.cleaned_data
        if bool(sent.get("file")) == bool(sent.get("text", "").strip()) and not self.errors:
            raise ValidationError("Choose a file or paste a text.")
        return sent


class TravellingAdmin(PageAdmin):
    """A list of skills that can be exported from, and imported into."""

    actions = ("export_selected",)
    before_list = "admin/skills/skill/before.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the import, and the export of one."""
        wrap = self.admin_site.admin_view
        return [
            path("import/", wrap(self.import_view), name="skills_skill_import"),
            path("<path:object_id>/export/", wrap(self.export_view), name="skills_skill_export"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list, and above it the way to the import for those who may operate."""
        return super().changelist_view(request, {"may_import": may_import(request)} | (extra_context or {}))

    @admin.action(description="Export selected skills as SKILL.md (ZIP)")
    def export_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        """Answer with the archive."""
        ids = list(queryset.order_by().values_list("pk", flat=True)[: MAX_EXPORTED + 1])
        if len(ids) > MAX_EXPORTED:
            text = f"At most {MAX_EXPORTED:,} skills at once; the command export_skills takes any number."
            self.message_user(request, text, messages.ERROR)
            return None
        rows = Skill.objects.for_organizations(self.allowed(request)).filter(pk__in=ids)
        files = tree(skills=rows.select_related("organization", "end_user"))
        if not files:
            self.message_user(request, "None of these skills is there any more.", messages.ERROR)
            return None
        return _as_zip(files)

    def export_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Answer with one skill as its SKILL.md, or (`?as=zip`) as the ZIP of its folder. It only reads."""
        skill = self.visible_object(request, object_id)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        match request.GET.get("as", ""):
            case "":
                return _attached(skill_md(skill=skill), MEDIA_TYPE, FILE_NAME)
            case "zip":
                return _as_zip(tree(skills=[skill]))
        raise Http404

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form; on POST propose what was sent and report each file."""
        if not may_import(request) or not self.has_view_permission(request):
            raise PermissionDenied
        end_users = (
            EndUser.objects.for_organizations(operated_ids(request))
            .select_related("organization")
            .order_by("organization__name", "user_id")
        )
        if request.method != "POST":
            form = UploadForm(end_users=end_users, chosen=request.GET.get("end_user", ""))
            return self._answer(request, "admin/mirix/form.html", {"form": form})
        form = UploadForm(request.POST, request.FILES, end_users=end_users)
        if not form.is_valid():
            return self._answer(request, "admin/mirix/form.html", {"form": form}, status=400)
        outcomes = _brought(request, form.cleaned_data)
        context = {
            "rows": [(outcome, *COLOURS[outcome.status]) for outcome in outcomes],
            "counts": counts_of(outcomes),
            "end_user": form.cleaned_data["end_user"],
        }
        return self._answer(request, "admin/skills/skill/imported.html", context)

    def _answer(
        self, request: HttpRequest, template: str, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        request.current_app = self.admin_site.name
        back = reverse("admin:skills_skill_changelist")
        [crumb] = self.breadcrumbs()
        request.__dict__["breadcrumbs"] = [crumb | {"link": back}, {"title": TITLE}]
        shared = {"opts": self.opts, "media": self.media, "title": TITLE, "text": TEXT, "submit": "Import"}
        context = {**self.admin_site.each_context(request), **shared, "back": back, **context}
        return TemplateResponse(request, template, context, status=status)


def _as_zip(files: list[tuple[str, bytes]]) -> HttpResponse:
    stream = io.BytesIO()
    write_zip(stream, files, top_of([name for name, _ in files]))
    name = files[0][0].split("/")[0] if len(files) == 1 else "skills"
    return _attached(stream.getvalue(), "application/zip", f"{name}.zip")


def _attached(data: bytes, media_type: str, name: str) -> HttpResponse:
    """Return a file to be saved under a name, which is ours or a slug."""
    answer = HttpResponse(data, content_type=media_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def may_import(request: HttpRequest) -> bool:
    """Return whether the user may operate anywhere."""
    return operated_ids(request) != []


def _brought(request: HttpRequest, sent: dict[str, Any]) -> list[ImportOutcome]:
    end_user = sent["end_user"]
    owner = Owner(organization=end_user.organization, end_user=end_user)
    upload = sent["file"]
    found = (
        find_in_upload(upload, upload.name or "")
        if upload
        else iter([Found(place=FILE_NAME, data=sent["text"].replace("\r\n", "\n").encode())])
    )
    author = request.user if isinstance(request.user, User) else None
    outcomes = list(import_skills(owner=owner, found=islice(found, MAX_UPLOADED), author=author))
    if next(found, None) is not None:
        reason = f"Only the first {MAX_UPLOADED} files were read; the command import_skills takes any number."
        outcomes.append(ImportOutcome(file="…", status=ImportStatus.REFUSED, reason=reason))
    return outcomes
