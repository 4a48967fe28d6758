"""Keys: made, rotated with an overlap, revoked."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.forms.models import model_to_dict
from django.utils import timezone

from mirix.tenants.audit import Actor
from mirix.tenants.keys import create_api_key, hash_key, revoke_api_key, rotate_api_key
from mirix.tenants.models import ApiKey, AuditEvent
from mirix.tenants.selectors import find_principal

pytestmark = pytest.mark.django_db
RITA = Actor(kind="user", id="7", name="rita")
NOON = datetime.fromisoformat("2026-03-01T12:00:00+00:00")


def works(key: str) -> bool:
    return find_principal(key=key) is not None


def test_a_key_is_shown_once_and_only_its_hash_is_stored(client_row):
    row, key = create_api_key(client=client_row, name="laptop", permission="read", actor=RITA)

    stored = ApiKey.objects.values().get(pk=row.pk)
    assert len(key) == 46
    assert key.startswith(stored["prefix"])
    assert key not in [str(value) for value in stored.values()]
    assert stored["secret_hash"] == hash_key(key)
    principal = find_principal(key=key)
    assert (principal.client, principal.organization) == (client_row, client_row.organization)
    assert [principal.may(level) for level in ("read", "write", "admin")] == [True, False, False]


def test_a_revoked_key_speaks_for_nobody_and_keeps_its_first_time(client_row):
    row, key = create_api_key(client=client_row, actor=RITA)
    first = revoke_api_key(api_key=row, actor=RITA).revoked_at

    assert not works(key)
    assert revoke_api_key(api_key=row, actor=RITA).revoked_at == first
    assert AuditEvent.objects.filter(action="api_key.revoked").count() == 1


@pytest.mark.parametrize(
    ("fields", "field"), [({"permission": "root"}, "permission"), ({"name": "x" * 129}, "name")]
)
def test_what_a_key_cannot_be_is_refused(client_row, fields, field):
    with pytest.raises(ValidationError) as error:
        create_api_key(client=client_row, actor=RITA, **fields)
    assert list(error.value.message_dict) == [field]
    assert not ApiKey.objects.exists()


def test_both_keys_work_in_the_overlap_and_then_only_the_new(client_row, time_machine):
    time_machine.move_to(NOON, tick=False)
    old, old_key = create_api_key(client=client_row, name="laptop", permission="admin", actor=RITA)
    new, new_key = rotate_api_key(api_key=old, actor=RITA)

    assert (new.client, new.name, new.permission, new.expires_at) == (client_row, "laptop", "admin", None)
    old.refresh_from_db()
    assert (old.replaced_by, old.expires_at, old.revoked_at) == (new, NOON + timedelta(hours=24), None)
    time_machine.move_to(NOON + timedelta(hours=24) - timedelta(seconds=1), tick=False)
    assert (works(old_key), works(new_key)) == (True, True)
    time_machine.move_to(NOON + timedelta(hours=24), tick=False)
    assert (works(old_key), works(new_key)) == (False, True)


def test_without_an_overlap_the_old_key_stops_at_once(client_row):
    old, old_key = create_api_key(client=client_row, actor=RITA)
    _, new_key = rotate_api_key(api_key=old, overlap=timedelta(0), actor=RITA)
    assert (works(old_key), works(new_key)) == (False, True)


def test_a_rotated_key_lives_as_long_again_and_the_old_one_no_longer_than_it_would(client_row, time_machine):
    time_machine.move_to(NOON, tick=False)
    old, _ = create_api_key(client=client_row, expires_at=NOON + timedelta(days=90), actor=RITA)
    time_machine.move_to(NOON + timedelta(days=89, hours=12), tick=False)

    new, _ = rotate_api_key(api_key=old, overlap=timedelta(days=7), actor=RITA)

    old.refresh_from_db()
    assert old.expires_at == NOON + timedelta(days=90)
    assert new.expires_at == timezone.now() + timedelta(days=90)


def test_a_key_is_rotated_once_and_only_while_it_works(client_row):
    old, _ = create_api_key(client=client_row, actor=RITA)
    revoked, _ = create_api_key(client=client_row, actor=RITA)
    revoke_api_key(api_key=revoked, actor=RITA)
    rotate_api_key(api_key=old, actor=RITA)

    with pytest.raises(ValidationError, match="rotated already"):
        rotate_api_key(api_key=old, actor=RITA)
    with pytest.raises(ValidationError, match="does not work any more"):
        rotate_api_key(api_key=revoked, actor=RITA)
    assert ApiKey.objects.count() == 3


@pytest.mark.parametrize("hours", [-1, 721])
def test_an_overlap_out_of_range_is_refused(client_row, hours):
    old, _ = create_api_key(client=client_row, actor=RITA)
    before = model_to_dict(old)
    with pytest.raises(ValidationError) as error:
        rotate_api_key(api_key=old, overlap=timedelta(hours=hours), actor=RITA)
    assert list(error.value.message_dict) == ["overlap_hours"]
    assert model_to_dict(ApiKey.objects.get()) == before


def test_the_trail_tells_what_became_of_keys_and_holds_no_secret(client_row, time_machine, caplog):
    caplog.set_level("DEBUG")
    time_machine.move_to(NOON, tick=False)
    old, first = create_api_key(client=client_row, permission="read", actor=RITA)
    new, second = rotate_api_key(api_key=old, overlap=timedelta(hours=1), actor=RITA)
    revoke_api_key(api_key=new, actor=RITA)

    about = {"client": client_row.name, "permission": "read"}
    events = AuditEvent.objects.order_by("id").values_list("action", "target_id", "details")
    assert sorted(events, key=lambda event: event[0]) == [
        ("api_key.created", old.pk, about | {"prefix": old.prefix, "expires_at": None}),
        ("api_key.revoked", new.pk, about | {"prefix": new.prefix}),
        (
            "api_key.rotated",
            old.pk,
            about
            | {
                "prefix": old.prefix,
                "replaced_by": new.pk,
                "new_prefix": new.prefix,
                "works_until": "2026-03-01T13:00:00+00:00",
            },
        ),
    ]
    written = json.dumps([list(AuditEvent.objects.values("details", "target_id")), caplog.text], default=str)
    for key in (first, second):
        assert key not in written
        assert hash_key(key) not in written
