"""Organizations with their settings, and their clients."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from mirix.admin_base import OrganizationFilter, display
from mirix.admin_erasing import ErasingAdmin
from mirix.admin_forms import ManagedAdmin, ServiceForm, actor_of, administers
from mirix.tenants.admin.forms import SWITCH, WORDS, ClientForm, NameForm, SettingsForm
from mirix.tenants.erasure import erase_client
from mirix.tenants.models import (
    INHERITED,
    ApiKey,
    Client,
    EndUser,
    ErasureReceipt,
    Membership,
    Notification,
    Organization,
    OrganizationSettings,
    Role,
)
from mirix.tenants.notifications import addresses_of
from mirix.tenants.preferences import change_settings, make_webhook_secret, webhook_host
from mirix.tenants.selectors import deciding_roles, effective, of_installation, settings_of
from mirix.tenants.services import (
    create_client,
    create_organization,
    rename_client,
    rename_organization,
)
from mirix.tenants.usage import next_day, today, usage_of

KEYS_SHOWN = 50
NOTICES_SHOWN = 5
DAYS_SHOWN = 14
SIGNING = "It signs what the webhook gets, in the header X-Mirix-Signature."


def _count_of(related: Any, link: str) -> Coalesce:
    """Return a subquery that counts the rows of `related` whose `link` is the outer row."""
    counts = related.objects.filter(**{link: OuterRef("pk")}).order_by().values(link).annotate(n=Count("pk"))
    return Coalesce(Subquery(counts.values("n")), 0)


@admin.register(Organization)
class OrganizationAdmin(ManagedAdmin):
    """Tenants: superusers make and name them, their administrators choose their settings."""

    page_template = "admin/tenants/organization.html"
    add_title = "Add organization"
    add_text = "An organization is a tenant; no row, query or answer crosses it."
    list_display = ("name", "client_number", "end_user_number", "member_number", "created_at")
    search_fields = ("name",)
    ordering = ("name",)
    empty_title = "No organization yet"
    empty_text = "An organization is a tenant; nothing crosses it. Make the first one:"
    empty_command = "./run create_organization NAME"

    def annotated(self, rows: QuerySet) -> QuerySet:
        """Count what belongs to each organization."""
        return rows.annotate(
            client_count=_count_of(Client, "organization"),
            end_user_count=_count_of(EndUser, "organization"),
            member_count=_count_of(Membership, "organization"),
        )

    @display(description="Clients", ordering="client_count")
    def client_number(self, obj: Any) -> int:
        """Return how many clients it has."""
        return obj.client_count

    @display(description="End users", ordering="end_user_count")
    def end_user_number(self, obj: Any) -> int:
        """Return how many end users it has."""
        return obj.end_user_count

    @display(description="Members", ordering="member_count")
    def member_number(self, obj: Any) -> int:
        """Return how many people may log in to it."""
        return obj.member_count

    # ---- Making and naming -----------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let superusers make organizations."""
        return bool(getattr(request.user, "is_superuser", False))

    def add_form(self, request: HttpRequest, data: Any) -> NameForm:
        """Ask for the name."""
        return NameForm(data)

    def make(self, request: HttpRequest, form: ServiceForm) -> HttpResponse:
        """Make it."""
        made = create_organization(name=form.cleaned_data["name"], actor=actor_of(request))
        return self.made(request, made, f"Made the organization {made.name}. Add its administrator next.")

    def change_form(self, request: HttpRequest, obj: Organization, data: Any) -> NameForm | None:
        """Offer superusers another name: all organizations share the names, and commands go by them."""
        return NameForm(data, initial={"name": obj.name}) if self.has_add_permission(request) else None

    def change(self, request: HttpRequest, obj: Organization, form: ServiceForm) -> str:
        """Rename it."""
        rename_organization(organization=obj, name=form.cleaned_data["name"], actor=actor_of(request))
        return f"It is called {obj.name} now."

    def page_context(self, request: HttpRequest, obj: Organization) -> dict[str, Any]:
        """Return what belongs to it and the settings that hold."""
        chosen, holds = settings_of(organization=obj), effective(obj)
        lists = (
            ("Clients", Client, obj.client_count),  # type: ignore[attr-defined]
            ("API keys", ApiKey, ApiKey.objects.for_organization(obj).count()),
            ("End users", EndUser, obj.end_user_count),  # type: ignore[attr-defined]
            ("Members", Membership, obj.member_count),  # type: ignore[attr-defined]
        )
        return {
            "organization": obj,
            "manages": administers(request, obj.pk),
            "lists": [(title, number, _list_of(model, obj)) for title, model, number in lists],
            "settings": [
                (
                    str(_label(name)),
                    _in_words(name, getattr(holds, name)),
                    getattr(chosen, name) not in (None, ""),
                )
                for name in INHERITED
            ],
            "notifications": _ways(chosen),
            "tokens": _tokens(obj, holds.daily_token_budget),
        }

    # ---- Settings --------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """Add the settings and the secret of the webhook."""
        wrap = self.admin_site.admin_view
        return [
            path(
                "<path:object_id>/settings/",
                wrap(self.settings_view),
                name="tenants_organization_settings",
            ),
            path(
                "<path:object_id>/settings/webhook-secret/",
                wrap(self.webhook_secret_view),
                name="tenants_organization_webhook_secret",
            ),
            *super().get_urls(),
        ]

    def settings_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show and change what an organization chooses for itself."""
        organization = self.manageable(request, object_id)

        def build(data: Any) -> SettingsForm:
            chosen = settings_of(organization=organization)
            return SettingsForm(data, chosen=chosen, inherited=of_installation())

        def save(form: SettingsForm) -> HttpResponse:
            _, secret = change_settings(
                organization=organization, changes=form.changes, actor=actor_of(request)
            )
            if form.changed_data:
                self.log_change(request, organization, [{"changed": {"fields": sorted(form.changed_data)}}])
            if secret:
                return self._webhook_secret_page(request, organization, secret)
            return self.done(request, "The settings are saved.", organization)

        def show(form: SettingsForm, status: int) -> HttpResponse:
            return self.form_page(
                request,
                form,
                title="Settings",
                submit="Save settings",
                obj=organization,
                status=status,
                template="admin/tenants/settings.html",
                **self._settings_context(organization),
            )

        return self.serve_form(request, build, save, show)

    def _settings_context(self, organization: Organization) -> dict[str, Any]:
        chosen = settings_of(organization=organization)
        roles = deciding_roles(organization=organization)
        deciding = Membership.objects.for_organization(organization).filter(role__in=roles)
        return {
            "reachable": len(addresses_of(organization)),
            "deciding": deciding.filter(user__is_active=True).count(),
            "who": "reviewers and administrators" if Role.REVIEWER in roles else "administrators",
            "has_webhook": bool(chosen.webhook_url),
            "notices": Notification.objects.for_organization(organization).order_by("-created_at", "-pk")[
                :NOTICES_SHOWN
            ],
        }

    def webhook_secret_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then put a new secret in the place of the webhook's and show it."""
        organization = self.manageable(request, object_id)

        def save(form: ServiceForm) -> HttpResponse:
            secret = make_webhook_secret(organization=organization, actor=actor_of(request))
            self.log_change(request, organization, "Made a new webhook secret")
            return self._webhook_secret_page(request, organization, secret)

        def show(form: ServiceForm, status: int) -> HttpResponse:
            return self.form_page(
                request,
                form,
                title="New webhook secret",
                text=f"{SIGNING} The old one signs nothing more from then on.",
                submit="Make a new secret",
                is_dangerous=True,
                obj=organization,
                back=reverse("admin:tenants_organization_settings", args=[organization.pk]),
                status=status,
            )

        return self.serve_form(request, ServiceForm, save, show)

    def _webhook_secret_page(
        self, request: HttpRequest, organization: Organization, secret: str
    ) -> HttpResponse:
        return self.secret_page(
            request,
            title="Webhook secret",
            text=f"{SIGNING} This page shows it once; keep it where the receiver can read it.",
            secret=secret,
            facts=[("Organization", organization.name)],
            obj=organization,
        )


