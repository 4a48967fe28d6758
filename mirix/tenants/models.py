"""Who is who: organizations, their clients and keys, the end users they serve, the people who review.

The organization is the border: every row of every app names one, and nothing crosses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.utils import timezone

from mirix.ids import id_factory

if TYPE_CHECKING:
    from mirix.tenants.owners import Owner


class Organization(models.Model):
    """The tenant. Commands and people address it by its unique name, programs by its id."""

    id = models.CharField(primary_key=True, max_length=128, default=id_factory("org"), editable=False)
    name = models.CharField(max_length=128)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="organization_name_uniq")]

    def __str__(self) -> str:
        return self.name


class ReviewPolicy(models.TextChoices):
    """Whether a person must approve a proposal before agents see it."""

    REQUIRED = "required", "A person approves every change"
    AUTOMATIC = "automatic", "Changes without risk flags are published at once"


class OrganizationSettings(models.Model):
    """What an organization chose for itself; an empty value means the installation's setting."""

    organization = models.OneToOneField(
        Organization, on_delete=models.CASCADE, primary_key=True, related_name="settings"
    )
    review_policy = models.CharField(max_length=16, choices=ReviewPolicy.choices, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = verbose_name_plural = "organization settings"

    def __str__(self) -> str:
        return f"Settings of {self.organization_id}"


class Client(models.Model):
    """An application of an organization that calls the API."""

    id = models.CharField(primary_key=True, max_length=128, default=id_factory("client"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="clients")
    name = models.CharField(max_length=128)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="client_organization_name_uniq")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def default_user_id(self) -> str:
        """The `user_id` that stands for this client's calls without one, as in the original."""
        return f"user-{self.id.removeprefix('client-')}"


class Permission(models.TextChoices):
    """What a key may do; each includes the ones before it."""

    READ = "read", "Read"
    WRITE = "write", "Read and write"
    ADMIN = "admin", "Read, write and administer"


class ApiKey(models.Model):
    """A client's credential. Only the hash of the secret is stored; the key itself is shown once.

    A fast hash is right here: the secret has 256 random bits, so there is nothing to guess.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("key"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="api_keys")
    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=128, blank=True)
    prefix = models.CharField(max_length=16, editable=False)
    secret_hash = models.CharField(max_length=64, editable=False)
    permission = models.CharField(max_length=8, choices=Permission.choices, default=Permission.WRITE)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "API key"
        constraints = [
            models.UniqueConstraint(fields=["secret_hash"], name="apikey_secret_hash_uniq"),
            models.CheckConstraint(
                condition=models.Q(permission__in=Permission.values), name="apikey_permission_valid"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.permission})"

    @property
    def is_usable(self) -> bool:
        """True while the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())


class EndUser(models.Model):
    """The person or agent whose memory it is; `user_id` is the caller's own id string."""

    id = models.CharField(primary_key=True, max_length=128, default=id_factory("enduser"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="end_users")
    user_id = models.CharField(max_length=256)
    name = models.CharField(max_length=256, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "user_id"], name="enduser_organization_user_uniq")
        ]

    def __str__(self) -> str:
        return self.user_id


class Role(models.TextChoices):
    """What a member may do in the admin and with a token."""

    REVIEWER = "reviewer", "Reviewer: reads and decides"
    OPERATOR = "operator", "Operator: reads, runs, replays and imports"
    ADMINISTRATOR = "administrator", "Administrator: everything in the organization"


class Membership(models.Model):
    """A Django user's role in one organization."""

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("member"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.REVIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "user"], name="membership_organization_user_uniq"
            ),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_valid"),
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


class OwnedQuerySet(models.QuerySet):
    """Reads of rows that belong to an owner; selectors start from one of these two."""

    def for_owner(self, owner: Owner) -> Self:
        """Rows of one end user of one organization."""
        return self.filter(organization=owner.organization, end_user=owner.end_user)

    def for_organization(self, organization: Organization) -> Self:
        """Rows of every end user of one organization."""
        return self.filter(organization=organization)


class Owned(models.Model):
    """Base of every row that belongs to an owner. Tenant columns are never NULL."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        abstract = True
