"""Near-duplicates by what texts mean, with an embedding endpoint that a test scripts."""

from __future__ import annotations

import math

import pytest
from django.db import connection

from mirix.llm.embeddings import get_endpoint
from skills.content import Content
from skills.evolution.curator import evolve
from skills.evolution.library import Library
from skills.evolution.meaning import Meaning
from skills.evolution.types import Operation
from skills.models import RevisionState, RunTrigger, SkillEmbedding, SkillRevision
from skills.review.publishing import reject
from skills.runs import claim
from skills.search.embedding import space_of, text_hash
from tests.factories import make_content, make_experience, make_proposal, make_session, make_skill
from tests.skills.evolution.test_curator import Scripted

pytestmark = pytest.mark.django_db

ANGLES = {"pay-order": 0, "settle-bill": 20, "close-account": 60}
"""Where the names lie, in degrees: the cosine of 20 is 0.94, that of 60 is 0.5."""


@pytest.fixture
def held(owner):
    return claim(owner=owner, trigger=RunTrigger.COMMAND)


@pytest.fixture
def meanings(endpoint):
    def embed(text: str) -> list[float]:
        angle = math.radians(ANGLES.get(text.partition(":")[0], 180))
        return [math.cos(angle), math.sin(angle)]

    endpoint.script.embed = embed
    return endpoint.script


def content(name: str) -> Content:
    return make_content(name=name, description=f"For {name}.", instructions=f"1. All about {name}.")


def create(name: str) -> Operation:
    return Operation(action="create", content=content(name), experience_ids=(), rationale="because")


def evolved(owner, held, name: str):
    make_experience(owner)
    return evolve(owner=owner, claim=held, proposer=Scripted(create(name)))


def test_a_paraphrase_becomes_an_edit_of_what_it_paraphrases(owner, held, meanings):
    skill = make_skill(owner, content("pay-order"))

    report = evolved(owner, held, "settle-bill")

    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert (revision.action, revision.skill) == ("edit", skill)
    assert revision.instructions == "1. All about pay-order.\n2. All about settle-bill."
    assert report.refused == []


def test_what_means_something_else_is_another_skill(owner, held, meanings, settings):
    make_skill(owner, content("pay-order"))

    report = evolved(owner, held, "close-account")

    assert SkillRevision.objects.get(pk=report.proposed[0]).action == "create"
    settings.MIRIX_SKILL_NEAR_COSINE = 0.95
    report = evolved(owner, held, "settle-bill")
    assert SkillRevision.objects.get(pk=report.proposed[0]).action == "create"


@pytest.mark.parametrize("status", ["archived", "quarantined"])
def test_skills_out_of_use_count_and_so_do_open_proposals(owner, held, meanings, status):
    skill = make_skill(owner, content("pay-order"), status=status)
    [pk] = evolved(owner, held, "settle-bill").proposed
    assert SkillRevision.objects.get(pk=pk).skill == skill

    waiting = make_proposal(owner, content("close-account"))
    ANGLES["shut-account"] = ANGLES["close-account"]
    [pk] = evolved(owner, held, "shut-account").proposed
    assert SkillRevision.objects.get(pk=pk).supersedes == waiting


def test_what_was_rejected_does_not_come_back_in_other_words(owner, held, meanings):
    [pk] = evolved(owner, held, "pay-order").proposed
    reject(revision=SkillRevision.objects.get(pk=pk), reason="Not here.")

    report = evolved(owner, held, "settle-bill")

    assert report.proposed == []
    assert report.refused[0].reason.startswith(f"{pk} with much the same text was rejected")


def test_an_endpoint_that_is_down_leaves_names_and_words_and_is_asked_once(owner, held, meanings):
    make_skill(owner, content("pay-order"))
    meanings.status = 500
    row = make_experience(owner, make_session(owner, [{"role": "user", "content": "use the other card"}]))
    proposer = Scripted(create("settle-bill"), create("pay-orders"))

    report = evolve(owner=owner, claim=held, proposer=proposer)

    assert [SkillRevision.objects.get(pk=pk).name for pk in report.proposed] == ["settle-bill"]
    assert row.pk in report.consumed
    assert [refusal.reason for refusal in report.refused][-1] == (
        "Near-duplicates were looked for by name and words alone: the endpoint answered with status 500."
    )
    asked = [request for request in meanings.requests if len(request["input"]) > 1]
    assert len({str(request) for request in asked}) == 1


def test_vectors_in_store_are_not_asked_for_again(owner, meanings):
    skill = make_skill(owner, content("pay-order"))
    SkillEmbedding.objects.create(
        skill=skill,
        organization=owner.organization,
        end_user=owner.end_user,
        space=space_of(get_endpoint()),
        text_hash=text_hash(skill),
        dimensions=2,
        vector=[0.0, 1.0],
    )
    meaning = Meaning(owner)
    library = Library(owner, meaning)

    assert library.near(content("settle-bill")) is None
    assert library.near(content("settle-bill")) is None

    assert [text.partition(":")[0] for text in meanings.texts] == ["settle-bill"]
    assert meaning.of(Content.of(skill)) == (0.0, 1.0)


def test_an_edit_is_refused_where_it_comes_near_and_not_where_it_was_near_before(owner, meanings):
    ANGLES["pay-order-twin"] = 10
    make_skill(owner, content("settle-bill"))
    mine = make_skill(owner, content("pay-order"))
    far = make_skill(owner, content("close-account"))
    library = Library(owner, Meaning(owner))

    assert library.newly_near(library.get(mine.pk), content("pay-order-twin")) is None
    found = library.newly_near(library.get(far.pk), content("pay-order-twin"))
    assert found.content.name in {"pay-order", "settle-bill"}


@pytest.mark.django_db(transaction=True)
def test_no_endpoint_is_asked_within_a_transaction(owner, held, meanings):
    make_skill(owner, content("pay-order"))
    endpoint, seen = get_endpoint(), []
    asked = endpoint.embed_documents
    endpoint.embed_documents = lambda texts: seen.append(connection.in_atomic_block) or asked(texts)

    evolved(owner, held, "settle-bill")

    assert seen
    assert not any(seen)
    assert SkillRevision.objects.filter(state=RevisionState.PROPOSED).count() == 1
