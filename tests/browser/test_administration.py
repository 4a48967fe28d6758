"""An administrator's way through the admin: clients, keys, members, settings, and what is on record."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import authenticate
from django.utils import timezone
from playwright.sync_api import Error, expect

from mirix.tenants.audit import Actor
from mirix.tenants.keys import create_api_key, revoke_api_key, rotate_api_key
from mirix.tenants.models import ApiKey, Client, Membership, Notification, OrganizationSettings
from mirix.tenants.owners import Owner
from mirix.tenants.preferences import change_settings
from mirix.tenants.selectors import find_principal
from tests.browser.conftest import OpenScreen, path_of
from tests.factories import make_client, make_member, make_organization, make_owner, make_superuser

pytestmark = pytest.mark.django_db(transaction=True)
RITA = Actor(kind="user", id="7", name="rita")


@pytest.fixture
def owner(transactional_db) -> Owner:
    return make_owner(make_organization("Acme"), user_id="alice")


def test_a_key_is_made_shown_once_and_rotated(owner, screen: OpenScreen):
    here = screen(make_member(owner.organization, "administrator", "ada"))
    here.open("/admin/tenants/client/")
    here.page.get_by_role("link", name="Add client").click()
    here.page.get_by_label("Name").fill("helpdesk")
    here.page.get_by_role("button", name="Add client").click()
    expect(here.page.get_by_text("Made the client helpdesk.")).to_be_visible()
    here.page.get_by_role("link", name="Add API key").click()
    here.page.get_by_label("Permission").select_option("read")
    here.page.get_by_role("button", name="Add API key").click()
    expect(here.page.get_by_role("heading", name="API key made", exact=True)).to_be_visible()
    first = here.page.get_by_label("API key made").input_value()
    here.keep("key-made")
    here.page.get_by_role("button", name="Copy").click()
    expect(here.page.get_by_role("button", name="Copied")).to_be_visible()
    here.page.get_by_role("link", name="I have kept it").click()
    assert first not in here.page.content()
    with pytest.raises(Error, match="ERR_CACHE_MISS"):  # the browser has not kept it either
        here.page.go_back()
    expect(here.page).to_have_url("chrome-error://chromewebdata/")  # its error page comes a moment later
    here.faults.clear()
    row = ApiKey.objects.get()
    assert find_principal(key=first).permission == "read"

    here.open(f"/admin/tenants/apikey/{row.pk}/change/")
    here.page.get_by_role("link", name="Rotate").click()
    here.page.get_by_label("Hours that the old key still works").fill("2")
    here.keep("key-rotate")
    here.page.get_by_role("button", name="Make the new key").click()
    second = here.page.get_by_label("API key rotated").input_value()
    here.keep("key-rotated")
    assert (find_principal(key=first) is None, find_principal(key=second) is None) == (False, False)
    here.open(f"/admin/tenants/apikey/{row.pk}/change/")
    expect(here.page.get_by_text("Ends soon")).to_be_visible()
    here.page.get_by_role("link", name="Revoke").click()
    here.page.get_by_role("button", name="Revoke the key").click()
    expect(here.page.get_by_text("is revoked.")).to_be_visible()
    assert (find_principal(key=first), find_principal(key=second).client.name) == (None, "helpdesk")
    for path in ("/admin/", "/admin/tenants/apikey/", "/admin/tenants/auditevent/"):
        here.open(path)
        assert not any(key in here.page.content() for key in (first, second))


def test_a_new_member_logs_in_with_the_password_that_was_shown(owner, screen: OpenScreen):
    here = screen(make_member(owner.organization, "administrator", "ada"))
    here.open("/admin/tenants/membership/add/")
    here.page.get_by_label("User name").fill("rita")
    here.page.get_by_label("E-mail address").fill("rita@example.org")
    here.page.get_by_label("Role").select_option("reviewer")
    here.keep("member-add")
    here.page.get_by_role("button", name="Add member").click()
    password = here.page.get_by_label("Login made").input_value()
    here.keep("member-made")
    here.page.get_by_role("link", name="I have kept it").click()
    assert (
        path_of(here.page.url)
        == f"/admin/tenants/membership/{Membership.objects.latest('created_at').pk}/change/"
    )
    assert password not in here.page.content()
    assert authenticate(username="rita", password=password).email == "rita@example.org"


def test_settings_are_changed_and_what_is_wrong_is_said_at_the_field(owner, screen: OpenScreen):
    here = screen(make_member(owner.organization, "administrator", "ada"))
    here.open(f"/admin/tenants/organization/{owner.organization.pk}/change/")
    here.page.get_by_role("link", name="Change settings").click()
    here.page.get_by_label("Before agents see a change").select_option("automatic")
    here.page.get_by_label("Webhook").fill("https://127.0.0.1/")
    here.page.get_by_role("button", name="Save settings").click()
    expect(here.page.get_by_text("127.0.0.1 is no public address")).to_be_visible()
    here.keep("settings-refused")
    assert here.faults == [f"400 POST {here.page.url}", here.faults[1]]
    here.faults.clear()
    assert not OrganizationSettings.objects.exclude(review_policy="").exists()
    here.page.get_by_label("Webhook").fill("https://hooks.example.org/x")
    here.page.get_by_role("button", name="Save settings").click()
    secret = here.page.get_by_label("Webhook secret").input_value()
    assert secret == OrganizationSettings.objects.get().webhook_secret
    here.page.get_by_role("link", name="I have kept it").click()
    expect(here.page.get_by_text("Changes without risk flags are published at once")).to_be_visible()
    expect(here.page.get_by_text("Webhook at hooks.example.org")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_fit_their_window(scheme, width, owner, screen: OpenScreen):
    organization = owner.organization
    client = make_client(organization, "helpdesk")
    old, _ = create_api_key(client=client, name="laptop", actor=RITA)
    new, _ = rotate_api_key(api_key=old, actor=RITA)
    gone, _ = create_api_key(client=client, name="old server", permission="read", actor=RITA)
    revoke_api_key(api_key=gone, actor=RITA)
    change_settings(
        organization=organization,
        changes={"raw_retention_days": 7, "email_digest": True, "webhook_url": "https://hooks.example.org/x"},
        actor=RITA,
    )
    failed = Notification.objects.create(
        organization=organization,
        channel="webhook",
        counts={"proposals": 3, "dead_sessions": 1},
        state="waiting",
        attempts=2,
        next_attempt_at=timezone.now() + timedelta(minutes=5),
        error="It answered with status 503.",
    )
    Notification.objects.create(
        organization=organization,
        channel="email",
        counts={"proposals": 3},
        state="sent",
        recipient="2 people",
        sent_at=timezone.now(),
    )
    member = make_member(organization, "administrator", "ada").memberships.get()
    event = organization.audit_events.filter(action="settings.changed").get()
    base = "/admin/tenants"
    here = screen(make_superuser(), width=width, color_scheme=scheme)
    for name, path in {
        "organization": f"{base}/organization/{organization.pk}/change/",
        "organization-add": f"{base}/organization/add/",
        "settings": f"{base}/organization/{organization.pk}/settings/",
        "webhook-secret": f"{base}/organization/{organization.pk}/settings/webhook-secret/",
        "clients": f"{base}/client/",
        "client": f"{base}/client/{client.pk}/change/",
        "client-add": f"{base}/client/add/",
        "keys": f"{base}/apikey/",
        "key-add": f"{base}/apikey/add/",
        "key-replaced": f"{base}/apikey/{old.pk}/change/",
        "key": f"{base}/apikey/{new.pk}/change/",
        "key-revoke": f"{base}/apikey/{new.pk}/revoke/",
        "end-user": f"{base}/enduser/{owner.end_user.pk}/change/",
        "members": f"{base}/membership/",
        "member": f"{base}/membership/{member.pk}/change/",
        "audit": f"{base}/auditevent/",
        "audit-event": f"{base}/auditevent/{event.pk}/change/",
        "notifications": f"{base}/notification/",
        "notification": f"{base}/notification/{failed.pk}/change/",
    }.items():
        here.open(path)
        here.keep(f"administration-{name}-{scheme}-{width}")
        assert here.overflow() <= 0, path
    assert Client.objects.count() == 1
