"""Organizations, clients, keys, end users and members, through their services."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from mirix.tenants import services
from mirix.tenants.models import ApiKey, Membership, Organization
from mirix.tenants.selectors import find_organization, find_owner_of, find_principal
from tests.factories import make_organization

pytestmark = pytest.mark.django_db


def test_an_organization_is_found_by_name_or_id():
    organization, created = services.get_or_create_organization(name="  Acme ")

    assert created
    assert organization.name == "Acme"
    assert find_organization(name="Acme") == organization
    assert find_organization(name=organization.id) == organization
    assert services.get_or_create_organization(name=organization.id) == (organization, False)
    assert services.get_or_create_organization(name="Acme") == (organization, False)
    assert find_organization(name="acme") is None


@pytest.mark.parametrize("name", ["", "  ", "\x00", "x" * 129])
def test_an_organization_needs_a_name_of_bearable_length(name):
    with pytest.raises(ValidationError) as error:
        services.get_or_create_organization(name=name)
    assert list(error.value.message_dict) == ["name"]
    assert not Organization.objects.exists()


def test_a_client_of_another_organization_is_not_found_by_its_id(client_row):
    other = make_organization()

    client, created = services.get_or_create_client(organization=other, name=client_row.id)

    assert created
    assert client != client_row
    assert client.organization == other


def test_a_key_is_shown_once_and_only_its_hash_is_stored(client_row):
    row, key = services.create_api_key(client=client_row, name="laptop", permission="read")

    stored = ApiKey.objects.values().get(pk=row.pk)
    assert len(key) == 46
    assert key.startswith(stored["prefix"])
    assert key not in [str(value) for value in stored.values()]
    assert stored["secret_hash"] == services.hash_key(key)
    principal = find_principal(key=key)
    assert (principal.client, principal.organization) == (client_row, client_row.organization)
    assert [principal.may(level) for level in ("read", "write", "admin")] == [True, False, False]


def test_a_revoked_key_speaks_for_nobody_and_keeps_its_first_time(client_row):
    row, key = services.create_api_key(client=client_row)
    first = services.revoke_api_key(api_key=row).revoked_at

    assert find_principal(key=key) is None
    assert services.revoke_api_key(api_key=row).revoked_at == first


def test_an_unknown_permission_is_refused(client_row):
    with pytest.raises(ValidationError) as error:
        services.create_api_key(client=client_row, permission="root")
    assert list(error.value.message_dict) == ["permission"]


def test_end_users_are_cleaned_and_scoped(owner, stranger):
    assert find_owner_of(organization=owner.organization, user_id="ali\x00ce") == owner
    assert find_owner_of(organization=stranger.organization, user_id="alice") == stranger
    assert find_owner_of(organization=owner.organization, user_id="bob") is None


def test_a_member_has_one_role_per_organization_and_may_enter_the_admin(owner):
    user = User.objects.create_user("rita")

    first, created = services.set_membership(organization=owner.organization, user=user, role="reviewer")
    again, created_again = services.set_membership(
        organization=owner.organization, user=user, role="operator"
    )

    assert (created, created_again) == (True, False)
    assert first.pk == again.pk
    assert Membership.objects.get().role == "operator"
    user.refresh_from_db()
    assert user.is_staff
    with pytest.raises(ValidationError):
        services.set_membership(organization=owner.organization, user=user, role="owner")
