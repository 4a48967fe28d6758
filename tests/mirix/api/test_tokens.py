"""POST /auth/token and /auth/token/refresh."""

from __future__ import annotations

import json
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient
from rest_framework_simplejwt.token_blacklist.models import BlacklistedToken, OutstandingToken

from mirix.tenants.tasks import forget_expired_tokens
from tests.conftest import bearer
from tests.factories import make_member, make_organization, make_owner, make_superuser

pytestmark = pytest.mark.django_db
URL, REFRESH = "/auth/token", "/auth/token/refresh"
REFUSED = b'{"detail":"This needs a valid credential."}'
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _quick_hashing(monkeypatch):
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1)


@pytest.fixture
def member(owner):
    return make_member(owner.organization, "operator", username="olga", password=PASSWORD)


def login(**body: Any):
    body = {"username": "olga", "password": PASSWORD} | body
    return APIClient().post(URL, body, format="json")


def refresh(token: Any):
    return APIClient().post(REFRESH, {"refresh": token}, format="json")


def assert_refused(answer) -> None:
    assert (answer.status_code, answer.content) == (401, REFUSED)
    assert answer["WWW-Authenticate"] == 'Bearer realm="mirix"'


class TestLogin:
    def test_a_member_gets_tokens_for_the_only_organization(self, owner, member):
        answer = login()

        assert answer.status_code == 200
        assert answer["Cache-Control"] == "no-store"
        assert answer.json() == {
            "access": answer.json()["access"],
            "refresh": answer.json()["refresh"],
            "token_type": "Bearer",
            "expires_in": 900,
            "organization_id": owner.organization.pk,
            "role": "operator",
        }
        assert bearer(answer.json()["access"]).get("/v1/skills").status_code == 200
        member.refresh_from_db()
        assert member.last_login is not None

    def test_of_a_token_only_its_id_is_stored(self, member):
        login()

        row = OutstandingToken.objects.get()
        assert (row.user, row.token) == (member, "")

    def test_a_bad_credential_beside_the_password_does_not_matter(self, member):
        api = APIClient(headers={"X-API-Key": "mx_unknown", "Authorization": "Bearer x"})

        body = {"username": "olga", "password": PASSWORD}
        assert api.post(URL, body, format="json").status_code == 200

    @pytest.mark.parametrize("name", ["id", "name"])
    def test_one_of_several_organizations_is_named_by_id_or_name(self, owner, member, stranger, name):
        member.memberships.create(organization=stranger.organization, role="reviewer")
        named = str(getattr(stranger.organization, name))

        answer = login(organization=f" {named} ")

        assert answer.status_code == 200
        assert (answer.json()["organization_id"], answer.json()["role"]) == (
            stranger.organization.pk,
            "reviewer",
        )

    def test_an_organization_that_is_called_as_another_ones_id_is_not_taken_for_it(self, owner, member):
        trap = make_organization(name=owner.organization.pk)
        member.memberships.create(organization=trap, role="reviewer")

        assert login(organization=owner.organization.pk).json()["organization_id"] == owner.organization.pk

    @pytest.mark.parametrize("count", [0, 2])
    def test_without_exactly_one_membership_the_organization_must_be_named(self, owner, member, count):
        member.memberships.all().delete()
        for _ in range(count):
            member.memberships.create(organization=make_organization(), role="reviewer")

        answer = login()

        assert answer.status_code == 400
        assert answer.json() == {
            "organization": ["Name the organization by its name or id: you are not a member of exactly one."]
        }
        assert not OutstandingToken.objects.exists()

    def test_a_foreign_and_a_missing_organization_are_the_same_400(self, member, stranger):
        theirs = stranger.organization
        answers = [login(organization=name) for name in (theirs.name, theirs.pk, "none")]

        assert {answer.status_code for answer in answers} == {400}
        assert {answer.content for answer in answers} == {
            b'{"organization":["You are not a member of an organization of this name or id."]}'
        }
        assert not OutstandingToken.objects.exists()

    def test_a_superuser_names_any_organization(self, owner, stranger):
        make_superuser("root", PASSWORD)

        answer = login(username="root", organization=stranger.organization.name)

        assert answer.status_code == 200
        assert answer.json()["organization_id"] == stranger.organization.pk
        assert answer.json()["role"] == "administrator"
        assert login(username="root").status_code == 400
        assert login(username="root", organization="none").status_code == 400


