"""The content of a skill as a value."""

from __future__ import annotations

import pytest

from skills.content import Content, next_patch
from skills.models import Skill
from tests.factories import make_content


def test_content_of_a_row_is_what_was_put_in():
    content = make_content(examples=[{"input": "a"}], filter_tags={"team": "x"}, entry_type="guide")

    assert Content.of(Skill(**content.as_fields())) == content


def test_equal_content_has_one_hash_whatever_the_order_of_keys():
    first = make_content(name="a", filter_tags={"x": 1, "y": 2})
    second = make_content(name="a", filter_tags={"y": 2, "x": 1})

    assert first.hash == second.hash
    assert len(first.hash) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"name": "b"},
        {"description": "d"},
        {"instructions": "i"},
        {"triggers": []},
        {"examples": [1]},
        {"entry_type": "guide"},
        {"filter_tags": {"x": "1"}},
    ],
)
def test_every_field_counts_for_the_hash(change):
    assert make_content(name="a").hash != make_content(**({"name": "a"} | change)).hash


@pytest.mark.parametrize(
    ("version", "following"),
    [
        ("0.1.0", "0.1.1"),
        ("0.1.9", "0.1.10"),
        ("1.2.3", "1.2.4"),
        ("1.2.3-rc.1+b7", "1.2.4"),
        ("", "0.1.1"),
        ("v2", "0.1.1"),
        ("1.²", "0.1.1"),
    ],
)
def test_next_patch(version, following):
    assert next_patch(version) == following
