"""Erasing in the admin: only administrators, only with the name typed, and the receipt to read."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client as Browser
from django.urls import reverse

from mirix.tenants.models import EndUser, ErasureReceipt
from skills.models import Skill
from tests.factories import make_client, make_intake, make_member, make_owner, make_session, make_skill

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(owner) -> Browser:
    browser = Browser()
    browser.force_login(make_member(owner.organization, "administrator"))
    return browser


def erase(browser: Browser, model: str, row, typed: str, **options):
    return browser.post(reverse(f"admin:{model}_erase", args=[row.pk]), {"typed": typed}, **options)


def test_an_end_user_goes_once_the_id_is_typed(owner, browser):
    make_session(owner, [{"role": "user", "content": "One."}])
    page = browser.get(reverse("admin:tenants_enduser_change", args=[owner.end_user.pk])).content.decode()
    assert reverse("admin:tenants_enduser_erase", args=[owner.end_user.pk]) in page

    answer = erase(browser, "tenants_enduser", owner.end_user, "alice", follow=True)

    receipt = ErasureReceipt.objects.get()
    assert f"Erased: 3 rows. {receipt.pk} is the receipt." in answer.content.decode()
    assert not EndUser.objects.filter(pk=owner.end_user.pk).exists()
    assert not LogEntry.objects.exists()
    receipt_page = browser.get(reverse("admin:tenants_erasurereceipt_change", args=[receipt.pk]))
    assert receipt.digests["conversations.session"] in receipt_page.content.decode()


@pytest.mark.parametrize("typed", ["", "Alice", "bob"])
def test_any_other_name_erases_nothing(owner, browser, typed):
    answer = erase(browser, "tenants_enduser", owner.end_user, typed)
    assert answer.status_code == 400
    assert EndUser.objects.filter(pk=owner.end_user.pk).exists()


def test_the_id_does_for_a_name_that_nobody_can_type(owner, browser):
    odd = make_owner(owner.organization, user_id="a\u202eb\u200b<script>alert(1)</script>")
    page = browser.get(reverse("admin:tenants_enduser_erase", args=[odd.end_user.pk])).content.decode()
    assert "<script>alert(1)" not in page
    assert erase(browser, "tenants_enduser", odd.end_user, odd.end_user.pk).status_code == 302
    assert not EndUser.objects.filter(pk=odd.end_user.pk).exists()


def test_what_a_client_sent_goes_and_the_client_stays(owner, browser):
    client = make_client(owner.organization, "robot")
    make_intake(owner, client)
    assert erase(browser, "tenants_client", client, "robot").status_code == 302
    assert ErasureReceipt.objects.get().counts == {"conversations.intakerecord": 1, "tenants.enduser": 1}


def test_a_skill(owner, browser):
    skill = make_skill(owner)
    page = browser.get(reverse("admin:skills_skill_change", args=[skill.pk])).content.decode()
    assert reverse("admin:skills_skill_erase", args=[skill.pk]) in page
    assert erase(browser, "skills_skill", skill, skill.name).status_code == 302
    assert not Skill.objects.exists()


@pytest.mark.parametrize("role", ["reviewer", "operator"])
def test_others_are_not_offered_it_and_may_not(owner, role):
    browser = Browser()
    browser.force_login(make_member(owner.organization, role))
    address = reverse("admin:tenants_enduser_erase", args=[owner.end_user.pk])
    page = browser.get(reverse("admin:tenants_enduser_change", args=[owner.end_user.pk])).content.decode()
    assert address not in page
    assert erase(browser, "tenants_enduser", owner.end_user, "alice").status_code == 403
    assert EndUser.objects.filter(pk=owner.end_user.pk).exists()
