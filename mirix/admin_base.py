"""What every admin page of this project shares.

With `mirix.admin_site` and `mirix.admin_table` this is all that knows the theme, django-unfold.

A member sees the rows of the organizations they belong to, a superuser sees all. Rows are written by
services and by machines, so there are no forms here: a page shows, and what may be decided has a POST
view of its own.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.exceptions import DisallowedModelAdminLookup, DisallowedModelAdminToField
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db import DataError, transaction
from django.db.models import BooleanField, Func, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from unfold.admin import ModelAdmin as ThemedModelAdmin
from unfold.decorators import display
from unfold.forms import (
    AdminPasswordChangeForm,
    UserChangeForm,
    UserCreationForm,
)
from unfold.views import ChangeList as ThemedChangeList

from mirix.templatetags.mirix_admin import coded
from mirix.tenants.models import Organization
from mirix.tenants.querysets import organization_id_of
from mirix.tenants.requests import organization_ids, roles
from mirix.text import clean_text, shorten

__all__ = [
    "AdminPasswordChangeForm",
    "CappedPaginator",
    "NotOfferedError",
    "OrganizationFilter",
    "PageAdmin",
    "TenantAdmin",
    "TitledAdmin",
    "UserChangeForm",
    "UserCreationForm",
    "display",
    "organization_ids",
    "roles",
    "two_lines",
]

MAX_ORGANIZATIONS_IN_FILTER = 200
DESCRIPTION_CHARS = 110
REFUSALS = (IncorrectLookupParameters, DisallowedModelAdminLookup, DisallowedModelAdminToField, DataError)
NOT_OFFERED = "The address asked this list for something that it does not offer. Here is the list as it is."


def two_lines(first: str, second: str) -> str:
    """Return a cell of a list with a title and, smaller, what it is about; both are shown as text."""
    return format_html(
        '<span class="mx-cell">{}<small>{}</small></span>',
        coded(first),
        coded(shorten(second, DESCRIPTION_CHARS)),
    )


class _IsOneOf(Func):
    """Whether a key is among those of a subquery, which is read once, whatever the database expects."""

    template = "%(expressions)s)"
    arg_joiner = " = ANY ("
    output_field = BooleanField()


class CappedPaginator(Paginator):
    """A paginator that stops counting at `cap`, so that a huge table costs what a small one does."""

    cap = 10_000

    @cached_property
    def count(self) -> int:
        """Return the number of rows, at most `cap`."""
        rows: QuerySet = self.object_list  # type: ignore[assignment]
        return rows.order_by().values("pk")[: self.cap].count()

    def page(self, number: Any) -> Page:
        """Return a page; its rows are chosen by their keys, so that no row before them is read whole."""
        number = self.validate_number(number)
        rows: QuerySet = self.object_list  # type: ignore[assignment]
        first = (number - 1) * self.per_page
        chosen = rows.values("pk")[first : first + self.per_page]
        return Page(rows.filter(_IsOneOf("pk", ArraySubquery(chosen))), number, self)


class NotOfferedError(Exception):
    """The query of an address asks a list for what it does not offer."""


class ChangeList(ThemedChangeList):
    """A list that takes what its filters offer, and does not offer to show all where all is shown already."""

    def get_filters(self, request: HttpRequest) -> tuple[list[Any], bool, dict[str, Any], bool, bool]:
        """Return the filters; Django would take any lookup of any column, as a pattern of a hash.

        Raises `NotOfferedError` for a parameter that no filter knows.
        """
        found = super().get_filters(request)
        if unknown := found[2]:
            raise NotOfferedError(f"no filter for {', '.join(unknown)}")
        return found

    def get_ordering_field(self, field_name: Any) -> Any:
        """Return what a column is ordered by; nothing where the list does not offer to order by it."""
        offered = self.model_admin.sortable_by
        return (
            None
            if offered is not None and field_name not in offered
            else super().get_ordering_field(field_name)
        )

    def get_results(self, request: HttpRequest) -> None:
        """Fetch the page; without a search or filter its count is the count of all."""
        super().get_results(request)
        if not self.result_count:
            self.result_list = self.queryset.none()  # looked for already, when they were counted
        if not (self.query or self.has_active_filters):
            self.full_result_count = self.result_count
        self.rows_counted = self.model_admin.counted(request, self.result_count)


class OrganizationFilter(admin.SimpleListFilter):
    """Filter by organization; offers those that the user may see, and nothing where there is but one."""

    title = "organization"
    parameter_name = "organization"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return (id, name) of the user's organizations."""
        organizations = model_admin.organizations(request).order_by("name")
        found = list(organizations.values_list("pk", "name")[:MAX_ORGANIZATIONS_IN_FILTER])
        return found if len(found) > 1 else []

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Narrow the list to the chosen organization."""
        return queryset.filter(organization=self.value()) if self.value() else queryset


class TitledAdmin(ThemedModelAdmin):
    """Pages that say at the top where one is: the list by its title, and the row that is open."""

    list_title = ""
    """What the list is called; by default the plural of the row's name."""

    add_title = ""
    """What the button says that makes a row; without it there is none."""

    def counted(self, request: HttpRequest, number: int) -> str:
        """Return how many rows there are: `12 sessions`; `10,000 sessions or more` where counting stopped."""
        one, many = self.row_names(request)
        has_stopped = issubclass(self.paginator, CappedPaginator) and number >= CappedPaginator.cap
        return f"{number:,} {one if number == 1 else many}{' or more' if has_stopped else ''}"

    def row_names(self, request: HttpRequest) -> tuple[str, str]:
        """Return what one row of the list is called, and what several are."""
        return str(self.opts.verbose_name), str(self.opts.verbose_name_plural)

    def breadcrumbs(self, obj: Model | None = None) -> list[dict[str, str]]:
        """Return the parts of the title at the top: the list, and the row that is open."""
        title = self.list_title or str(self.opts.verbose_name_plural).capitalize()
        if obj is None:
            return [{"title": title}]
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return [{"title": title, "link": reverse(name)}, {"title": str(obj)}]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Use our list."""
        return ChangeList

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the list; raises `NotOfferedError` for whatever is wrong with the query."""
        try:
            with transaction.atomic():  # which a statement that the database refuses does not spoil
                return super().get_changelist_instance(request)
        except REFUSALS as refusal:
            raise NotOfferedError(str(refusal)) from refusal

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list under its title; the plain one, and say so, where the query makes no sense."""
        request.__dict__["breadcrumbs"] = self.breadcrumbs()
        if any("\x00" in value for values in request.GET.lists() for value in values[1]):
            query = request.GET.copy()
            for name in query:
                query.setlist(name, [clean_text(value) for value in query.getlist(name)])
            request.GET = query  # type: ignore[assignment]
        try:
            return super().changelist_view(request, extra_context)
        except NotOfferedError:
            messages.error(request, NOT_OFFERED)
            return HttpResponseRedirect(request.path)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the form under the title of its list."""
        request.__dict__["breadcrumbs"] = self.breadcrumbs(context.get("original"))
        return super().render_change_form(request, context, *args, **kwargs)


