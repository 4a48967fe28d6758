"""Commands that set up organizations, clients, keys and members."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command

from mirix.tenants.models import ApiKey, AuditEvent, Client, Membership, Organization
from mirix.tenants.selectors import find_principal

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(*arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_create_organization_twice_is_one():
    first = json.loads(run("create_organization", "Acme", "--json")[0])
    out, _ = run("create_organization", "Acme")

    assert first == {"id": Organization.objects.get().id, "name": "Acme", "created": True}
    assert out == f"Exists already: Acme ({first['id']})\n"


def test_create_organization_refuses_a_blank_name():
    with pytest.raises(CommandError, match=r"^name: May not be blank\.$"):
        run("create_organization", " ")


def test_create_client_makes_a_missing_organization_and_says_so():
    out, _ = run("create_client", "--organization", "Acme", "helpdesk")

    client = Client.objects.get()
    assert out == f"created organization 'Acme'\nCreated helpdesk ({client.id}) of Acme\n"
    assert client.organization.name == "Acme"


def test_create_api_key_prints_the_key_alone():
    out, err = run("create_api_key", "--organization", "Acme", "--permission", "read", "--days", "7")

    principal = find_principal(key=out.strip())
    row = ApiKey.objects.get()
    assert principal.client.name == "default"
    assert principal.permission == "read"
    assert 6 <= (row.expires_at - row.created_at).days <= 7
    assert err == "created organization 'Acme'\ncreated client 'default'\n"


@pytest.mark.parametrize("days", ["0", "-1", "99999"])
def test_create_api_key_refuses_a_life_time_out_of_range(days):
    with pytest.raises(CommandError, match="--days"):
        run("create_api_key", "--organization", "Acme", "--days", days)
    assert not ApiKey.objects.exists()


def test_revoke_api_key_by_prefix_within_the_organization_only():
    key = run("create_api_key", "--organization", "Acme")[0].strip()
    run("create_organization", "Other")
    prefix = ApiKey.objects.get().prefix

    with pytest.raises(CommandError, match="no key"):
        run("revoke_api_key", "--organization", "Other", prefix)
    assert find_principal(key=key) is not None

    out, _ = run("revoke_api_key", "--organization", "Acme", prefix)
    assert out.startswith(f"Revoked {prefix}…")
    assert find_principal(key=key) is None


def test_rotate_api_key_prints_the_new_key_alone_and_says_how_long_the_old_one_works(time_machine):
    time_machine.move_to("2026-03-01T12:00:00Z", tick=False)
    old = run("create_api_key", "--organization", "Acme", "--permission", "admin")[0].strip()
    prefix = ApiKey.objects.get().prefix
    out, err = run("rotate_api_key", "--organization", "Acme", prefix, "--overlap-hours", "2")

    new = out.strip()
    assert new.startswith("mx_")
    assert err == f"{prefix}… works until 2026-03-01 14:00 UTC\n"
    assert find_principal(key=new).permission == "admin"
    time_machine.move_to("2026-03-01T13:59:59Z", tick=False)
    assert find_principal(key=old) is not None
    time_machine.move_to("2026-03-01T14:00:00Z", tick=False)
    assert find_principal(key=old) is None
    with pytest.raises(CommandError, match="does not work any more"):
        run("rotate_api_key", "--organization", "Acme", prefix)


def test_rotate_api_key_without_overlap_ends_the_old_key_at_once():
    old = run("create_api_key", "--organization", "Acme")[0].strip()
    answer = json.loads(
        run(
            "rotate_api_key", "--organization", "Acme", ApiKey.objects.get().id, "--overlap-hours=0", "--json"
        )[0]
    )
    assert find_principal(key=answer["key"]).client.id == answer["client_id"]
    assert find_principal(key=old) is None
    assert ApiKey.objects.get(pk=answer["replaces"]).replaced_by_id == answer["id"]


@pytest.mark.parametrize("hours", ["-1", "721"])
def test_rotate_api_key_refuses_an_overlap_out_of_range(hours):
    run("create_api_key", "--organization", "Acme")
    with pytest.raises(CommandError, match="--overlap-hours must be between 0 and 720"):
        run("rotate_api_key", "--organization", "Acme", ApiKey.objects.get().id, "--overlap-hours", hours)
    assert ApiKey.objects.count() == 1


def test_commands_are_in_the_audit_trail_and_keys_are_not():
    key = run("create_api_key", "--organization", "Acme")[0].strip()
    run("add_member", "--organization", "Acme", "rita")
    assert sorted(AuditEvent.objects.values_list("action", "actor_kind")) == [
        ("api_key.created", "command"),
        ("client.created", "command"),
        ("member.added", "command"),
        ("organization.created", "command"),
    ]
    assert key not in str(list(AuditEvent.objects.values()))


def test_revoke_api_key_refuses_an_unknown_organization():
    with pytest.raises(CommandError, match="unknown organization 'Nowhere'"):
        run("revoke_api_key", "--organization", "Nowhere", "mx_abc")


def test_add_member_makes_the_user_and_prints_the_password_once():
    answer = json.loads(
        run("add_member", "--organization", "Acme", "--role", "operator", "rita", "--json")[0]
    )

    assert answer["role"] == "operator"
    assert authenticate(username="rita", password=answer["password"]) is not None
    out, _ = run("add_member", "--organization", "Acme", "--role", "reviewer", "rita")
    assert out == "rita is reviewer of Acme.\n"
    assert Membership.objects.get().role == "reviewer"


def test_add_member_with_a_bad_name_creates_nothing():
    with pytest.raises(CommandError, match="username"):
        run("add_member", "--organization", "Acme", "two words")
    assert not Organization.objects.exists()