class TestRefusals:
    def test_unknown_inactive_and_wrong_are_the_same_401(self, owner, member):
        gone = make_member(owner.organization, username="gone", password=PASSWORD)
        gone.is_active = False
        gone.save()

        for body in (
            {"password": "wrong"},
            {"username": "nobody"},
            {"username": "gone"},
            {"username": "gone", "password": "wrong"},
            {"username": "OLGA"},
            {"password": f" {PASSWORD}"},
            {"password": "wrong", "organization": "none"},
            {"password": "wrong", "organization": owner.organization.name},
        ):
            assert_refused(login(**body))
        assert not OutstandingToken.objects.exists()

    def test_each_refusal_hashes_once(self, owner, member, monkeypatch):
        hashed: list[str] = []
        encode = PBKDF2PasswordHasher.encode
        monkeypatch.setattr(
            PBKDF2PasswordHasher,
            "encode",
            lambda self, password, *args: hashed.append(password) or encode(self, password, *args),
        )
        for body in ({"password": "wrong"}, {"username": "nobody"}):
            hashed.clear()
            assert_refused(login(**body))
            assert len(hashed) == 1

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"username": ""}, "username"),
            ({"username": "x" * 151}, "username"),
            ({"username": "a\x00"}, "username"),
            ({"username": "\ud800"}, "username"),
            ({"username": ["olga"]}, "username"),
            ({"username": None}, "username"),
            ({"password": ""}, "password"),
            ({"password": "\udfff"}, "password"),
            ({"password": "x" * 4097}, "password"),
            ({"password": {"$ne": ""}}, "password"),
            ({"organization": ""}, "organization"),
            ({"organization": "x" * 129}, "organization"),
        ],
    )
    def test_bad_input_names_the_field(self, member, body, field):
        # What JSON escapes may smuggle in, the test client would refuse to encode as text.
        body = {"username": "olga", "password": PASSWORD} | body
        answer = APIClient().post(URL, json.dumps(body), content_type="application/json")

        assert (answer.status_code, list(answer.json())) == (400, [field])

    def test_an_odd_organization_is_just_not_yours(self, member):
        body = {"username": "olga", "password": PASSWORD, "organization": "\ud800"}
        answer = APIClient().post(URL, json.dumps(body), content_type="application/json")

        assert (answer.status_code, list(answer.json())) == (400, ["organization"])

    @pytest.mark.parametrize("url", [URL, REFRESH])
    def test_other_methods_and_bodies(self, db, url):
        api = APIClient()

        assert api.get(url).status_code == 405
        for body in (b"", b"[]", b"{}", b"null", b"{"):
            answer = api.post(url, body, content_type="application/json")
            assert answer.status_code == 400
            assert isinstance(answer.json(), dict)


