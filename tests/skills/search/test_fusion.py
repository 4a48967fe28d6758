from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.search.fusion import BLUNT, FLOOR, LEAST, SHARP_AT, RankedList, coverage, fuse, trust

ITEMS = st.lists(st.sampled_from("abcdefgh"), unique=True)
SCORES = st.lists(st.floats(0.01, 50), min_size=8, max_size=8).map(lambda scores: sorted(scores)[::-1])
LISTS = st.lists(
    st.builds(
        lambda items, scores, has_zero: RankedList(
            items=list(zip(items, scores, strict=False)), has_zero=has_zero
        ),
        ITEMS,
        SCORES,
        st.booleans(),
    ),
    max_size=4,
)


def words(*items: tuple[str, float], weight: float = 1.0) -> RankedList:
    return RankedList(items=items, weight=weight)


def meanings(*items: tuple[str, float], weight: float = 1.0) -> RankedList:
    return RankedList(items=items, weight=weight, has_zero=False)


def alike(*items: str) -> RankedList:
    return words(*((item, 1.0) for item in items))


def test_scores_are_sums_of_shares_by_reciprocal_ranks():
    assert fuse([words(("a", 8.0), ("b", 6.0)), words(("b", 4.0), ("c", 1.0))], k=15) == [
        ("b", 0.75 / 17 + 1 / 16),
        ("a", 1 / 16),
        ("c", 0.25 / 17),
    ]


def test_equal_scores_within_lists_leave_the_ranks():
    assert fuse([alike("a", "b"), alike("b", "c")], k=15) == [
        ("b", 1 / 17 + 1 / 16),
        ("a", 1 / 16),
        ("c", 1 / 17),
    ]


def test_of_similarities_the_last_is_the_floor():
    fused = dict(fuse([meanings(("a", 0.9), ("b", 0.85), ("c", 0.8))], k=15))
    assert fused == pytest.approx({"a": 1 / 16, "b": (1 + FLOOR) / 2 / 17, "c": FLOOR / 18})
    assert fuse([meanings(("a", 0.9))], k=15) == [("a", 1 / 16)]
    assert fuse([meanings(("a", 0.9), ("b", 0.9))], k=15) == [("a", 1 / 16), ("b", 1 / 17)]


def test_similarities_may_be_negative():
    fused = dict(fuse([meanings(("a", 0.2), ("b", -0.2))], k=15))
    assert fused == {"a": 1 / 16, "b": FLOOR / 17}


def test_a_list_counts_as_often_as_it_weighs():
    assert fuse([words(("a", 1.0), weight=2.0), words(("b", 1.0), weight=0.0)], k=15) == [("a", 2 / 16)]


def test_a_list_that_cannot_tell_its_first_from_its_tenth_weighs_less():
    blunt = [(f"b{number:02}", 1.0) for number in range(SHARP_AT)]
    assert fuse([words(*blunt)], k=15)[0] == ("b00", pytest.approx((1 - BLUNT) / 16))
    assert fuse([words(*blunt[:-1])], k=15)[0] == ("b00", 1 / 16)
    half = [(item, 1.0 if rank < 3 else 0.5) for rank, (item, _) in enumerate(blunt)]
    assert fuse([words(*half)], k=15)[0] == ("b00", pytest.approx((1 - BLUNT / 2) / 16))
    assert fuse([words(*blunt), words(("a", 1.0))], k=15)[0][0] == "a"


class TestTrust:
    ALL = [("a", 8.0), ("b", 2.0)]

    def of(self, heads, *, is_long=False):
        return trust({"all": self.ALL, "name_description": heads, "semantic": []}, is_long=is_long)

    def test_meaning_counts_as_far_as_words_stand_in_what_it_knows(self):
        assert self.of([("a", 8.0), ("b", 2.0)])["semantic"] == 1
        assert self.of([("a", 4.0), ("b", 1.0)])["semantic"] == 0.5
        assert self.of([("b", 1.0)])["semantic"] == LEAST
        assert self.of([])["semantic"] == LEAST

    def test_name_and_description_count_where_a_long_question_leaves_them_aside(self):
        assert self.of([("a", 4.0)]) == {"all": 1, "name_description": 0, "semantic": 0.4}
        assert self.of([("a", 4.0)], is_long=True) == {"all": 1, "name_description": 0.6, "semantic": 0.4}
        assert self.of(self.ALL, is_long=True)["name_description"] == 0

    def test_nothing_is_doubted_without_words(self):
        assert trust({"semantic": []}, is_long=False)["semantic"] == 1
        assert trust({"name": [], "semantic": []}, is_long=True)["semantic"] == 1
        assert trust({"all": [], "name_description": [], "semantic": []}, is_long=True)["semantic"] == 1

    def test_rarer_words_of_a_part_count_no_more_than_in_the_whole(self):
        assert coverage([("a", 4.0), ("b", 4.0)], [("a", 9.0), ("c", 9.0)]) == 0.5

    @given(LISTS, LISTS)
    def test_it_is_a_share(self, whole, part):
        for one in whole:
            for other in part:
                assert 0 <= coverage(one.items, other.items) <= 1
            assert coverage(one.items, one.items) == pytest.approx(1)


def test_scores_that_no_search_gives_break_nothing():
    """As of a cache full of garbage."""
    for odd in ([1.7e308, -1.7e308, 0.0], [5e-324, 0.0, 1e300], [-1.0, 3.0, 2.0]):
        for has_zero in (True, False):
            ranked = RankedList(items=list(zip("abc", odd, strict=True)), has_zero=has_zero)
            assert all(0 <= score <= 1 / 16 for _, score in fuse([ranked], k=15))


def test_equal_scores_go_by_name():
    assert [item for item, _ in fuse([alike("b"), alike("a")], k=15)] == ["a", "b"]


def test_nothing_fuses_to_nothing():
    assert fuse([], k=15) == []
    assert fuse([alike(), meanings()], k=15) == []


@given(LISTS)
def test_every_item_stands_once_best_first(lists):
    fused = fuse(lists, k=15)
    assert sorted(item for item, _ in fused) == sorted({item for one in lists for item, _ in one.items})
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)
    assert all(score > 0 for _, score in fused)


@given(ITEMS, SCORES, st.booleans())
def test_a_single_list_keeps_its_order(items, scores, has_zero):
    ranked = list(zip(items, scores, strict=False))
    assert [item for item, _ in fuse([RankedList(items=ranked, has_zero=has_zero)], k=15)] == items


@given(LISTS)
def test_the_order_of_lists_does_not_matter_to_who_is_first(lists):
    first = {item: round(score, 12) for item, score in fuse(lists, k=15)}
    again = {item: round(score, 12) for item, score in fuse(lists[::-1], k=15)}
    assert first == again


@given(LISTS, st.sampled_from("abcdefgh"))
def test_being_first_in_one_more_list_never_hurts(lists, item):
    before = dict(fuse(lists, k=15)).get(item, 0)
    assert dict(fuse([*lists, alike(item)], k=15))[item] > before
