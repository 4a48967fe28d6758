"""Pages of the admin with forms: who may write, how a form reaches its service, and what is shown once.

Forms hold no rules of their own: valid input goes to a service, and what the service refuses is said at the
field. Administrators of an organization write in it, superusers everywhere; others read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables

from mirix.admin_base import PageAdmin, roles
from mirix.tenants.audit import Actor
from mirix.tenants.models import Organization, Role
from mirix.tenants.principal import OPERATING_ROLES
from mirix.tenants.querysets import organization_id_of
from mirix.text import clean_text

MAX_CHOICES = 200
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
ADMINISTERING_ROLES = frozenset({Role.ADMINISTRATOR.value})
Result = TypeVar("Result")


class WholeNumberField(forms.IntegerField):
    """A whole number in the ten digits; what Python reads besides, as `1_000` or `١٢`, is refused."""

    def to_python(self, value: Any) -> int | None:
        """Return the number; raises `ValidationError` for what is none as people write it here."""
        if isinstance(value, str) and value.strip() and not WHOLE_NUMBER.fullmatch(value.strip()):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        number: int | None = super().to_python(value)
        return number


def ids_with_role(request: HttpRequest, wanted: Collection[str]) -> list[str] | None:
    """Return the ids of the organizations in which the user has one of some roles; None stands for all."""
    if getattr(request.user, "is_superuser", False):
        return None
    return sorted(pk for pk, role in roles(request).items() if role in wanted)


def administered_ids(request: HttpRequest) -> list[str] | None:
    """Return the ids of the organizations that the user administers; None stands for all."""
    return ids_with_role(request, ADMINISTERING_ROLES)


def administers(request: HttpRequest, organization_id: str | None) -> bool:
    """Return whether the user administers that organization."""
    allowed = administered_ids(request)
    return allowed is None or organization_id in allowed


def operated_ids(request: HttpRequest) -> list[str] | None:
    """Return the ids of the organizations in which the user may operate; None stands for all."""
    return ids_with_role(request, OPERATING_ROLES)


def operates(request: HttpRequest, organization_id: str | None) -> bool:
    """Return whether the user may replay, close and run in that organization."""
    allowed = operated_ids(request)
    return allowed is None or organization_id in allowed


def actor_of(request: HttpRequest) -> Actor:
    """Return who acts, for the audit trail."""
    assert isinstance(request.user, User)  # nobody else passes the admin's door
    return Actor.of_user(request.user)


class ServiceForm(forms.Form):
    """A form in our look; fields say what they are, and services what they allow."""

    marks_optional = True
    """Whether fields that may stay empty say so; pointless where all may."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput | forms.RadioSelect):
                field.widget.attrs.setdefault("class", "mx-input")

    def refuse(self, error: ValidationError) -> None:
        """Show what a service refused, at the fields it names where this form has them."""
        for name, messages in _by_field(error).items():
            self.add_error(name if name in self.fields else None, messages)


def _by_field(error: ValidationError) -> dict[str, list[str]]:
    return error.message_dict if hasattr(error, "error_dict") else {NON_FIELD_ERRORS: error.messages}


class ScopedChoice(forms.ModelChoiceField):
    """A choice among the rows that the user may use; a hidden field where there is but one.

    Offers the first 200 and the one that the address names; accepts each that is within the scope.
    """

    only = ""
    """What the one row is called that there is to choose."""

    def scope(self, rows: QuerySet, chosen: str) -> str:
        """Limit the field to `rows` and return what it holds at first."""
        self.queryset = rows
        offered = list(rows[: MAX_CHOICES + 1])
        if chosen and not any(row.pk == chosen for row in offered):
            offered += rows.filter(pk=clean_text(chosen))
        labels = [(row.pk, self.label_from_instance(row)) for row in offered]
        if len(labels) == 1:
            self.widget = forms.HiddenInput()
            self.only = labels[0][1]
            return str(labels[0][0])
        self.choices = [("", "Choose one"), *labels]
        return chosen

    def to_python(self, value: Any) -> Any:
        """Return the row; a value that PostgreSQL would refuse is no choice either."""
        if isinstance(value, str) and "\x00" in value:
            raise ValidationError(self.error_messages["invalid_choice"], code="invalid_choice")
        return super().to_python(value)


