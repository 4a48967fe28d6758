from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skills.search.fusion import fuse

LISTS = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=4)


def test_scores_are_sums_of_reciprocal_ranks():
    assert fuse([["a", "b"], ["b", "c"]], k=15) == [
        ("b", 1 / 17 + 1 / 16),
        ("a", 1 / 16),
        ("c", 1 / 17),
    ]


def test_equal_scores_go_by_name():
    assert [item for item, _ in fuse([["b"], ["a"]], k=15)] == ["a", "b"]


def test_nothing_fuses_to_nothing():
    assert fuse([], k=15) == []
    assert fuse([[], []], k=15) == []


@given(LISTS)
def test_every_item_stands_once_best_first(lists):
    fused = fuse(lists, k=15)
    assert sorted(item for item, _ in fused) == sorted({item for items in lists for item in items})
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)


@given(st.lists(st.sampled_from("abcdefgh"), unique=True))
def test_a_single_list_keeps_its_order(items):
    assert [item for item, _ in fuse([items], k=15)] == items


@given(LISTS)
def test_the_order_of_lists_does_not_matter_to_who_is_first(lists):
    first = {item: round(score, 12) for item, score in fuse(lists, k=15)}
    again = {item: round(score, 12) for item, score in fuse(lists[::-1], k=15)}
    assert first == again


@given(LISTS, st.sampled_from("abcdefgh"))
def test_being_first_in_one_more_list_never_hurts(lists, item):
    before = dict(fuse(lists, k=15)).get(item, 0)
    assert dict(fuse([*lists, [item]], k=15))[item] > before
