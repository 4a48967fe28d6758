"""Who is who, to look at: organizations, clients, keys, end users and members.

They are made by commands and services; secrets are not among what is shown.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from mirix.admin_base import OrganizationFilter, TenantAdmin, display
from mirix.tenants.models import ApiKey, Client, EndUser, Membership, Organization


def _count_of(related: Any, link: str) -> Coalesce:
    """Return a subquery that counts the rows of `related` whose `link` is the outer row."""
    counts = related.objects.filter(**{link: OuterRef("pk")}).order_by().values(link).annotate(n=Count("pk"))
    return Coalesce(Subquery(counts.values("n")), 0)


@admin.register(Organization)
class OrganizationAdmin(TenantAdmin):
    """Tenants."""

    list_display = ("name", "clients", "end_users", "members", "created_at")
    search_fields = ("name",)
    fields = ("id", "name", "created_at")
    readonly_fields = ("id",)
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
    def clients(self, obj: Any) -> int:
        """Return how many clients it has."""
        return obj.client_count

    @display(description="End users", ordering="end_user_count")
    def end_users(self, obj: Any) -> int:
        """Return how many end users it has."""
        return obj.end_user_count

    @display(description="Members", ordering="member_count")
    def members(self, obj: Any) -> int:
        """Return how many people may log in to it."""
        return obj.member_count


@admin.register(Client)
class ClientAdmin(TenantAdmin):
    """Applications that call the API."""

    list_display = ("name", "organization", "id", "created_at")
    list_filter = (OrganizationFilter,)
    list_select_related = ("organization",)
    search_fields = ("name", "id__startswith")
    fields = ("id", "organization", "name", "default_user_id", "created_at")
    readonly_fields = ("id", "default_user_id")
    ordering = ("organization", "name")
    empty_title = "No client yet"
    empty_text = "A client is an application that sends sessions and asks for skills."
    empty_command = "./run create_client NAME --organization ORGANIZATION"


@admin.register(ApiKey)
class ApiKeyAdmin(TenantAdmin):
    """Keys of clients: everything but the secret, of which only a hash exists."""

    list_title = "API keys"
    list_display = ("shown", "client", "organization", "permission", "state", "last_used_at", "expires_at")
    list_filter = ("permission", OrganizationFilter)
    list_select_related = ("organization", "client")
    search_fields = ("prefix__startswith", "name", "client__name")
    fields = (
        "shown",
        "name",
        "organization",
        "client",
        "permission",
        "state",
        "expires_at",
        "revoked_at",
        "last_used_at",
        "created_at",
    )
    readonly_fields = ("shown", "state")
    ordering = ("-created_at", "id")
    empty_title = "No API key yet"
    empty_text = "A key is shown once, when it is made; here you see what it may do and when it was used."
    empty_command = "./run create_api_key --organization ORGANIZATION --client CLIENT"

    @display(description="Key")
    def shown(self, obj: ApiKey) -> str:
        """Return the part of the key that may be shown."""
        return f"{obj.prefix}…"

    @display(description="State", label={"Usable": "success", "Revoked": "danger", "Expired": "warning"})
    def state(self, obj: ApiKey) -> str:
        """Return whether the key still opens the door."""
        if obj.revoked_at is not None:
            return "Revoked"
        return "Expired" if obj.expires_at is not None and obj.expires_at <= timezone.now() else "Usable"


@admin.register(EndUser)
class EndUserAdmin(TenantAdmin):
    """The people and agents whose memory it is."""

    list_display = ("user_id", "name", "organization", "created_at")
    list_filter = (OrganizationFilter,)
    list_select_related = ("organization",)
    search_fields = ("user_id__startswith", "name__startswith")
    fields = ("id", "organization", "user_id", "name", "created_at")
    readonly_fields = ("id",)
    ordering = ("-created_at", "id")
    empty_title = "No end user yet"
    empty_text = "End users appear with the first session that a client sends for them."


@admin.register(Membership)
class MembershipAdmin(TenantAdmin):
    """Who may log in to which organization, and as what."""

    list_title = "Members"
    list_display = ("user", "organization", "role", "created_at")
    list_filter = ("role", OrganizationFilter)
    list_select_related = ("organization", "user")
    search_fields = ("user__username", "user__email")
    fields = ("user", "organization", "role", "created_at")
    ordering = ("organization", "user__username")
    empty_title = "No member yet"
    empty_text = "Reviewers decide on proposals, operators run and import, administrators do both."
    empty_command = "./run add_member USERNAME --organization ORGANIZATION --role reviewer"
