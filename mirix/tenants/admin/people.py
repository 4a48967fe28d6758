"""The people: end users, whose memory it is, and members, who log in."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.debug import sensitive_variables

from mirix.admin_base import OrganizationFilter
from mirix.admin_erasing import ErasingAdmin
from mirix.admin_forms import ManagedAdmin, ServiceForm, actor_of, administered_ids, administers
from mirix.tenants.admin.forms import EndUserForm, EndUserNameForm, MemberForm, RoleForm
from mirix.tenants.erasure import erase_end_user
from mirix.tenants.members import add_existing_member, add_new_member, remove_member, set_membership
from mirix.tenants.models import EndUser, ErasureReceipt, Membership
from mirix.tenants.services import create_end_user, rename_end_user


@admin.register(EndUser)
class EndUserAdmin(ErasingAdmin):
    """The people and agents whose memory it is."""

    page_template = "admin/tenants/enduser.html"
    add_title = "Add end user"
    add_text = "End users appear by themselves with their first session; make one here to name them before."
    list_display = ("user_id", "name", "organization", "created_at")
    list_filter = (OrganizationFilter,)
    list_select_related = ("organization",)
    search_fields = ("user_id__startswith", "name__startswith")
    ordering = ("-created_at", "id")
    empty_title = "No end user yet"
    empty_text = "End users appear with the first session that a client sends for them."

    def add_form(self, request: HttpRequest, data: Any) -> EndUserForm:
        """Ask for organization, id and name."""
        return EndUserForm(
            data, organizations=self.administered(request), chosen=request.GET.get("organization", "")
        )

    def make(self, request: HttpRequest, form: ServiceForm) -> HttpResponse:
        """Make it."""
        made = create_end_user(**form.cleaned_data, actor=actor_of(request))
        return self.made(request, made, "Made the end user.")

    def change_form(self, request: HttpRequest, obj: EndUser, data: Any) -> EndUserNameForm:
        """Offer another name."""
        return EndUserNameForm(data, initial={"name": obj.name})

    def change(self, request: HttpRequest, obj: EndUser, form: ServiceForm) -> str:
        """Rename it."""
        rename_end_user(end_user=obj, name=form.cleaned_data["name"], actor=actor_of(request))
        return "The name is saved."

    erasing_title = "Erase this end user"
    erasing_text = (
        "Sessions, lessons, skills with their past, searches and the end user's own row go at once, and "
        "nobody can bring them back. A receipt with counts stays, without a word of what it was."
    )

    def erase(self, request: HttpRequest, obj: EndUser) -> ErasureReceipt:
        """Erase the end user."""
        return erase_end_user(end_user=obj, actor=actor_of(request))

    def page_context(self, request: HttpRequest, obj: EndUser) -> dict[str, Any]:
        """Return the end user."""
        return {"end_user": obj, "may_erase": administers(request, obj.organization_id)}


@admin.register(Membership)
class MembershipAdmin(ManagedAdmin):
    """Who may log in to which organization, and as what."""

    list_title = "Members"
    page_template = "admin/tenants/member.html"
    add_title = "Add member"
    add_text = "Reviewers decide on proposals, operators run and import, administrators do everything."
    list_display = ("user", "organization", "role", "created_at")
    list_filter = ("role", OrganizationFilter)
    list_select_related = ("organization", "user")
    search_fields = ("user__username",)
    ordering = ("organization", "user__username")
    empty_title = "No member yet"
    empty_text = "Reviewers decide on proposals, operators run and import, administrators do both."
    empty_command = "./run add_member USERNAME --organization ORGANIZATION --role reviewer"

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Search addresses only for who may see those of all who are listed: a list tells what it finds."""
        listed, administered = self.allowed(request), administered_ids(request)
        return (*self.search_fields, "user__email") if listed == administered else self.search_fields

    def get_urls(self) -> list[URLPattern]:
        """Add the removal."""
        view = self.admin_site.admin_view(self.remove_view)
        return [
            path("<path:object_id>/remove/", view, name="tenants_membership_remove"),
            *super().get_urls(),
        ]

    def add_form(self, request: HttpRequest, data: Any) -> MemberForm:
        """Ask for the organization, the person and the role."""
        return MemberForm(
            data,
            organizations=self.administered(request),
            chosen=request.GET.get("organization", ""),
            may_join=administered_ids(request) is None,
        )

    @sensitive_variables("password")
    def make(self, request: HttpRequest, form: Any) -> HttpResponse:
        """Give a person the role; a new login's password is shown once."""
        values, actor = form.cleaned_data, actor_of(request)
        organization, role = values["organization"], values["role"]
        if not form.is_new:
            member = add_existing_member(
                organization=organization, name=values["username"], role=role, actor=actor
            )
            return self.made(request, member, f"{member.user} is a member of {organization} now.")
        member, password = add_new_member(
            organization=organization,
            username=values["username"],
            email=values["email"],
            role=role,
            actor=actor,
        )
        self.log_addition(request, member, [{"added": {}}])
        return self.secret_page(
            request,
            title="Login made",
            text="Give the password to them now: it is not shown again. They can change it after logging in.",
            secret=password,
            facts=[
                ("User name", member.user.get_username()),
                ("Organization", organization.name),
                ("Role", member.get_role_display()),
            ],
            obj=member,
        )

    def change_form(self, request: HttpRequest, obj: Membership, data: Any) -> RoleForm:
        """Offer another role."""
        return RoleForm(data, initial={"role": obj.role})

    def change(self, request: HttpRequest, obj: Membership, form: ServiceForm) -> str:
        """Give the other role."""
        member, _ = set_membership(
            organization=obj.organization,
            user=obj.user,
            role=form.cleaned_data["role"],
            actor=actor_of(request),
        )
        return f"{member.user} is {member.role} now."

    def page_context(self, request: HttpRequest, obj: Membership) -> dict[str, Any]:
        """Return the member; their address is for those who manage them."""
        return {"member": obj, "manages": administers(request, obj.organization_id)}

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then take the role away."""
        member = self.manageable(request, object_id)
        name, organization = member.user.get_username(), member.organization.name

        def save(form: ServiceForm) -> HttpResponse:
            self.log_change(request, member, "Removed")
            remove_member(membership=member, actor=actor_of(request))
            return self.done(request, f"{name} is no member of {organization} any more.")

        def show(form: ServiceForm, status: int) -> HttpResponse:
            return self.form_page(
                request,
                form,
                title="Remove",
                text=f"{name} loses every access to {organization} at once. The login itself stays, and so "
                "does the name in decisions and in the audit trail.",
                submit="Remove the member",
                is_dangerous=True,
                obj=member,
                status=status,
            )

        return self.serve_form(request, ServiceForm, save, show)
