"""Who calls and for whom: clients with their keys, and the end users whose memory it is."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from mirix.ids import id_factory
from mirix.tenants.constraints import SameOwner, owner_key
from mirix.tenants.models.base import TenantModel
from mirix.tenants.models.organizations import Organization
from mirix.tenants.querysets import OwnedQuerySet


class Client(TenantModel):
    """An application of an organization that calls the API."""

    id = models.CharField(primary_key=True, max_length=128, default=id_factory("client"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="clients")
    name = models.CharField(max_length=128)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="client_organization_name_uniq"),
            owner_key("client_organization_key", "organization"),
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


class ApiKey(TenantModel):
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
    replaced_by = models.OneToOneField(
        "self", on_delete=models.SET_NULL, null=True, blank=True, editable=False, related_name="replaces"
    )
    """The key that a rotation made in its stead; this one then expires when the overlap ends."""
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "API key"
        constraints = [
            models.UniqueConstraint(fields=["secret_hash"], name="apikey_secret_hash_uniq"),
            models.CheckConstraint(
                condition=models.Q(permission__in=Permission.values), name="apikey_permission_valid"
            ),
            owner_key("apikey_organization_key", "organization"),
            SameOwner(field="client", name="apikey_client_same_organization"),
            SameOwner(field="replaced_by", name="apikey_replaced_by_same_organization"),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.permission})"

    @property
    def is_usable(self) -> bool:
        """True while the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())


class EndUser(TenantModel):
    """The person or agent whose memory it is; `user_id` is the caller's own id string."""

    id = models.CharField(primary_key=True, max_length=128, default=id_factory("enduser"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="end_users")
    user_id = models.CharField(max_length=256)
    name = models.CharField(max_length=256, blank=True)
    made_by = models.ForeignKey(
        Client, on_delete=models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    """The client that named them first, and with which they go where nobody else sent anything of theirs."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "user_id"], name="enduser_organization_user_uniq"
            ),
            owner_key("enduser_organization_key", "organization"),
            SameOwner(field="made_by", name="enduser_made_by_same_organization"),
        ]

    def __str__(self) -> str:
        return self.user_id


class Owned(TenantModel):
    """Base of every row that belongs to an owner. Tenant columns are never NULL."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = OwnedQuerySet.as_manager()  # type: ignore[misc]  # a class variable, as everywhere

    class Meta:
        abstract = True
