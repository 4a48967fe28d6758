"""Admin pages of packages that we build on, shown to superusers alone: logins and the jobs of the worker."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.views.decorators.debug import sensitive_variables
from procrastinate.contrib.django.admin import ProcrastinateEventInline, ProcrastinateJobAdmin
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework_simplejwt.token_blacklist.admin import BlacklistedToken, OutstandingToken

from mirix.admin_base import (
    AdminPasswordChangeForm,
    CappedPaginator,
    TitledAdmin,
    UserChangeForm,
    UserCreationForm,
    display,
)
from mirix.admin_forms import actor_of
from mirix.tenants import logins

admin.site.unregister([User, Group, ProcrastinateJob])
admin.site.unregister([BlacklistedToken, OutstandingToken])  # ids alone: nothing there is for people


class SuperuserAdmin(TitledAdmin):
    """Pages of rows that belong to no organization."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Let superusers in alone."""
        return bool(getattr(request.user, "is_superuser", False))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let superusers in alone."""
        return self.has_module_permission(request)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Show it to superusers; Django would look for the row first, and tell others whether it is there."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return super().history_view(request, object_id, extra_context)


class LoginForm(UserChangeForm):
    """A login; it says what the service will refuse."""

    def clean(self) -> dict[str, Any]:
        """Refuse to switch the last administrator of an organization off."""
        values: dict[str, Any] = super().clean()
        if not (values.get("is_active") and values.get("is_staff")):
            logins.require_other_administrators(user=self.instance)
        return values


@admin.register(User)
class UserAdmin(SuperuserAdmin, DjangoUserAdmin):
    """People who log in; what they may do in an organization is their membership there.

    A login that is a member somewhere is not deleted: its memberships have to be removed first.
    """

    list_title = "Logins"
    add_title = "Add login"
    form = LoginForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    list_per_page = 50
    paginator = CappedPaginator
    show_full_result_count = False
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    # The theme's own has no field, and stands before Django's.
    add_fieldsets = ((None, {"fields": ("username", "usable_password", "password1", "password2")}),)
    readonly_fields = ("last_login", "date_joined")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Store it by the service, which leaves a trail."""
        logins.save_login(user=obj, actor=actor_of(request))

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Delete it by the service, which leaves a trail."""
        logins.delete_login(user=obj, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Delete each by the service."""
        for user in queryset:
            self.delete_model(request, user)

    @sensitive_variables()
    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002 Django's name
        form_url: str = "",
    ) -> HttpResponse:
        """Set the password of somebody, which leaves a trail."""
        with transaction.atomic():
            before = self.get_object(request, unquote(id))
            response = super().user_change_password(request, id, form_url)
            if before is not None:
                logins.record_changes(before=before, actor=actor_of(request))
        return response


STATUS_COLOURS = {"Todo": "info", "Doing": "info", "Succeeded": "success", "Failed": "danger"}


class JobEvents(ProcrastinateEventInline):
    """What happened to a job; the worker alone adds to it."""

    extra = 0
    verbose_name_plural = "What happened"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let nobody add events by hand."""
        return False


@admin.register(ProcrastinateJob)
class JobAdmin(SuperuserAdmin, ProcrastinateJobAdmin):
    """Jobs of the worker, of all organizations; to look at, since retrying is the worker's own duty."""

    list_title = "Jobs"
    actions = None
    list_display = ("pk", "short_task_name", "pretty_args", "shown_status", "summary")
    list_filter = ("status", "queue_name")
    ordering = ("-id",)
    list_per_page = 50
    paginator = CappedPaginator
    show_full_result_count = False
    fields = (
        "pk",
        "short_task_name",
        "pretty_args",
        "shown_status",
        "queue_name",
        "lock",
        "queueing_lock",
        "priority",
        "scheduled_at",
        "attempts",
    )
    inlines = (JobEvents,)

    @display(description="Status", label=STATUS_COLOURS)
    def shown_status(self, obj: ProcrastinateJob) -> str:
        """Return the status in a word; the package's own has a picture that few fonts hold."""
        return obj.status.capitalize()
