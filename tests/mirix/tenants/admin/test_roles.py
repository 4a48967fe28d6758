"""Who may do what: administrators write in their organization, others read, strangers find nothing there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mirix.tenants.models import ApiKey, OrganizationSettings
from mirix.tenants.owners import Owner
from tests.factories import make_client, make_key, make_member, make_organization
from tests.mirix.tenants.admin.people import browser_of, member, stored, superuser, url

pytestmark = pytest.mark.django_db
MEMBER = {"login": "new", "username": "bob", "email": "", "role": "reviewer"}


def new_key(owner: Owner) -> str:
    make_key(make_client(owner.organization))
    return ApiKey.objects.latest("created_at").pk


def new_member(owner: Owner) -> str:
    make_member(owner.organization, "administrator")
    return make_member(owner.organization).memberships.get().pk


def organization_with_webhook(owner: Owner) -> str:
    OrganizationSettings.objects.create(
        organization=owner.organization, webhook_url="https://hooks.example.org/", webhook_secret="whsec_old"
    )
    return owner.organization.pk


ON_A_ROW: dict[str, tuple[Callable[[Owner], str], dict[str, str]]] = {
    "organization_change": (lambda owner: owner.organization.pk, {"name": "Renamed"}),
    "organization_settings": (lambda owner: owner.organization.pk, {"raw_retention_days": "3"}),
    "organization_webhook_secret": (organization_with_webhook, {}),
    "client_change": (lambda owner: make_client(owner.organization).pk, {"name": "renamed"}),
    "apikey_rotate": (new_key, {"overlap_hours": "2"}),
    "apikey_revoke": (new_key, {}),
    "enduser_change": (lambda owner: owner.end_user.pk, {"name": "Renamed"}),
    "membership_change": (new_member, {"role": "operator"}),
    "membership_remove": (new_member, {}),
}
"""Every page that changes a row, and what it is sent."""

ADDING: dict[str, Callable[[Owner], dict[str, str]]] = {
    "client_add": lambda owner: {"organization": owner.organization.pk, "name": "bot"},
    "apikey_add": lambda owner: {"client": make_client(owner.organization).pk, "permission": "read"},
    "enduser_add": lambda owner: {"organization": owner.organization.pk, "user_id": "bob"},
    "membership_add": lambda owner: {"organization": owner.organization.pk, **MEMBER},
}
"""Every page that makes a row of an organization, and what it is sent."""

OPENED_BY_READERS = {"organization_change", "client_change", "enduser_change", "membership_change"}


@pytest.mark.parametrize("name", sorted(ON_A_ROW))
def test_administrators_and_superusers_change_rows_by_post_alone(name, owner):
    make, data = ON_A_ROW[name]
    address = url(name, make(owner))
    for browser in (member(owner.organization), superuser()):
        before = stored()
        assert browser.get(address).status_code == 200
        assert browser.head(address).status_code == 200
        assert browser.put(address).status_code in (403, 405)
        assert stored() == before
    may = superuser() if name == "organization_change" else member(owner.organization)
    before = stored()
    assert may.post(address, data).status_code in (200, 302)
    assert stored() != before


def test_only_superusers_name_organizations(owner):
    browser = member(owner.organization)
    address = url("organization_change", owner.organization.pk)
    before = stored()
    assert 'name="name"' not in browser.get(address).content.decode()
    assert browser.post(address, {"name": "Renamed"}).status_code == 405
    assert stored() == before


@pytest.mark.parametrize("role", ["reviewer", "operator"])
@pytest.mark.parametrize("name", sorted(ON_A_ROW))
def test_other_members_change_nothing(name, role, owner):
    make, data = ON_A_ROW[name]
    address, browser = url(name, make(owner)), member(owner.organization, role)
    before = stored()
    assert browser.get(address).status_code == (200 if name in OPENED_BY_READERS else 403)
    assert browser.post(address, data).status_code == 403
    assert stored() == before


@pytest.mark.parametrize("name", sorted(ON_A_ROW))
def test_for_strangers_a_row_is_as_if_it_were_not_there(name, owner, stranger):
    make, data = ON_A_ROW[name]
    address, missing = url(name, make(owner)), url(name, "nothing")
    browser = member(stranger.organization)
    before = stored()
    for ask in (lambda path: browser.get(path), lambda path: browser.post(path, data)):
        foreign, absent = ask(address), ask(missing)
        assert (foreign.status_code, absent.status_code) == (404, 404)
        assert foreign.content == absent.content
    assert stored() == before


@pytest.mark.parametrize("name", sorted(ON_A_ROW))
def test_an_administrator_elsewhere_is_no_administrator_here(name, owner, stranger):
    """Somebody who administers one organization and reviews another keeps to that."""
    make, data = ON_A_ROW[name]
    address = url(name, make(owner))
    user = make_member(stranger.organization, "administrator")
    user.memberships.create(organization=owner.organization, role="reviewer")
    before = stored()
    assert browser_of(user).post(address, data).status_code == 403
    assert stored() == before


@pytest.mark.parametrize("name", sorted({*ON_A_ROW, *ADDING}))
def test_who_is_not_logged_in_is_sent_to_the_login(name, owner):
    address = url(name, ON_A_ROW[name][0](owner)) if name in ON_A_ROW else url(name)
    before = stored()
    for response in (browser_of(None).get(address), browser_of(None).post(address, {})):
        assert response.status_code == 302
        assert response["Location"].startswith("/admin/login/")
    assert stored() == before


@pytest.mark.parametrize("name", sorted(ADDING))
def test_administrators_and_superusers_make_rows(name, owner):
    for number, browser in enumerate((member(owner.organization), superuser())):
        data = ADDING[name](owner)
        data |= {key: f"{data[key]}{number}" for key in ("name", "user_id", "username") if key in data}
        before = stored()
        assert browser.get(url(name)).status_code == 200
        assert stored() == {**before, "tenants.Client": stored()["tenants.Client"]}
        assert browser.post(url(name), data).status_code in (200, 302)
        assert stored() != before


@pytest.mark.parametrize("role", ["reviewer", "operator"])
@pytest.mark.parametrize("name", sorted(ADDING))
def test_other_members_make_nothing(name, role, owner):
    data, browser = ADDING[name](owner), member(owner.organization, role)
    before = stored()
    assert browser.get(url(name)).status_code == 403
    assert browser.post(url(name), data).status_code == 403
    assert stored() == before


@pytest.mark.parametrize("name", sorted(ADDING))
def test_a_row_is_not_made_in_an_organization_that_one_does_not_administer(name, owner, stranger):
    """The ids in the form are another organization's: refused, like ids that do not exist."""
    data = ADDING[name](owner)
    user = make_member(stranger.organization, "administrator")
    make_client(stranger.organization)
    browser = browser_of(user)
    target = "client" if "client" in data else "organization"

    def refusals() -> list[bytes]:
        answers = [
            browser.post(url(name), data | {target: value}) for value in (data[target], "nothing", "a\x00")
        ]
        assert [answer.status_code for answer in answers] == [400, 400, 400]
        return [part.content.replace(data[target].encode(), b"nothing") for part in answers[:2]]

    before = stored()
    foreign, absent = (_without_token(content) for content in refusals())
    assert foreign == absent
    user.memberships.create(organization=owner.organization, role="reviewer")
    before["tenants.Membership"] = stored()["tenants.Membership"]
    refusals()
    assert stored() == before


