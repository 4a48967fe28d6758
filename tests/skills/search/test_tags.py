from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from skills.models import Skill
from skills.search.tags import parse_filter_tags, tag_condition
from tests.skills.search.corpora import publish

pytestmark = pytest.mark.django_db


@pytest.fixture
def desks(owner):
    publish(
        owner,
        [
            {"name": "eu", "filter_tags": {"desk": "eu", "level": 2, "langs": ["de", "fr"], "0": "zero"}},
            {"name": "us", "filter_tags": {"desk": "us", "vip": True, "langs": ["en"], "a'b\"c": "odd"}},
            {"name": "none", "filter_tags": {"desk": None, "langs": "de"}},
            {"name": "bare"},
        ],
    )


@pytest.mark.parametrize(
    ("filter_tags", "expected"),
    [
        ({}, ["bare", "eu", "none", "us"]),
        ({"desk": "eu"}, ["eu"]),
        ({"desk": "EU"}, []),
        ({"level": 2}, ["eu"]),
        ({"level": "2"}, ["eu"]),
        ({"vip": True}, ["us"]),
        ({"0": "zero"}, ["eu"]),
        ({"a'b\"c": "odd"}, ["us"]),
        ({"desk": "eu", "level": 3}, []),
        ({"langs": {"$contains": "de"}}, ["eu"]),
        ({"desk": {"$contains": "eu"}}, []),
        ({"desk": {"$exists": True}}, ["eu", "none", "us"]),
        ({"desk": {"$exists": False}}, ["bare"]),
        ({"desk": {"$in": ["eu", "us", "asia"]}}, ["eu", "us"]),
        ({"level": {"$in": [1, 2]}}, ["eu"]),
        ({"desk": {"$in": []}}, []),
        ({"desk": {"$in": "eu"}}, []),
        ({"scope": "anything", "read_scopes": {"$odd": 1}}, ["bare", "eu", "none", "us"]),
        ({"desk') = 'eu' OR ('1": "1"}, []),
        ({"desk": "' OR true --"}, []),
        ({"%s": "%s"}, []),
    ],
)
def test_tags_narrow_what_is_found(desks, filter_tags, expected):
    found = Skill.objects.filter(tag_condition(filter_tags)).order_by("name")
    assert list(found.values_list("name", flat=True)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "This is not valid JSON."),
        ("nonsense", "This is not valid JSON."),
        ("[" * 5_000, "This is not valid JSON."),
        ("[]", "This must be a JSON object."),
        ('"a"', "This must be a JSON object."),
        ('{"a": {"$gt": 1}}', "“$gt” of “a” is no operator; there are $contains, $exists and $in."),
        ('{"a": {}}', "“a” needs exactly one operator."),
        ('{"a": {"$in": [], "$exists": true}}', "“a” needs exactly one operator."),
        ('{"a": {"$exists": "yes"}}', "“$exists” of “a” must be true or false."),
        ('{"a": null}', "“a” must be compared with a text, a number, true or false."),
        ('{"a": ["b"]}', "“a” must be compared with a text, a number, true or false."),
        ('{"a": {"$in": [["b"]]}}', "“a” must be compared with a text, a number, true or false."),
    ],
)
def test_what_is_no_condition_is_refused(text, message):
    with pytest.raises(ValidationError) as refusal:
        parse_filter_tags(text)
    assert refusal.value.message_dict == {"filter_tags": [message]}


def test_blank_is_no_condition_and_text_is_cleaned():
    assert parse_filter_tags(" ") == {}
    assert parse_filter_tags('{"a\\u0000": "b\\ud800"}') == {"a": "b\ufffd"}


@pytest.mark.parametrize("depth", [2, 100, 300])
def test_deep_operands_are_only_values(owner, depth):
    publish(owner, [{"name": "eu", "filter_tags": {"desk": ["eu"]}}])
    filter_tags = parse_filter_tags('{"desk": {"$contains": ' + "[" * depth + "]" * depth + "}}")
    assert not Skill.objects.filter(tag_condition(filter_tags)).exists()
