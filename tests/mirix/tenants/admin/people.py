"""Who looks at the pages, and how to see that nothing happened."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client as Browser
from django.urls import reverse

from mirix.tenants.models import Organization
from tests.factories import make_member, make_superuser


def browser_of(user: User | None) -> Browser:
    browser = Browser()
    if user is not None:
        browser.force_login(user)
    return browser


def member(organization: Organization, role: str = "administrator", username: str | None = None) -> Browser:
    return browser_of(make_member(organization, role, username))


def superuser() -> Browser:
    return browser_of(make_superuser())


def url(name: str, *args: str) -> str:
    return reverse(f"admin:tenants_{name}", args=args)


def stored() -> dict[str, list[Any]]:
    """Everything that administration could have changed, to compare before and after."""
    models = [*apps.get_app_config("tenants").get_models(), LogEntry]
    rows: dict[str, list[Any]] = {
        model._meta.label: list(model._default_manager.order_by("pk").values()) for model in models
    }
    return rows | {
        "users": list(User.objects.order_by("pk").values("username", "password", "email", "is_staff"))
    }
