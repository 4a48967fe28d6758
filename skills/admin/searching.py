"""The page on which people search as an agent does, and see why each skill stands where it does."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from mirix.admin_base import PageAdmin
from mirix.admin_forms import ScopedChoice, ServiceForm, WholeNumberField
from mirix.days import last_days
from mirix.sent import when_sent
from mirix.tenants.models import EndUser, Organization
from mirix.tenants.selectors import find_owner_of
from mirix.text import clean_text
from skills.admin.editing import user_of
from skills.models import SearchSource, Skill
from skills.search.lanes import label_of, lanes_of
from skills.search.log import log_search
from skills.search.service import DEGRADED, FIELDS, MAX_LIMIT, METHODS, SEMANTIC, SearchResult, search
from skills.search.tags import parse_filter_tags
from skills.selectors.days import Amount
from skills.selectors.searches import MOST, degraded_by_day
from skills.selectors.use import most_returned, never_returned

TITLE = "Try a search"
LIMIT = 10
LANE_ROWS = 10
MAX_SUGGESTED = 200
USE_DAYS = 30
MOST_SHOWN = NEVER_SHOWN = 10
HEAVY = ("instructions", "triggers", "examples")
METHOD_LABELS = {
    "hybrid": "hybrid: by words and by meaning",
    "bm25": "bm25: by words",
    "embedding": "embedding: by meaning",
    "string_match": "string_match: the text as it stands",
}


class SearchForm(ServiceForm):
    """What a search takes, by the API's names, and the organization."""

    marks_optional = False

    organization = ScopedChoice(
        queryset=Organization.objects.none(),
        error_messages={"invalid_choice": "There is no such organization among yours."},
    )
    user_id = forms.CharField(
        required=False,
        label="End user",
        widget=forms.TextInput(attrs={"list": "user-ids", "placeholder": "all users"}),
        help_text="By the id that agents send; empty: all users.",
    )
    query = forms.CharField(
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "refund an order that was paid by card"}),
        help_text="What to do, in plain words, as an agent would ask. Empty: the newest skills.",
    )
    search_method = forms.ChoiceField(
        required=False,
        label="Method",
        choices=[("", "by default"), *((method, METHOD_LABELS[method]) for method in METHODS)],
    )
    search_field = forms.ChoiceField(
        required=False, label="Field", choices=[("", "all fields"), *((field, field) for field in FIELDS)]
    )
    limit = WholeNumberField(
        required=False,
        min_value=1,
        max_value=MAX_LIMIT,
        widget=forms.NumberInput(attrs={"placeholder": str(LIMIT)}),
    )
    filter_tags = forms.CharField(
        required=False,
        widget=forms.TextInput(attrs={"placeholder": '{"desk": "eu"}', "spellcheck": "false"}),
        help_text="A JSON object, as in the API.",
    )
    similarity_threshold = forms.FloatField(
        required=False,
        min_value=0,
        max_value=2,
        widget=forms.NumberInput(attrs={"placeholder": "none", "step": "any"}),
        help_text="The cosine distance, 0 to 2, that a meaning must be below.",
    )

    def __init__(self, asked: dict[str, str], *, organizations: Any) -> None:
        super().__init__(asked if "query" in asked else None, initial={**asked})
        field = self.fields["organization"]
        assert isinstance(field, ScopedChoice)
        self.initial["organization"] = field.scope(organizations, asked.get("organization", ""))
        if self.is_bound and field.only:  # there is no choice, so that a link need not name it
            self.data = {"organization": self.initial["organization"]} | asked

    def clean_limit(self) -> int:
        """Return the limit, the API's own where none was sent."""
        return self.cleaned_data["limit"] or LIMIT

    def clean_filter_tags(self) -> dict[str, Any]:
        """Return the conditions."""
        try:
            return parse_filter_tags(self.cleaned_data["filter_tags"])
        except ValidationError as error:
            raise ValidationError(error.messages) from error

    def clean(self) -> dict[str, Any]:
        """Return what was asked, with the `owner` in whose skills; None stands for all users."""
        sent = super().clean() or self.cleaned_data
        sent["owner"] = None
        if (organization := sent.get("organization")) and (user_id := sent.get("user_id")):
            sent["owner"] = find_owner_of(organization=organization, user_id=user_id)
            if sent["owner"] is None:
                self.add_error("user_id", f"{organization} has no end user of this id.")
        return sent


