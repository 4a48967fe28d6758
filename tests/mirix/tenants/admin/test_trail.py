"""The audit trail and the notifications in the admin: for administrators, to read."""

from __future__ import annotations

import pytest

from mirix.tenants.audit import SYSTEM, Act, record
from mirix.tenants.models import AuditEvent, Notification
from tests.factories import make_client, make_member
from tests.mirix.tenants.admin.people import browser_of, member, stored, superuser, url

pytestmark = pytest.mark.django_db
HOSTILE = "<img src=x onerror=alert(1)>"


def event_of(owner, **details) -> AuditEvent:
    return record(
        organization=owner.organization,
        actor=SYSTEM,
        action=Act.CLIENT_CREATED,
        target=make_client(owner.organization),
        details=details,
    )


def notice_of(owner, **fields) -> Notification:
    return Notification.objects.create(
        organization=owner.organization, channel="webhook", counts={"proposals": 2}, **fields
    )


@pytest.mark.parametrize(("name", "make"), [("auditevent", event_of), ("notification", notice_of)])
def test_one_sees_the_rows_of_the_organizations_that_one_administers(name, make, owner, stranger):
    mine, reviewed = make(owner), make(stranger)
    user = make_member(owner.organization, "administrator")
    user.memberships.create(organization=stranger.organization, role="reviewer")
    browser = browser_of(user)
    text = browser.get(url(f"{name}_changelist")).content.decode()
    assert (mine.pk in text, reviewed.pk in text) == (True, False)
    assert browser.get(url(f"{name}_change", mine.pk)).status_code == 200
    foreign, absent = (browser.get(url(f"{name}_change", pk)) for pk in (reviewed.pk, "nothing"))
    assert (foreign.status_code, foreign.content) == (404, absent.content)
    assert stranger.organization.name not in text


@pytest.mark.parametrize(("name", "make"), [("auditevent", event_of), ("notification", notice_of)])
def test_nobody_writes_them_by_hand(name, make, owner):
    row = make(owner)
    for browser in (member(owner.organization), superuser()):
        before = stored()
        assert browser.post(url(f"{name}_change", row.pk), {}).status_code in (403, 405)
        assert browser.get(url(f"{name}_add")).status_code == 403
        assert browser.post(url(f"{name}_delete", row.pk), {"post": "yes"}).status_code == 403
        assert stored() == before


def test_an_event_is_shown_in_words_and_never_as_markup(owner):
    event = event_of(owner, name=HOSTILE, raw_retention_days=[None, 7], email_digest=[False, True])
    browser = member(owner.organization)
    for address in (url("auditevent_changelist"), url("auditevent_change", event.pk)):
        text = browser.get(address).content.decode()
        assert HOSTILE not in text
        assert "Client created" in text
    assert "raw retention days: – → 7" in text
    assert "email digest: off → on" in text


def test_the_trail_is_filtered_by_act(owner):
    event = event_of(owner)
    browser = member(owner.organization)
    found = browser.get(url("auditevent_changelist"), {"action": "client.created"}).content.decode()
    none = browser.get(url("auditevent_changelist"), {"action": "member.added"}).content.decode()
    assert (event.pk in found, event.pk in none) == (True, False)


def test_a_notification_that_failed_says_why(owner):
    row = notice_of(owner, state="failed", attempts=6, error="It answered with status 500.")
    browser = member(owner.organization)
    for address in (
        url("notification_changelist"),
        url("notification_change", row.pk),
        url("organization_settings", owner.organization.pk),
    ):
        assert "It answered with status 500." in browser.get(address).content.decode()


def test_the_navigation_offers_them_to_administrators(owner):
    for role, shown in {"reviewer": False, "operator": False, "administrator": True}.items():
        text = member(owner.organization, role).get("/admin/").content.decode()
        assert (url("auditevent_changelist") in text, url("notification_changelist") in text) == (
            shown,
            shown,
        )
