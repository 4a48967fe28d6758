"""What an organization chooses for itself: its settings, and the secret that signs its webhook."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from mirix.tenants.audit import Act, Actor, record
from mirix.tenants.models import INHERITED, Organization, OrganizationSettings
from mirix.tenants.webhooks import check_url

EDITABLE = (*INHERITED, "email_digest", "webhook_url")
BOOLEANS = frozenset({"redact_on_intake", "email_digest", "four_eyes"})
CHOSEN_BY_WORD = frozenset({"review_policy", "deciding_role"})
SWITCHES = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
SECRET_PREFIX = "whsec_"  # noqa: S105 the beginning of every secret, so that scanners know one


@sensitive_variables("secret")
@transaction.atomic
def change_settings(
    *, organization: Organization, changes: Mapping[str, Any], actor: Actor
) -> tuple[OrganizationSettings, str]:
    """Set what `changes` names; None or a blank text of an `INHERITED` name is the installation's setting.

    Returns the settings and the webhook's secret where one was made now, to be shown once, else "". Raises
    `ValidationError` by field for unknown names and for values out of range; then nothing is changed.
    """
    unknown = sorted(set(changes) - set(EDITABLE))
    if unknown:
        raise ValidationError({name: [f"Must be one of {', '.join(EDITABLE)}."] for name in unknown})
    row = _locked(organization)
    before = {name: getattr(row, name) for name in EDITABLE}
    _assign(row, changes)
    after = {name: getattr(row, name) for name in EDITABLE}
    changed = {name: [before[name], after[name]] for name in EDITABLE if before[name] != after[name]}
    if not changed:
        return row, ""
    secret = ""
    if not row.webhook_url:
        row.webhook_secret = ""
    elif not row.webhook_secret:
        secret = row.webhook_secret = _new_secret()
    row.save()
    if "webhook_url" in changed:  # services take such an address for a secret itself
        changed["webhook_url"] = [webhook_host(url) for url in changed["webhook_url"]]
    record(
        organization=organization,
        actor=actor,
        action=Act.SETTINGS_CHANGED,
        target=organization,
        details=changed,
    )
    return row, secret


@sensitive_variables("secret")
@transaction.atomic
def make_webhook_secret(*, organization: Organization, actor: Actor) -> str:
    """Put a new secret in the place of the webhook's; return it, to be shown once.

    Raises `ValidationError` where the organization has no webhook.
    """
    row = _locked(organization)
    if not row.webhook_url:
        raise ValidationError("There is no webhook; set its address first.")
    secret = row.webhook_secret = _new_secret()
    row.save(update_fields=["webhook_secret"])
    record(organization=organization, actor=actor, action=Act.WEBHOOK_SECRET_MADE, target=organization)
    return secret


def webhook_host(url: str) -> str:
    """Return the part of a webhook's address that others than administrators may read."""
    return urlsplit(url).netloc if url else ""


def _locked(organization: Organization) -> OrganizationSettings:
    """Return the organization's row, made if missing, for this transaction alone."""
    rows = OrganizationSettings.objects.for_organization(organization)
    rows.get_or_create(organization=organization)
    return rows.select_for_update(no_key=True).get()


def _assign(row: OrganizationSettings, changes: Mapping[str, Any]) -> None:
    """Set and validate; every fault is told, by field."""
    errors: dict[str, list[str]] = {}
    for name, value in changes.items():
        try:
            setattr(row, name, _cleaned(row, name, value))
        except ValidationError as error:
            errors[name] = error.messages
    if errors:
        raise ValidationError(errors)


def _cleaned(row: OrganizationSettings, name: str, value: Any) -> Any:
    """Return a value as its column has it; texts, as commands and forms bring them, are read as values."""
    field = OrganizationSettings._meta.get_field(name)
    if isinstance(value, str):
        value = value.strip()
        value = SWITCHES.get(value.lower(), value) if name in BOOLEANS else value
    if value in (None, "") and name in INHERITED:
        return "" if name in CHOSEN_BY_WORD else None
    cleaned = field.clean(value, row)  # type: ignore[union-attr]
    if name == "webhook_url" and cleaned:
        check_url(cleaned)
    return cleaned


def _new_secret() -> str:
    return SECRET_PREFIX + secrets.token_urlsafe(32)
