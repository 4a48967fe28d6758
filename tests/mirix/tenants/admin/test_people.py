"""Members and end users in the admin."""

from __future__ import annotations

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User

from mirix.tenants.models import EndUser, Membership
from tests.factories import make_member
from tests.mirix.tenants.admin.people import browser_of, member, stored, superuser, url
from tests.mirix.tenants.admin.test_keys import secret_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(owner):
    return member(owner.organization, username="ada")


def add(browser, organization, username, login="existing", role="reviewer", email=""):
    return browser.post(
        url("membership_add"),
        {"organization": organization.pk, "username": username, "login": login, "role": role, "email": email},
    )


def test_a_new_login_gets_a_password_that_is_shown_once(owner, browser):
    response = add(browser, owner.organization, "bob", "new", "operator", "bob@example.org")
    password = secret_of(response)
    assert "no-store" in response["Cache-Control"]
    user = authenticate(username="bob", password=password)
    assert (user.email, user.is_superuser, user.memberships.get().role) == (
        "bob@example.org",
        False,
        "operator",
    )
    for address in (
        url("membership_change", user.memberships.get().pk),
        url("membership_changelist"),
        url("auditevent_changelist"),
    ):
        assert password not in browser.get(address).content.decode()
    assert password not in str(stored())


def test_an_existing_login_is_added_by_superusers_without_a_password(owner, stranger):
    bob = make_member(stranger.organization, username="bob", password="theirs")
    before = User.objects.values().get(pk=bob.pk)
    response = add(superuser(), owner.organization, "bob", "existing", "reviewer", "changed@example.org")
    assert response.status_code == 302
    assert bob.memberships.get(organization=owner.organization).role == "reviewer"
    assert User.objects.values().get(pk=bob.pk) == before
    assert authenticate(username="bob", password="theirs") == bob


def test_administrators_take_nobody_in_who_logs_in_already(owner, browser, stranger):
    """Not by name, not by address, whatever the form is sent; a taken name is said to be taken, no more."""
    for number, organization in enumerate((stranger.organization, owner.organization)):
        user = make_member(organization, username=f"bob{number}")
        User.objects.filter(pk=user.pk).update(email=f"bob{number}@example.org")
    User.objects.create_user("bob2")
    assert 'name="login"' not in browser.get(url("membership_add")).content.decode()
    before = stored()
    for number in range(3):
        for login in ("existing", "new"):
            text = add(browser, owner.organization, f"bob{number}", login).content.decode()
            assert "This user name is taken." in text
            assert "example.org" not in text
            assert stranger.organization.name not in text
    assert stored() == before
    add(browser, owner.organization, "bob0@example.org", "existing")
    assert User.objects.get(username="bob0").memberships.count() == 1


@pytest.mark.parametrize("name", ["bo", "BOB", "bob2", "", "b\x00ob"])
def test_nothing_but_the_exact_name_or_address_finds_a_login(name, owner, stranger):
    make_member(stranger.organization, username="bob")
    browser = superuser()
    before = stored()
    response = add(browser, owner.organization, name)
    assert response.status_code == 400
    assert stored() == before


def test_an_address_of_several_logins_is_refused(owner):
    for name in ("bob", "bobby"):
        user = make_member(owner.organization, username=name)
        User.objects.filter(pk=user.pk).update(email="bob@example.org")
    response = add(superuser(), owner.organization, "bob@example.org")
    assert (response.status_code, "Several logins" in response.content.decode()) == (400, True)


def test_superusers_find_people_by_their_address(owner, stranger):
    bob = make_member(stranger.organization, username="bob")
    User.objects.filter(pk=bob.pk).update(email="bob@example.org")
    assert add(superuser(), owner.organization, "Bob@example.org").status_code == 302
    assert bob.memberships.count() == 2


def test_switched_off_logins_are_not_found(owner):
    User.objects.create_user("bob", is_active=False)
    assert add(superuser(), owner.organization, "bob").status_code == 400


