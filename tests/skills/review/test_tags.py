from __future__ import annotations

from skills.review.tags import shared_tags


def test_the_pairs_that_all_sources_share_stay():
    sources = [
        {"team": "billing", "env": "prod", "session_id": "s-1"},
        {"team": "billing", "env": "test", "session_id": "s-1"},
    ]

    assert shared_tags(sources) == {"team": "billing"}


def test_one_source_keeps_all_but_its_session():
    assert shared_tags([{"team": "billing", "session_id": "s-1"}]) == {"team": "billing"}


def test_no_source_has_no_tags():
    assert shared_tags([]) == {}


def test_a_source_without_tags_leaves_none():
    assert shared_tags([{"team": "billing"}, {}, {"team": "billing"}]) == {}


def test_values_are_compared_as_json():
    assert shared_tags([{"a": 1, "b": 0}, {"a": True, "b": 0}]) == {"b": 0}
    assert shared_tags([{"a": {"x": 1, "y": [2]}}, {"a": {"y": [2], "x": 1}}]) == {"a": {"x": 1, "y": [2]}}


def test_what_does_not_fit_into_a_skill_is_left_out_by_key():
    long = {"c": "x" * 40_000, "a": "x" * 40_000, "b": 1}

    assert shared_tags([long]) == {"a": "x" * 40_000, "b": 1}