def _without_token(content: bytes) -> list[bytes]:
    return [line for line in content.splitlines() if b"csrf" not in line.lower()]


def test_choices_name_the_own_organizations_alone(owner, stranger):
    make_client(stranger.organization, "theirs")
    make_client(owner.organization, "ours")
    second = make_organization("Second of mine")
    user = make_member(owner.organization, "administrator")
    user.memberships.create(organization=second, role="administrator")
    reviewed = make_organization("Only reviewed")
    user.memberships.create(organization=reviewed, role="reviewer")
    browser = browser_of(user)
    for name in ADDING:
        text = browser.get(url(name)).content.decode()
        assert stranger.organization.name not in text
        assert "theirs" not in text
        assert "Only reviewed" not in text
    assert "Second of mine" in browser.get(url("client_add")).content.decode()
    for query in (
        {"organization": stranger.organization.pk},
        {"organization": "a\x00b"},
        {"client": "x\x00"},
    ):
        for name in ADDING:
            assert browser.get(url(name), query).status_code == 200


def test_only_superusers_make_organizations(owner):
    before = stored()
    for role in ("reviewer", "operator", "administrator"):
        browser = member(owner.organization, role)
        before = stored()
        assert browser.get(url("organization_add")).status_code == 403
        assert browser.post(url("organization_add"), {"name": "Mine"}).status_code == 403
        assert stored() == before
    assert superuser().post(url("organization_add"), {"name": "New"}).status_code == 302
    assert [row["name"] for row in stored()["tenants.Organization"]][-1] == "New"


@pytest.mark.parametrize("name", ["organization", "client", "apikey", "enduser", "membership"])
def test_lists_offer_to_add_to_those_who_may(name, owner):
    add = url(f"{name}_add")
    shown = {
        role: f'href="{add}'
        in member(owner.organization, role).get(url(f"{name}_changelist")).content.decode()
        for role in ("reviewer", "operator", "administrator")
    }
    assert shown == {"reviewer": False, "operator": False, "administrator": name != "organization"}
    assert f'href="{add}' in superuser().get(url(f"{name}_changelist")).content.decode()


@pytest.mark.parametrize("name", ["organization", "client", "apikey", "enduser", "membership"])
def test_nobody_deletes_by_hand(name, owner):
    make, _ = ON_A_ROW.get(f"{name}_change", (new_key, {}))
    pk = make(owner)
    before = stored()
    browser = superuser()
    before["users"] = stored()["users"]
    assert browser.get(url(f"{name}_delete", pk)).status_code == 403
    assert browser.post(url(f"{name}_delete", pk), {"post": "yes"}).status_code == 403
    assert stored() == before
