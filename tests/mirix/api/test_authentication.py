"""How a request says who calls: key, then token, then, where it is trusted, the id of a client."""

from __future__ import annotations

import base64
from datetime import timedelta

import jwt
import pytest
from django.conf import settings
from django.core.checks import run_checks
from django.db import OperationalError
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from mirix.api import authentication
from mirix.tenants.models import EndUser
from mirix.tenants.principal import Principal
from mirix.tenants.tokens import find_person
from tests.factories import make_client, make_key, make_member, make_skill, make_superuser, make_token

pytestmark = pytest.mark.django_db
URL = "/v1/skills"
REFUSED = b'{"detail":"This needs a valid credential."}'
CHALLENGE = 'ApiKey realm="mirix", Bearer realm="mirix"'
SIGNING_KEY = settings.SIMPLE_JWT["SIGNING_KEY"]


def call(**headers: str):
    return APIClient(headers={name.replace("_", "-"): value for name, value in headers.items()}).get(URL)


def assert_refused(answer) -> None:
    assert (answer.status_code, answer.content) == (401, REFUSED)
    assert answer["WWW-Authenticate"] == CHALLENGE


def skills(answer) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


@pytest.fixture
def member(owner):
    return make_member(owner.organization, "reviewer")


@pytest.fixture
def token(member, owner) -> str:
    return make_token(member, owner.organization)


class TestRefusals:
    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"X_API_Key": ""},
            {"X_API_Key": "mx_unknown"},
            {"X_API_Key": "\udcff\x00"},
            {"Authorization": ""},
            {"Authorization": "Bearer"},
            {"Authorization": "Bearer "},
            {"Authorization": "Bearer x"},
            {"Authorization": "Bearer a.b.c"},
            {"Authorization": "Bearer \udcff"},
            {"Authorization": "Bearer é.é.é"},
            {"Authorization": "Basic YWxpY2U6c2VjcmV0"},
            {"X_API_Key": "mx_unknown", "Authorization": "Bearer a.b.c", "X_Client_ID": "client-none"},
        ],
    )
    def test_missing_and_bad_credentials_are_one_and_the_same_401(self, owner, headers):
        assert_refused(call(**headers))

    @pytest.mark.parametrize("field", ["revoked_at", "expires_at"])
    def test_a_revoked_or_expired_key(self, client_row, field):
        key = make_key(client_row, **{field: timezone.now() - timedelta(seconds=1)})

        assert_refused(call(X_API_Key=key))

    @hypothesis_settings(
        max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(text=st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: f"{raw.hex()}.{raw.hex()}.x"))
    def test_no_text_is_a_token(self, db, text):
        assert find_person(access=text) is None

    def test_a_header_of_json_without_end_is_no_token(self, db):
        deep = base64.urlsafe_b64encode(b"[" * 2900).rstrip(b"=").decode()

        assert find_person(access=f"{deep}.e30.x") is None
        assert find_person(access="x" * 5000) is None


def test_a_database_that_is_down_is_no_wrong_credential(client_row, monkeypatch):
    def fail(**_: object) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(authentication, "find_principal", fail)
    answer = call(X_API_Key=make_key(client_row))

    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


class TestOrder:
    def test_each_credential_alone_opens(self, client_row, member, owner, settings):
        settings.MIRIX_TRUST_CLIENT_ID_HEADER = True
        skill = make_skill(owner)
        token = make_token(member, owner.organization)

        for headers in (
            {"X_API_Key": make_key(client_row)},
            {"Authorization": f"Bearer {token}"},
            {"Authorization": f"bearer  {token} "},
            {"X_Client_ID": client_row.pk},
        ):
            assert skills(call(**headers)) == [skill.pk]

    def test_the_key_comes_before_the_token(self, stranger, owner, token):
        make_skill(owner)
        theirs = make_skill(stranger)
        key = make_key(make_client(stranger.organization))

        assert skills(call(X_API_Key=key, Authorization=f"Bearer {token}")) == [theirs.pk]

    def test_a_wrong_key_leaves_the_word_to_a_good_token(self, owner, token):
        skill = make_skill(owner)

        assert skills(call(X_API_Key="mx_unknown", Authorization=f"Bearer {token}")) == [skill.pk]
        assert_refused(call(X_API_Key="mx_unknown", Authorization=f"Bearer {token}x"))

    def test_the_token_comes_before_the_id_of_a_client(self, stranger, owner, token, settings):
        settings.MIRIX_TRUST_CLIENT_ID_HEADER = True
        skill, client_id = make_skill(owner), make_client(stranger.organization).pk
        theirs = make_skill(stranger)

        assert skills(call(Authorization=f"Bearer {token}", X_Client_ID=client_id)) == [skill.pk]
        assert skills(call(Authorization="Bearer x", X_Client_ID=client_id)) == [theirs.pk]


