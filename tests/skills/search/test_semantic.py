"""The semantic lane, its vectors, and how they follow the skills."""

from __future__ import annotations

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from mirix.llm.embeddings import EmbeddingFailed, get_endpoint
from skills.models import Skill, SkillEmbedding
from skills.review.publishing import approve
from skills.search.embedding import embed_missing, embed_skills, space_of
from skills.search.fusion import FLOOR
from skills.search.index import index_skill, remove_skill
from skills.search.semantic import nearest
from skills.search.service import LANE_DEPTH, Place, search
from tests.factories import make_content, make_owner, make_proposal
from tests.skills.search.corpora import publish

pytestmark = pytest.mark.django_db

MEANINGS = {"card": [1.0, 0, 0], "payment": [0.8, 0.6, 0], "seat": [0, 0, 1.0]}


def meaning(text: str) -> list[float]:
    """Cards and payments are near each other, whatever the words."""
    return next((vector for word, vector in MEANINGS.items() if word in text), [0, 1.0, 0])


@pytest.fixture
def cards(owner, endpoint) -> dict[str, Skill]:
    endpoint.script.embed = meaning
    skills = publish(owner, [{"name": "card"}, {"name": "payment"}, {"name": "seat"}])
    embed_missing()
    endpoint.script.requests.clear()
    return {skill.name: skill for skill in skills}


def find(owner, query, **options):
    return search(organization=owner.organization, owner=owner, query=query, **options)


def named(result) -> list[str]:
    return [hit.skill.name for hit in result.hits]


def jobs() -> list[dict]:
    found = ProcrastinateJob.objects.filter(task_name="skills.embed_skills").order_by("id")
    return list(found.values_list("args", flat=True))


class TestLane:
    def test_embedding_ranks_by_similarity_alone(self, owner, cards):
        result = find(owner, "credit card", method="embedding")
        assert named(result) == ["card", "payment", "seat"]
        assert [hit.score for hit in result.hits] == pytest.approx([1, 0.8, 0], abs=1e-3)
        assert (result.total_count, result.degraded) == (3, None)

    def test_hybrid_fuses_three_lists_and_explains_them(self, owner, cards):
        result = find(owner, "card", explain=True)
        assert named(result) == ["card", "payment", "seat"]
        assert [hit.score for hit in result.hits] == pytest.approx(
            [(1 + 1) / 16, (FLOOR + (1 - FLOOR) * 0.8) / 17, FLOOR / 18], abs=1e-4
        )
        assert result.degraded is None
        assert list(result.hits[0].lanes) == ["all", "name_description", "semantic"]
        assert result.hits[1].lanes == {"semantic": Place(rank=2, score=pytest.approx(0.8, abs=1e-3))}

    @pytest.mark.parametrize("method", ["hybrid", "embedding"])
    def test_the_threshold_is_a_distance_that_must_be_strictly_below(self, owner, cards, method):
        exact = 1 - find(owner, "card", method="embedding").hits[1].score
        for threshold, expected in [(exact, ["card"]), (exact + 1e-6, ["card", "payment"]), (0.0, [])]:
            found = named(find(owner, "card", method=method, similarity_threshold=threshold))
            assert found == (expected or (["card"] if method == "hybrid" else []))
        assert named(find(owner, "card", method="bm25", similarity_threshold=0.0)) == ["card"]

    def test_lists_weigh_what_the_setting_says(self, owner, cards, settings):
        settings.MIRIX_SKILL_HYBRID_WEIGHTS = [2.0, 7.0, 0.5]
        result = find(owner, "card")
        assert [hit.score for hit in result.hits] == pytest.approx(
            [2 / 16 + 0.5 / 16, 0.5 * (FLOOR + (1 - FLOOR) * 0.8) / 17, 0.5 * FLOOR / 18], abs=1e-4
        )
        settings.MIRIX_SKILL_HYBRID_WEIGHTS = [0.0, 2.0, 0.0]
        assert [(hit.skill.name, hit.score) for hit in find(owner, "card").hits] == [("card", 2 / 16)]
        settings.MIRIX_SKILL_HYBRID_WEIGHTS = [1.0, 1.0, 0.0]
        assert named(find(owner, "card")) == ["card"]
        settings.MIRIX_SKILL_HYBRID_WEIGHTS = [0.0, 0.0, 1.0]
        settings.MIRIX_EMBEDDING_MODEL = ""
        assert named(find(owner, "card")) == ["card"]

    def test_others_vectors_are_never_found(self, owner, stranger, cards):
        mate = make_owner(owner.organization)
        for other in (stranger, mate):
            publish(other, [{"name": "card"}])
        embed_missing()
        assert find(owner, "card", method="embedding").total_count == 3
        assert find(mate, "card", method="embedding").total_count == 1
        everyone = search(organization=owner.organization, owner=None, query="card", method="embedding")
        assert (everyone.total_count, everyone.degraded) == (4, None)

    def test_tags_narrow_the_lane(self, owner, cards):
        Skill.objects.filter(name="seat").update(filter_tags={"desk": "eu"})
        assert named(find(owner, "card", filter_tags={"desk": "eu"})) == ["seat"]
        assert find(owner, "card", method="embedding", filter_tags={"desk": {"$in": []}}).hits == []

    def test_a_field_that_is_not_embedded_is_searched_by_words(self, owner, cards):
        result = find(owner, "card", method="embedding", field="instructions")
        assert (named(result), result.degraded) == ([], "instructions has no embedding; lexical lane alone")
        assert named(find(owner, "card", method="embedding", field="name"))[:2] == ["card", "payment"]

    @pytest.mark.parametrize(
        ("method", "explain", "queries"),
        [("hybrid", False, 3), ("hybrid", True, 4), ("embedding", False, 2), ("bm25", False, 2)],
    )
    def test_the_number_of_queries_is_fixed(
        self, owner, cards, django_assert_num_queries, method, explain, queries
    ):
        for total in (0, 30):
            publish(owner, [{"name": f"card-{number}"} for number in range(total)])
            embed_missing()
            with django_assert_num_queries(queries):
                find(owner, "card", method=method, explain=explain)


