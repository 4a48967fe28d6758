"""Organizations, clients and end users, through their services."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from mirix.ids import new_id
from mirix.tenants import services
from mirix.tenants.audit import SYSTEM, Actor
from mirix.tenants.keys import create_api_key
from mirix.tenants.models import AuditEvent, Client, EndUser, Organization
from mirix.tenants.selectors import find_organization, find_owner_of
from tests.factories import make_client, make_organization, make_owner

pytestmark = pytest.mark.django_db


def test_an_organization_is_found_by_name_or_id():
    organization, created = services.get_or_create_organization(name="  Acme ", actor=SYSTEM)

    assert created
    assert organization.name == "Acme"
    assert find_organization(name="Acme") == organization
    assert find_organization(name=organization.id) == organization
    assert services.get_or_create_organization(name=organization.id, actor=SYSTEM) == (organization, False)
    assert services.get_or_create_organization(name="Acme", actor=SYSTEM) == (organization, False)
    assert find_organization(name="acme") is None


@pytest.mark.parametrize("name", ["", "  ", "\x00", "x" * 129])
def test_an_organization_needs_a_name_of_bearable_length(name):
    with pytest.raises(ValidationError) as error:
        services.get_or_create_organization(name=name, actor=SYSTEM)
    assert list(error.value.message_dict) == ["name"]
    assert not Organization.objects.exists()


def test_a_client_of_another_organization_is_not_found_by_its_id(client_row):
    with pytest.raises(ValidationError):
        services.get_or_create_client(organization=make_organization(), name=client_row.id, actor=SYSTEM)
    assert list(Client.objects.all()) == [client_row]


def test_nothing_takes_an_id_as_its_name(owner, client_row):
    """Rows are addressed by name or id: one that is called by the id of another could be taken for it."""
    organization = owner.organization
    for taken in (make_organization().pk, client_row.pk, owner.end_user.pk, new_id("org")):
        for name_a_row in (
            lambda name: services.create_organization(name=name, actor=SYSTEM),
            lambda name: services.rename_organization(organization=organization, name=name, actor=SYSTEM),
            lambda name: services.create_client(organization=organization, name=name, actor=SYSTEM),
            lambda name: services.rename_client(client=client_row, name=name, actor=SYSTEM),
            lambda name: services.create_end_user(
                organization=organization, user_id="bob", name=name, actor=SYSTEM
            ),
            lambda name: services.rename_end_user(end_user=owner.end_user, name=name, actor=SYSTEM),
        ):
            with pytest.raises(ValidationError) as error:
                name_a_row(taken)
            assert error.value.message_dict == {"name": ["May not look like an id."]}
    with pytest.raises(ValidationError):
        services.get_or_create_organization(name=f" {new_id('org')}\x00", actor=SYSTEM)
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize(
    "name", ["two\nlines", "a\tb", "a\rb", "red\x1b[31m", "a\u202eb", "c1\x9b2J", "a\u200bb"]
)
def test_a_name_is_one_line_that_is_seen_as_it_is(name, owner, client_row):
    for write in (
        lambda: services.create_organization(name=name, actor=SYSTEM),
        lambda: services.rename_client(client=client_row, name=name, actor=SYSTEM),
        lambda: services.rename_end_user(end_user=owner.end_user, name=name, actor=SYSTEM),
        lambda: create_api_key(client=client_row, name=name, actor=SYSTEM),
    ):
        with pytest.raises(ValidationError) as error:
            write()
        assert error.value.message_dict == {
            "name": ["May hold no line ends and nothing that cannot be seen."]
        }
    assert not AuditEvent.objects.exists()


def test_end_users_are_cleaned_and_scoped(owner, stranger):
    assert find_owner_of(organization=owner.organization, user_id="ali\x00ce") == owner
    assert find_owner_of(organization=stranger.organization, user_id="alice") == stranger
    assert find_owner_of(organization=owner.organization, user_id="bob") is None


RITA = Actor(kind="user", id="7", name="rita")


def events() -> list[tuple[str, str, str, dict]]:
    return list(
        AuditEvent.objects.order_by("created_at", "id").values_list(
            "action", "target_id", "actor_name", "details"
        )
    )


def test_creating_and_renaming_leave_events_with_the_name_of_who_did_it():
    acme = services.create_organization(name="Acme", actor=RITA)
    desk = services.create_client(organization=acme, name="desk", actor=RITA)
    services.rename_client(client=desk, name="help desk", actor=RITA)
    services.rename_organization(organization=acme, name="Acme Ltd", actor=RITA)

    assert events() == [
        ("organization.created", acme.pk, "rita", {"name": "Acme"}),
        ("client.created", desk.pk, "rita", {"name": "desk"}),
        ("client.renamed", desk.pk, "rita", {"name": "help desk", "before": "desk"}),
        ("organization.renamed", acme.pk, "rita", {"name": "Acme Ltd", "before": "Acme"}),
    ]
    assert (Organization.objects.get().name, Client.objects.get().name) == ("Acme Ltd", "help desk")


@pytest.mark.parametrize("user_id", ["", "  ", "\u200b", "\u2060\u00a0", "\u0301", "\ue000\u200e"])
def test_an_id_of_which_nobody_sees_anything_names_nobody(owner, user_id):
    with pytest.raises(ValidationError) as refused:
        services.get_or_create_end_user(organization=owner.organization, user_id=user_id)
    assert refused.value.message_dict == {"user_id": ["May not be blank."]}
    assert EndUser.objects.for_organization(owner.organization).count() == 1


def test_a_name_that_is_taken_is_refused_and_the_row_keeps_its_own():
    acme, other = make_organization("Acme"), make_organization("Other")
    desk, bot = make_client(acme, "desk"), make_client(acme, "bot")

    for refused in (
        lambda: services.create_organization(name="Acme", actor=RITA),
        lambda: services.rename_organization(organization=other, name=" Acme ", actor=RITA),
        lambda: services.create_client(organization=acme, name="desk", actor=RITA),
        lambda: services.rename_client(client=bot, name="desk", actor=RITA),
    ):
        with pytest.raises(ValidationError, match="already") as error:
            refused()
        assert list(error.value.message_dict) == ["name"]

    assert (other.name, bot.name) == ("Other", "bot")
    assert events() == []
    assert (
        services.create_client(organization=other, name="desk", actor=RITA) != desk
    )  # another organization's


def test_the_same_name_again_is_no_act(client_row):
    services.rename_client(client=client_row, name=f" {client_row.name} ", actor=RITA)
    services.rename_organization(
        organization=client_row.organization, name=client_row.organization.name, actor=RITA
    )
    assert events() == []


def test_an_end_user_made_by_hand_leaves_an_event_without_personal_text(owner):
    end_user = services.create_end_user(
        organization=owner.organization, user_id="bob@example.org", name="Bob", actor=RITA
    )
    services.rename_end_user(end_user=end_user, name="Robert", actor=RITA)

    assert EndUser.objects.values_list("user_id", "name").get(pk=end_user.pk) == ("bob@example.org", "Robert")
    assert events() == [
        ("end_user.created", end_user.pk, "rita", {}),
        ("end_user.renamed", end_user.pk, "rita", {}),
    ]


def test_an_end_user_of_an_id_that_is_taken_is_refused(owner):
    with pytest.raises(ValidationError, match="already"):
        services.create_end_user(organization=owner.organization, user_id="alice", name="", actor=RITA)
    other = make_owner(user_id="bob").organization
    services.create_end_user(organization=other, user_id="alice", name="", actor=RITA)
    assert EndUser.objects.filter(user_id="alice").count() == 2


@pytest.mark.parametrize("user_id", ["", "  ", "x" * 257])
def test_an_end_user_needs_an_id_of_bearable_length(owner, user_id):
    with pytest.raises(ValidationError) as error:
        services.create_end_user(organization=owner.organization, user_id=user_id, name="", actor=RITA)
    assert list(error.value.message_dict) == ["user_id"]


def test_end_users_that_appear_with_a_session_are_no_act(owner):
    services.get_or_create_end_user(organization=owner.organization, user_id="new")
    assert events() == []
