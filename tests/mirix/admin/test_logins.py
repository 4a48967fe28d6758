"""Logins in the admin, for superusers."""

from __future__ import annotations

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.urls import reverse

from tests.mirix.tenants.admin.people import superuser

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