class TestRefresh:
    def test_a_refresh_token_gives_the_next_pair(self, owner, member):
        first = login().json()
        answer = refresh(first["refresh"])

        assert answer.status_code == 200
        assert answer["Cache-Control"] == "no-store"
        second = answer.json()
        assert second.keys() == first.keys()
        assert second["refresh"] != first["refresh"]
        assert bearer(second["access"]).get("/v1/skills").status_code == 200
        assert refresh(second["refresh"]).status_code == 200

    def test_one_that_was_used_is_refused_and_ends_all_of_its_login(self, member):
        first, other = login().json(), login().json()
        second = refresh(first["refresh"]).json()

        assert_refused(refresh(first["refresh"]))
        assert_refused(refresh(second["refresh"]))
        # Another login of the same person is another story.
        assert refresh(other["refresh"]).status_code == 200

    @pytest.mark.parametrize("role", ["operator", "superuser"])
    def test_a_copied_one_ends_the_access_tokens_of_its_login_too(self, owner, member, role):
        if role == "superuser":
            member.memberships.all().delete()
            member.is_superuser = True
            member.save()
        named = {"organization": owner.organization.pk}
        first, other = login(**named).json(), login(**named).json()
        second = refresh(first["refresh"]).json()
        callers = [bearer(pair["access"]) for pair in (first, second, other)]
        assert [caller.get("/v1/skills").status_code for caller in callers] == [200, 200, 200]

        assert_refused(refresh(first["refresh"]))

        answers = [caller.get("/v1/skills") for caller in callers]
        assert [answer.status_code for answer in answers] == [401, 401, 200]
        assert answers[0].content == answers[1].content == REFUSED

    def test_tokens_serve_for_their_own_purpose_alone(self, member):
        pair = login().json()

        assert_refused(refresh(pair["access"]))
        assert bearer(pair["refresh"]).get("/v1/skills").content == REFUSED
        assert refresh(pair["refresh"]).status_code == 200

    @pytest.mark.parametrize("token", ["x", "a.b.c", "é", "\x7f"])
    def test_what_is_no_token_is_refused(self, member, token):
        assert_refused(refresh(token))

    @pytest.mark.parametrize("token", ["", None, [], "x" * 4097])
    def test_what_cannot_be_a_token_names_the_field(self, member, token):
        answer = refresh(token)

        assert (answer.status_code, list(answer.json())) == (400, ["refresh"])

    def test_it_lives_a_week(self, member, time_machine):
        start = timezone.now()
        time_machine.move_to(start, tick=False)
        early, late = login().json()["refresh"], login().json()["refresh"]

        time_machine.move_to(start + timedelta(days=7), tick=False)
        assert refresh(early).status_code == 200
        time_machine.move_to(start + timedelta(days=7, seconds=6), tick=False)
        assert_refused(refresh(late))

    @pytest.mark.parametrize("loss", ["membership", "activity", "password", "user", "organization"])
    def test_who_lost_the_right_gets_no_further_token(self, owner, member, loss):
        token = login().json()["refresh"]
        match loss:
            case "membership":
                member.memberships.all().delete()
            case "activity":
                member.is_active = False
                member.save()
            case "password":
                member.set_password("another")
                member.save()
            case "user":
                member.delete()
            case "organization":
                owner.organization.delete()

        assert_refused(refresh(token))

    def test_the_role_is_that_of_today(self, member):
        token = login().json()["refresh"]
        member.memberships.update(role="reviewer")

        assert refresh(token).json()["role"] == "reviewer"

    def test_expired_rows_are_forgotten(self, member, time_machine):
        time_machine.move_to(timezone.now() - timedelta(days=8))
        refresh(login().json()["refresh"])
        time_machine.move_to(timezone.now() + timedelta(days=8))
        kept = login().json()["refresh"]

        forget_expired_tokens(timestamp=0)

        assert OutstandingToken.objects.count() == 1
        assert not BlacklistedToken.objects.exists()
        assert refresh(kept).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_many_renewals_at_once_one_is_served():
    owner = make_owner()
    make_member(owner.organization, username="olga", password=PASSWORD)
    token = login().json()["refresh"]
    barrier, statuses = Barrier(8), []

    def renew() -> None:
        try:
            barrier.wait()
            statuses.append(refresh(token).status_code)
        finally:
            connection.close()

    threads = [Thread(target=renew) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(statuses) == [200] + [401] * 7
    # Seven copies were seen: nothing of this login lives on.
    assert OutstandingToken.objects.filter(blacklistedtoken=None).count() == 0
