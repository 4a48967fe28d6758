"""What the database remembers of columns for its plans quotes nobody who was erased."""

from __future__ import annotations

import re
from threading import Event, Thread
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations.models import IntakeRecord, Session
from mirix.tenants import erasure, statistics
from mirix.tenants.audit import Actor
from mirix.tenants.models import EndUser
from skills.erasure.single import erase_skill
from skills.models import AutoDreamRun, DistillationAttempt, SkillPosting
from skills.search.index import index_skill
from tests.erasure.canary import found
from tests.factories import (
    make_attempt,
    make_client,
    make_content,
    make_experience,
    make_intake,
    make_member,
    make_owner,
    make_run,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db(transaction=True)
ACTOR = Actor(kind="command", name="root")
SECRET = "zanzibar"


@pytest.fixture(params=["clearing", "altering"])
def way(request, monkeypatch) -> str:
    """As PostgreSQL 18 can, and as one before it has to."""
    if request.param == "altering":
        monkeypatch.setattr(statistics, "_can_clear", lambda cursor: False)
    return request.param


def remember() -> None:
    """Have the database look through everything."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    assert "pg_stats" in found(SECRET)


def finish_as_the_worker_does() -> bool:
    return erasure.finish(**ProcrastinateJob.objects.get(task_name="tenants.finish_erasure").args)


def test_of_an_end_user_none_is_left(way):
    owner = make_owner(user_id=SECRET)
    staff = make_member(owner.organization)
    for number in range(2):
        session = make_session(owner, [{"role": "user", "content": SECRET}], filter_tags={"who": SECRET})
        make_attempt(make_run(owner, notes=[SECRET]), session, raw_reply=SECRET)
        index_skill(make_skill(owner, make_content(name=f"greet-{SECRET}-{number}", instructions=SECRET)))
    for _ in range(2):
        LogEntry.objects.create(
            user=staff,
            content_type=ContentType.objects.get_for_model(EndUser),
            object_id=owner.end_user.pk,
            object_repr=SECRET,
            action_flag=CHANGE,
        )
    remember()

    erasure.erase_end_user(end_user=owner.end_user, actor=ACTOR)

    assert finish_as_the_worker_does()
    assert found(SECRET) == {}


def test_of_an_end_user_beside_others_none_is_left():
    owner = make_owner(user_id=SECRET)
    for _ in range(3):
        make_session(owner, [{"role": "user", "content": SECRET}])
        make_session(make_owner(owner.organization), [{"role": "user", "content": "Theirs."}])
    remember()

    erasure.erase_end_user(end_user=owner.end_user, actor=ACTOR)

    assert finish_as_the_worker_does()
    assert found(SECRET) == {}


def test_of_words_that_went_out_of_rows_that_stay_none_is_left(owner):
    """A skill is erased: attempts and runs of its owner stay, without what models said."""
    skill = make_skill(owner)
    for _ in range(2):
        make_attempt(make_run(owner, notes=[SECRET], error=SECRET), make_session(owner), raw_reply=SECRET)
    remember()

    erase_skill(skill=skill, actor=ACTOR)

    assert finish_as_the_worker_does()
    assert found(SECRET) == {}
    assert (DistillationAttempt.objects.count(), AutoDreamRun.objects.count()) == (2, 2)


def test_of_a_client_none_is_left(owner):
    going, staying = make_client(owner.organization), make_client(owner.organization)
    skill = make_skill(owner)
    said = [{"role": "user", "content": SECRET}]
    lessons = [make_experience(owner, make_session(owner, said, client), quote=SECRET, status="consumed")
               for client in (going, going, staying)]  # fmt: skip
    skill.current_revision.experiences.set(lessons)
    type(skill.current_revision).objects.update(rationale=f"Of {SECRET}.")
    make_intake(owner, going, filter_tags={"who": SECRET})
    make_intake(owner, going, filter_tags={"who": SECRET})
    remember()

    erasure.erase_client(client=going, actor=ACTOR)
    erasure.erase_client(client=staying, actor=ACTOR)

    for job in ProcrastinateJob.objects.filter(task_name="tenants.finish_erasure"):
        assert erasure.finish(**job.args)
    assert found(SECRET) == {}


class TestByAltering:
    @pytest.fixture(autouse=True)
    def _before_18(self, monkeypatch) -> None:
        monkeypatch.setattr(statistics, "_can_clear", lambda cursor: False)

    def test_columns_indexes_and_collations_stay_what_they_are(self):
        tables = [model._meta.db_table for model in (Session, IntakeRecord, SkillPosting)]
        owner = make_owner()
        for number in range(2):
            make_session(owner)
            make_intake(owner)
            index_skill(make_skill(owner, make_content(name=f"greet-{number}")))
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        before = shape_of(tables)
        erasure.erase_end_user(end_user=owner.end_user, actor=ACTOR)
        assert finish_as_the_worker_does()
        assert shape_of(tables) == before

    def test_while_somebody_uses_the_table_it_is_left_for_later(self, monkeypatch, owner):
        monkeypatch.setattr(statistics, "LOCK_TIMEOUT", "50ms")
        reading, read = Event(), Event()

        def read_on() -> None:
            with transaction.atomic():
                assert not Session.objects.exists()
                reading.set()
                read.wait(10)
            connection.close()

        thread = Thread(target=read_on)
        thread.start()
        assert reading.wait(10)
        assert statistics.renew_statistics([Session._meta.db_table]) is False
        read.set()
        thread.join()
        assert statistics.renew_statistics([Session._meta.db_table]) is True


def shape_of(tables: list[str]) -> list[Any]:
    """Columns with types and collations, indexes and constraints of tables, as the catalogue has them."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attcollation,
                   attnotnull::text
            FROM pg_attribute WHERE attrelid = ANY (%(tables)s::regclass[]) AND attnum > 0
            UNION ALL SELECT indrelid::regclass::text, pg_get_indexdef(indexrelid), '', 0, indisvalid::text
            FROM pg_index WHERE indrelid = ANY (%(tables)s::regclass[])
            UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), 0,
                             convalidated::text
            FROM pg_constraint WHERE conrelid = ANY (%(tables)s::regclass[])
            ORDER BY 1, 2, 3
            """,
            {"tables": tables},
        )
        # Conditions are written down anew, in which the casts of constants stand elsewhere.
        return [[re.sub(r"::[a-z ]+|[()\[\]]", "", str(value)) for value in row] for row in cursor.fetchall()]