def _list_of(model: Any, organization: Organization) -> str:
    return f"{reverse(f'admin:tenants_{model._meta.model_name}_changelist')}?organization={organization.pk}"


def _label(name: str) -> str:
    return str(SettingsForm.base_fields[name].label)


def _in_words(name: str, value: Any) -> str:
    """Return the value of a setting as people read it."""
    if name in WORDS:
        return WORDS[name][value].capitalize()
    if isinstance(value, bool):
        return SWITCH[value].capitalize()
    if name == "min_supporting_sessions":
        return f"{value} session{'' if value == 1 else 's'}"
    if name == "daily_token_budget":
        return str(value) if value else "No limit"
    return f"{value} day{'' if value == 1 else 's'}" if value else "For ever"


def _tokens(organization: Organization, budget: int) -> dict[str, Any]:
    """Return what models used of late, and where today's budget stands."""
    days = list(usage_of(organization=organization)[:DAYS_SHOWN])
    used = sum(day.tokens for day in days if day.day == today())
    left = f", {max(0, budget - used):,} left until {next_day():%H:%M %Z}" if budget else ""
    return {
        "today": f"{used:,} used today{left}",
        "is_over": 0 < budget <= used,
        "days": [
            (day.day.isoformat(), f"{day.prompt_tokens:,}", f"{day.completion_tokens:,}", f"{day.calls:,}")
            for day in days
        ],
    }