class TenantAdmin(TitledAdmin):
    """Read-only lists of rows that belong to an organization, limited to the user's own."""

    empty_title = "Nothing here yet"
    empty_text = ""
    empty_command = ""
    """What an empty list says, and the command that would fill it."""

    heavy_fields: tuple[str, ...] = ()
    """Long columns that no list shows; a page fetches them when it needs them."""

    before_list: str | None = None
    """A template that is shown above the list."""

    actions: Any = None
    list_per_page = 50
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    compressed_fields = True

    @property
    def list_before_template(self) -> str | None:
        """What the theme calls it."""
        return self.before_list

    def annotated(self, rows: QuerySet) -> QuerySet:
        """Return `rows` with what the columns and the order of the list need."""
        return rows

    def allowed(self, request: HttpRequest) -> list[str] | None:
        """Return the ids of the organizations whose rows the user may see here; None stands for all."""
        return organization_ids(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the rows of the user's organizations."""
        rows = self.annotated(self.model._default_manager.for_organizations(self.allowed(request)))
        return rows.defer(*self.heavy_fields).order_by(*self.get_ordering(request))

    def organizations(self, request: HttpRequest) -> QuerySet:
        """Return the organizations that the user may see."""
        return Organization.objects.for_organizations(self.allowed(request))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Let members and superusers see the app."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let members see the rows of their organizations."""
        allowed = self.allowed(request)
        if allowed is None:
            return True
        return bool(allowed) if obj is None else organization_id_of(obj) in allowed

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let nobody add rows by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let nobody edit rows by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let nobody delete rows by hand: erasure is a service of its own."""
        return False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row, or None when it is not there or not the user's."""
        if "\x00" in object_id:
            return None
        return super().get_object(request, object_id, from_field)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        # Django redirects to the index; a row that is not there and one of a stranger are the same 404.
        raise Http404

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Search with a term that PostgreSQL accepts."""
        return super().get_search_results(request, queryset, clean_text(search_term))


class PageAdmin(TenantAdmin):
    """A list whose rows open as a page of their own instead of a form; a subclass names its template."""

    page_template: str

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Return what the page shows beside `original`, the row itself."""
        return {}

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the page of one row. It only reads."""
        obj = self.visible_object(request, object_id)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return self.page(request, obj, {})

    def visible_object(self, request: HttpRequest, object_id: str) -> Any:
        """Return the row that the user may see; 404 when it is missing or a stranger's."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404
        return obj

    def page(self, request: HttpRequest, obj: Any, extra: dict[str, Any], status: int = 200) -> HttpResponse:
        """Render the row's page."""
        request.current_app = self.admin_site.name
        request.__dict__["breadcrumbs"] = self.breadcrumbs(obj)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": obj,
            "title": str(obj),
            "media": self.media,
            **self.page_context(request, obj),
            **extra,
        }
        return TemplateResponse(request, self.page_template, context, status=status)
