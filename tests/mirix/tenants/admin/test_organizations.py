"""Organizations, clients and settings in the admin."""

from __future__ import annotations

import threading
from html.parser import HTMLParser

import pytest
from django.db import connection

from mirix.tenants.models import AuditEvent, Client, OrganizationSettings
from mirix.tenants.notifications import addresses_of
from mirix.tenants.selectors import effective
from mirix.tenants.usage import count_tokens, today
from tests.factories import make_client, make_key, make_member, make_organization
from tests.mirix.tenants.admin.people import member, stored, superuser, url
from tests.mirix.tenants.admin.test_keys import secret_of

pytestmark = pytest.mark.django_db
HOOK = "https://hooks.example.org/services/secret-part"


@pytest.fixture
def browser(owner):
    return member(owner.organization, username="ada")


def save(browser, owner, **data):
    return browser.post(url("organization_settings", owner.organization.pk), data)


def test_an_organization_is_renamed_and_a_taken_name_refused(owner):
    browser = superuser()
    make_organization("Taken")
    page = url("organization_change", owner.organization.pk)
    refused = browser.post(page, {"name": "Taken"})
    assert (refused.status_code, "of this name already" in refused.content.decode()) == (400, True)
    assert owner.organization.name in refused.content.decode()
    assert browser.post(page, {"name": "New name"}).status_code == 302
    owner.organization.refresh_from_db()
    assert owner.organization.name == "New name"


def test_its_page_counts_what_belongs_to_it(owner, browser, stranger):
    make_key(make_client(owner.organization))
    make_key(make_client(stranger.organization))
    text = browser.get(url("organization_change", owner.organization.pk)).content.decode()
    for model, number in {"client": 1, "apikey": 1, "enduser": 1, "membership": 1}.items():
        link = f"{url(f'{model}_changelist')}?organization={owner.organization.pk}"
        assert f'{link}"><span class="mx-figure__number">{number}<' in text


def test_clients_are_made_and_renamed(owner, browser):
    data = {"organization": owner.organization.pk, "name": " helpdesk "}
    assert browser.post(url("client_add"), data).status_code == 302
    client = Client.objects.get()
    assert client.name == "helpdesk"
    assert browser.post(url("client_add"), data).status_code == 400
    assert browser.post(url("client_change", client.pk), {"name": "desk"}).status_code == 302
    client.refresh_from_db()
    assert client.name == "desk"


def test_the_page_of_a_client_shows_its_keys(owner, browser, client_row):
    make_key(client_row, name="mine")
    make_key(make_client(owner.organization), name="of another")
    text = browser.get(url("client_change", client_row.pk)).content.decode()
    assert ("mine" in text, "of another" in text) == (True, False)


def test_settings_are_chosen_and_given_back(owner, browser):
    assert (
        save(browser, owner, raw_retention_days="7", review_policy="automatic", email_digest="on").status_code
        == 302
    )
    found = effective(owner.organization)
    assert (found.raw_retention_days, found.review_policy) == (7, "automatic")
    assert OrganizationSettings.objects.get().email_digest
    text = browser.get(url("organization_change", owner.organization.pk)).content.decode()
    assert text.count("own choice") == 2
    assert save(browser, owner).status_code == 302
    assert effective(owner.organization).raw_retention_days == 30
    assert not OrganizationSettings.objects.get().email_digest


