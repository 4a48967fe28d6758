"""A process that is killed while it rotates a key: nothing is half done, and no caller is kept out."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from mirix.tenants.audit import SYSTEM
from mirix.tenants.keys import rotate_api_key
from mirix.tenants.models import ApiKey, AuditEvent, Client
from mirix.tenants.selectors import find_principal
from tests.factories import make_client, make_key
from tests.processes import Process

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

ROTATE = """
import sys, time
from django.core.management import call_command
from mirix.tenants import keys
from mirix.tenants.management.commands.rotate_api_key import Command

def stop(*args, **options):
    print("here", flush=True)
    time.sleep(600)

{where} = stop
call_command("rotate_api_key", {key!r}, organization={organization!r})
"""


def killed_at(where: str, client: Client) -> str:
    """Rotate the client's key in a process that is killed where it comes to; return the key."""
    key = make_key(client)
    row = ApiKey.objects.get(client=client)
    script = ROTATE.format(where=where, key=row.pk, organization=client.organization_id)
    with Process(script) as process:
        assert process.line() == "here"
        process.kill()
    return key


def test_before_it_is_stored_nothing_has_happened():
    client = make_client()
    key = killed_at("keys.record", client)

    row = ApiKey.objects.get()
    assert (row.replaced_by, row.expires_at) == (None, None)
    assert find_principal(key=key).client == client
    assert not AuditEvent.objects.exists()
    rotate_api_key(api_key=row, actor=SYSTEM)  # which waits for the lock of the dead until it is gone
    assert ApiKey.objects.count() == 2


def test_after_it_is_stored_the_old_key_works_on_and_the_lost_one_is_rotated():
    """The new key was never shown to anybody."""
    client = make_client()
    key = killed_at("Command.answer", client)

    old = ApiKey.objects.exclude(replaced_by=None).get()
    assert find_principal(key=key).client == client
    assert AuditEvent.objects.get().action == "api_key.rotated"
    with pytest.raises(ValidationError, match="rotate the one that replaces it"):
        rotate_api_key(api_key=old, actor=SYSTEM)
    _, shown = rotate_api_key(api_key=old.replaced_by, actor=SYSTEM)
    assert find_principal(key=shown).client == client
    assert find_principal(key=key).client == client
