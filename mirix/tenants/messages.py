"""What a notification says: counts and links, and no text that anybody's agents or users wrote."""

from __future__ import annotations

import json

from django.conf import settings
from django.urls import reverse

from mirix.tenants.counters import known
from mirix.tenants.models import Notification, Organization
from mirix.text import shorten


def title(notification: Notification) -> str:
    """Return one line: how much of what waits where."""
    what = ", ".join(counter.in_words(number) for counter, number in known(notification.counts))
    verb = "waits" if sum(notification.counts.values()) == 1 else "wait"
    return f"{what} {verb} in {_name(notification.organization)}"


def mail_text(notification: Notification) -> str:
    """Return the body of the e-mail: each kind with the address of its list, and how to turn this off."""
    organization = notification.organization
    name = _name(organization)
    lines = [
        f"{counter.in_words(number)}:\n{counter.url(organization)}"
        for counter, number in known(notification.counts)
    ]
    page = settings.MIRIX_PUBLIC_URL + reverse("admin:tenants_organization_settings", args=[organization.pk])
    footer = (
        f"You get this at most once a day, as reviewer or administrator of {name}. "
        f"Administrators turn it off here:\n{page}"
    )
    return "\n\n".join([f"Waiting in {name}:", *lines, footer]) + "\n"


def webhook_body(notification: Notification) -> bytes:
    """Return the JSON that a webhook gets; `text` is what chat programs show."""
    organization = notification.organization
    return json.dumps(
        {
            "event": "waiting",
            "id": notification.pk,
            "created_at": notification.created_at.isoformat(),
            "organization": {"id": organization.pk, "name": organization.name},
            "waiting": [
                {"kind": counter.kind, "count": number, "url": counter.url(organization)}
                for counter, number in known(notification.counts)
            ],
            "text": title(notification),
        }
    ).encode()


def _name(organization: Organization) -> str:
    """Return the organization's name on one line, as subjects need it."""
    return shorten(organization.name, 100)
