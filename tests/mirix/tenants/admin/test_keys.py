"""API keys in the admin: shown once, rotated, revoked, and nowhere else to be found."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.views.debug import ExceptionReporter

from mirix.tenants.keys import hash_key
from mirix.tenants.models import ApiKey, AuditEvent
from mirix.tenants.selectors import find_principal
from tests.factories import make_client
from tests.mirix.tenants.admin.people import member, stored, url

pytestmark = pytest.mark.django_db


def secret_of(response) -> str:
    (secret,) = re.findall(r'id="secret" value="([^"]*)"', response.content.decode())
    return html.unescape(secret)


@pytest.fixture
def browser(owner):
    return member(owner.organization, username="ada")


def make(browser, client, **data):
    return browser.post(url("apikey_add"), {"client": client.pk, "permission": "write", **data})


def test_a_new_key_is_in_the_answer_to_the_post_and_nowhere_else(browser, client_row, caplog):
    caplog.set_level("DEBUG")
    response = make(browser, client_row, name="laptop", permission="read", days="7")

    key = secret_of(response)
    assert response.content.decode().count(key) == 1
    assert "no-store" in response["Cache-Control"]
    assert "Location" not in response
    row = ApiKey.objects.get()
    assert find_principal(key=key).client == client_row
    assert (row.name, row.permission) == ("laptop", "read")
    assert timedelta(days=6, hours=23) < row.expires_at - timezone.now() <= timedelta(days=7)
    for address in (
        url("apikey_change", row.pk),
        url("apikey_changelist"),
        url("client_change", client_row.pk),
        url("auditevent_changelist"),
        url("auditevent_change", AuditEvent.objects.get(action="api_key.created").pk),
        url("apikey_add"),
        "/admin/",
    ):
        assert key not in browser.get(address).content.decode()
    kept = json.dumps([stored(), caplog.text, str(browser.cookies)], default=str)
    kept += "".join(str(session.get_decoded()) for session in Session.objects.all())
    assert key not in kept
    assert LogEntry.objects.get().object_id == row.pk


def test_rotation_shows_the_new_key_once_and_both_work_in_the_overlap(browser, client_row, time_machine):
    time_machine.move_to("2026-03-01T12:00:00Z", tick=False)
    old_key = secret_of(make(browser, client_row))
    old = ApiKey.objects.get()
    response = browser.post(url("apikey_rotate", old.pk), {"overlap_hours": "2"})
    new_key = secret_of(response)
    assert "no-store" in response["Cache-Control"]
    assert hash_key(old_key) == old.secret_hash
    page = browser.get(url("apikey_change", old.pk)).content.decode()
    assert "Replaced by" in page
    assert not any(key in page for key in (old_key, new_key))
    time_machine.move_to("2026-03-01T13:59:59Z", tick=False)
    assert [find_principal(key=key) is None for key in (old_key, new_key)] == [False, False]
    time_machine.move_to("2026-03-01T14:00:00Z", tick=False)
    assert [find_principal(key=key) is None for key in (old_key, new_key)] == [True, False]


def test_a_rotation_sent_twice_makes_one_key(browser, client_row):
    make(browser, client_row)
    old = ApiKey.objects.get()
    assert browser.post(url("apikey_rotate", old.pk), {"overlap_hours": "2"}).status_code == 200
    before = stored()
    again = browser.post(url("apikey_rotate", old.pk), {"overlap_hours": "2"})
    assert again.status_code == 400
    assert "This key was rotated already" in again.content.decode()
    assert stored() == before


@pytest.mark.parametrize("hours", ["", "-1", "721", "soon"])
def test_an_overlap_out_of_range_is_refused(browser, client_row, hours):
    make(browser, client_row)
    before = stored()
    response = browser.post(url("apikey_rotate", ApiKey.objects.get().pk), {"overlap_hours": hours})
    assert response.status_code == 400
    assert stored() == before


@pytest.mark.parametrize(
    "data",
    [{"permission": "root"}, {"name": "x" * 129}, {"days": "0"}, {"days": "36501"}, {"name": "a\x00b"}],
)
def test_what_a_key_cannot_be_is_said_in_the_form(browser, client_row, data):
    before = stored()
    response = make(browser, client_row, **data)
    assert response.status_code == 400
    assert 'aria-invalid="true"' in response.content.decode()
    assert stored() == before


def test_a_revoked_key_opens_nothing_and_offers_nothing(browser, client_row):
    key = secret_of(make(browser, client_row))
    row = ApiKey.objects.get()
    response = browser.post(url("apikey_revoke", row.pk), follow=True)
    assert f"{row.prefix}… is revoked." in response.content.decode()
    assert find_principal(key=key) is None
    page = browser.get(url("apikey_change", row.pk)).content.decode()
    assert url("apikey_rotate", row.pk) not in page
    assert url("apikey_revoke", row.pk) not in page
    assert "Revoked" in page


@pytest.mark.parametrize("role", ["reviewer", "operator"])
def test_who_only_reads_sees_the_prefix_and_no_button(role, owner, browser, client_row):
    make(browser, client_row)
    row = ApiKey.objects.get()
    page = member(owner.organization, role).get(url("apikey_change", row.pk)).content.decode()
    assert row.prefix in page
    assert row.secret_hash not in page
    assert url("apikey_rotate", row.pk) not in page


def test_the_list_filters_by_state(browser, client_row):
    past = timezone.now() - timedelta(days=1)
    for name, fields in {"good": {}, "old": {"expires_at": past}, "gone": {"revoked_at": past}}.items():
        make(browser, client_row, name=name)
        ApiKey.objects.filter(name=name).update(prefix=f"mx_{name}", **fields)
    for state, shown in {"usable": "good", "expired": "old", "revoked": "gone"}.items():
        page = browser.get(url("apikey_changelist"), {"state": state}).content.decode()
        assert [name for name in ("good", "old", "gone") if f"mx_{name}…" in page] == [shown]


def test_a_key_is_offered_for_the_clients_of_one_organization_from_its_page(owner, browser):
    here = make_client(owner.organization, "here")
    page = browser.get(url("apikey_add"), {"organization": owner.organization.pk}).content.decode()
    assert f'value="{here.pk}"' in page
    assert f"{owner.organization.name}: here" in page


def test_when_making_a_key_fails_it_is_in_no_log_and_on_no_page(browser, client_row, monkeypatch, caplog):
    def fail(**arguments: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("mirix.tenants.keys.secrets.token_urlsafe", lambda size: "THE-SECRET-PART" * 3)
    monkeypatch.setattr("mirix.tenants.keys.record", fail)
    browser.raise_request_exception = False
    before = stored()
    response = make(browser, client_row)
    assert response.status_code == 500
    assert stored() == before
    assert "the disk is full" in caplog.text
    assert "SECRET-PART" not in caplog.text + response.content.decode()
    (failed,) = [record for record in caplog.records if record.exc_info]
    report = ExceptionReporter(failed.request, *failed.exc_info).get_traceback_text()
    assert "RuntimeError" in report
    assert "SECRET-PART" not in report  # what would be mailed to the people who run the installation
