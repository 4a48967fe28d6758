"""Show and change what an organization chooses for itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from mirix.tenants.audit import Actor
from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import INHERITED, Organization
from mirix.tenants.preferences import EDITABLE, change_settings, make_webhook_secret
from mirix.tenants.selectors import effective, settings_of


class Command(OrganizationCommand):
    """`organization_settings --organization NAME [name=value …]`; `name=` gives the choice back."""

    help = (
        "Show an organization's settings, or change some: name=value; an empty value is the installation's."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the organization and the changes."""
        super().add_arguments(parser)
        parser.add_argument(
            "changes",
            nargs="*",
            metavar="NAME=VALUE",
            help=f"of {', '.join(EDITABLE)}; switches are on or off",
        )
        parser.add_argument(
            "--new-webhook-secret", action="store_true", help="make a new secret for the webhook and print it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Change what is named, then show what holds; a secret made now is shown this once."""
        organization, actor = self.organization(options), Actor.operator()
        secret = ""
        try:
            if options["changes"]:
                _, secret = change_settings(
                    organization=organization, changes=_parsed(options["changes"]), actor=actor
                )
            if options["new_webhook_secret"]:
                secret = make_webhook_secret(organization=organization, actor=actor)
        except ValidationError as error:
            raise CommandError(_in_words(error)) from error
        self._show(organization, secret)

    def _show(self, organization: Organization, secret: str) -> None:
        chosen, holds = settings_of(organization=organization), asdict(effective(organization))
        holds |= {name: getattr(chosen, name) for name in EDITABLE if name not in INHERITED}
        own = [name for name in INHERITED if getattr(chosen, name) not in (None, "")]
        lines = [
            f"{name} = {_shown(value)}{' (own choice)' if name in own else ''}"
            for name, value in holds.items()
        ]
        if secret:
            lines.append(f"Secret of the webhook, shown this once: {secret}")
        self.answer(
            {
                "organization": organization.name,
                "settings": holds,
                "own": own,
                "webhook_secret": secret or None,
            },
            "\n".join(lines),
        )


def _parsed(changes: list[str]) -> dict[str, str]:
    """Return `name=value` arguments as a dict."""
    pairs = [change.partition("=") for change in changes]
    for name, equals, _ in pairs:
        if not equals:
            raise CommandError(f"{name!r} is no NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _shown(value: object) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case "":
            return "–"
        case _:
            return str(value)


def _in_words(error: ValidationError) -> str:
    if not hasattr(error, "error_dict"):
        return "; ".join(error.messages)
    return "; ".join(f"{name}: {' '.join(messages)}" for name, messages in error.message_dict.items())
