"""Commands that set up organizations, clients, keys and members."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command

from mirix.tenants.audit import Actor
from mirix.tenants.models import (
    ApiKey,
    AuditEvent,
    Client,
    EndUser,
    Membership,
    Organization,
    OrganizationSettings,
)
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
    with pytest.raises(CommandError, match=f"--days: '{days}' is not a whole number from 1 to 36500"):
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
    with pytest.raises(CommandError, match=f"--overlap-hours: '{hours}' is not a whole number from 0 to 720"):
        run("rotate_api_key", "--organization", "Acme", ApiKey.objects.get().id, "--overlap-hours", hours)
    assert ApiKey.objects.count() == 1


def test_commands_are_in_the_audit_trail_and_keys_are_not():
    key = run("create_api_key", "--organization", "Acme")[0].strip()
    run("add_member", "--organization", "Acme", "rita")
    assert sorted(AuditEvent.objects.values_list("action", "actor_kind")) == [
        ("api_key.created", "command"),
        ("client.created", "command"),
        ("login.created", "command"),
        ("member.added", "command"),
        ("organization.created", "command"),
    ]
    assert key not in str(list(AuditEvent.objects.values()))


def test_djangos_commands_for_logins_leave_a_trail_too(monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "Zebra!2993x")
    run("createsuperuser", "--no-input", "--username", "root", "--email", "root@example.org")
    run("add_member", "--organization", "Acme", "rita")
    monkeypatch.setattr("getpass.getpass", lambda prompt: "Zebra!2993x")
    run("changepassword", "rita")

    assert authenticate(username="root", password="Zebra!2993x").is_superuser
    assert authenticate(username="rita", password="Zebra!2993x")
    lines = run("audit")[0].splitlines()
    assert [line.split()[2] for line in lines] == ["login.superuser_granted", "login.created"]
    assert all("username=root" in line for line in lines)
    assert "login.password_set" in run("audit", "--organization", "Acme")[0]
    with pytest.raises(CommandError, match="does not exist"):
        run("changepassword", "nobody")


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


def test_remove_member_takes_the_role_away_but_not_the_last_administrators():
    for name, role in {"ada": "administrator", "bob": "reviewer"}.items():
        run("add_member", "--organization", "Acme", "--role", role, name)

    assert run("remove_member", "--organization", "Acme", "bob")[0] == "bob is no member of Acme any more.\n"
    with pytest.raises(CommandError, match="last administrator"):
        run("remove_member", "--organization", "Acme", "ada")
    with pytest.raises(CommandError, match=r"^'bob' is no member of 'Acme'$"):
        run("remove_member", "--organization", "Acme", "bob")
    assert Membership.objects.get().user.username == "ada"


def test_organization_settings_shows_what_holds():
    run("create_organization", "Acme")
    out, _ = run("organization_settings", "--organization", "Acme")
    assert out == (
        "review_policy = required\nmin_supporting_sessions = 1\nfour_eyes = off\ndeciding_role = reviewer\n"
        "conversation_retention_days = 30\nundistilled_retention_days = 180\n"
        "raw_retention_days = 30\nsearch_log_retention_days = 30\ndaily_token_budget = 0\n"
        "redact_on_intake = off\nemail_digest = off\nwebhook_url = –\n"
    )


def test_organization_settings_changes_and_gives_back():
    run("create_organization", "Acme")
    base = ("organization_settings", "--organization", "Acme")
    out, _ = run(*base, "raw_retention_days=7", "redact_on_intake=on", "email_digest=on")
    assert "raw_retention_days = 7 (own choice)\n" in out
    assert "redact_on_intake = on (own choice)\n" in out
    assert "email_digest = on\n" in out
    answer = json.loads(run(*base, "raw_retention_days=", "--json")[0])
    assert answer["settings"]["raw_retention_days"] == 30
    assert answer["own"] == ["redact_on_intake"]


def test_organization_settings_prints_the_secret_of_a_new_webhook_once():
    run("create_organization", "Acme")
    base = ("organization_settings", "--organization", "Acme", "--json")
    first = json.loads(run(*base, "webhook_url=https://hooks.example.org/a=b")[0])
    assert first["settings"]["webhook_url"] == "https://hooks.example.org/a=b"
    assert first["webhook_secret"] == OrganizationSettings.objects.get().webhook_secret
    assert json.loads(run(*base)[0])["webhook_secret"] is None
    second = json.loads(run(*base, "--new-webhook-secret")[0])["webhook_secret"]
    assert second == OrganizationSettings.objects.get().webhook_secret != first["webhook_secret"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("raw_retention_days", "no NAME=VALUE"),
        ("raw_retention_days=-1", "^raw_retention_days: "),
        ("nothing=1", "^nothing: Must be one of review_policy, "),
        ("--new-webhook-secret", "no webhook"),
    ],
)
def test_organization_settings_refuses_what_cannot_be(change, message):
    run("create_organization", "Acme")
    with pytest.raises(CommandError, match=message):
        run("organization_settings", "--organization", "Acme", change)
    assert not OrganizationSettings.objects.exclude(raw_retention_days=None).exists()


def test_organizations_lists_all_or_one_with_what_belongs_to_it():
    assert run("organizations")[0] == "No organization yet.\n"
    key = run("create_api_key", "--organization", "Acme", "--client", "desk", "--name", "laptop")[0].strip()
    run("add_member", "--organization", "Acme", "rita")
    run("create_organization", "Other")
    assert [row["name"] for row in json.loads(run("organizations", "--json")[0])] == ["Acme", "Other"]

    answer = json.loads(run("organizations", "Acme", "--json")[0])
    row = ApiKey.objects.get()
    assert answer["clients"] == [{"id": row.client_id, "name": "desk"}]
    assert [(one["prefix"], one["state"], one["name"]) for one in answer["api_keys"]] == [
        (row.prefix, "usable", "laptop")
    ]
    assert answer["members"] == [{"username": "rita", "role": "reviewer"}]
    text = run("organizations", "Acme")[0]
    assert f"API keys\n  {row.prefix}…  {row.pk}  desk  write  usable  laptop\n" in text
    assert text.endswith("Members\n  rita  reviewer\n")
    assert key not in text
    with pytest.raises(CommandError, match="unknown organization 'Nowhere'"):
        run("organizations", "Nowhere")


def test_organizations_tells_the_states_of_keys():
    for _ in range(3):
        run("create_api_key", "--organization", "Acme")
    rotated, revoked, expired = ApiKey.objects.order_by("created_at")
    run("rotate_api_key", "--organization", "Acme", rotated.pk)
    run("revoke_api_key", "--organization", "Acme", revoked.pk)
    ApiKey.objects.filter(pk=expired.pk).update(expires_at=expired.created_at)
    states = {
        row["id"]: row["state"] for row in json.loads(run("organizations", "Acme", "--json")[0])["api_keys"]
    }
    assert [states[key.pk] for key in (rotated, revoked, expired)] == ["replaced", "revoked", "expired"]


def test_rename_names_organizations_clients_and_end_users():
    run("create_client", "--organization", "Acme", "desk")
    run("create_end_user", "--organization", "Acme", "alice")
    client, end_user = Client.objects.get(), EndUser.objects.get()

    out, _ = run("rename", "--organization", "Acme", "--client", "desk", "helpdesk")
    assert out == f"{client.pk} is called helpdesk now.\n"
    run("rename", "--organization", "Acme", "--user", "alice", "Alice")
    run("rename", "--organization", "Acme", "Acme Ltd")

    assert (Client.objects.get().name, EndUser.objects.get().name) == ("helpdesk", "Alice")
    assert Organization.objects.get().name == "Acme Ltd"
    for arguments, message in {
        ("--client", "desk", "x"): "unknown client 'desk'",
        ("--user", "bob", "x"): "unknown user 'bob'",
        (" ",): "May not be blank",
    }.items():
        with pytest.raises(CommandError, match=message):
            run("rename", "--organization", "Acme Ltd", *arguments)
    assert end_user.pk == EndUser.objects.get(user_id="alice").pk


def test_create_end_user_twice_is_one():
    out, _ = run("create_end_user", "--organization", "Acme", "--name", "Alice", "alice")
    end_user = EndUser.objects.get()
    assert out == f"created organization 'Acme'\nCreated alice ({end_user.pk}) of Acme\n"
    assert run("create_end_user", "--organization", "Acme", "alice")[0].startswith("Exists already: alice")
    with pytest.raises(CommandError, match="May not be blank"):
        run("create_end_user", "--organization", "Acme", " ")
    assert EndUser.objects.get().name == "Alice"


def test_audit_prints_who_did_what_the_newest_first(time_machine):
    time_machine.move_to("2026-03-01T12:00:00Z", tick=False)
    run("create_organization", "Acme")
    assert "by " in run("audit", "--organization", "Acme")[0]
    time_machine.move_to("2026-03-01T12:00:01Z", tick=False)
    run("create_client", "--organization", "Acme", "desk")
    client, actor = Client.objects.get(), Actor.operator().name

    first, _ = run("audit", "--organization", "Acme")[0].splitlines()
    assert first == f"2026-03-01 12:00:01  client.created  {client.pk}  by {actor} (command)  name=desk"
    rows = json.loads(run("audit", "--organization", "Acme", "--limit", "1", "--json")[0])
    assert [(row["action"], row["details"]) for row in rows] == [("client.created", {"name": "desk"})]
    with pytest.raises(CommandError, match="--limit"):
        run("audit", "--organization", "Acme", "--limit", "0")