def test_a_member_is_not_added_twice_and_keeps_the_role(owner):
    bob = make_member(owner.organization, "operator", username="bob")
    response = add(superuser(), owner.organization, "bob", role="administrator")
    assert (response.status_code, "They are a member already" in response.content.decode()) == (400, True)
    assert bob.memberships.get().role == "operator"


@pytest.mark.parametrize(
    ("username", "email", "field"),
    [("two words", "", "username"), ("taken", "", "username"), ("bob", "nope", "email")],
)
def test_a_login_that_cannot_be_made_is_said_at_the_field(owner, browser, username, email, field):
    User.objects.create_user("taken")
    before = stored()
    response = add(browser, owner.organization, username, "new", email=email)
    assert response.status_code == 400
    assert f'id="id_{field}_error"' in response.content.decode()
    assert stored() == before


def test_roles_change_and_the_last_administrator_stays(owner, browser):
    bob = make_member(owner.organization, "reviewer", username="bob").memberships.get()
    assert browser.post(url("membership_change", bob.pk), {"role": "operator"}).status_code == 302
    bob.refresh_from_db()
    assert bob.role == "operator"

    mine = Membership.objects.get(user__username="ada")
    before = stored()
    for response in (
        browser.post(url("membership_change", mine.pk), {"role": "reviewer"}),
        browser.post(url("membership_remove", mine.pk)),
    ):
        assert response.status_code == 400
        assert "last administrator" in response.content.decode()
    assert stored() == before


def test_an_administrator_may_leave_when_there_is_another(owner, browser):
    make_member(owner.organization, "administrator")
    mine = Membership.objects.get(user__username="ada")
    assert browser.post(url("membership_remove", mine.pk)).status_code == 302
    assert browser.get(url("membership_changelist")).status_code == 403


def test_a_removed_member_is_locked_out_at_once_and_their_events_keep_the_name(owner, browser):
    bob = make_member(owner.organization, "administrator", username="bob")
    theirs = browser_of(bob)
    theirs.post(url("enduser_change", owner.end_user.pk), {"name": "Alice"})
    browser.post(url("membership_remove", bob.memberships.get().pk))
    assert theirs.get(url("enduser_changelist")).status_code == 403
    bob.delete()
    assert "bob" in browser.get(url("auditevent_changelist")).content.decode()


def test_addresses_are_for_those_who_manage(owner, browser):
    bob = make_member(owner.organization, username="bob")
    User.objects.filter(pk=bob.pk).update(email="bob@example.org")
    address = url("membership_change", bob.memberships.get().pk)
    assert "bob@example.org" in browser.get(address).content.decode()
    assert "bob@example.org" not in member(owner.organization, "reviewer").get(address).content.decode()


def test_the_list_finds_addresses_for_those_who_manage_all_of_it(owner, stranger):
    bob = make_member(owner.organization, username="bob")
    User.objects.filter(pk=bob.pk).update(email="secret@example.org")
    ada = make_member(stranger.organization, "administrator", username="ada")
    ada.memberships.create(organization=owner.organization, role="reviewer")

    def found(browser) -> bool:
        page = browser.get(url("membership_changelist"), {"q": "secret@example"}).content.decode()
        return url("membership_change", bob.memberships.get().pk) in page

    assert [found(member(owner.organization, role)) for role in ("reviewer", "operator")] == [False, False]
    assert not found(browser_of(ada)), "she administers but another organization"
    assert found(member(owner.organization))
    assert found(superuser())


def test_end_users_are_made_and_named(owner, browser):
    response = browser.post(
        url("enduser_add"), {"organization": owner.organization.pk, "user_id": " bob ", "name": "Bob"}
    )
    assert response.status_code == 302
    bob = EndUser.objects.get(name="Bob")
    assert (bob.user_id, bob.organization) == (
        " bob ",
        owner.organization,
    )  # an id is the caller's, blanks too
    assert browser.post(url("enduser_change", bob.pk), {"name": "Robert"}).status_code == 302
    bob.refresh_from_db()
    assert bob.name == "Robert"
    taken = browser.post(url("enduser_add"), {"organization": owner.organization.pk, "user_id": "alice"})
    assert (taken.status_code, "of this id already" in taken.content.decode()) == (400, True)
