"""The index of a space's vectors: built beside the work, right for small organizations beside large ones."""

from __future__ import annotations

import json
import os
import random
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mirix.llm.embeddings import get_endpoint
from mirix.tenants.owners import Owner
from skills.models import Skill, SkillEmbedding
from skills.search import semantic
from skills.search.embedding import embed_missing, space_of
from skills.search.semantic import nearest
from skills.search.service import LANE_DEPTH
from skills.search.space_index import CannotBuild, build, index_name, space_status
from tests.factories import make_owner, owner_fields
from tests.skills.search.corpora import publish

SOAK = os.environ.get("MIRIX_SOAK") == "1"
LARGE = 100_000 if SOAK else 3_000
SIZE = 384 if SOAK else 32
SPACE = "model#0"
NOT_INDEXED = "not indexed (./run search_index build; for over 10,000)"
SHUFFLED = random.Random(0)
TOPICS = [[SHUFFLED.gauss(0, 0.7) for _ in range(SIZE)] for _ in range(500)]
DIRECTIONS = [[SHUFFLED.gauss(0, 0.25) for _ in range(SIZE)] for _ in range(24)]


def run(*words: str) -> str:
    output = StringIO()
    call_command(*words, stdout=output, stderr=StringIO())
    return output.getvalue().rstrip()


def index_names() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'embedding\\_space\\_%'")
        return sorted(name for (name,) in cursor.fetchall())


@pytest.fixture
def drop_indexes(transactional_db):
    yield
    with connection.cursor() as cursor:
        for name in index_names():
            cursor.execute(f"DROP INDEX {name}")


def vectors(count: int, seed: int) -> list[list[float]]:
    """As texts are: near a topic, apart from it in few directions, with a little noise."""
    numpy = pytest.importorskip("numpy")
    generator = numpy.random.default_rng(seed)
    topics = numpy.array(TOPICS)[generator.integers(0, len(TOPICS), count)]
    apart = generator.normal(size=(count, len(DIRECTIONS))) @ numpy.array(DIRECTIONS)
    return (topics + apart + generator.normal(size=(count, SIZE)) * 0.15).tolist()


def fill(owner: Owner, count: int, seed: int) -> None:
    for start in range(0, count, 5_000):
        rows = range(start, min(start + 5_000, count))
        fields = owner_fields(owner)
        skills = Skill.objects.bulk_create(Skill(**fields, name=f"skill-{seed}-{row}") for row in rows)
        SkillEmbedding.objects.bulk_create(
            SkillEmbedding(**fields, skill=skill, space=SPACE, dimensions=SIZE, vector=vector)
            for skill, vector in zip(skills, vectors(len(rows), seed + start), strict=True)
        )


def best(owner: Owner, vector: list[float]) -> tuple[list[str], str]:
    """Return the ten nearest across the organization, and the plan that found them."""
    with CaptureQueriesContext(
        connection,
    ) as queries:
        near = nearest(
            organization=owner.organization, owner=None, space=SPACE, vector=vector, depth=LANE_DEPTH
        )
    statement = next(query["sql"] for query in queries if "AS best" in query["sql"])
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + statement.replace("%", "%%"))
        plan = "\n".join(line for (line,) in cursor.fetchall())
    return [skill_id for skill_id, _ in near.ranked[:10]], plan


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_a_small_organization_beside_a_large_one_gets_its_own_nearest(drop_indexes, monkeypatch):
    large, small = make_owner(), make_owner()
    fill(large, LARGE, 1)
    fill(small, 200, 2)
    questions = vectors(20, 3)
    exact = {}
    for owner in (large, small):
        monkeypatch.setattr(semantic, "EXACT_UP_TO", LARGE)
        exact[owner] = [set(best(owner, question)[0]) for question in questions]
    assert build(SPACE) == [index_name(SPACE, SIZE)] == index_names()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE skills_skillembedding")
        if not SOAK:  # so few rows are faster sorted
            cursor.execute("SET enable_sort = off")
    try:
        for owner, bound in [(large, 0), (small, 0)]:
            monkeypatch.setattr(semantic, "EXACT_UP_TO", bound)
            found = 0
            for question, expected in zip(questions, exact[owner], strict=True):
                ranked, plan = best(owner, question)
                found += len(expected.intersection(ranked))
            if owner is large or not SOAK:
                assert f"Index Scan using {index_name(SPACE, SIZE)}" in plan
            assert found >= 0.95 * 10 * len(questions), found
            print(f"recall@10 {found / 10 / len(questions):.3f}\n{plan}")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET enable_sort")


