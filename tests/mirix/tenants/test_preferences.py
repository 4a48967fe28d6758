"""Settings of an organization: its own choice, else the installation's."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from mirix.tenants.audit import Actor
from mirix.tenants.models import AuditEvent, OrganizationSettings
from mirix.tenants.preferences import change_settings, make_webhook_secret
from mirix.tenants.selectors import effective, of_installation

pytestmark = pytest.mark.django_db
RITA = Actor(kind="user", id="7", name="rita")
HOOK = "https://hooks.example.org/services/T0/secret-part?token=abc"


def change(owner, **changes):
    return change_settings(organization=owner.organization, changes=changes, actor=RITA)


def test_who_chose_nothing_has_the_settings_of_the_installation(owner, settings):
    settings.MIRIX_REVIEW_POLICY = "automatic"
    settings.MIRIX_RAW_RETENTION_DAYS = 7
    settings.MIRIX_REDACT_ON_INTAKE = True
    found = effective(owner.organization)
    assert found == of_installation()
    assert (found.review_policy, found.raw_retention_days, found.redact_on_intake) == ("automatic", 7, True)
    assert not OrganizationSettings.objects.exists()  # reading makes no row


def test_a_choice_counts_also_where_it_is_zero_or_off(owner, stranger, settings):
    settings.MIRIX_REDACT_ON_INTAKE = True
    change(owner, conversation_retention_days=0, daily_token_budget=5, redact_on_intake=False)
    mine, theirs = effective(owner.organization), effective(stranger.organization)
    assert (mine.conversation_retention_days, mine.daily_token_budget, mine.redact_on_intake) == (0, 5, False)
    assert (theirs.conversation_retention_days, theirs.redact_on_intake) == (30, True)


def test_an_empty_value_goes_back_to_the_installation(owner):
    change(owner, review_policy="automatic", deciding_role="administrator", raw_retention_days=3)
    change(owner, redact_on_intake=True)
    change(owner, review_policy="", deciding_role="", raw_retention_days=None, redact_on_intake="")
    assert effective(owner.organization) == of_installation()


def test_texts_are_read_as_values(owner):
    change(owner, raw_retention_days=" 12 ", redact_on_intake="on", email_digest="true")
    row = OrganizationSettings.objects.get()
    assert (row.raw_retention_days, row.redact_on_intake, row.email_digest) == (12, True, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"review_policy": "never"},
        {"deciding_role": "operator"},
        {"conversation_retention_days": -1},
        {"undistilled_retention_days": 36_501},
        {"raw_retention_days": "soon"},
        {"daily_token_budget": 2**31},
        {"redact_on_intake": "perhaps"},
        {"email_digest": None},
        {"webhook_secret": "mine"},
        {"webhook_url": "ftp://example.org/"},
        {"webhook_url": "http://example.org/"},
        {"webhook_url": "https://user:pass@example.org/"},
        {"webhook_url": "https://127.0.0.1/"},
        {"webhook_url": "https://[::1]/"},
        {"webhook_url": "https://" + "x" * 500},
    ],
)
def test_a_value_out_of_range_is_refused_by_name_and_nothing_changes(owner, changes):
    with pytest.raises(ValidationError) as error:
        change(owner, search_log_retention_days=9, **changes)
    assert list(error.value.message_dict) == list(changes)
    assert effective(owner.organization) == of_installation()
    assert not AuditEvent.objects.exists()


def test_every_fault_is_told_at_once(owner):
    with pytest.raises(ValidationError) as error:
        change(owner, raw_retention_days="soon", review_policy="never")
    assert sorted(error.value.message_dict) == ["raw_retention_days", "review_policy"]


def test_a_webhook_gets_a_secret_that_is_returned_once(owner):
    row, secret = change(owner, webhook_url=HOOK)
    assert secret.startswith("whsec_")
    assert len(secret) == 49
    assert row.webhook_secret == secret
    _, again = change(owner, webhook_url="https://elsewhere.example.org/")
    assert again == ""
    assert OrganizationSettings.objects.get().webhook_secret == secret
    change(owner, webhook_url="")
    assert OrganizationSettings.objects.get().webhook_secret == ""


def test_a_new_secret_takes_the_place_of_the_old(owner):
    with pytest.raises(ValidationError, match="no webhook"):
        make_webhook_secret(organization=owner.organization, actor=RITA)
    _, first = change(owner, webhook_url=HOOK)
    second = make_webhook_secret(organization=owner.organization, actor=RITA)
    assert first != second
    assert OrganizationSettings.objects.get().webhook_secret == second


def test_the_trail_tells_what_changed_and_of_a_webhook_its_host_alone(owner):
    _, secret = change(owner, raw_retention_days=3, webhook_url=HOOK)
    change(owner, raw_retention_days=3)  # nothing new
    new = make_webhook_secret(organization=owner.organization, actor=RITA)
    events = list(AuditEvent.objects.order_by("id").values_list("action", "details"))
    assert events == [
        ("settings.changed", {"raw_retention_days": [None, 3], "webhook_url": ["", "hooks.example.org"]}),
        ("settings.webhook_secret", {}),
    ]
    assert not any(text in str(events) for text in (secret, new, "secret-part", "abc"))
