"""API keys: made, rotated and revoked. The key itself is on one page, once: the answer to the POST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mirix.admin_base import OrganizationFilter, display
from mirix.admin_forms import ManagedAdmin, ServiceForm, actor_of, administered_ids, administers
from mirix.tenants.admin.forms import KeyForm, RotateForm
from mirix.tenants.keys import create_api_key, revoke_api_key, rotate_api_key
from mirix.tenants.models import ApiKey, Client

STATES = {"Usable": "success", "Ends soon": "warning", "Expired": "warning", "Revoked": "danger"}
ONCE = "Copy it now: only a fingerprint is stored, so nobody can show it again. Send it as X-API-Key."


class StateFilter(admin.SimpleListFilter):
    """Usable, expired or revoked."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the three."""
        return [("usable", "Usable"), ("expired", "Expired"), ("revoked", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Filter by what a caller with the key would see."""
        now = timezone.now()
        match self.value():
            case "usable":
                return queryset.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)
            case "expired":
                return queryset.filter(expires_at__lte=now, revoked_at=None)
            case "revoked":
                return queryset.exclude(revoked_at=None)
        return queryset


@admin.register(ApiKey)
class ApiKeyAdmin(ManagedAdmin):
    """Keys of clients: everything but the secret, of which only a hash exists."""

    list_title = "API keys"
    page_template = "admin/tenants/key.html"
    add_title = "Add API key"
    add_text = "The key speaks for one client. It is shown once, after you have made it."
    list_display = ("shown", "client", "organization", "permission", "state", "last_used_at", "expires_at")
    list_filter = (StateFilter, "permission", OrganizationFilter)
    list_select_related = ("organization", "client")
    search_fields = ("prefix__startswith", "name", "client__name")
    ordering = ("-created_at", "id")
    empty_title = "No API key yet"
    empty_text = "A key is shown once, when it is made; here you see what it may do and when it was used."
    empty_command = "./run create_api_key --organization ORGANIZATION --client CLIENT"

    @display(description="Key")
    def shown(self, obj: ApiKey) -> str:
        """Return the part of the key that may be shown."""
        return f"{obj.prefix}…"

    @display(description="State", label=STATES)
    def state(self, obj: ApiKey) -> str:
        """Return whether the key still opens the door."""
        return state_of(obj)

    def get_urls(self) -> list[URLPattern]:
        """Add rotation and revocation."""
        wrap = self.admin_site.admin_view
        return [
            path("<path:object_id>/rotate/", wrap(self.rotate_view), name="tenants_apikey_rotate"),
            path("<path:object_id>/revoke/", wrap(self.revoke_view), name="tenants_apikey_revoke"),
            *super().get_urls(),
        ]

    def page_context(self, request: HttpRequest, obj: ApiKey) -> dict[str, Any]:
        """Return the key's facts, and what may be done with it."""
        state = state_of(obj)
        return {
            "key": obj,
            "state": state,
            "state_colour": STATES[state],
            "replaces": ApiKey.objects.for_organization(obj.organization).filter(replaced_by=obj).first(),
            "may_rotate": obj.is_usable and obj.replaced_by_id is None,
            "may_revoke": obj.revoked_at is None,
            "manages": administers(request, obj.organization_id),
        }

    def add_form(self, request: HttpRequest, data: Any) -> KeyForm:
        """Ask for the client, what the key may do, and how long."""
        clients = Client.objects.for_organizations(administered_ids(request))
        clients = clients.select_related("organization").order_by("organization__name", "name")
        if organization := request.GET.get("organization", ""):
            clients = clients.filter(organization=organization.replace("\x00", ""))
        return KeyForm(data, clients=clients, chosen=request.GET.get("client", ""))

    @sensitive_variables("secret")
    def make(self, request: HttpRequest, form: ServiceForm) -> HttpResponse:
        """Make it and show it."""
        values = form.cleaned_data
        days = values["days"]
        row, secret = create_api_key(
            client=values["client"],
            name=values["name"],
            permission=values["permission"],
            expires_at=timezone.now() + timedelta(days=days) if days else None,
            actor=actor_of(request),
        )
        self.log_addition(request, row, [{"added": {}}])
        return self._secret_page(request, row, secret, title="API key made")

    def rotate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask how long the old key shall work, then make and show the new one."""
        key = self.manageable(request, object_id)

        @sensitive_variables("secret")
        def save(form: RotateForm) -> HttpResponse:
            row, secret = rotate_api_key(
                api_key=key,
                overlap=timedelta(hours=form.cleaned_data["overlap_hours"]),
                actor=actor_of(request),
            )
            self.log_change(request, key, "Rotated")
            key.refresh_from_db()
            return self._secret_page(request, row, secret, title="API key rotated", replaces=key)

        def show(form: RotateForm, status: int) -> HttpResponse:
            return self.form_page(
                request,
                form,
                title="Rotate",
                text=f"A new key takes the place of {key.prefix}…: same client, same permission. Both work "
                "until the overlap ends, then only the new one.",
                submit="Make the new key",
                obj=key,
                status=status,
            )

        return self.serve_form(request, RotateForm, save, show)

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then revoke."""
        key = self.manageable(request, object_id)

        def save(form: ServiceForm) -> HttpResponse:
            revoke_api_key(api_key=key, actor=actor_of(request))
            self.log_change(request, key, "Revoked")
            return self.done(request, f"{key.prefix}… is revoked.", key)

        def show(form: ServiceForm, status: int) -> HttpResponse:
            return self.form_page(
                request,
                form,
                title="Revoke",
                text=f"Whoever calls with {key.prefix}… gets a 401 at once. This cannot be undone.",
                submit="Revoke the key",
                is_dangerous=True,
                obj=key,
                status=status,
            )

        return self.serve_form(request, ServiceForm, save, show)

    @sensitive_variables("secret")
    def _secret_page(
        self, request: HttpRequest, row: ApiKey, secret: str, *, title: str, replaces: ApiKey | None = None
    ) -> HttpResponse:
        facts: list[tuple[str, Any]] = [
            ("Client", row.client.name),
            ("Organization", row.organization.name),
            ("Permission", row.get_permission_display()),
        ]
        if row.expires_at:
            facts.append(("Expires", row.expires_at))
        if replaces is not None:
            facts.append((f"{replaces.prefix}… works until", replaces.expires_at))
        return self.secret_page(request, title=title, text=ONCE, secret=secret, facts=facts, obj=row)


def state_of(key: ApiKey) -> str:
    """Return in a word whether the key still opens the door."""
    if key.revoked_at is not None:
        return "Revoked"
    if not key.is_usable:
        return "Expired"
    return "Ends soon" if key.replaced_by_id is not None else "Usable"