@pytest.mark.django_db(transaction=True)
class TestCommand:
    def test_the_index_is_built_once_and_that_of_a_former_model_goes(
        self, owner, endpoint, settings, drop_indexes
    ):
        with pytest.raises(CommandError, match="no skill is embedded yet"):
            run("search_index", "build")
        publish(owner, [{"name": "card"}, {"name": "seat"}])
        assert run("search_index", "rebuild").splitlines() == [
            "2 skills indexed",
            "2 skills embedded",
            "2 active skills, 0 of them not indexed; 0 indexed that are not active; 2 postings",
            f"2 vectors of {space_of(get_endpoint())}, 0 skills without; {NOT_INDEXED}",
        ]
        first = index_name(space_of(get_endpoint()), 32)
        assert run("search_index", "build").splitlines()[0] == "index of vectors built"
        assert index_names() == [first]
        assert run("search_index", "build").splitlines()[0] == "the index of vectors is there already"
        assert space_status(space_of(get_endpoint())).is_indexed

        settings.MIRIX_EMBEDDING_MODEL = "newer"
        state = json.loads(run("search_index", "status", "--json"))["vectors"]
        assert (state["embedded"], state["due"], state["former"], state["is_indexed"]) == (0, 2, 2, False)
        assert "2 vectors of former models deleted" in run("search_index", "rebuild", "--replace-model")
        run("search_index", "build")
        assert index_names() == [index_name(space_of(get_endpoint()), 32)] != [first]
        get_endpoint().close()

    def test_without_being_told_to_no_vector_and_no_index_of_another_model_goes(
        self, owner, endpoint, settings, drop_indexes
    ):
        publish(owner, [{"name": "card"}, {"name": "seat"}])
        run("search_index", "rebuild")
        run("search_index", "build")
        of_the_server = space_of(get_endpoint())
        settings.MIRIX_EMBEDDING_MODEL = "newer"
        answer = json.loads(run("search_index", "rebuild", "--json"))
        assert (answer["embedded"], answer["former_deleted"], answer["vectors"]["former"]) == (2, 0, 2)
        run("search_index", "build")
        assert index_names() == sorted(
            index_name(space, 32) for space in (of_the_server, space_of(get_endpoint()))
        )
        assert run("search_index", "status").splitlines()[-1] == (
            "delete those of former models with: ./run search_index rebuild --replace-model"
        )
        with pytest.raises(CommandError, match="--replace-model goes with rebuild"):
            run("search_index", "build", "--replace-model")
        get_endpoint().close()
        settings.MIRIX_EMBEDDING_MODEL = "scripted"
        assert space_status(of_the_server).due == 0
        get_endpoint().close()

    def test_while_a_skill_has_no_vector_of_the_new_model_the_old_ones_stay(self, owner, endpoint, settings):
        publish(owner, [{"name": "card"}, {"name": "seat"}])
        run("search_index", "rebuild")
        settings.MIRIX_EMBEDDING_MODEL = "newer"
        endpoint.script.refuse = lambda text: "seat" in text
        with pytest.raises(CommandError, match="1 skill could not be embedded"):
            run("search_index", "rebuild", "--replace-model")
        assert space_status(space_of(get_endpoint())).former == 2
        get_endpoint().close()

    def test_what_the_endpoint_refuses_is_named_and_ends_with_1(self, owner, endpoint):
        _, seat = publish(owner, [{"name": "card"}, {"name": "seat"}])
        endpoint.script.refuse = lambda text: "seat" in text
        output = StringIO()
        with pytest.raises(CommandError, match="1 skill could not be embedded") as refusal:
            call_command("search_index", "rebuild", "--json", stdout=output, stderr=StringIO())
        assert refusal.value.returncode == 1
        answer = json.loads(output.getvalue())
        assert (answer["indexed"], answer["embedded"], answer["refused"]) == (2, 1, [seat.pk])
        assert answer["vectors"]["due"] == 1
        endpoint.script.refuse = lambda text: False
        assert json.loads(run("search_index", "rebuild", "--json"))["refused"] == []

    def test_vectors_too_long_for_an_index_are_told(self, owner, endpoint, drop_indexes):
        endpoint.script.embed = lambda text: [1.0] * 4_001
        publish(owner, [{"name": "card"}])
        embed_missing()
        with pytest.raises(CannotBuild, match="vectors of 4001 numbers cannot be indexed"):
            build(space_of(get_endpoint()))

    def test_an_endpoint_that_fails_is_one_line(self, owner, endpoint):
        publish(owner, [{"name": "card"}])
        endpoint.script.status = 403
        with pytest.raises(CommandError, match="status 403, the key may not; what was embedded stays"):
            run("search_index", "rebuild")

    def test_build_needs_an_endpoint_and_no_organization(self, owner, settings):
        with pytest.raises(CommandError, match="no embedding endpoint is configured"):
            run("search_index", "build")
        with pytest.raises(CommandError, match="leave out --organization"):
            run("search_index", "build", "--organization", owner.organization.name)


@pytest.mark.django_db
def test_where_the_index_gives_up_early_all_are_compared(owner, endpoint, monkeypatch):
    publish(owner, [{"name": "card"}, {"name": "seat"}])
    embed_missing()
    monkeypatch.setattr(semantic, "EXACT_UP_TO", 0)
    near = nearest(
        organization=owner.organization,
        owner=None,
        space=space_of(get_endpoint()),
        vector=get_endpoint().embed_query("card"),
        depth=10,
        threshold=0.5,
    )
    assert (len(near.ranked), near.total, near.comparable, near.skills) == (1, 1, 2, 2)