class Inputs(HTMLParser):
    """What a browser sends of the forms of a page as it is."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.select = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "input" and given.get("type") != "checkbox":
            self.values[given["name"]] = given.get("value", "")
        if tag == "input" and "checked" in given:
            self.values[given["name"]] = "on"
        if tag == "select":
            self.select = given["name"]
        if tag == "option" and "selected" in given:
            self.values[self.select] = given["value"]


def settings_page(browser, owner) -> dict[str, str]:
    html = browser.get(url("organization_settings", owner.organization.pk)).content.decode()
    return Inputs(html[html.index("<form") :]).values


def test_a_settings_page_that_was_opened_before_takes_nothing_back(owner, browser):
    """Two administrators open the page; each saves what they changed on it."""
    save(browser, owner, review_policy="automatic", email_digest="on", search_log_retention_days="9")
    first, second = settings_page(browser, owner), settings_page(member(owner.organization), owner)
    assert first["initial-review_policy"] == "automatic"
    del first["email_digest"]
    save(browser, owner, **first | {"review_policy": "required", "search_log_retention_days": ""})
    before = AuditEvent.objects.count()
    assert save(browser, owner, **second | {"raw_retention_days": "-1"}).status_code == 400
    assert save(browser, owner, **second | {"raw_retention_days": "7"}).status_code == 302

    chosen = OrganizationSettings.objects.get()
    assert (chosen.review_policy, chosen.email_digest, chosen.search_log_retention_days) == (
        "required",
        False,
        None,
    )
    assert chosen.raw_retention_days == 7
    assert AuditEvent.objects.count() == before + 1
    assert AuditEvent.objects.latest("created_at").details == {"raw_retention_days": [None, 7]}


def test_a_refused_settings_page_remembers_what_it_showed_at_first(owner, browser):
    save(browser, owner, review_policy="automatic")
    sent = settings_page(browser, owner) | {"review_policy": "required", "raw_retention_days": "-1"}
    refused = save(browser, owner, **sent).content.decode()
    again = Inputs(refused[refused.index("<form") :]).values
    assert (again["initial-review_policy"], again["review_policy"]) == ("automatic", "required")
    assert save(browser, owner, **again | {"raw_retention_days": "7"}).status_code == 302
    assert effective(owner.organization).review_policy == "required"


@pytest.mark.django_db(transaction=True)
def test_two_administrators_who_save_settings_at_once_both_have_their_way(owner):
    fields = {"raw_retention_days": 7, "search_log_retention_days": 9}
    pages = []
    for name, days in fields.items():
        browser = member(owner.organization)
        pages.append((browser, settings_page(browser, owner) | {name: str(days)}))
    barrier = threading.Barrier(len(pages))
    statuses = []

    def send(browser, data: dict[str, str]) -> None:
        try:
            barrier.wait()
            statuses.append(save(browser, owner, **data).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=page) for page in pages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [302, 302]
    chosen = OrganizationSettings.objects.get()
    assert {name: getattr(chosen, name) for name in fields} == fields
    events = {str(event.details) for event in AuditEvent.objects.all()}
    assert events == {str({name: [None, days]}) for name, days in fields.items()}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("raw_retention_days", "-1"),
        ("conversation_retention_days", "36501"),
        ("undistilled_retention_days", "soon"),
        ("daily_token_budget", str(2**31)),
        ("daily_token_budget", "1_000"),
        ("min_supporting_sessions", "\u0662"),
        ("review_policy", "never"),
        ("redact_on_intake", "perhaps"),
        ("webhook_url", "https://10.0.0.1/"),
        ("webhook_url", "javascript:alert(1)"),
        ("webhook_url", "https://hooks.example.org/\x00"),
    ],
)
def test_a_value_out_of_range_is_said_at_its_field(owner, browser, field, value):
    before = stored()
    response = save(browser, owner, **{field: value, "search_log_retention_days": "5"})
    assert response.status_code == 400
    assert f'id="id_{field}_error"' in response.content.decode()
    assert stored() == before


def test_the_secret_of_a_webhook_is_shown_when_it_is_made_and_never_again(owner, browser, caplog):
    caplog.set_level("DEBUG")
    response = save(browser, owner, webhook_url=HOOK)
    first = secret_of(response)
    assert (response.status_code, "no-store" in response["Cache-Control"]) == (200, True)
    assert OrganizationSettings.objects.get().webhook_secret == first
    assert save(browser, owner, webhook_url=HOOK).status_code == 302
    second = secret_of(browser.post(url("organization_webhook_secret", owner.organization.pk)))
    assert OrganizationSettings.objects.get().webhook_secret == second != first
    for address in (
        url("organization_settings", owner.organization.pk),
        url("organization_change", owner.organization.pk),
        url("auditevent_changelist"),
    ):
        assert not any(secret in browser.get(address).content.decode() for secret in (first, second))
    everything = stored()
    everything.pop("tenants.OrganizationSettings")  # which signs with it
    assert not any(secret in str(everything) + caplog.text for secret in (first, second))


def test_without_a_webhook_there_is_no_secret_to_make(owner, browser):
    response = browser.post(url("organization_webhook_secret", owner.organization.pk))
    assert (response.status_code, "There is no webhook" in response.content.decode()) == (400, True)


@pytest.mark.parametrize("role", ["reviewer", "operator"])
def test_who_only_reads_sees_what_holds_and_of_the_webhook_its_host(role, owner, browser):
    save(browser, owner, webhook_url=HOOK, raw_retention_days="7")
    text = (
        member(owner.organization, role)
        .get(url("organization_change", owner.organization.pk))
        .content.decode()
    )
    assert "7 days" in text
    assert "hooks.example.org" in text
    assert "secret-part" not in text
    assert url("organization_settings", owner.organization.pk) not in text


def test_the_settings_say_how_many_people_a_mail_would_reach(owner, browser):
    bob = make_member(owner.organization)
    bob.email = "bob@example.org"
    bob.save()
    text = browser.get(url("organization_settings", owner.organization.pk)).content.decode()
    assert "1 of 2 reviewers and administrators have an e-mail address" in text


def test_where_administrators_alone_decide_a_mail_reaches_them_alone(owner, browser):
    assert save(browser, owner, deciding_role="administrator", email_digest="on").status_code == 302
    bob = make_member(owner.organization)
    bob.email = "bob@example.org"
    bob.save()

    text = browser.get(url("organization_settings", owner.organization.pk)).content.decode()

    assert "0 of 1 administrators have an e-mail address" in text
    assert addresses_of(owner.organization) == []
    page = browser.get(url("organization_change", owner.organization.pk)).content.decode()
    assert "Administrators alone" in page


def test_pages_of_superusers_cost_the_same_with_more_rows(owner, django_assert_max_num_queries):
    browser = superuser()
    page = url("organization_change", owner.organization.pk)
    browser.get(page)
    with django_assert_max_num_queries(9):
        browser.get(page)


def test_its_page_tells_what_models_used_and_what_is_left_today(owner, browser, stranger):
    page = url("organization_change", owner.organization.pk)
    assert "0 used today<" in browser.get(page).content.decode()
    save(browser, owner, daily_token_budget="2000")
    count_tokens(organization=owner.organization, prompt=1_200, completion=34, calls=3)
    count_tokens(organization=stranger.organization, prompt=5_555, completion=0)
    text = browser.get(page).content.decode()
    assert "1,234 used today, 766 left until 00:00 UTC" in text
    assert f'{today().isoformat()}</td><td class="mx-number">1,200</td><td class="mx-number">34<' in text
    assert "5,555" not in text
