"""Members: added, given a role, removed; an organization keeps its last administrator."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection

from mirix.tenants.audit import Actor
from mirix.tenants.logins import delete_login, save_login
from mirix.tenants.members import add_new_member, remove_member, set_membership
from mirix.tenants.models import AuditEvent, Membership
from tests.factories import make_member, make_organization

pytestmark = pytest.mark.django_db
RITA = Actor(kind="user", id="7", name="rita")


def test_a_member_has_one_role_per_organization_and_may_enter_the_admin(owner):
    user = User.objects.create_user("bob")

    first, created = set_membership(organization=owner.organization, user=user, role="reviewer", actor=RITA)
    again, created_again = set_membership(
        organization=owner.organization, user=user, role="operator", actor=RITA
    )

    assert (created, created_again) == (True, False)
    assert first.pk == again.pk
    assert Membership.objects.get().role == "operator"
    user.refresh_from_db()
    assert user.is_staff
    with pytest.raises(ValidationError):
        set_membership(organization=owner.organization, user=user, role="owner", actor=RITA)
    assert list(AuditEvent.objects.order_by("id").values_list("action", "details")) == [
        ("member.added", {"username": "bob", "role": "reviewer"}),
        ("member.role_changed", {"username": "bob", "role": "operator", "before": "reviewer"}),
    ]


def test_the_role_one_has_is_no_act(owner):
    user = make_member(owner.organization, "reviewer")
    set_membership(organization=owner.organization, user=user, role="reviewer", actor=RITA)
    assert not AuditEvent.objects.exists()


def test_a_new_member_logs_in_with_the_password_that_was_returned(owner):
    membership, password = add_new_member(
        organization=owner.organization,
        username=" bob ",
        email="bob@example.org",
        role="reviewer",
        actor=RITA,
    )
    user = authenticate(username="bob", password=password)
    assert user == membership.user
    assert (user.email, user.is_staff, user.is_superuser) == ("bob@example.org", True, False)
    assert sorted(AuditEvent.objects.values_list("action", flat=True)) == ["login.created", "member.added"]
    assert password not in str(AuditEvent.objects.values())


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"username": "two words"}, "username"),
        ({"username": "taken"}, "username"),
        ({"username": "bob", "email": "no address"}, "email"),
        ({"username": "bob", "role": "owner"}, "role"),
    ],
)
def test_a_new_member_that_cannot_be_leaves_nothing_behind(owner, fields, field):
    User.objects.create_user("taken")
    with pytest.raises(ValidationError) as error:
        add_new_member(
            organization=owner.organization, actor=RITA, **({"email": "", "role": "reviewer"} | fields)
        )
    assert list(error.value.message_dict) == [field]
    assert list(User.objects.values_list("username", flat=True)) == ["taken"]
    assert not Membership.objects.exists()
    assert not AuditEvent.objects.exists()


def test_a_removed_member_keeps_the_login_and_the_trail_keeps_the_name(owner):
    user = make_member(owner.organization, "reviewer", username="bob")
    elsewhere = Membership.objects.create(organization=make_organization(), user=user, role="operator")
    membership = user.memberships.get(organization=owner.organization)

    remove_member(membership=membership, actor=RITA)
    remove_member(membership=membership, actor=RITA)  # somebody was faster

    assert list(user.memberships.all()) == [elsewhere]
    user.delete()
    event = AuditEvent.objects.get()
    assert (event.action, event.target_id) == ("member.removed", membership.pk)
    assert event.details == {"username": "bob", "role": "reviewer"}


def test_the_last_administrator_stays(owner):
    one, other = (make_member(owner.organization, "administrator") for _ in range(2))
    gone = make_member(owner.organization, "administrator")
    gone.is_active = False
    gone.save()
    remove_member(membership=one.memberships.get(), actor=RITA)

    with pytest.raises(ValidationError, match="last administrator"):
        remove_member(membership=other.memberships.get(), actor=RITA)
    with pytest.raises(ValidationError, match="last administrator") as error:
        set_membership(organization=owner.organization, user=other, role="reviewer", actor=RITA)

    assert list(error.value.message_dict) == ["role"]
    assert other.memberships.get().role == "administrator"


@pytest.mark.django_db(transaction=True)
def test_two_administrators_who_remove_each_other_at_once_leave_one(owner):
    members = [make_member(owner.organization, "administrator").memberships.get() for _ in range(2)]
    barrier = threading.Barrier(2)
    refused = []

    def remove(membership: Membership) -> None:
        try:
            barrier.wait()
            remove_member(membership=membership, actor=RITA)
        except ValidationError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=remove, args=(membership,)) for membership in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert Membership.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_last_administrators_who_are_switched_off_at_once_leave_one(owner):
    users = [make_member(owner.organization, "administrator") for _ in range(2)]
    barrier = threading.Barrier(2)
    refused = []

    def switch_off(user: User) -> None:
        try:
            user.is_active = False
            barrier.wait()
            save_login(user=user, actor=RITA)
        except ValidationError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=switch_off, args=(user,)) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert User.objects.filter(is_active=True).count() == 1


def test_the_login_of_the_last_administrator_is_not_deleted(owner):
    ada = make_member(owner.organization, "administrator", username="ada")
    with pytest.raises(ValidationError, match="last administrator"):
        delete_login(user=ada, actor=RITA)
    assert User.objects.filter(pk=ada.pk).exists()
    assert not AuditEvent.objects.exists()

    make_member(owner.organization, "administrator")
    delete_login(user=ada, actor=RITA)
    assert not User.objects.filter(username="ada").exists()
    event = AuditEvent.objects.get()
    assert (event.action, event.organization) == ("login.deleted", owner.organization)
