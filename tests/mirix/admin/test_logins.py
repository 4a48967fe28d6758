"""Logins in the admin, for superusers."""

from __future__ import annotations

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.urls import reverse

from mirix.tenants.models import AuditEvent
from tests.factories import make_member, make_superuser
from tests.mirix.tenants.admin.people import browser_of, member, superuser

pytestmark = pytest.mark.django_db
PASSWORD = "Zebra!2993x"


def address(page: str, *args: object) -> str:
    return reverse(f"admin:auth_user_{page}", args=args)


def make(browser, username: str, **fields: str):
    passwords = {"usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    return browser.post(address("add"), {"username": username, **passwords, **fields})


def test_a_login_is_made_under_its_name_with_its_password():
    browser = superuser()
    page = browser.get(address("add")).content.decode()
    for field in ("username", "usable_password", "password1", "password2"):
        assert f'name="{field}"' in page
    assert make(browser, "joe").status_code == 302
    joe = authenticate(username="joe", password=PASSWORD)
    assert (joe.get_username(), joe.is_staff, joe.is_superuser) == ("joe", False, False)


@pytest.mark.parametrize(
    "fields", [{"username": ""}, {"username": "joe"}, {"password2": "Another!2993x"}, {"password1": "joe"}]
)
def test_a_login_that_cannot_be_is_said_in_the_form(fields):
    browser = superuser()
    User.objects.create_user("joe")
    before = list(User.objects.values())
    response = make(browser, **({"username": "ann"} | fields))
    assert response.status_code == 200
    assert "Please correct the error" in response.content.decode()
    assert list(User.objects.values()) == before


def acts(**of: object) -> list[tuple[str, object, str]]:
    """Return (act, organization, by whom) of what was done to logins."""
    events = AuditEvent.objects.filter(action__startswith="login.", **of).order_by("created_at", "pk")
    return [(event.action.removeprefix("login."), event.organization, event.actor_name) for event in events]


def change(browser, user: User, **fields: str):
    user.refresh_from_db()
    switches = {name: "on" for name in ("is_active", "is_staff", "is_superuser") if getattr(user, name)}
    sent = {"username": user.username, "email": user.email} | switches | fields
    return browser.post(address("change", user.pk), {name: value for name, value in sent.items() if value})


def test_what_is_done_to_a_login_is_in_the_trail_of_each_of_its_organizations(owner, stranger):
    root = browser_of(make_superuser("root"))
    bob = make_member(owner.organization, username="bob")
    bob.memberships.create(organization=stranger.organization, role="operator")
    for fields in (
        {"email": "bob@example.org"},
        {"is_superuser": "on"},
        {"is_superuser": ""},
        {"is_staff": ""},
        {"is_staff": "on", "is_active": ""},
        {"is_active": "on", "username": "robert"},
        {"username": "robert"},
    ):
        assert change(root, bob, **fields).status_code == 302
    passwords = {"usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    assert root.post(address("password_change", bob.pk), passwords).status_code == 302
    done = [
        "email_changed",
        "superuser_granted",
        "superuser_revoked",
        "staff_revoked",
        "switched_off",
        "staff_granted",
        "renamed",
        "switched_on",
        "password_set",
    ]
    for organization in (owner.organization, stranger.organization):
        found = acts(organization=organization)
        assert sorted(act for act, *_ in found) == sorted(done)
        assert {name for *_, name in found} == {"root"}
    assert len(acts()) == 2 * len(done)
    kept = str(list(AuditEvent.objects.values()))
    assert "bob@example.org" not in kept
    assert "pbkdf2" not in kept
    assert AuditEvent.objects.filter(details={"username": "robert", "before": "bob"}).count() == 2


def test_acts_on_a_login_of_no_organization_are_for_superusers_alone(owner):
    root = browser_of(make_superuser("root"))
    make(root, "joe")
    joe = User.objects.get(username="joe")
    change(root, joe, is_superuser="on")
    root.post(address("delete", joe.pk), {"post": "yes"})
    assert acts() == [
        ("created", None, "root"),
        ("superuser_granted", None, "root"),
        ("deleted", None, "root"),
    ]
    event = AuditEvent.objects.first()
    page = reverse("admin:tenants_auditevent_change", args=[event.pk])
    trail = reverse("admin:tenants_auditevent_changelist")
    assert "joe" in root.get(page).content.decode()
    assert "joe" in root.get(trail).content.decode()
    administrator = member(owner.organization)
    assert administrator.get(page).status_code == 404
    assert "joe" not in administrator.get(trail).content.decode()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        event.delete()


def test_an_administrator_who_makes_a_login_leaves_that_in_the_trail(owner):
    ada = make_member(owner.organization, "administrator", username="ada")
    data = {"organization": owner.organization.pk, "login": "new", "username": "bob", "role": "reviewer"}
    assert browser_of(ada).post(reverse("admin:tenants_membership_add"), data).status_code == 200
    assert acts() == [("created", owner.organization, "ada")]


@pytest.mark.parametrize("fields", [{"is_active": ""}, {"is_staff": ""}])
def test_the_login_of_the_last_administrator_is_not_switched_off(owner, fields):
    root = superuser()
    ada = make_member(owner.organization, "administrator", username="ada")
    response = change(root, ada, email="ada@example.org", **fields)
    assert response.status_code == 200
    assert "last administrator" in response.content.decode()
    ada.refresh_from_db()
    assert (ada.is_active, ada.is_staff, ada.email) == (True, True, "")
    assert not acts()
    make_member(owner.organization, "administrator")
    assert change(root, ada, **fields).status_code == 302


def test_a_login_that_is_a_member_is_not_deleted_from_the_list_or_its_page(owner):
    root = superuser()
    bob = make_member(owner.organization, username="bob")
    assert root.post(address("delete", bob.pk), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [bob.pk], "post": "yes"}
    assert root.post(address("changelist"), chosen).status_code == 403
    assert User.objects.filter(pk=bob.pk).exists()


def test_logins_deleted_from_the_list_are_in_the_trail():
    root = browser_of(make_superuser("root"))
    chosen = [User.objects.create_user(name).pk for name in ("ann", "joe")]
    root.post(address("changelist"), {"action": "delete_selected", "_selected_action": chosen, "post": "yes"})
    assert acts() == [("deleted", None, "root")] * 2
    assert list(User.objects.values_list("username", flat=True)) == ["root"]
