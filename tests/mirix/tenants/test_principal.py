"""Who calls, and what each kind of caller may do."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from mirix.tenants.models import ApiKey, Client
from mirix.tenants.principal import Principal
from mirix.tenants.selectors import deciding_roles
from mirix.tenants.services import client_of
from tests.factories import make_key, make_member, make_superuser

pytestmark = pytest.mark.django_db
LEVELS = ("read", "write", "admin")


def abilities(principal: Principal) -> tuple[list[bool], bool, bool, bool]:
    may = [principal.may(level) for level in LEVELS]
    decides = principal.role in deciding_roles(organization=principal.organization)
    return may, decides, principal.may_operate, principal.may_administer


def member(organization, role: str) -> Principal:
    return Principal.of_member(make_member(organization, role).memberships.get())


@pytest.mark.parametrize(
    ("permission", "may"),
    [("read", [True, False, False]), ("write", [True, True, False]), ("admin", [True, True, True])],
)
def test_a_key_may_what_it_says_and_never_decides(client_row, permission, may):
    make_key(client_row, permission)
    key = ApiKey.objects.get()
    principal = Principal.of_key(key)

    assert abilities(principal) == (may, False, False, False)
    assert (principal.client, principal.user, principal.identity) == (client_row, None, f"key:{key.pk}")


@pytest.mark.parametrize(("role", "may"), [("reviewer", True), ("operator", False), ("administrator", True)])
def test_who_decides_may_release_what_is_quarantined(owner, client_row, role, may):
    assert member(owner.organization, role).may_release is may
    assert Principal.of_superuser(make_superuser(), owner.organization).may_release
    assert not Principal.of_client(client_row).may_release


def test_a_trusted_client_reads_and_writes(client_row):
    principal = Principal.of_client(client_row)

    assert abilities(principal) == ([True, True, False], False, False, False)
    assert principal.identity == f"client:{client_row.pk}"


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("reviewer", ([True, False, False], True, False, False)),
        ("operator", ([True, True, False], False, True, False)),
        ("administrator", ([True, True, True], True, True, True)),
    ],
)
def test_a_member_may_what_the_role_says(owner, role, expected):
    principal = member(owner.organization, role)

    assert abilities(principal) == expected
    assert principal.client is None
    assert principal.identity == f"user:{principal.user.pk}"


def test_a_superuser_is_an_administrator_of_the_named_organization(owner):
    root = make_superuser()
    principal = Principal.of_superuser(root, owner.organization)

    assert abilities(principal) == ([True, True, True], True, True, True)
    assert (principal.user, principal.member, principal.organization) == (root, None, owner.organization)


def test_a_client_has_a_default_end_user_and_a_member_has_none(client_row):
    client, person = Principal.of_client(client_row), member(client_row.organization, "operator")

    assert [client.named_user(given) for given in ("bob", "", None)] == [
        "bob",
        client_row.default_user_id,
        client_row.default_user_id,
    ]
    assert person.named_user("bob") == "bob"
    with pytest.raises(ValidationError) as error:
        person.named_user(None)
    assert error.value.message_dict == {
        "user_id": ["This field is required: a member has no default end user."]
    }


def test_what_members_write_belongs_to_a_client_of_their_own(client_row):
    people = [member(client_row.organization, "operator") for _ in range(2)]

    assert client_of(principal=Principal.of_client(client_row)) == client_row
    assert not Client.objects.filter(name="members").exists()
    assert [client_of(principal=person).name for person in people] == ["members", "members"]
    assert Client.objects.get(name="members").organization == client_row.organization