class ManagedAdmin(PageAdmin):
    """Rows that administrators make and change, each by a form that goes to a service."""

    add_text = ""
    """What the page that makes a row says under its heading, `add_title`."""

    def administered(self, request: HttpRequest) -> QuerySet:
        """Return the organizations that the user administers."""
        return Organization.objects.for_organizations(administered_ids(request)).order_by("name")

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let administrators make rows."""
        allowed = administered_ids(request)
        return bool(self.add_title) and (allowed is None or bool(allowed))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let administrators change the rows of their organizations; the list offers nothing to change."""
        return obj is not None and administers(request, organization_id_of(obj))

    # ---- Making a row ----------------------------------------------------------------------------

    def add_form(self, request: HttpRequest, data: Any) -> ServiceForm:
        """Return the form that makes a row, unbound where `data` is None."""
        raise NotImplementedError

    def make(self, request: HttpRequest, form: ServiceForm) -> HttpResponse:
        """Make the row by a service and return where to go; a `ValidationError` is shown in the form."""
        raise NotImplementedError

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the form that makes a row, and make it."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return self.serve_form(
            request,
            lambda data: self.add_form(request, data),
            lambda form: self.make(request, form),
            lambda form, status: self.form_page(
                request, form, title=self.add_title, text=self.add_text, status=status
            ),
        )

    # ---- Changing a row --------------------------------------------------------------------------

    def change_form(self, request: HttpRequest, obj: Any, data: Any) -> ServiceForm | None:
        """Return the form on the row's own page; None where there is nothing to change."""
        return None

    def change(self, request: HttpRequest, obj: Any, form: ServiceForm) -> str:
        """Change the row by a service and return what to say."""
        raise NotImplementedError

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the row with its form, and change it."""
        if request.method in ("GET", "HEAD"):
            obj = self.visible_object(request, object_id)
            return self.page(request, obj, {"form": self._form_for(request, obj, None)})
        obj = self.manageable(request, object_id)
        if self._form_for(request, obj, None) is None:
            return HttpResponseNotAllowed(["GET", "HEAD"])

        def save(form: ServiceForm) -> HttpResponse:
            message = self.change(request, obj, form)
            self.log_change(request, obj, [{"changed": {"fields": sorted(form.changed_data)}}])
            return self.done(request, message, obj)

        return self.serve_form(
            request,
            lambda data: self.change_form(request, obj, data),
            save,
            lambda form, status: self.page(request, obj, {"form": form}, status=status),
        )

    def manageable(self, request: HttpRequest, object_id: str) -> Any:
        """Return the row that the user may change; 404 for a stranger, 403 for who only reads."""
        obj = self.visible_object(request, object_id)
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        return obj

    def _form_for(self, request: HttpRequest, obj: Any, data: Any) -> ServiceForm | None:
        return self.change_form(request, obj, data) if self.has_change_permission(request, obj) else None

    # ---- What both have in common ------------------------------------------------------------------

    def serve_form(
        self,
        request: HttpRequest,
        build: Callable[[Any], Any],
        save: Callable[[Any], HttpResponse],
        show: Callable[[Any, int], HttpResponse],
    ) -> HttpResponse:
        """Show a form on GET; on POST save it and go on, or show what was wrong with it, with status 400."""
        if request.method in ("GET", "HEAD"):
            return show(build(None), 200)
        if request.method != "POST":
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        form = build(request.POST)
        if form.is_valid():
            try:
                with transaction.atomic():
                    return save(form)
            except ValidationError as error:
                form.refuse(error)
        return show(form, 400)

    def made(self, request: HttpRequest, obj: Model, message: str) -> HttpResponse:
        """Say that a row was made and show it."""
        self.log_addition(request, obj, [{"added": {}}])
        return self.done(request, message, obj)

    def done(self, request: HttpRequest, message: str, obj: Any = None) -> HttpResponse:
        """Say what was done and show the row, or the list."""
        self.message_user(request, message)
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_"
        if obj is None:
            return HttpResponseRedirect(reverse(f"{name}changelist"))
        return HttpResponseRedirect(reverse(f"{name}change", args=[obj.pk]))

    def form_page(
        self,
        request: HttpRequest,
        form: ServiceForm,
        *,
        title: str,
        text: str = "",
        submit: str = "",
        is_dangerous: bool = False,
        obj: Any = None,
        back: str = "",
        status: int = 200,
        template: str = "admin/mirix/form.html",
        **extra: Any,
    ) -> HttpResponse:
        """Render a page of one form: to make a row, or to confirm what cannot be undone."""
        context = {
            "form": form,
            "title": title,
            "text": text,
            "submit": submit or title,
            "is_dangerous": is_dangerous,
            "back": back or self.address_of(obj),
            "called": self.breadcrumbs(obj)[-1]["title"] if obj is not None else "",
            "original": obj,
            **extra,
        }
        return self.render(request, template, context, obj, title, status)

    @sensitive_variables("secret")
    def secret_page(
        self,
        request: HttpRequest,
        *,
        title: str,
        text: str,
        secret: str,
        facts: Sequence[tuple[str, Any]],
        obj: Any,
    ) -> HttpResponse:
        """Render the one page that ever shows a secret; like all of the admin's, no cache keeps it."""
        context = {
            "secret": secret,
            "title": title,
            "text": text,
            "facts": facts,
            "back": self.address_of(obj),
        }
        return self.render(request, "admin/mirix/secret.html", context, obj, title, 200)

    def address_of(self, obj: Any) -> str:
        """Return the address of a row's page, or of the list."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_"
        return reverse(f"{name}change", args=[obj.pk]) if obj is not None else reverse(f"{name}changelist")

    def render(
        self, request: HttpRequest, template: str, context: dict[str, Any], obj: Any, title: str, status: int
    ) -> HttpResponse:
        """Render a page under the title of its list and row."""
        request.current_app = self.admin_site.name
        *crumbs, last = self.breadcrumbs(obj)
        request.__dict__["breadcrumbs"] = [*crumbs, last | {"link": self.address_of(obj)}, {"title": title}]
        context = {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media, **context}
        return TemplateResponse(request, template, context, status=status)
