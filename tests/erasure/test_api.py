"""DELETE over the API: who may, whose it is, and what the answer says."""

from __future__ import annotations

import pytest

from conversations import intake
from conversations.models import IntakeRecord, Session
from mirix.tenants.audit import Actor
from mirix.tenants.erasure import NothingThere, erase_end_user
from mirix.tenants.models import EndUser, ErasureReceipt
from mirix.tenants.scope import outside_request_scope
from tests.factories import make_owner, make_session

pytestmark = pytest.mark.django_db


class TestEndUser:
    def test_everything_goes_and_the_receipt_is_the_answer(self, owner, admin_api):
        make_session(owner, [{"role": "user", "content": "Mine."}])

        answer = admin_api.delete("/users/alice/memories")

        assert answer.status_code == 200
        receipt = ErasureReceipt.objects.get()
        body = answer.json()
        assert body["success"] is True
        assert body["preserved"] == []
        assert body["message"] == f"Erased: 3 rows. {receipt.pk} is the receipt."
        assert body["receipt"]["id"] == receipt.pk
        assert body["receipt"]["counts"]["conversations.conversationmessage"] == 1
        assert receipt.actor_kind == "key"
        assert not Session.objects.exists()
        assert not EndUser.objects.filter(user_id="alice", organization=owner.organization).exists()

    def test_the_id_of_ours_names_who_cannot_stand_in_a_path(self, owner, admin_api):
        odd = make_owner(owner.organization, user_id="a/b")
        assert admin_api.delete(f"/users/{odd.end_user.pk}/memories").status_code == 200
        assert not EndUser.objects.filter(pk=odd.end_user.pk).exists()

    def test_an_id_that_means_two_is_refused(self, owner, admin_api):
        sly = make_owner(owner.organization, user_id=owner.end_user.pk)

        answer = admin_api.delete(f"/users/{owner.end_user.pk}/memories")

        assert answer.status_code == 409
        assert EndUser.objects.filter(pk__in=[owner.end_user.pk, sly.end_user.pk]).count() == 2

    def test_done_again_it_is_not_there(self, owner, admin_api):
        assert admin_api.delete("/users/alice/memories").status_code == 200
        assert admin_api.delete("/users/alice/memories").status_code == 404

    def test_a_stranger_changes_nothing(self, owner, stranger, stranger_api):
        make_session(owner, [{"role": "user", "content": "Mine."}])

        assert stranger_api.delete(f"/users/{owner.end_user.pk}/memories").status_code == 404
        assert stranger_api.delete("/users/alice/memories").status_code == 200  # their own alice

        assert Session.objects.for_owner(owner).count() == 1
        assert [row.organization_id for row in ErasureReceipt.objects.all()] == [stranger.organization.pk]

    def test_a_key_that_may_write_may_not(self, owner, api):
        assert api.delete("/users/alice/memories").status_code == 403
        assert EndUser.objects.filter(pk=owner.end_user.pk).exists()


def test_a_client_that_is_gone_on_the_way_is_not_there(admin_api, client_row, monkeypatch):
    def gone(**_):
        raise NothingThere

    monkeypatch.setattr("mirix.api.erasure.erase_client", gone)
    assert admin_api.delete(f"/clients/{client_row.pk}/memories").status_code == 404
    assert not ErasureReceipt.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_request_that_is_on_its_way_is_refused_and_stores_nothing(owner, api, monkeypatch):
    """Its end user was there when it came, and is not when it would be stored."""
    accept = intake._accept

    def erase_first(*args, **options):
        with outside_request_scope():
            erase_end_user(end_user=owner.end_user, actor=Actor.operator())
        return accept(*args, **options)

    monkeypatch.setattr(intake, "_accept", erase_first)

    answer = api.post(
        "/memory/add",
        {"user_id": "alice", "session_id": "s-1", "messages": [{"role": "user", "content": "Late."}]},
        format="json",
    )

    assert answer.status_code == 409
    assert answer.json()["detail"].startswith("What this request is about was erased")
    assert not IntakeRecord.objects.exists()
