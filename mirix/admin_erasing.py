"""Erasing from a page of the admin: administrators alone, and only who types the name."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from mirix.admin_forms import ManagedAdmin, ServiceForm, administers
from mirix.tenants.erasure import NothingThere
from mirix.tenants.models import ErasureReceipt

OTHER_NAME = "That is another name."


class TypedConfirmation(ServiceForm):
    """Asks for the name of what is to go."""

    typed = forms.CharField(label="Type the name or the id to confirm", max_length=300)

    def __init__(self, data: Any, *, names: tuple[str, ...]) -> None:
        super().__init__(data)
        self._names = {name.strip() for name in names}

    def clean_typed(self) -> str:
        """Refuse any other name."""
        typed: str = self.cleaned_data["typed"]
        if typed not in self._names:
            raise ValidationError(OTHER_NAME)
        return typed


class ErasingAdmin(ManagedAdmin):
    """Rows that administrators may erase, with everything that hangs on them."""

    erasing_title = "Erase"
    erasing_text = ""
    """What goes, and what stays."""

    def get_urls(self) -> list[URLPattern]:
        """Add the page that asks."""
        view = self.admin_site.admin_view(self.erase_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_erase"
        return [path("<path:object_id>/erase/", view, name=name), *super().get_urls()]

    def name_of(self, obj: Any) -> str:
        """Return what has to be typed; the id does as well, since some names nobody can type."""
        return str(obj)

    def erase(self, request: HttpRequest, obj: Any) -> ErasureReceipt:
        """Erase it by a service."""
        raise NotImplementedError

    def erase_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then erase; no line of the admin's log says what it was called."""
        obj = self.visible_object(request, object_id)
        if not administers(request, obj.organization_id):
            raise PermissionDenied
        names = (self.name_of(obj), str(obj.pk))

        def save(form: ServiceForm) -> HttpResponse:
            try:
                receipt = self.erase(request, obj)
            except NothingThere as error:
                raise ValidationError("Somebody else has erased it meanwhile.") from error
            rows = "1 row" if receipt.total == 1 else f"{receipt.total:,} rows"
            return self.done(request, f"Erased: {rows}. {receipt.pk} is the receipt.")

        return self.serve_form(
            request,
            lambda data: TypedConfirmation(data, names=names),
            save,
            lambda form, status: self.form_page(
                request,
                form,
                title=self.erasing_title,
                text=self.erasing_text,
                submit="Erase for good",
                is_dangerous=True,
                obj=obj,
                status=status,
            ),
        )
