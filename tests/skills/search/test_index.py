from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from skills.models import Skill, SkillDocument, SkillPosting
from skills.search.index import index_skill, rebuild, remove_skill
from tests.factories import make_content, make_skill

pytestmark = pytest.mark.django_db


def postings(skill) -> dict[str, tuple[int, int, int, int]]:
    return {
        row.term: (row.name_count, row.triggers_count, row.description_count, row.instructions_count)
        for row in SkillPosting.objects.filter(document__skill=skill)
    }


def make_card_skill(owner, **fields):
    content = make_content(
        name="charge-card",
        description="Charges cards.",
        instructions="Charge it.",
        triggers=["a card", "pay"],
    )
    return make_skill(owner, content, **fields)


def test_a_skill_is_indexed_with_its_terms_per_field(owner):
    skill = make_card_skill(owner)
    index_skill(skill)
    assert postings(skill) == {
        "chargecard": (1, 0, 0, 0),
        "charg": (1, 0, 1, 1),
        "card": (1, 1, 1, 0),
        "a": (0, 1, 0, 0),
        "pay": (0, 1, 0, 0),
        "it": (0, 0, 0, 1),
    }
    document = SkillDocument.objects.get(skill=skill)
    assert (document.organization, document.end_user) == (owner.organization, owner.end_user)
    assert (document.name_length, document.triggers_length) == (3, 3)
    assert (document.description_length, document.instructions_length) == (2, 2)


def test_indexing_again_changes_nothing(owner):
    skill = make_card_skill(owner)
    index_skill(skill)
    before = postings(skill)
    index_skill(skill)
    assert postings(skill) == before
    assert SkillDocument.objects.count() == 1


def test_an_edit_replaces_the_terms_even_through_a_stale_object(owner):
    skill = make_card_skill(owner)
    index_skill(skill)
    type(skill).objects.filter(pk=skill.pk).update(instructions="Refund")
    index_skill(skill)
    assert postings(skill)["refund"] == (0, 0, 0, 1)
    assert "it" not in postings(skill)


@pytest.mark.parametrize("status", ["archived", "quarantined"])
def test_only_active_skills_have_postings(owner, status):
    skill = make_card_skill(owner)
    index_skill(skill)
    skill.status = status
    skill.save()
    index_skill(skill)
    assert not SkillPosting.objects.exists()
    assert not SkillDocument.objects.exists()


def test_a_removed_skill_is_gone_and_removing_it_again_is_nothing(owner):
    skill, other = make_card_skill(owner), make_skill(owner)
    index_skill(skill)
    index_skill(other)
    remove_skill(skill.pk)
    remove_skill(skill.pk)
    remove_skill("proc-unknown")
    assert postings(skill) == {}
    assert SkillDocument.objects.get().skill == other


@pytest.mark.parametrize("erased", ["skill", "end_user", "organization"])
def test_postings_go_with_whatever_they_belong_to(owner, stranger, erased):
    skill, foreign = make_card_skill(owner), make_card_skill(stranger)
    index_skill(skill)
    index_skill(foreign)
    {"skill": skill, "end_user": owner.end_user, "organization": owner.organization}[erased].delete()
    assert set(SkillPosting.objects.values_list("document__skill", flat=True)) == {foreign.pk}


@pytest.mark.django_db(transaction=True)
def test_of_two_writers_at_once_the_later_one_indexes_what_both_have_written(owner):
    skill = make_card_skill(owner)
    index_skill(skill)
    locked, waiting = threading.Event(), threading.Event()

    def first() -> None:
        with transaction.atomic():
            Skill.objects.filter(pk=skill.pk).update(instructions="Refund")
            index_skill(skill)
            locked.set()
            waiting.wait(timeout=10)
        connection.close()

    def second() -> None:
        locked.wait(timeout=10)
        waiting.set()
        index_skill(skill)  # waits for the first one's lock
        connection.close()

    with ThreadPoolExecutor() as threads:
        for writer in [threads.submit(first), threads.submit(second)]:
            writer.result()
    assert postings(skill)["refund"] == (0, 0, 0, 1)
    assert "it" not in postings(skill)
    assert SkillDocument.objects.count() == 1


def test_indexing_anew_keeps_a_documents_number(owner):
    skill = make_card_skill(owner)
    index_skill(skill)
    number = SkillDocument.objects.get().pk
    rebuild()
    assert SkillDocument.objects.get().pk == number


def test_rebuild_indexes_the_active_and_drops_the_rest(owner, stranger, monkeypatch):
    monkeypatch.setattr("skills.search.index.REBUILD_BATCH", 2)
    active = [make_skill(owner) for _ in range(3)]
    archived = make_skill(owner)
    index_skill(archived)
    type(archived).objects.filter(pk=archived.pk).update(status="archived")
    foreign = make_skill(stranger)
    seen: list[int] = []
    assert rebuild(owner.organization, progress=seen.append) == 3
    assert seen == [2, 4]
    assert set(SkillDocument.objects.values_list("skill", flat=True)) == {skill.pk for skill in active}
    assert rebuild() == 4
    assert SkillDocument.objects.filter(skill=foreign).exists()
