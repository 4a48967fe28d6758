"""The audit trail: who did what, for good."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from mirix.tenants.audit import SYSTEM, Act, Actor, record
from mirix.tenants.models import AuditEvent
from mirix.tenants.principal import Principal
from tests.factories import make_member

pytestmark = pytest.mark.django_db


def event_of(owner) -> AuditEvent:
    return record(
        organization=owner.organization, actor=SYSTEM, action=Act.CLIENT_CREATED, target=owner.end_user
    )


def test_an_event_names_actor_and_target_by_value(owner):
    user = User.objects.create_user("rita")
    event = record(
        organization=owner.organization,
        actor=Actor.of_user(user),
        action=Act.END_USER_CREATED,
        target=owner.end_user,
        details={"text": "a\x00b", "n": 1},
    )
    number = str(user.pk)
    user.delete()
    event.refresh_from_db()
    assert (event.actor_kind, event.actor_id, event.actor_name) == ("user", number, "rita")
    assert (event.target_type, event.target_id) == ("enduser", owner.end_user.pk)
    assert event.details == {"text": "ab", "n": 1}


def test_a_caller_of_the_api_acts_as_person_or_as_client(owner, client_row):
    member = make_member(owner.organization, username="rita").memberships.get()
    client = Principal.of_client(client_row)

    assert Actor.of_principal(Principal.of_member(member)) == Actor.of_user(member.user)
    assert Actor.of_principal(client) == Actor(kind="key", id=f"client:{client_row.pk}", name=client_row.name)


def test_a_command_acts_as_the_account_of_the_system():
    actor = Actor.operator()
    assert actor.kind == "command"
    assert actor.name


def test_an_event_never_changes(owner):
    event = event_of(owner)
    for change in (
        lambda: AuditEvent.objects.update(actor_name="nobody"),
        lambda: AuditEvent.objects.all().delete(),
        event.delete,
    ):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            change()
    assert AuditEvent.objects.get(pk=event.pk).actor_name == "mirix"


def test_an_event_goes_with_its_organization_alone(owner, stranger):
    event_of(owner)
    kept = event_of(stranger)
    owner.organization.delete()
    assert list(AuditEvent.objects.all()) == [kept]
