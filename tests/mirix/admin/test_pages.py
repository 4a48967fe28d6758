"""Every page of the admin, walked through the registry: it opens, and keeps strangers out.

The table of rows below must grow with the registry; tests/mirix/test_query_counts.py counts what lists cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client as Browser
from django.urls import reverse

from mirix.tenants.audit import SYSTEM, Act, record
from mirix.tenants.models import ApiKey, ErasureReceipt, Membership, Notification
from mirix.tenants.owners import Owner
from tests.factories import (
    make_attempt,
    make_client,
    make_experience,
    make_intake,
    make_key,
    make_member,
    make_organization,
    make_owner,
    make_proposal,
    make_proposer_call,
    make_run,
    make_search,
    make_session,
    make_skill,
    make_superuser,
)

pytestmark = pytest.mark.django_db


def _proposal(owner: Owner) -> Any:
    proposal = make_proposal(owner, skill=make_skill(owner), run=make_run(owner), risk_flags=["new_address"])
    proposal.experiences.add(make_experience(owner), make_experience(owner))
    return proposal


def _attempt(owner: Owner) -> Any:
    return make_attempt(make_run(owner), make_session(owner))


def _key(owner: Owner) -> Any:
    make_key(make_client(owner.organization))
    return ApiKey.objects.latest("created_at")


def _end_user(owner: Owner) -> Any:
    return make_owner(owner.organization).end_user


ROWS: dict[str, Callable[[Owner], Any]] = {
    "tenants.organization": lambda owner: owner.organization,
    "tenants.client": lambda owner: make_client(owner.organization),
    "tenants.apikey": _key,
    "tenants.enduser": _end_user,
    "tenants.membership": lambda owner: make_member(owner.organization).memberships.get(),
    "tenants.auditevent": lambda owner: record(
        organization=owner.organization, actor=SYSTEM, action=Act.CLIENT_CREATED, target=owner.organization
    ),
    "tenants.erasurereceipt": lambda owner: ErasureReceipt.objects.create(
        organization=owner.organization, kind="skill", actor_kind="user", counts={"skills.skill": 1}
    ),
    "tenants.notification": lambda owner: Notification.objects.create(
        organization=owner.organization, channel="email", counts={"proposals": 1}
    ),
    "conversations.session": lambda owner: make_session(owner, [{"role": "user", "content": "Hello"}]),
    "conversations.intakerecord": make_intake,
    "skills.skill": make_skill,
    "skills.skillrevision": _proposal,
    "skills.skillexperience": make_experience,
    "skills.autodreamrun": make_run,
    "skills.distillationattempt": _attempt,
    "skills.proposercall": lambda owner: make_proposer_call(make_run(owner)),
    "skills.searchevent": lambda owner: make_search(owner, [make_skill(owner)]),
}
MANAGED = {f"tenants.{model}" for model in ("organization", "client", "apikey", "enduser", "membership")}
"""Pages with forms for administrators, which tests/mirix/tenants/admin looks at."""
ADMINISTRATORS_ONLY = {"tenants.auditevent", "tenants.erasurereceipt", "tenants.notification"}
READERS = [
    (label, role)
    for label in sorted(ROWS)
    for role in ("reviewer", "operator", "administrator")
    if role == "administrator" or label not in ADMINISTRATORS_ONLY
]
SUPERUSERS_ONLY = {"auth.user", "procrastinate.procrastinatejob"}
WITHOUT_OWNER: dict[str, Callable[[], Any]] = {
    "auth.user": make_superuser,
    "procrastinate.procrastinatejob": lambda: None,
}


def as_user(user: User) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


def changelist(label: str) -> str:
    return reverse("admin:{}_{}_changelist".format(*label.split(".")))


def page(label: str, pk: str) -> str:
    return reverse("admin:{}_{}_change".format(*label.split(".")), args=[pk])


def test_every_registered_model_is_in_the_table():
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert registered == set(ROWS) | SUPERUSERS_ONLY


@pytest.mark.parametrize("label", sorted(ROWS))
def test_a_superuser_opens_list_and_page(label, owner):
    row = ROWS[label](owner)
    browser = as_user(make_superuser())
    assert browser.get(changelist(label)).status_code == 200
    response = browser.get(page(label, row.pk))
    assert response.status_code == 200
    assert str(row) in response.content.decode() or row._meta.model is ApiKey
    assert browser.get(changelist(label) + "?q=x%00y").status_code == 200


@pytest.mark.parametrize("label", sorted(SUPERUSERS_ONLY))
def test_rows_without_an_organization_are_for_superusers(label, owner):
    assert as_user(make_superuser()).get(changelist(label)).status_code == 200
    assert as_user(make_member(owner.organization, "administrator")).get(changelist(label)).status_code == 403


@pytest.mark.parametrize(("label", "role"), READERS)
def test_a_member_reads_the_rows_of_the_own_organization_and_writes_none(label, role, owner):
    row = ROWS[label](owner)
    browser = as_user(make_member(owner.organization, role))
    assert row.pk in browser.get(changelist(label)).content.decode()
    assert browser.get(page(label, row.pk)).status_code == 200
    before = type(row).objects.filter(pk=row.pk).values().get()
    if label not in MANAGED or role != "administrator":
        assert browser.post(page(label, row.pk), {"name": "changed"}).status_code in (403, 405)
        assert browser.get(changelist(label) + "add/").status_code == 403
    assert browser.get(page(label, row.pk).replace("change", "delete")).status_code == 403
    assert browser.post(page(label, row.pk).replace("change", "delete"), {"post": "yes"}).status_code == 403
    assert type(row).objects.filter(pk=row.pk).values().get() == before


@pytest.mark.parametrize("role", ["reviewer", "operator"])
@pytest.mark.parametrize("label", sorted(ADMINISTRATORS_ONLY))
def test_what_administrators_alone_may_read_is_refused_to_others(label, role, owner):
    row = ROWS[label](owner)
    browser = as_user(make_member(owner.organization, role))
    for url in (changelist(label), page(label, row.pk)):
        response = browser.get(url)
        assert response.status_code in (403, 404)
        assert row.pk not in response.content.decode()


@pytest.mark.parametrize("label", sorted(ROWS))
def test_a_stranger_sees_an_empty_list_and_no_page(label, owner, stranger):
    row = ROWS[label](owner)
    browser = as_user(make_member(stranger.organization, "administrator"))
    assert row.pk not in browser.get(changelist(label)).content.decode()
    foreign = browser.get(page(label, row.pk))
    missing = browser.get(page(label, "nothing"))
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.content == missing.content
    assert browser.get(page(label, row.pk).replace("change", "history")).status_code == 404
    # Deleting is refused before anybody looks whether the row is there.
    for pk in (row.pk, "nothing"):
        assert browser.get(page(label, pk).replace("change", "delete")).status_code == 403


@pytest.mark.parametrize("label", sorted(ROWS))
def test_a_person_without_membership_is_refused(label, owner):
    row = ROWS[label](owner)
    browser = as_user(User.objects.create_user("nobody", is_staff=True))
    assert browser.get(changelist(label)).status_code == 403
    assert browser.get(page(label, row.pk)).status_code in (403, 404)


@pytest.mark.parametrize("label", sorted(ROWS))
def test_who_is_not_logged_in_is_sent_to_the_login(label, owner):
    row = ROWS[label](owner)
    for url in (changelist(label), page(label, row.pk)):
        response = Browser().get(url)
        assert response.status_code == 302
        assert response["Location"].startswith(reverse("admin:login"))


def test_the_organization_filter_names_no_foreign_organization(owner, stranger):
    member = make_member(owner.organization)
    Membership.objects.create(user=member, organization=make_organization("second of mine"), role="reviewer")
    response = as_user(member).get(
        changelist("conversations.session"), {"organization": stranger.organization.pk}
    )
    assert "second of mine" in response.content.decode()
    assert stranger.organization.name not in response.content.decode()


def test_autocomplete_is_scoped_like_the_list(owner, stranger):
    make_session(owner)
    assert (
        as_user(make_member(stranger.organization))
        .get(
            reverse("admin:autocomplete"),
            {
                "app_label": "conversations",
                "model_name": "conversationmessage",
                "field_name": "session",
                "term": "s",
            },
        )
        .json()["results"]
        == []
    )


def test_an_api_key_page_holds_no_secret(owner):
    make_key(make_client(owner.organization))
    key = ApiKey.objects.get()
    browser = as_user(make_superuser())
    shown = (
        browser.get(page("tenants.apikey", key.pk)).content
        + browser.get(changelist("tenants.apikey")).content
    )
    assert key.secret_hash.encode() not in shown


def test_empty_lists_say_what_to_do_next(owner):
    text = as_user(make_superuser()).get(changelist("conversations.session")).content.decode()
    assert "No session yet" in text
    assert "./run import_sessions" in text
    text = as_user(make_superuser()).get(changelist("conversations.session") + "?q=zzz").content.decode()
    assert "Nothing matches" in text


def test_no_page_asks_another_host(owner):
    browser = as_user(make_superuser())
    proposal = _proposal(owner)
    for url in (reverse("admin:index"), page("skills.skillrevision", proposal.pk), reverse("admin:login")):
        text = browser.get(url).content.decode()
        assert "//fonts." not in text
        assert 'src="http' not in text
        assert 'href="http' not in text


def test_the_models_shown_are_all_the_apps_have(owner):
    """A model that nobody can look at is named here on purpose."""
    hidden = {
        "tenants.organizationsettings",
        "tenants.tokenusage",
        "conversations.conversationmessage",
        "skills.searchchange",
        "skills.skilldocument",
        "skills.skillembedding",
        "skills.skillposting",
        "skills.reviewdecision",
    }
    shown = {model._meta.label_lower for model in admin.site._registry}
    ours = {
        model._meta.label_lower
        for app in ("tenants", "conversations", "skills")
        for model in apps.get_app_config(app).get_models()
    }
    assert ours - shown == hidden


def test_a_page_that_is_not_there_says_so_in_words(owner):
    response = as_user(make_member(owner.organization)).get(page("skills.skill", "nothing"))
    assert response.status_code == 404
    assert "belongs to an organization that you are no member of" in response.content.decode()


def test_the_theme_search_that_fills_the_cache_is_off(owner):
    assert as_user(make_superuser()).get("/admin/search/", {"s": "skill"}).status_code == 404


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("/admin/skills/skill", "/admin/skills/skill/"),
        ("/admin/skills/skill?q=a%20b", "/admin/skills/skill/?q=a%20b"),
        ("/admin/skills", "/admin/skills/"),
        ("/admin/password_change", "/admin/password_change/"),
    ],
)
def test_an_address_without_its_last_slash_leads_to_the_page(path, leads_to):
    browser = as_user(make_superuser())
    answer = browser.get(path)
    assert (answer.status_code, answer["Location"]) == (302, leads_to)
    assert browser.get(leads_to).status_code == 200
    assert browser.post(path).status_code == 404


@pytest.mark.parametrize(
    "path", ["/admin/nowhere", "/admin/nowhere/", "/admin/skills/nowhere", "/admin//nowhere.example"]
)
def test_an_address_of_no_page_is_404(path):
    assert as_user(make_superuser()).get(path).status_code == 404


def test_the_admin_without_a_slash_is_the_admin():
    answer = Browser().get("/admin")
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
