from __future__ import annotations

import re

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
        ('{"a": null}', "“a” must be compared with a text, a finite number, true or false."),
        ('{"a": ["b"]}', "“a” must be compared with a text, a finite number, true or false."),
        ('{"a": {"$in": [["b"]]}}', "“a” must be compared with a text, a finite number, true or false."),
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


HOSTILE = [
    "'",
    '"',
    "''",
    "a'b",
    "%",
    "%s",
    "%(key)s",
    "%%",
    "$",
    "$1",
    "$in",
    "$exists",
    ".",
    "a.b.c",
    "a,b",
    "{a}",
    "{a,b}",
    "?",
    "?|",
    "@>",
    "->>",
    "__exact",
    "a__isnull",
    "0",
    "-1",
    "00",
    "9" * 30,
    "",
    " ",
    "\\",
    "\\u0000",
    "\n",
    "--",
    "/*",
    ";",
    "') OR true --",
    "x' OR '1'='1",
    "ключ",
    "鍵",
    "🔑",
    "e\u0301",
    "\u202e",
    "k" * 5_000,
]
FORMS = {
    "equal": lambda value: value,
    "in": lambda value: {"$in": ["other", value]},
    "contains": lambda value: {"$contains": value},
}


class TestHostile:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("odd", HOSTILE)
    def test_a_key_or_value_finds_exactly_itself(self, owner, odd, form):
        value = [odd] if form == "contains" else odd
        publish(
            owner,
            [
                {"name": "as-key", "filter_tags": {odd: ["v"] if form == "contains" else "v"}},
                {"name": "as-value", "filter_tags": {"k": value}},
                {"name": "neither", "filter_tags": {"other-key": "v", "k": "other value"}},
            ],
        )

        def found(filter_tags):
            kept = Skill.objects.filter(tag_condition(filter_tags))
            return list(kept.values_list("name", flat=True))

        assert found({odd: FORMS[form]("v")}) == ["as-key"]
        assert found({"k": FORMS[form](odd)}) == ["as-value"]
        assert found({odd: {"$exists": True}}) == ["as-key"]
        assert sorted(found({odd: {"$exists": False}})) == ["as-value", "neither"]

    @pytest.mark.parametrize("form", FORMS)
    def test_they_travel_as_parameters_alone(self, form):
        plain = {"a": FORMS[form]("b"), "c": {"$exists": False}}
        hostile = {"a'\"%s": FORMS[form]("') OR true --"), "%(x)s": {"$exists": False}}
        statements = [
            Skill.objects.filter(tag_condition(filter_tags)).query.sql_with_params()[0]
            for filter_tags in (plain, hostile)
        ]
        assert statements[0] == statements[1]

    @pytest.mark.parametrize("operator", ["$gt", "$ne", "$regex", "$where", "$", "", "exists", "$IN", "$in "])
    def test_an_unknown_operator_is_refused_by_name(self, operator):
        with pytest.raises(ValidationError, match=f"“{re.escape(operator)}” of “a” is no operator"):
            tag_condition({"a": {operator: 1}})

    @pytest.mark.parametrize(
        "text",
        [
            '{"a": NaN}',
            '{"a": {"$contains": Infinity}}',
            '{"a": 1, "a": 2}',
            '{"a": ' + "9" * 5_000 + "}",
            '{"a": {"$contains": ' + "[" * 5_000 + "]" * 5_000 + "}}",
            '{"a":' * 5_000 + "1" + "}" * 5_000,
        ],
    )
    def test_what_no_strict_reader_takes_is_refused(self, text):
        with pytest.raises(ValidationError):
            parse_filter_tags(text)

    @pytest.mark.parametrize("text", ['{"a": 1e999}', '{"a": -1e999}'])
    def test_a_number_beyond_all_is_refused(self, text):
        with pytest.raises(ValidationError, match="“a” must be compared with a text, a finite number"):
            parse_filter_tags(text)

    @pytest.mark.parametrize("operand", ["1e999", "1e308", "9" * 4_000, "[1e999]", '{"a": null}', "null"])
    def test_any_operand_of_contains_is_only_a_value(self, owner, operand):
        publish(owner, [{"name": "eu", "filter_tags": {"desk": ["eu"]}}])
        filter_tags = parse_filter_tags('{"desk": {"$contains": ' + operand + "}}")
        assert not Skill.objects.filter(tag_condition(filter_tags)).exists()
