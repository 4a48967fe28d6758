"""Which skills a fused list holds, and how many `total_count` says there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirix.tenants.models import Organization
from skills.search import semantic
from skills.search.cache import Found
from skills.search.embedding import embed_missing
from skills.search.fusion import RankedList, fuse, trust
from skills.search.service import NEAREST, SEMANTIC, Asked, _best, search
from tests.skills.search.corpora import publish

RANKED = st.lists(st.sampled_from([f"proc-{number}" for number in range(60)]), unique=True, max_size=40)


def meaning(text: str) -> list[float]:
    """The farther, the greater the number that a text ends in; a query is at 0."""
    number = text.rstrip(".").rsplit("-", 1)[-1]
    return [1.0, int(number) / 100 if number.isdigit() else 0.0]


@pytest.fixture
def library(owner, endpoint):
    """Thirty skills, of which five speak of refunds; these are far from any query."""
    endpoint.script.embed = meaning
    skills = publish(
        owner,
        [
            {"name": f"seat-{number}", "description": f"Seats of row-{number}", "instructions": "Sit."}
            for number in range(25)
        ]
        + [
            {"name": f"refund-{number}", "description": f"Refund it for customer-{number}"}
            for number in range(25, 30)
        ],
    )
    embed_missing()
    return skills


def find(owner, query, **options):
    result = search(organization=owner.organization, owner=owner, query=query, **options)
    assert result.degraded is None
    return [hit.skill.description.rsplit("-")[-1] for hit in result.hits], result.total_count


def numbers(*ranges: range) -> list[str]:
    return [str(number) for some in ranges for number in some]


@pytest.mark.django_db
class TestHybrid:
    def test_where_no_word_is_found_the_nearest_stand_and_no_others(self, owner, library):
        found, total = find(owner, "qwzx vbnm", limit=100)
        assert (found, total) == (numbers(range(NEAREST)), NEAREST)

    def test_whatever_a_word_finds_is_there_however_far(self, owner, library):
        found, total = find(owner, "refund", limit=100)
        assert sorted(found) == sorted(numbers(range(NEAREST), range(25, 30)))
        assert (sorted(found[:5]), total) == (numbers(range(25, 30)), NEAREST + 5)

    def test_the_count_is_the_same_for_any_limit(self, owner, library):
        for limit in (1, 7, 100):
            assert find(owner, "refund", limit=limit)[1] == NEAREST + 5

    def test_what_words_and_meaning_both_find_counts_once(self, owner, library):
        assert find(owner, "seat", limit=100)[1] == 25
        assert find(owner, "row", limit=100)[1] == 25

    def test_a_threshold_of_the_caller_stands_for_ours(self, owner, library):
        between = 1 - 1 / (1 + 0.145**2) ** 0.5  # of 14 and 15
        found, total = find(owner, "qwzx", limit=100, similarity_threshold=between)
        assert (found, total) == (numbers(range(15)), 15)
        found, total = find(owner, "refund", limit=100, similarity_threshold=between)
        assert (sorted(found), total) == (sorted(numbers(range(15), range(25, 30))), 20)
        assert find(owner, "qwzx", similarity_threshold=1e-9) == (["0"], 1)

    def test_by_words_alone_and_by_meaning_alone_it_is_as_before(self, owner, library):
        assert find(owner, "refund", limit=2, method="bm25")[1] == 5
        assert find(owner, "refund", limit=100, method="embedding") == (numbers(range(30)), 30)
        assert find(owner, "refund", limit=2, method="embedding")[1] == 30

    def test_a_single_field(self, owner, library):
        found, total = find(owner, "refund", limit=100, field="name")
        assert (sorted(found), total) == (sorted(numbers(range(NEAREST), range(25, 30))), NEAREST + 5)

    def test_a_list_that_does_not_weigh_matches_nothing(self, owner, library, settings):
        settings.MIRIX_SKILL_HYBRID_WEIGHTS = [1.0, 1.0, 0.0]
        found, total = find(owner, "refund")
        assert (sorted(found), total) == (numbers(range(25, 30)), 5)


@pytest.mark.django_db(transaction=True)
def test_an_index_counts_all_that_could_be_compared(owner, library, monkeypatch):
    monkeypatch.setattr(semantic, "EXACT_UP_TO", 0)
    monkeypatch.setattr("skills.search.service.LANE_DEPTH", 20)
    everyone = search(organization=owner.organization, owner=None, query="q", method="embedding", limit=3)
    assert everyone.total_count == 30


@given(RANKED, RANKED, RANKED)
def test_the_first_ten_are_those_of_all_the_lists(first, second, third):
    """What is left out has ten others before it in any case."""
    lists = {"all": first, "name_description": second, "semantic": third}
    lanes = {
        lane: [(skill_id, 1 / place) for place, skill_id in enumerate(ranked, start=1)]
        for lane, ranked in lists.items()
    }
    asked = Asked(
        organization=Organization(),
        owner=None,
        query="card",
        method="hybrid",
        field="",
        threshold=None,
        eligible=None,
    )
    best, total = _best(asked, Found(lanes=lanes, total=len({*first, *second})))
    trusted = trust(lanes, is_long=False)
    weighed = [
        RankedList(items=ranked, weight=trusted[lane], has_zero=lane != SEMANTIC)
        for lane, ranked in lanes.items()
    ]
    assert best[:10] == fuse(weighed, k=15)[:10]
    assert total >= len(best)
    assert total <= len({*first, *second}) + NEAREST
