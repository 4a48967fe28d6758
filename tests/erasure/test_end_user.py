"""An end user is erased: nothing of theirs is left anywhere, nothing of others is gone, a receipt stays."""

from __future__ import annotations

from hashlib import sha256

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError, connection, transaction
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations.models import ConversationMessage
from mirix.collisions import StillColliding
from mirix.queue import defer
from mirix.tenants import erasure
from mirix.tenants.audit import Actor
from mirix.tenants.models import AuditEvent, EndUser, ErasedKind, ErasureReceipt
from mirix.tenants.owners import Owner
from skills.models import SearchChange
from tests.access.world import Side, everything, everything_of, make_side
from tests.erasure.canary import fill, found, models_of_an_end_user, rows_of
from tests.factories import make_intake, make_member, make_owner, make_session

ACTOR = Actor(kind="command", name="root")
CANARY = "canary7d1e"
FREE_OF_WORDS = {
    "skills.Skill.version",
    "skills.SkillRevision.version",
    "skills.SearchEvent.scores",
    "skills.SkillEmbedding.vector",
}
"""Columns of numbers: a new one that is none has to take the word, or erasure proves nothing of it."""


def make_full_side(name: str = "home") -> Side:
    """An organization with a row of every kind, logged by the admin, with jobs; all of one end user."""
    side = make_side(name)
    side.add(SearchChange.objects.for_owner(side.owner).first())
    staff = make_member(side.organization, "administrator")
    for model in filter(admin.site.is_registered, models_of_an_end_user()):
        row = side.rows[model._meta.label_lower]
        LogEntry.objects.create(
            user=staff,
            content_type=ContentType.objects.get_for_model(model),
            object_id=str(row.pk),
            object_repr=f"{CANARY} {row.pk}"[:200],
            action_flag=CHANGE,
        )
    rows = side.rows
    defer("skills.run_dream", queue="dreams", run_id=rows["skills.autodreamrun"].pk)
    defer("conversations.store_turns", queue="intake", intake_id=rows["conversations.intakerecord"].pk)
    actor = {"kind": "user", "name": "someone", "id": "1"}
    ids = [rows["conversations.intakerecord"].pk]
    defer("conversations.replay", queue="intake", intake_ids=ids, actor=actor)
    defer("skills.embed_skills", queue="embeddings", skill_ids=[rows["skills.skill"].pk])
    return side


def fill_with_canary(owner: Owner) -> None:
    of_owner = {"end_user": owner.end_user.pk, "organization": owner.organization.pk}
    left = [
        column
        for model in models_of_an_end_user()
        for column in fill(model, rows_of(model), of_owner, CANARY)
    ]
    assert set(left) - FREE_OF_WORDS == set(), "columns that take no word: is that so?"


def erase(owner: Owner, **options) -> ErasureReceipt:
    return erasure.erase_end_user(end_user=owner.end_user, actor=ACTOR, **options)


@pytest.mark.django_db
class TestCanary:
    def test_every_model_of_an_end_user_has_a_row_in_the_test(self):
        side = make_full_side()
        assert {model._meta.label_lower for model in models_of_an_end_user()} <= side.rows.keys()

    def test_no_column_of_any_table_holds_a_word_of_theirs(self):
        side = make_full_side()
        fill_with_canary(side.owner)
        assert len(found(CANARY)) > 12

        erase(side.owner)

        assert found(CANARY) == {}
        assert found(side.owner.end_user.pk) == {"tenants_erasurereceipt": 1}

    def test_a_table_that_nobody_registered_stops_it(self):
        side = make_full_side()
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE stray (end_user_id varchar "
                "REFERENCES tenants_enduser DEFERRABLE INITIALLY DEFERRED)"
            )
            cursor.execute("INSERT INTO stray VALUES (%s)", [side.owner.end_user.pk])
        before = everything()

        with pytest.raises(StillColliding, match="IntegrityError of stray"):
            erase(side.owner)

        assert everything() == before

    def test_nothing_of_others_is_touched(self):
        side, other = make_full_side(), make_side("away")
        team_mate = make_owner(side.organization)
        make_session(team_mate, [{"role": "user", "content": "Mine."}])
        before = everything_of(other)

        erase(side.owner)

        assert everything_of(other) == before
        assert [turn.content for turn in ConversationMessage.objects.for_owner(team_mate)] == ["Mine."]
        assert EndUser.objects.filter(pk=team_mate.end_user.pk).exists()

    def test_jobs_that_were_to_work_on_it_are_gone(self):
        side = make_full_side()
        defer("skills.embed_skills", queue="embeddings", skill_ids=["proc-of-somebody-else"])
        being_done = ProcrastinateJob.objects.get(task_name="conversations.replay")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE procrastinate_jobs SET status = 'doing' WHERE id = %s", [being_done.pk])

        receipt = erase(side.owner)

        left = ProcrastinateJob.objects.order_by("id").values_list("task_name", "status")
        assert list(left) == [
            ("conversations.replay", "doing"),
            ("skills.embed_skills", "todo"),
            ("tenants.finish_erasure", "todo"),
        ]
        assert receipt.counts["procrastinate.procrastinatejob"] == 3


