"""Acts on many rows of a list: a page that names them and asks, and then one that says what came of each.

What is asked about is what is done: the form holds the rows that it showed, each can be left out, and what
happened to one meanwhile is said in its line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from mirix.admin_base import NotOfferedError, PageAdmin
from mirix.admin_forms import ServiceForm
from mirix.tenants.querysets import organization_id_of

AT_MOST = 100
"""So many rows are asked about at a time, the first of the list."""
NOT_YOURS = "Your role in its organization does not let you."


class Refused(str):
    """In the place of an outcome: why the service left a row as it was."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row on these pages.

    `will` says what would be done with it, `refusal` why nothing can be, `outcome` what was done.
    """

    pk: str
    url: str
    title: str
    owner: str
    cells: dict[str, str]
    """What is told of it, by the head of the column."""
    will: str = ""
    refusal: str = ""
    outcome: str = ""


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """An act: in words, and how it is done."""

    verb: str
    """`Release`; the button says so."""
    past: str
    """`released`."""
    noun: str
    text: str
    """What it means, said above the rows."""
    columns: Mapping[str, Callable[[Any], str]]
    """What is told of each row, by the head of its column."""
    will: Callable[[Any], str]
    """What would be done with a row."""
    refusal: Callable[[Any], str]
    """Why nothing can be done with a row as it was read; empty where something can."""
    perform: Callable[[Sequence[Any], Any], Mapping[str, str]]
    """Calls the service for the rows with the form's valid input; returns by key what came of each that was
    done, and `Refused` where it says why not."""
    form: Callable[[Any], ServiceForm] | None = None
    title: Callable[[Any], str] = str
    """What a row is called."""
    fetched: Callable[[QuerySet], QuerySet] = lambda rows: rows
    """Fetches with the rows what all of this reads of each."""

    def heading(self, number: int) -> str:
        """Return `Release 3 experiences`."""
        return f"{self.verb} {number} {self.noun}{'' if number == 1 else 's'}"

    def summary(self, done: int, left: int) -> str:
        """Return what came of all of them in a sentence."""
        text = f"{done} {self.noun}{'' if done == 1 else 's'} {self.past}"
        return f"{text}, {left} left as {'it was' if left == 1 else 'they were'}." if left else f"{text}."


@dataclass(frozen=True, kw_only=True)
class _Asked:
    bulk: Bulk
    lines: list[Line] = field(default_factory=list)
    is_cut: bool = False


class BulkAdmin(PageAdmin):
    """Lists with acts on many rows, for whoever may act in the rows' organizations."""

    free_actions: Sequence[str] = ()
    """Acts of other kinds on these rows, for whoever sees them."""

    def acting_ids(self, request: HttpRequest) -> list[str] | None:
        """Return the ids of the organizations in which the user may do this; None stands for all."""
        raise NotImplementedError

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Offer the acts where the user may do them."""
        actions = super().get_actions(request)
        if self.acting_ids(request) != []:
            return actions
        return {name: act for name, act in actions.items() if name in self.free_actions}

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list; refuse an action of who only reads."""
        if "action" in request.POST and self.has_view_permission(request) and not self.get_actions(request):
            raise PermissionDenied
        return super().changelist_view(request, extra_context)

    def lead_to(self, view: str, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        """Lead to the page that asks; it names the rows, or the list that all were selected of."""
        if request.POST.get("select_across") == "1":
            return HttpResponseRedirect(f"{reverse(view)}?{request.GET.urlencode()}")
        ids = ",".join(queryset.values_list("pk", flat=True)[:AT_MOST])
        return HttpResponseRedirect(f"{reverse(view)}?{urlencode({'ids': ids}, safe=',')}")

    def serve_bulk(self, request: HttpRequest, bulk: Bulk) -> HttpResponse:
        """Ask about the rows that the address names, by ids or by a query of the list; on POST do it."""
        if self.acting_ids(request) == [] or not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._perform(request, bulk)
        try:
            rows = bulk.fetched(_whole(self._chosen(request)))
        except NotOfferedError:
            return HttpResponseRedirect(self._list())
        found = list(rows[: AT_MOST + 1])
        lines = [self._line(request, bulk, row) for row in found[:AT_MOST]]
        asked = _Asked(bulk=bulk, lines=lines, is_cut=len(found) > AT_MOST)
        return self._page(request, asked, form=bulk.form(None) if bulk.form else None)

    def _perform(self, request: HttpRequest, bulk: Bulk) -> HttpResponse:
        ids = [pk.replace("\x00", "") for pk in request.POST.getlist("ids")][:AT_MOST]
        rows = bulk.fetched(_whole(self.get_queryset(request).filter(pk__in=ids)))
        found = {row.pk: row for row in rows}
        lines = [self._line(request, bulk, row) for row in found.values()]
        form = bulk.form(request.POST) if bulk.form else None
        if form is not None and not form.is_valid():
            return self._page(request, _Asked(bulk=bulk, lines=lines), form=form, status=400)
        able = [found[line.pk] for line in lines if not line.refusal]
        outcomes = bulk.perform(able, form.cleaned_data if form else {}) if able else {}
        lines = [_done(line, outcomes) for line in lines]
        done = sum(bool(line.outcome) for line in lines)
        level = notes.SUCCESS if done == len(lines) and done else notes.WARNING
        text = bulk.summary(done, len(lines) - done) if lines else f"No {bulk.noun} was selected."
        self.message_user(request, text, level)
        return self._page(request, _Asked(bulk=bulk, lines=lines), is_done=True)

    def _chosen(self, request: HttpRequest) -> QuerySet:
        if "ids" in request.GET:
            ids = request.GET["ids"].replace("\x00", "").split(",")[:AT_MOST]
            return self.get_queryset(request).filter(pk__in=ids)
        return self.get_changelist_instance(request).get_queryset(request)

    def _line(self, request: HttpRequest, bulk: Bulk, row: Any) -> Line:
        allowed = self.acting_ids(request)
        may = allowed is None or organization_id_of(row) in allowed
        refusal = bulk.refusal(row) if may else NOT_YOURS
        return Line(
            pk=row.pk,
            url=self._address(row),
            title=bulk.title(row),
            owner=f"{row.end_user} in {row.organization}",
            cells={head: cell(row) for head, cell in bulk.columns.items()},
            will="" if refusal else bulk.will(row),
            refusal=refusal,
        )

    def _page(
        self,
        request: HttpRequest,
        asked: _Asked,
        *,
        form: Any = None,
        is_done: bool = False,
        status: int = 200,
    ) -> HttpResponse:
        able = [line for line in asked.lines if not line.refusal]
        title = asked.bulk.heading(len(able))
        back = self._list()
        if "ids" not in request.GET and request.GET:
            back = f"{back}?{request.GET.urlencode()}"
        request.current_app = self.admin_site.name
        [crumb] = self.breadcrumbs()
        request.__dict__["breadcrumbs"] = [crumb | {"link": back}, {"title": asked.bulk.verb}]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": title if able and not is_done else asked.bulk.verb,
            "bulk": asked.bulk,
            "lines": asked.lines,
            "able": len(able),
            "unable": len(asked.lines) - len(able),
            "at_most": AT_MOST if asked.is_cut else 0,
            "form": form,
            "is_done": is_done,
            "back": back,
        }
        return TemplateResponse(request, "admin/mirix/bulk.html", context, status=status)

    def _list(self) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")

    def _address(self, row: Model) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[row.pk])


def _whole(rows: QuerySet) -> QuerySet:
    """Return rows as their lines need them, of which lists leave out the long columns."""
    return rows.defer(None).select_related("organization", "end_user")


def _done(line: Line, outcomes: Mapping[str, str]) -> Line:
    """Return a line with what came of its row; what the service left alone changed since it was read."""
    if line.refusal:
        return line
    if line.pk in outcomes:
        said = outcomes[line.pk]
        return replace(line, refusal=said) if isinstance(said, Refused) else replace(line, outcome=said)
    return replace(line, refusal="It has changed meanwhile; look at it again.")
