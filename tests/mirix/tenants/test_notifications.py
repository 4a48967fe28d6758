"""Notifications: off until turned on, one a day by each way, sent once, tried again, and never chatty."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from datetime import timedelta
from io import StringIO
from smtplib import SMTPServerDisconnected

import pytest
from django.core import mail
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from mirix.tenants import notifications
from mirix.tenants.audit import SYSTEM
from mirix.tenants.models import Notification, OrganizationSettings
from mirix.tenants.owners import Owner
from mirix.tenants.preferences import change_settings
from tests.factories import make_intake, make_member, make_organization, make_proposal, make_session
from tests.mirix.tenants.receiver import Receiver, receiving

pytestmark = pytest.mark.django_db
PERSONAL = "Alice Miller, card 4711"


@pytest.fixture
def receiver(settings):
    settings.MIRIX_WEBHOOK_ALLOW_PRIVATE = True
    with receiving() as receiver:
        yield receiver


def turn_on(owner: Owner, **changes) -> str:
    return change_settings(organization=owner.organization, changes=changes, actor=SYSTEM)[1]


def person(owner: Owner, role: str, email: str, **fields) -> None:
    user = make_member(owner.organization, role)
    for name, value in ({"email": email} | fields).items():
        setattr(user, name, value)
    user.save()


def notify() -> list[Notification]:
    """What the worker does, in one go; return the rows of this round."""
    notifications.make_due()
    done = []
    for pk in notifications.due_ids():
        attempt = notifications.claim(notification_id=pk)
        done.append(notifications.deliver(notification_id=pk, attempt=attempt))
    return done


def test_nothing_is_sent_before_somebody_turns_it_on(owner):
    make_proposal(owner)
    OrganizationSettings.objects.create(organization=owner.organization)
    assert notify() == []
    assert mail.outbox == []


def test_nothing_is_sent_while_nothing_waits(owner, stranger):
    turn_on(owner, email_digest=True)
    person(owner, "reviewer", "rita@example.org")
    make_proposal(stranger)
    make_proposal(owner, state="rejected")
    assert notify() == []
    assert OrganizationSettings.objects.get().notified_at is None  # so that the first one comes at once


def test_one_mail_goes_to_those_who_decide(owner, stranger, settings):
    settings.MIRIX_PUBLIC_URL = "https://mirix.example.org"
    turn_on(owner, email_digest=True)
    person(owner, "reviewer", "rita@example.org")
    person(owner, "administrator", "ada@example.org")
    person(owner, "operator", "oscar@example.org")
    person(owner, "reviewer", "gone@example.org", is_active=False)
    person(owner, "reviewer", "")
    person(stranger, "administrator", "eve@example.org")
    for _ in range(2):
        make_proposal(owner, rationale=PERSONAL)
    make_session(owner, [{"role": "user", "content": PERSONAL}], state="dead", last_error=PERSONAL)
    make_intake(owner, state="failed", error=PERSONAL, body={"messages": [PERSONAL]})

    (row,) = notify()

    assert (row.state, row.recipient, row.error, row.attempts) == ("sent", "2 people", "", 1)
    (message,) = mail.outbox
    name, pk = owner.organization.name, owner.organization.pk
    assert message.recipients() == ["ada@example.org", "rita@example.org"]
    assert "@example.org" not in message.message().as_string(), "nobody reads the addresses of the others"
    assert message.subject == (
        f"mirix: 2 proposals to decide, 1 request not stored, 1 session given up wait in {name}"
    )
    assert (
        "2 proposals to decide:\n"
        f"https://mirix.example.org/admin/skills/skillrevision/?organization={pk}\n" in message.body
    )
    assert (
        "1 session given up:\n"
        f"https://mirix.example.org/admin/conversations/session/?state__exact=dead&organization={pk}\n"
        in message.body
    )
    assert f"https://mirix.example.org/admin/tenants/organization/{pk}/settings/" in message.body
    assert not any(word in message.body for word in (PERSONAL, owner.end_user.user_id))


def test_the_next_one_comes_a_day_later_at_the_earliest(owner, time_machine):
    time_machine.move_to("2026-03-01T12:00:00Z", tick=False)
    turn_on(owner, email_digest=True)
    person(owner, "reviewer", "rita@example.org")
    make_proposal(owner)
    assert len(notify()) == 1
    time_machine.move_to("2026-03-02T11:59:59Z", tick=False)
    assert notify() == []
    time_machine.move_to("2026-03-02T12:00:00Z", tick=False)
    assert len(notify()) == 1
    assert len(mail.outbox) == 2


def test_a_webhook_gets_counts_and_links_signed(owner, receiver: Receiver, settings):
    settings.MIRIX_PUBLIC_URL = "https://mirix.example.org"
    secret = turn_on(owner, webhook_url=f"{receiver.url}/hook")
    make_proposal(owner, rationale=PERSONAL)

    (row,) = notify()

    ((path, headers, body),) = receiver.requests
    assert path == "/hook"
    assert json.loads(body) == {
        "event": "waiting",
        "id": row.pk,
        "created_at": row.created_at.isoformat(),
        "organization": {"id": owner.organization.pk, "name": owner.organization.name},
        "waiting": [
            {
                "kind": "proposals",
                "count": 1,
                "url": "https://mirix.example.org/admin/skills/skillrevision/"
                f"?organization={owner.organization.pk}",
            }
        ],
        "text": f"1 proposal to decide waits in {owner.organization.name}",
    }
    moment, _, signature = headers["X-Mirix-Signature"].removeprefix("t=").partition(",v1=")
    assert hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest() == signature
    assert headers["X-Mirix-Delivery"] == row.pk
    assert (row.state, row.recipient) == ("sent", receiver.url.removeprefix("http://"))


def test_a_failed_webhook_is_tried_again_with_growing_pauses_until_it_is_given_up(
    owner, receiver: Receiver, time_machine
):
    start = timezone.now()
    time_machine.move_to(start, tick=False)
    receiver.status = 500
    turn_on(owner, webhook_url=receiver.url)
    make_proposal(owner)
    for attempt, pause in enumerate(notifications.PAUSES, start=1):
        (row,) = notify()
        assert (row.state, row.attempts, row.error) == ("waiting", attempt, "It answered with status 500.")
        assert row.next_attempt_at == timezone.now() + timedelta(minutes=pause)
        assert notifications.due_ids() == []
        time_machine.move_to(row.next_attempt_at, tick=False)
    (row,) = notify()
    assert (row.state, row.attempts, len(receiver.requests)) == ("failed", 6, 6)
    time_machine.move_to(start + timedelta(hours=23), tick=False)
    assert notify() == []


def test_a_webhook_that_recovers_is_sent_and_its_error_forgotten(owner, receiver: Receiver, time_machine):
    receiver.status = 503
    turn_on(owner, webhook_url=receiver.url)
    make_proposal(owner)
    (row,) = notify()
    receiver.status = 200
    time_machine.move_to(row.next_attempt_at, tick=False)
    (row,) = notify()
    assert (row.state, row.attempts, row.error) == ("sent", 2, "")
    assert len({headers["X-Mirix-Delivery"] for _, headers, _ in receiver.requests}) == 1


def test_a_webhook_into_a_private_network_is_refused_and_says_so(owner, receiver: Receiver, settings):
    turn_on(owner, webhook_url=receiver.url)
    settings.MIRIX_WEBHOOK_ALLOW_PRIVATE = False
    make_proposal(owner)
    (row,) = notify()
    assert (
        row.error == "The host 127.0.0.1 is no public one; this installation sends to public addresses alone."
    )
    assert receiver.requests == []


def test_one_way_that_fails_does_not_hold_up_the_other(owner, receiver: Receiver):
    receiver.status = 500
    turn_on(owner, webhook_url=receiver.url, email_digest=True)
    person(owner, "reviewer", "rita@example.org")
    make_proposal(owner)
    assert sorted((row.channel, row.state) for row in notify()) == [("email", "sent"), ("webhook", "waiting")]


def test_a_mail_server_that_is_down_is_tried_again(owner, monkeypatch):
    turn_on(owner, email_digest=True)
    person(owner, "reviewer", "rita@example.org")
    make_proposal(owner)

    def down(self) -> None:
        raise SMTPServerDisconnected("please run connect() first")

    monkeypatch.setattr("django.core.mail.EmailMessage.send", down)
    (row,) = notify()
    assert (row.state, row.error) == (
        "waiting",
        "The mail server: SMTPServerDisconnected: please run connect() first",
    )


def test_without_an_address_nobody_can_be_told(owner):
    turn_on(owner, email_digest=True)
    person(owner, "reviewer", "")
    make_proposal(owner)
    (row,) = notify()
    assert (row.state, row.error) == ("failed", "No reviewer or administrator has an e-mail address.")


def test_what_was_turned_off_in_the_meantime_is_not_sent(owner, receiver: Receiver):
    turn_on(owner, webhook_url=receiver.url, email_digest=True)
    person(owner, "reviewer", "rita@example.org")
    make_proposal(owner)
    notifications.make_due()
    turn_on(owner, webhook_url="", email_digest=False)
    assert {(row.state, row.error) for row in notify()} == {
        ("failed", "E-mail was turned off in the meantime."),
        ("failed", "The webhook was removed in the meantime."),
    }
    assert (mail.outbox, receiver.requests) == ([], [])


def test_an_organization_with_a_name_of_several_lines_gets_a_subject_of_one(owner):
    owner.organization.name = "Acme\nBcc: eve@example.org"
    owner.organization.save()
    turn_on(owner, email_digest=True)
    person(owner, "reviewer", "rita@example.org")
    make_proposal(owner)
    assert [row.state for row in notify()] == ["sent"]
    assert mail.outbox[0].subject.endswith("waits in Acme Bcc: eve@example.org")


def test_an_attempt_that_nobody_finished_is_made_again_and_its_late_end_changes_nothing(
    owner, receiver: Receiver, time_machine
):
    turn_on(owner, webhook_url=receiver.url)
    make_proposal(owner)
    (row,) = notifications.make_due()
    assert notifications.claim(notification_id=row.pk) == 1
    assert notifications.claim(notification_id=row.pk) is None
    time_machine.move_to(timezone.now() + notifications.LEASE, tick=False)
    assert notifications.claim(notification_id=row.pk) == 2
    assert notifications.deliver(notification_id=row.pk, attempt=1) is None
    assert notifications.deliver(notification_id=row.pk, attempt=2).state == "sent"
    assert len(receiver.requests) == 1


def test_a_notification_whose_workers_all_died_has_failed(owner):
    row = Notification.objects.create(organization=owner.organization, channel="email", attempts=6)
    assert notifications.claim(notification_id=row.pk) is None
    row.refresh_from_db()
    assert row.state == "failed"
    assert "log of the worker" in row.error


def test_old_notifications_go(owner):
    old, new = (
        Notification.objects.create(organization=owner.organization, channel="email") for _ in range(2)
    )
    Notification.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=91))
    assert notifications.remove_old() == 1
    assert list(Notification.objects.all()) == [new]


def test_asking_costs_nothing_for_organizations_without_notifications(owner, django_assert_num_queries):
    for _ in range(5):
        make_organization()
    with django_assert_num_queries(1):
        assert notifications.make_due() == []


def at_once(count: int, do) -> None:
    barrier = threading.Barrier(count)

    def work() -> None:
        try:
            barrier.wait()
            do()
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_send_one_digest(owner, receiver: Receiver):
    turn_on(owner, email_digest=True, webhook_url=receiver.url)
    person(owner, "reviewer", "rita@example.org")
    make_proposal(owner)
    at_once(2, notifications.make_due)
    assert Notification.objects.count() == 2

    def send() -> None:
        for pk in notifications.due_ids():
            attempt = notifications.claim(notification_id=pk)
            if attempt is not None:
                notifications.deliver(notification_id=pk, attempt=attempt)

    at_once(2, send)
    assert (len(mail.outbox), len(receiver.requests)) == (1, 1)
    assert set(Notification.objects.values_list("state", "attempts")) == {("sent", 1)}


@pytest.mark.django_db(transaction=True)
def test_the_worker_sends_by_itself(owner, receiver: Receiver, work):
    from mirix.tenants.tasks import notify as task

    turn_on(owner, webhook_url=receiver.url)
    make_proposal(owner)
    task(timestamp=0)
    work()
    assert Notification.objects.get().state == "sent"
    assert len(receiver.requests) == 1


def test_the_command_sends_without_a_worker(owner, receiver: Receiver):
    turn_on(owner, webhook_url=receiver.url)
    make_proposal(owner)
    out, err = StringIO(), StringIO()
    call_command("notify", stdout=out, stderr=err)
    assert (out.getvalue(), err.getvalue()) == ("1 made, 1 sent, 0 not sent.\n", "")
    call_command("notify", "--json", stdout=(again := StringIO()))
    assert json.loads(again.getvalue()) == {"made": 0, "sent": 0, "failed": []}


def test_the_command_says_what_failed(owner, receiver: Receiver):
    receiver.status = 500
    turn_on(owner, webhook_url=receiver.url)
    make_proposal(owner)
    out, err = StringIO(), StringIO()
    call_command("notify", stdout=out, stderr=err)
    row = Notification.objects.get()
    assert out.getvalue() == "1 made, 0 sent, 1 not sent.\n"
    assert err.getvalue() == f"{row.pk} (Webhook, {owner.organization.name}): It answered with status 500.\n"