class SearchingAdmin(PageAdmin):
    """The log of searches with a page to search on."""

    def get_urls(self) -> list[URLPattern]:
        """Add the page."""
        view = self.admin_site.admin_view(self.try_view)
        return [path("try/", view, name="skills_searchevent_try"), *super().get_urls()]

    def try_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form; where the address holds a query, what an agent would get, and why."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        asked = {name: clean_text(str(value)) for name, value in request.GET.items()}
        form = SearchForm(asked, organizations=self.organizations(request).order_by("name"))
        context: dict[str, Any] = {"form": form}
        if not form.is_bound:
            organization = self._named(request, str(form.initial["organization"]))
            context |= _use_of(organization) if organization else _to_choose(form)
            return self._answer(request, context, organization)
        if not form.is_valid():
            return self._answer(request, context, form.cleaned_data.get("organization"), status=400)
        try:
            return self._searched(request, form, context)
        except ValidationError as error:
            form.refuse(error)
            return self._answer(request, context, form.cleaned_data.get("organization"), status=400)

    def _searched(self, request: HttpRequest, form: SearchForm, context: dict[str, Any]) -> HttpResponse:
        """Search, and have the search logged once the page is sent."""
        sent = form.cleaned_data
        organization, owner = sent["organization"], sent["owner"]
        began = perf_counter()
        result = search(
            organization=organization,
            owner=owner,
            query=sent["query"],
            method=sent["search_method"],
            field=sent["search_field"],
            limit=sent["limit"],
            filter_tags=sent["filter_tags"],
            explain=True,
            similarity_threshold=sent["similarity_threshold"],
        )
        seconds = perf_counter() - began
        lanes = lanes_of(organization=organization, owner=owner, result=result, depth=LANE_ROWS)
        context |= {
            "result": result,
            "took": round(seconds * 1_000, 1),
            "owner": owner,
            "hits": [(hit, _places(result, hit.lanes)) for hit in result.hits],
            "lanes": lanes,
            "without_meaning": bool(result.degraded) and SEMANTIC not in result.lanes,
            "is_unconfigured": result.degraded == DEGRADED,
        }
        response = self._answer(request, context, organization)
        log = partial(
            log_search,
            organization=organization,
            owner=owner,
            source=SearchSource.ADMIN,
            user=user_of(request),
            query=sent["query"],
            field=sent["search_field"],
            filter_tags=sent["filter_tags"],
            similarity_threshold=sent["similarity_threshold"],
            limit=sent["limit"],
            result=result,
            returned=result.hits,
            seconds=seconds,
        )
        when_sent(response, log)
        return response

    def _named(self, request: HttpRequest, pk: str) -> Organization | None:
        return self.organizations(request).filter(pk=pk).first() if pk else None

    def _answer(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        organization: Organization | None,
        status: int = 200,
    ) -> HttpResponse:
        request.current_app = self.admin_site.name
        [crumb] = self.breadcrumbs()
        back = reverse("admin:skills_searchevent_changelist")
        request.__dict__["breadcrumbs"] = [crumb | {"link": back}, {"title": TITLE}]
        shared = {
            "opts": self.opts,
            "media": self.media,
            "title": TITLE,
            "organization": organization,
            "user_ids": _user_ids(organization) if organization else [],
        }
        context = {**self.admin_site.each_context(request), **shared, **context}
        return TemplateResponse(request, "admin/skills/searchevent/try.html", context, status=status)


def _user_ids(organization: Organization) -> list[str]:
    """Return the first ids that the field for the end user suggests; it takes any."""
    end_users = EndUser.objects.for_organization(organization).order_by("user_id")
    return list(end_users.values_list("user_id", flat=True)[:MAX_SUGGESTED])


def _places(result: SearchResult, places: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return what each lane says of a skill, None where it does not have it."""
    return [(label_of(lane), places.get(lane)) for lane in result.lanes]


def _to_choose(form: SearchForm) -> dict[str, Any]:
    """Return the organizations to choose among, where the address names none."""
    field = form.fields["organization"]
    assert isinstance(field, ScopedChoice)
    choices: Any = field.choices
    return {"organizations": [(pk, name) for pk, name in choices if pk]}


def _use_of(organization: Organization) -> dict[str, Any]:
    """Return how the skills of an organization were used over the API lately."""
    asked: dict[str, Any] = {"organizations": [organization.pk], "since": last_days(USE_DAYS).moments[0]}
    never = never_returned(Skill.objects.for_organization(organization), **asked)
    count = never.values("pk")[:MOST].count()
    newest = never.select_related("end_user").defer(*HEAVY).order_by("-created_at", "id")
    days = degraded_by_day(organization=organization)
    return {
        "use_days": USE_DAYS,
        "most": [
            (each.skill, _counted(each.times, "time")) for each in most_returned(**asked, limit=MOST_SHOWN)
        ],
        "never": newest[:NEVER_SHOWN],
        "never_count": _counted(_amount(count), "active skill"),
        "never_rest": max(0, count - NEVER_SHOWN),
        "degraded": [(day, _counted(_amount(count), "answer")) for day, count in reversed(days) if count],
        "degraded_days": len(days),
    }


def _amount(count: int) -> Amount:
    """Return what was counted to `MOST` and no further."""
    return Amount(number=count, is_least=count >= MOST)


def _counted(amount: Amount, what: str) -> str:
    number = f"{amount.number:,}{' or more' if amount.is_least else ''}"
    return f"{number} {what}{'' if amount.number == 1 else 's'}"
