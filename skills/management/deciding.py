"""What commands that decide share: who decides."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import Organization
from mirix.tenants.selectors import may_review
from mirix.text import clean_text


class DecidingCommand(OrganizationCommand):
    """A command that decides in the name of a member, or of whoever runs it."""

    def member(self, organization: Organization, username: str | None) -> User | None:
        """Return who decides, if anybody was named; it must be someone who may."""
        if username is None:
            return None
        user = User.objects.filter(username=clean_text(username)).first()
        if user is None or not may_review(user=user, organization=organization):
            raise CommandError(f"{username!r} may not review in organization {organization.name!r}")
        return user