class TestTokens:
    def test_a_token_lives_a_quarter_of_an_hour(self, owner, member, time_machine):
        start = timezone.now()
        time_machine.move_to(start, tick=False)
        token = make_token(member, owner.organization)

        # Five seconds more, by which the clocks of hosts may differ.
        time_machine.move_to(start + timedelta(minutes=15, seconds=3), tick=False)
        assert call(Authorization=f"Bearer {token}").status_code == 200
        time_machine.move_to(start + timedelta(minutes=15, seconds=6), tick=False)
        assert_refused(call(Authorization=f"Bearer {token}"))

    @pytest.mark.parametrize(
        ("key", "algorithm"),
        [(None, "none"), ("another secret of more than 32 characters", "HS256"), (SIGNING_KEY * 2, "HS512")],
    )
    def test_a_token_that_somebody_else_signed(self, token, key, algorithm):
        claims = jwt.decode(token, SIGNING_KEY, algorithms=["HS256"])
        assert_refused(call(Authorization=f"Bearer {jwt.encode(claims, key, algorithm=algorithm)}"))

    def test_a_token_whose_claims_were_changed(self, token, stranger):
        header, _, signature = token.split(".")
        claims = jwt.decode(token, SIGNING_KEY, algorithms=["HS256"])
        claims["organization"] = stranger.organization.pk
        forged = jwt.encode(claims, "x" * 64, algorithm="HS256").split(".")[1]

        assert_refused(call(Authorization=f"Bearer {header}.{forged}.{signature}"))

    def test_the_secret_key_itself_signs_no_token(self, token):
        claims = jwt.decode(token, SIGNING_KEY, algorithms=["HS256"])
        forged = jwt.encode(claims, settings.SECRET_KEY, algorithm="HS256")

        assert_refused(call(Authorization=f"Bearer {forged}"))

    def test_a_token_tells_no_secret(self, token, owner, member):
        claims = jwt.decode(token, SIGNING_KEY, algorithms=["HS256"])

        assert claims.keys() == {"token_type", "exp", "iat", "jti", "sub", "organization", "login"}
        assert (claims["sub"], claims["organization"]) == (str(member.pk), owner.organization.pk)
        assert member.password not in str(claims)

    def test_it_opens_one_organization_alone(self, owner, stranger, member):
        member.memberships.create(organization=stranger.organization, role="operator")
        mine, theirs = make_skill(owner), make_skill(stranger)

        assert skills(call(Authorization=f"Bearer {make_token(member, owner.organization)}")) == [mine.pk]
        assert skills(call(Authorization=f"Bearer {make_token(member, stranger.organization)}")) == [
            theirs.pk
        ]

    def test_a_role_that_changes_counts_at_once(self, owner, member, token):
        api = APIClient(headers={"Authorization": f"Bearer {token}"})
        url, body = "/users/create_or_get", {"user_id": "bob"}
        assert api.post(url, body, format="json").status_code == 403

        member.memberships.update(role="operator")

        assert api.post(url, body, format="json").status_code == 201

    @pytest.mark.parametrize("loss", ["membership", "activity", "password", "user", "organization"])
    def test_who_lost_the_right_is_refused_at_once(self, owner, member, token, loss):
        assert call(Authorization=f"Bearer {token}").status_code == 200
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

        assert_refused(call(Authorization=f"Bearer {token}"))

    def test_a_superuser_opens_the_organization_that_the_token_names(self, owner, stranger):
        root = make_superuser()
        mine, theirs = make_skill(owner), make_skill(stranger)
        token = make_token(root, stranger.organization)

        assert skills(call(Authorization=f"Bearer {token}")) == [theirs.pk]
        assert skills(call(Authorization=f"Bearer {make_token(root, owner.organization)}")) == [mine.pk]
        stranger.organization.delete()
        assert_refused(call(Authorization=f"Bearer {token}"))

    def test_who_is_no_superuser_any_more_is_a_stranger(self, owner):
        root = make_superuser()
        token = make_token(root, owner.organization)

        root.is_superuser = False
        root.save()

        assert_refused(call(Authorization=f"Bearer {token}"))

    def test_a_superuser_may_everything_whatever_the_membership_says(self, owner, member):
        member.is_superuser = True
        member.save()

        principal = find_person(access=make_token(member, owner.organization))

        assert principal == Principal.of_superuser(member, owner.organization)

    def test_a_members_call_costs_one_query(self, token, django_assert_num_queries):
        with django_assert_num_queries(1):
            assert find_person(access=token).role == "reviewer"


class TestClientIds:
    def test_they_are_worth_nothing_unless_trusted(self, client_row):
        assert settings.MIRIX_TRUST_CLIENT_ID_HEADER is False
        assert_refused(call(X_Client_ID=client_row.pk))

    @pytest.mark.parametrize("client_id", ["client-none", "", "\x00", "\udcff", "x" * 500])
    def test_an_unknown_one_is_refused(self, client_row, settings, client_id):
        settings.MIRIX_TRUST_CLIENT_ID_HEADER = True

        assert_refused(call(X_Client_ID=client_id))

    def test_a_trusted_one_reads_and_writes_in_its_own_organization(self, client_row, stranger, settings):
        settings.MIRIX_TRUST_CLIENT_ID_HEADER = True
        make_skill(stranger)
        api = APIClient(headers={"X-Client-ID": client_row.pk})

        assert skills(api.get(URL)) == []
        answer = api.post("/users/create_or_get", {}, format="json")
        assert (answer.status_code, answer.json()["organization_id"]) == (201, client_row.organization_id)
        assert EndUser.objects.get(pk=answer.json()["id"]).user_id == client_row.default_user_id

    def test_trusting_them_is_warned_of(self, settings):
        def warnings() -> list[str]:
            return [message.id for message in run_checks(tags=["security"]) if message.is_serious(30)]

        assert warnings() == []
        settings.MIRIX_TRUST_CLIENT_ID_HEADER = True
        assert warnings() == ["mirix.W001"]