def _ways(chosen: OrganizationSettings) -> str:
    """Return the ways by which the organization is told that something waits."""
    ways = ["e-mail"] if chosen.email_digest else []
    if chosen.webhook_url:
        ways.append(f"webhook at {webhook_host(chosen.webhook_url)}")
    return " and ".join(ways).capitalize() or "Off"


@admin.register(Client)
class ClientAdmin(ErasingAdmin):
    """Applications that call the API."""

    page_template = "admin/tenants/client.html"
    add_title = "Add client"
    add_text = (
        "A client is an application that sends sessions and asks for skills. It calls with its own keys."
    )
    list_display = ("name", "organization", "id", "created_at")
    list_filter = (OrganizationFilter,)
    list_select_related = ("organization",)
    search_fields = ("name", "id__startswith")
    ordering = ("organization", "name")
    empty_title = "No client yet"
    empty_text = "A client is an application that sends sessions and asks for skills."
    empty_command = "./run create_client NAME --organization ORGANIZATION"

    def add_form(self, request: HttpRequest, data: Any) -> ClientForm:
        """Ask for organization and name."""
        return ClientForm(
            data, organizations=self.administered(request), chosen=request.GET.get("organization", "")
        )

    def make(self, request: HttpRequest, form: ServiceForm) -> HttpResponse:
        """Make it."""
        values = form.cleaned_data
        made = create_client(
            organization=values["organization"], name=values["name"], actor=actor_of(request)
        )
        return self.made(request, made, f"Made the client {made.name}. It needs a key to call with.")

    def change_form(self, request: HttpRequest, obj: Client, data: Any) -> NameForm:
        """Offer another name."""
        return NameForm(data, initial={"name": obj.name})

    def change(self, request: HttpRequest, obj: Client, form: ServiceForm) -> str:
        """Rename it."""
        rename_client(client=obj, name=form.cleaned_data["name"], actor=actor_of(request))
        return f"It is called {obj.name} now."

    erasing_title = "Erase what it sent"
    erasing_text = (
        "Its requests, turns and searches go at once, with all that was learned of them, and so do end users "
        "of whom nothing else is left. Skills that other clients' sessions support too are set aside until "
        "somebody has reviewed them. The client and its keys stay."
    )

    def erase(self, request: HttpRequest, obj: Client) -> ErasureReceipt:
        """Erase what came through it."""
        return erase_client(client=obj, actor=actor_of(request))

    def page_context(self, request: HttpRequest, obj: Client) -> dict[str, Any]:
        """Return the client with its keys, the usable ones first."""
        keys = ApiKey.objects.for_organization(obj.organization).filter(client=obj)
        return {
            "client": obj,
            "manages": administers(request, obj.organization_id),
            "keys": keys.order_by("-created_at", "pk")[:KEYS_SHOWN],
        }