class TestDegraded:
    @pytest.mark.parametrize("method", ["hybrid", "embedding"])
    def test_a_failing_endpoint_leaves_the_words_and_its_reason(self, owner, cards, endpoint, method):
        endpoint.script.status = 503
        result = find(owner, "card", method=method)
        assert named(result) == ["card"]
        assert result.degraded == "the endpoint answered with status 503; lexical lane alone"

    def test_a_vector_of_another_size_is_compared_with_nothing(self, owner, cards, endpoint):
        endpoint.script.embed = lambda text: [1.0, 0.0]
        result = find(owner, "card")
        assert named(result) == ["card"]
        assert result.degraded == "none of 3 skills has an embedding of this model; lexical lane alone"

    def test_skills_without_a_vector_are_found_by_words_and_counted(self, owner, cards):
        publish(owner, [{"name": "card-two"}])
        result = find(owner, "card")
        assert named(result) == ["card", "payment", "card-two", "seat"]
        assert result.degraded == "1 of 4 skills have no embedding yet; found by words alone"

    def test_after_a_change_of_the_model_no_old_vector_counts(self, owner, cards, settings):
        settings.MIRIX_EMBEDDING_MODEL = "newer"
        result = find(owner, "card")
        assert named(result) == ["card"]
        assert result.degraded == "none of 3 skills has an embedding of this model; lexical lane alone"
        assert embed_missing().stored == 3
        assert find(owner, "card").degraded is None
        get_endpoint().close()

    def test_without_a_skill_nothing_is_missing(self, owner, endpoint):
        assert find(owner, "card").degraded is None


class TestKeepingUp:
    def test_publishing_queues_one_job_that_embeds_name_and_description(self, owner, endpoint):
        skill = approve(revision=make_proposal(owner, make_content(name="rebook", description="When late.")))
        assert jobs() == [{"skill_ids": [skill.pk]}]
        assert endpoint.script.requests == []
        assert embed_skills([skill.pk]).stored == 1
        assert endpoint.script.texts == ["rebook: When late."]
        row = SkillEmbedding.objects.get()
        assert (row.skill, row.space, row.dimensions) == (skill, space_of(get_endpoint()), 32)
        index_skill(skill)
        assert len(jobs()) == 1
        assert embed_skills([skill.pk]).stored == 0

    def test_another_text_is_embedded_anew_and_the_old_vector_serves_meanwhile(self, owner, cards, endpoint):
        skill = cards["payment"]
        Skill.objects.filter(pk=skill.pk).update(description="about a seat")
        index_skill(skill)
        assert jobs()[-1] == {"skill_ids": [skill.pk]}
        assert find(owner, "card").degraded is None
        assert embed_missing().stored == 1
        assert endpoint.script.texts[-1] == "payment: about a seat"

    def test_what_is_archived_or_removed_has_no_vector(self, owner, cards):
        Skill.objects.filter(pk=cards["card"].pk).update(status="archived")
        index_skill(cards["card"])
        remove_skill(cards["seat"].pk)
        cards["payment"].delete()
        assert not SkillEmbedding.objects.exists()

    def test_a_text_that_changed_while_it_was_embedded_is_not_stored(self, owner, endpoint, monkeypatch):
        (skill,) = publish(owner, [{"name": "card"}])

        def meanwhile(text):
            Skill.objects.filter(pk=skill.pk).update(description="new")
            return meaning(text)

        monkeypatch.setattr(get_endpoint(), "embed_documents", lambda texts: list(map(meanwhile, texts)))
        assert embed_missing().stored == 0
        assert not SkillEmbedding.objects.exists()

    def test_a_refused_text_holds_up_no_other(self, owner, endpoint):
        publish(owner, [{"name": f"card-{number}"} for number in range(3)])
        endpoint.script.refuse = lambda text: text.startswith("card-1")
        done = embed_missing()
        assert (done.stored, len(done.refused)) == (2, 1)

    def test_vectors_of_another_size_are_not_stored_beside_the_first(self, owner, cards, endpoint):
        endpoint.script.embed = lambda text: [1.0, 0.0]
        publish(owner, [{"name": "card-two"}])
        with pytest.raises(EmbeddingFailed, match="vectors of 2 numbers, those it gave before have 3"):
            embed_missing()
        assert set(SkillEmbedding.objects.values_list("dimensions", flat=True)) == {3}

    def test_what_was_embedded_before_a_failure_stays(self, owner, endpoint):
        publish(owner, [{"name": f"card-{number}"} for number in range(40)])
        seen: list[int] = []
        assert embed_missing(progress=seen.append, should_stop=lambda: bool(seen)).stored == 32
        assert embed_missing().stored == 8
        assert len(endpoint.script.texts) == 40

    def test_without_an_endpoint_nothing_is_queued(self, owner):
        approve(revision=make_proposal(owner))
        assert jobs() == []
        assert embed_missing().stored == 0


def test_depth_bounds_the_lane(owner, endpoint):
    publish(owner, [{"name": f"card-{number}"} for number in range(5)])
    embed_missing()
    near = nearest(
        organization=owner.organization,
        owner=owner,
        space=space_of(get_endpoint()),
        vector=get_endpoint().embed_query("card"),
        depth=2,
    )
    assert (len(near.ranked), near.total, near.comparable, near.skills) == (2, 5, 5, 5)
    assert LANE_DEPTH >= 50
