"""A step that came across another transaction is done again; pages and jobs say or do what is right then."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.urls import reverse
from psycopg import errors
from rest_framework.test import APIClient

from conversations import intake, operating, storage
from conversations.models import IntakeRecord, Session
from mirix.collisions import TRIES, StillColliding, through_collisions
from mirix.ids import new_id
from mirix.outages import is_outage
from mirix.tenants.audit import Actor
from mirix.tenants.erasure import erase_end_user
from mirix.tenants.models import EndUser
from skills import triggers
from skills.models import AutoDreamRun, SkillRevision
from skills.runs import claim
from tests.factories import (
    make_client,
    make_intake,
    make_key,
    make_member,
    make_owner,
    make_proposal,
    make_session,
    make_token,
)

ACTOR = Actor(kind="command", name="root")
HELLO = {"role": "user", "content": "hello"}


def collision(kind: type[Exception], cause: type[errors.Error] = errors.DeadlockDetected) -> Exception:
    """What Django raises where PostgreSQL ended a transaction."""
    error = kind("of zanzibar")
    error.__cause__ = cause("of zanzibar")
    return error


class Step:
    """Fails `times` times."""

    def __init__(self, error: Exception, times: int) -> None:
        self.error, self.times, self.calls = error, times, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return "done"

    def but_with_fields(self, **_: Any) -> str:
        return self()


BUSY = {"detail": "Another change came across this one; nothing of it was stored. Try again shortly."}
COLLISIONS = [
    collision(OperationalError),
    collision(OperationalError, errors.SerializationFailure),
    collision(IntegrityError, errors.ForeignKeyViolation),
]


class TestSteps:
    @pytest.mark.parametrize("error", COLLISIONS, ids=lambda error: type(error.__cause__).__name__)
    def test_are_done_again_and_the_log_quotes_nobody(self, error, caplog):
        step = Step(error, TRIES - 1)
        assert through_collisions(step) == "done"
        assert step.calls == TRIES
        assert caplog.text.count("is done again") == TRIES - 1
        assert "zanzibar" not in caplog.text

    @pytest.mark.parametrize("error", COLLISIONS, ids=lambda error: type(error.__cause__).__name__)
    def test_are_given_up_after_some_tries(self, error):
        step = Step(error, TRIES)
        with pytest.raises(StillColliding) as raised:
            through_collisions(step)
        assert step.calls == TRIES
        assert "zanzibar" not in str(raised.value)
        assert not is_outage(raised.value)

    @pytest.mark.parametrize(
        "error",
        [
            collision(OperationalError, errors.DiskFull),
            collision(IntegrityError, errors.UniqueViolation),
            ValueError(),
        ],
        ids=repr,
    )
    def test_with_any_other_error_are_not(self, error):
        step = Step(error, 1)
        with pytest.raises(type(error)):
            through_collisions(step)
        assert step.calls == 1


@pytest.mark.django_db(transaction=True)
class TestJobs:
    def test_one_that_ends_in_a_deadlock_stores_its_request_all_the_same(self, monkeypatch, caplog):
        """As an erasure of a client does: it holds the client, and then wants the session."""
        owner = make_owner()
        session = make_session(owner, [HELLO], session_id="s-1", state="open")
        record = make_intake(owner, session_id="s-1", state="queued", body={"messages": [HELLO]})
        holds_client, holds_session = Event(), Event()
        store = storage._store

        def store_slowly(*args: Any) -> None:
            store(*args)
            holds_session.set()
            assert holds_client.wait(10)

        monkeypatch.setattr(storage, "_store", store_slowly)

        def other() -> None:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL deadlock_timeout = '60s'")  # the job shall be the one that ends
                cursor.execute("SELECT FROM tenants_client WHERE id = %s FOR UPDATE", [record.client_id])
                assert holds_session.wait(10)
                holds_client.set()
                cursor.execute("SELECT FROM conversations_session WHERE id = %s FOR UPDATE", [session.pk])
            connection.close()

        thread = Thread(target=other)
        thread.start()
        intake.store_queued(intake_id=record.pk)
        thread.join()

        record.refresh_from_db()
        assert record.state == "stored"
        assert "came across another one (OperationalError)" in caplog.text

    @pytest.mark.parametrize("job", ["store", "replay"])
    def test_one_whose_request_is_erased_while_it_is_at_it_does_nothing(self, job, monkeypatch):
        owner = make_owner()
        state = {"store": "queued", "replay": "failed"}[job]
        record = make_intake(owner, session_id="s-1", state=state, body={"messages": [HELLO]})
        lock = storage._lock_session

        def lock_too_late(record: IntakeRecord) -> Any:
            monkeypatch.setattr(storage, "_lock_session", lock)
            thread = Thread(target=erase)
            thread.start()
            thread.join()
            return lock(record)

        def erase() -> None:
            erase_end_user(end_user=owner.end_user, actor=ACTOR)
            connection.close()

        monkeypatch.setattr(storage, "_lock_session", lock_too_late)

        if job == "store":
            assert intake.store_queued(intake_id=record.pk) is None
        else:
            assert operating.replay_by_id(intake_ids=[record.pk], actor=ACTOR).states == {}

        for model in (EndUser, IntakeRecord, Session):
            assert not model.objects.exists()

    def test_of_owners_that_are_due_one_who_is_erased_keeps_no_other_from_a_run(self, monkeypatch, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 1
        owners = [make_owner(), make_owner()]
        for owner in owners:
            make_session(owner, [HELLO])
        gone, there = sorted(owners, key=lambda owner: owner.end_user.pk)
        defer = triggers._defer
        monkeypatch.setattr(triggers, "_defer", lambda pk: _erase_owner_of(pk, gone) or defer(pk))

        assert triggers.trigger_all_due() == 1

        assert [run.end_user_id for run in AutoDreamRun.objects.all()] == [there.end_user.pk]


def _erase_owner_of(run_id: str, gone: Any) -> None:
    """Erase over another connection, between the row of a run and its commit."""
    if not EndUser.objects.filter(pk=gone.end_user.pk).exists():
        return

    def erase() -> None:
        erase_end_user(end_user=gone.end_user, actor=ACTOR)
        connection.close()

    thread = Thread(target=erase)
    thread.start()
    thread.join()


@pytest.mark.django_db
def test_a_step_of_a_run_is_done_again():
    step = Step(COLLISIONS[0], 1)
    assert claim(owner=make_owner(), trigger="api").lasting(step) == "done"


@pytest.mark.django_db
class TestPages:
    @pytest.mark.parametrize("error", COLLISIONS, ids=repr)
    def test_say_that_somebody_else_was_faster(self, client, owner, monkeypatch, error):
        proposal = make_proposal(owner)
        client.force_login(make_member(owner.organization, "reviewer"))

        def approve(**_: Any) -> None:
            raise error

        monkeypatch.setattr("skills.admin.deciding.approve", approve)

        answer = client.post(reverse("admin:skills_skillrevision_approve", args=[proposal.pk]))

        assert answer.status_code == 409
        assert b"Nothing that you did was stored" in answer.content
        proposal.refresh_from_db()
        assert proposal.state == "proposed"

    @pytest.mark.parametrize("is_erased", [True, False])
    def test_say_so_of_what_is_missing_only_where_something_that_was_named_was_erased(
        self, client, owner, monkeypatch, is_erased
    ):
        proposal = make_proposal(owner)
        client.force_login(make_member(owner.organization, "reviewer"))
        client.raise_request_exception = False

        def approve(**_: Any) -> None:
            raise SkillRevision.DoesNotExist

        monkeypatch.setattr("skills.admin.deciding.approve", approve)
        named = {"target": new_id("proc")} if is_erased else {}
        answer = client.post(reverse("admin:skills_skillrevision_approve", args=[proposal.pk]), named)
        assert answer.status_code == (409 if is_erased else 500)

    @pytest.mark.parametrize("error", COLLISIONS, ids=lambda error: type(error.__cause__).__name__)
    def test_ask_to_try_an_erasure_later_that_came_across_others_again_and_again(
        self, client, owner, monkeypatch, error
    ):
        client.force_login(make_member(owner.organization, "administrator"))
        monkeypatch.setattr("mirix.tenants.erasure.connection.check_constraints", Step(error, TRIES))

        url = reverse("admin:tenants_enduser_erase", args=[owner.end_user.pk])
        answer = client.post(url, {"typed": owner.end_user.pk})

        assert (answer.status_code, answer["Retry-After"]) == (503, "5")
        assert b"Nothing of it was stored" in answer.content
        assert EndUser.objects.filter(pk=owner.end_user.pk).exists()

    def test_show_no_other_error_so(self, client, owner, monkeypatch):
        proposal = make_proposal(owner)
        client.force_login(make_member(owner.organization, "reviewer"))

        def approve(**_: Any) -> None:
            raise RuntimeError

        monkeypatch.setattr("skills.admin.deciding.approve", approve)
        with pytest.raises(RuntimeError):
            client.post(reverse("admin:skills_skillrevision_approve", args=[proposal.pk]))


@pytest.mark.django_db
class TestAPI:
    @pytest.mark.parametrize("error", COLLISIONS, ids=lambda error: type(error.__cause__).__name__)
    def test_an_erasure_that_came_across_others_again_and_again_may_be_sent_again(
        self, owner, monkeypatch, error
    ):
        api = APIClient(headers={"X-API-Key": make_key(make_client(owner.organization), "admin")})
        monkeypatch.setattr("mirix.tenants.erasure.connection.check_constraints", Step(error, TRIES))

        answer = api.delete("/users/alice/memories")

        assert (answer.status_code, answer["Retry-After"]) == (503, "1")
        assert answer.json() == BUSY
        assert EndUser.objects.filter(pk=owner.end_user.pk).exists()

    @pytest.mark.parametrize("act", ["approve", "reject"])
    def test_a_decision_that_ends_in_a_deadlock_may_be_sent_again(self, owner, monkeypatch, act):
        proposal = make_proposal(owner)
        token = make_token(make_member(owner.organization, "reviewer"), owner.organization)
        api = APIClient(headers={"Authorization": f"Bearer {token}"})
        monkeypatch.setattr(f"skills.api.decisions.{act}", Step(COLLISIONS[0], 1).but_with_fields)

        answer = api.post(f"/v1/proposals/{proposal.pk}/{act}", {"reason": "No."}, format="json")

        assert (answer.status_code, answer.json()) == (503, BUSY)
        proposal.refresh_from_db()
        assert proposal.state == "proposed"
