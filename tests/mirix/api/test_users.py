"""POST /users/create_or_get, and what every authenticated route has in common."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from mirix.api.authentication import CHALLENGE
from mirix.tenants.models import ApiKey, EndUser
from tests.factories import make_client, make_key

pytestmark = pytest.mark.django_db
URL = "/users/create_or_get"


def test_it_creates_the_end_user_once(api, client_row):
    first = api.post(URL, {"user_id": "bob", "name": "Bob"}, format="json")
    second = api.post(URL, {"user_id": "bob"}, format="json")

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert first.json()["user_id"] == "bob"
    assert first.json()["name"] == "Bob"
    assert first.json()["organization_id"] == client_row.organization_id
    assert EndUser.objects.filter(user_id="bob").count() == 1


def test_without_a_user_id_it_is_the_clients_default_end_user(api, client_row):
    answer = api.post(URL, {}, format="json")

    assert answer.status_code == 201
    assert answer.json()["user_id"] == f"user-{client_row.id.removeprefix('client-')}"


def test_equal_ids_of_two_organizations_are_two_end_users(api, stranger_api, owner, stranger):
    mine = api.post(URL, {"user_id": "alice"}, format="json").json()
    theirs = stranger_api.post(URL, {"user_id": "alice"}, format="json").json()

    assert mine["id"] == owner.end_user.id
    assert theirs["id"] == stranger.end_user.id
    assert EndUser.objects.count() == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"user_id": ""}, "user_id"),
        ({"user_id": "a\x00b"}, "user_id"),
        ({"user_id": "x" * 257}, "user_id"),
        ({"user_id": ["a"]}, "user_id"),
        ({"user_id": "a", "name": "x" * 257}, "name"),
    ],
)
def test_bad_input_names_the_field_and_creates_nothing(api, owner, body, field):
    answer = api.post(URL, body, format="json")

    assert answer.status_code == 400
    assert list(answer.json()) == [field]
    assert EndUser.objects.count() == 1


def test_no_key_and_an_unknown_key_are_401(db):
    for headers in ({}, {"X-API-Key": "mx_unknown"}, {"X-API-Key": "\udcff"}):
        answer = APIClient(headers=headers).post(URL, {"user_id": "bob"}, format="json")
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == CHALLENGE
    assert not EndUser.objects.exists()


@pytest.mark.parametrize("field", ["revoked_at", "expires_at"])
def test_a_revoked_or_expired_key_is_401(client_row, field):
    key = make_key(client_row, **{field: timezone.now() - timedelta(seconds=1)})

    answer = APIClient(headers={"X-API-Key": key}).post(URL, {"user_id": "bob"}, format="json")

    assert answer.status_code == 401
    assert answer.json() == {"detail": "This needs a valid credential."}
    assert not EndUser.objects.filter(user_id="bob").exists()


def test_a_read_key_is_403_and_nothing_is_written(read_api, owner):
    answer = read_api.post(URL, {"user_id": "bob"}, format="json")

    assert answer.status_code == 403
    assert answer.json() == {"detail": "This needs a key with the permission “write”; this key may “read”."}
    assert list(EndUser.objects.values_list("user_id", flat=True)) == ["alice"]


def test_the_time_of_use_is_noted_once_a_minute(client_row, time_machine):
    time_machine.move_to("2026-01-01T12:00:00Z", tick=False)
    api = APIClient(headers={"X-API-Key": make_key(client_row)})
    api.post(URL, {}, format="json")
    time_machine.shift(timedelta(seconds=59))
    api.post(URL, {}, format="json")
    assert ApiKey.objects.get().last_used_at.isoformat() == "2026-01-01T12:00:00+00:00"

    time_machine.shift(timedelta(seconds=2))
    api.post(URL, {}, format="json")
    assert ApiKey.objects.get().last_used_at.isoformat() == "2026-01-01T12:01:01+00:00"


def test_a_key_of_another_client_of_the_organization_shares_its_end_users(api, owner):
    mate = APIClient(headers={"X-API-Key": make_key(make_client(owner.organization))})

    assert mate.post(URL, {"user_id": "alice"}, format="json").json()["id"] == owner.end_user.id
