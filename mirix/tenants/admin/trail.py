"""What was done, told and erased: audit trail, notifications, receipts, for administrators to read."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from mirix.admin_base import OrganizationFilter, PageAdmin, display, two_lines
from mirix.admin_forms import administered_ids
from mirix.shapes import as_dict, as_numbers
from mirix.tenants.audit import Act
from mirix.tenants.counters import known
from mirix.tenants.models import AuditEvent, ErasureReceipt, Notification, NotificationState
from mirix.text import shorten

ACTS = dict(Act.choices)
STATES = {"Sent": "success", "Waiting": "info", "Failed": "danger"}


class AdministratorAdmin(PageAdmin):
    """Lists that administrators alone may read, each of the organizations that they administer."""

    def allowed(self, request: HttpRequest) -> list[str] | None:
        """Return the ids of the organizations that the user administers."""
        return administered_ids(request)


class ActFilter(admin.SimpleListFilter):
    """Filter by what was done."""

    title = "act"
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer every act there is."""
        return list(Act.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Narrow the list to one act."""
        return queryset.filter(action=self.value()) if self.value() else queryset


@admin.register(AuditEvent)
class AuditEventAdmin(AdministratorAdmin):
    """The audit trail; nobody changes it, the database does not let them."""

    list_title = "Audit trail"
    page_template = "admin/tenants/auditevent.html"
    list_display = ("act", "actor", "about", "organization", "created_at")
    list_filter = (ActFilter, "actor_kind", OrganizationFilter)
    list_select_related = ("organization",)
    search_fields = ("actor_name", "target_id__startswith")
    ordering = ("-created_at", "id")
    empty_title = "Nothing was done yet"
    empty_text = "Every change of organizations, clients, keys, members and settings leaves an event here."

    @display(description="Act", ordering="action")
    def act(self, obj: AuditEvent) -> str:
        """Return what was done."""
        return ACTS.get(obj.action, obj.action)

    @display(description="By", ordering="actor_name")
    def actor(self, obj: AuditEvent) -> str:
        """Return who did it."""
        return two_lines(obj.actor_name or obj.actor_id, obj.get_actor_kind_display())

    @display(description="Details")
    def about(self, obj: AuditEvent) -> str:
        """Return the details in short."""
        return two_lines(shorten(", ".join(in_words(obj.details)), 80), obj.target_id)

    def breadcrumbs(self, obj: Any = None) -> list[dict[str, str]]:
        """Call an event by what was done."""
        crumbs = super().breadcrumbs(obj)
        return crumbs if obj is None else [crumbs[0], {"title": ACTS.get(obj.action, obj.action)}]

    def page_context(self, request: HttpRequest, obj: AuditEvent) -> dict[str, Any]:
        """Return the event in full."""
        return {"event": obj, "act": ACTS.get(obj.action, obj.action), "details": in_words(obj.details)}


def in_words(details: Any) -> list[str]:
    """Return details as people read them: `name: Acme`, and `days: 30 → 7` for a change."""
    return [f"{name.replace('_', ' ')}: {_plain(value)}" for name, value in as_dict(details).items()]


def _plain(value: Any) -> str:
    match value:
        case None | "":
            return "–"
        case bool():
            return "on" if value else "off"
        case list():
            return " → ".join(map(_plain, value))
        case _:
            return str(value)


@admin.register(Notification)
class NotificationAdmin(AdministratorAdmin):
    """What people were told, and why they were not."""

    page_template = "admin/tenants/notification.html"
    list_display = ("what", "channel", "shown_state", "outcome", "organization", "created_at")
    list_filter = ("state", "channel", OrganizationFilter)
    list_select_related = ("organization",)
    ordering = ("-created_at", "id")
    empty_title = "Nobody was told anything yet"
    empty_text = (
        "An organization that turned e-mail or a webhook on in its settings is told when something waits."
    )

    @display(description="Waiting")
    def what(self, obj: Notification) -> str:
        """Return what waited."""
        return ", ".join(counter.in_words(number) for counter, number in known(obj.counts)) or "–"

    @display(description="State", ordering="state", label=STATES)
    def shown_state(self, obj: Notification) -> str:
        """Return the state in a word."""
        return obj.get_state_display()

    @display(description="Outcome")
    def outcome(self, obj: Notification) -> str:
        """Return whom it reached, or why it did not."""
        return obj.error or (f"reached {obj.recipient}" if obj.recipient else "–")

    def page_context(self, request: HttpRequest, obj: Notification) -> dict[str, Any]:
        """Return the notification in full."""
        return {
            "notice": obj,
            "waiting": [
                (counter.in_words(number), counter.url(obj.organization))
                for counter, number in known(obj.counts)
            ],
            "state_colour": STATES[obj.get_state_display()],
            "is_waiting": obj.state == NotificationState.WAITING,
        }


@admin.register(ErasureReceipt)
class ErasureReceiptAdmin(AdministratorAdmin):
    """What was erased, in numbers; nobody changes it, the database does not let them."""

    list_title = "Erasures"
    page_template = "admin/tenants/erasurereceipt.html"
    list_display = ("what", "rows", "actor", "organization", "created_at")
    list_filter = ("kind", OrganizationFilter)
    list_select_related = ("organization",)
    search_fields = ("id__startswith", "subject_id__startswith", "subject_hash__startswith")
    ordering = ("-created_at", "id")
    empty_title = "Nothing was erased yet"
    empty_text = "Whoever erases an end user, a client's data or a skill leaves a receipt with counts here."

    @display(description="Erased", ordering="kind")
    def what(self, obj: ErasureReceipt) -> str:
        """Return what it was of."""
        return two_lines(obj.get_kind_display(), obj.subject_id)

    @display(description="Rows")
    def rows(self, obj: ErasureReceipt) -> str:
        """Return how many rows went."""
        return f"{obj.total:,}"

    @display(description="By", ordering="actor_name")
    def actor(self, obj: ErasureReceipt) -> str:
        """Return who did it."""
        return two_lines(obj.actor_name or obj.actor_id, obj.get_actor_kind_display())

    def page_context(self, request: HttpRequest, obj: ErasureReceipt) -> dict[str, Any]:
        """Return the receipt with a line for each table."""
        digests = as_dict(obj.digests)
        lines = [
            (label, f"{number:,}", digests.get(label, "")) for label, number in as_numbers(obj.counts).items()
        ]
        return {"receipt": obj, "lines": lines, "total": f"{obj.total:,}"}