@pytest.mark.django_db
class TestReceipt:
    def test_it_counts_what_went_and_says_who_did_it(self, owner):
        make_session(owner, [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}])
        make_intake(owner)

        receipt = erase(owner)

        stored = ErasureReceipt.objects.get()
        assert stored.pk == receipt.pk
        assert (stored.kind, stored.subject_id) == ("end_user", owner.end_user.pk)
        assert stored.counts == {
            "conversations.conversationmessage": 2,
            "conversations.intakerecord": 1,
            "conversations.session": 1,
            "tenants.enduser": 1,
        }
        assert stored.total == 5
        assert stored.digests.keys() == stored.counts.keys()
        assert (stored.actor_kind, stored.actor_name) == ("command", "root")
        event = AuditEvent.objects.get(action="erasure.done")
        assert (event.target_id, event.details) == (receipt.pk, {"kind": "end_user", "rows": 5})

    def test_a_digest_is_of_the_keys_of_the_rows(self, owner):
        sessions = sorted([make_session(owner).pk, make_session(owner).pk])

        digest = erase(owner).digests["conversations.session"]

        assert digest == sha256("".join(f"{pk}\n" for pk in sessions).encode()).hexdigest()

    def test_who_knows_the_id_finds_it_and_nobody_else(self, owner, stranger):
        receipt = erase(owner)
        wanted = {"kind": ErasedKind.END_USER, "name": "alice"}

        assert list(erasure.find_receipts(organization=owner.organization, **wanted)) == [receipt]
        assert not erasure.find_receipts(organization=stranger.organization, **wanted)
        assert receipt.subject_hash != sha256(b"alice").hexdigest()

    @pytest.mark.parametrize(
        "statement", ["UPDATE tenants_erasurereceipt SET counts = '{}'", "DELETE FROM tenants_erasurereceipt"]
    )
    def test_the_database_keeps_it_as_it_is(self, owner, statement):
        erase(owner)
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            connection.cursor().execute(statement)

    def test_it_goes_with_its_organization(self, owner):
        erase(owner)
        owner.organization.delete()
        assert not ErasureReceipt.objects.exists()

    def test_a_dry_run_counts_and_changes_nothing(self):
        side = make_full_side()
        before = everything()

        receipt = erase(side.owner, dry_run=True)

        assert everything() == before
        assert receipt.counts == erase(side.owner).counts


@pytest.mark.django_db
class TestOfNothing:
    def test_one_who_has_nothing(self, owner):
        assert erase(owner).counts == {"tenants.enduser": 1}

    def test_one_who_is_gone_already(self, owner):
        erase(owner)
        with pytest.raises(erasure.NothingThere):
            erase(owner)
        assert ErasureReceipt.objects.count() == 1

    def test_who_comes_again_is_somebody_new(self, owner, api):
        make_session(owner, [{"role": "user", "content": "Old."}], session_id="s-1")
        erase(owner)

        answer = api.post(
            "/memory/add_sync",
            {"user_id": "alice", "session_id": "s-1", "messages": [{"role": "user", "content": "New."}]},
            format="json",
        )

        assert answer.json()["session"]["turn_count"] == 1
        assert [turn.content for turn in ConversationMessage.objects.all()] == ["New."]
        assert EndUser.objects.get(user_id="alice").pk != owner.end_user.pk
