"""GET `/memory/search` and `/memory/search_all_users`."""

from __future__ import annotations

import json

import pytest

from skills.models import SearchEvent
from skills.search.index import index_skill
from skills.search.service import DEGRADED
from tests.factories import make_content, make_owner, make_skill
from tests.skills.search.corpora import publish

pytestmark = pytest.mark.django_db

ONE = "/memory/search"
ALL = "/memory/search_all_users"
BOTH = pytest.mark.parametrize("path", [ONE, ALL])


@pytest.fixture
def skill(owner):
    content = make_content(name="pay-an-order", examples=[{"input": "Pay #7"}], filter_tags={"desk": "eu"})
    skill = make_skill(owner, content, version="0.1.4")
    index_skill(skill)
    return skill


def names(answer) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["name"] for row in answer.json()["results"]]


def test_the_answer_is_the_contracts_envelope_and_row(read_api, skill):
    answer = read_api.get(ONE, {"user_id": "alice", "query": "How is an order paid?"})
    assert answer.status_code == 200
    assert answer.json() == {
        "success": True,
        "query": "How is an order paid?",
        "memory_type": "procedural",
        "search_field": None,
        "search_method": "hybrid",
        "date_range": None,
        "results": [
            {
                "memory_type": "procedural",
                "id": skill.pk,
                "entry_type": "workflow",
                "name": "pay-an-order",
                "description": skill.description,
                "instructions": skill.instructions,
                "triggers": ["pay an order"],
                "examples": [{"input": "Pay #7"}],
                "version": "0.1.4",
                "revision_id": skill.current_revision_id,
                "filter_tags": {"desk": "eu"},
                "score": 1 / 16,
                "created_at": skill.created_at.isoformat().replace("+00:00", "Z"),
                "updated_at": skill.updated_at.isoformat().replace("+00:00", "Z"),
            }
        ],
        "count": 1,
        "total_count": 1,
        "degraded": DEGRADED,
    }


def test_search_all_users_adds_whose_a_skill_is(read_api, owner, client_row, skill):
    (other,) = publish(make_owner(owner.organization, "bob"), [{"name": "order-two"}])
    answer = read_api.get(ALL, {"query": "order", "filter_tags": '{"desk": {"$exists": true}}'})
    assert [(row["id"], row["user_id"]) for row in answer.json()["results"]] == [(skill.pk, "alice")]
    assert answer.json()["client_id"] == client_row.pk
    assert answer.json()["organization_id"] == owner.organization.pk
    assert answer.json()["filter_tags"] == {"desk": {"$exists": True}}
    everyone = read_api.get(ALL, {"query": "order"}).json()
    assert {(row["id"], row["user_id"]) for row in everyone["results"]} == {
        (skill.pk, "alice"),
        (other.pk, "bob"),
    }
    assert everyone["filter_tags"] is None
    assert everyone["total_count"] == 2


def test_without_user_id_the_clients_default_user_is_searched(read_api, owner, client_row, skill):
    assert names(read_api.get(ONE, {"query": "order"})) == []
    publish(make_owner(owner.organization, client_row.default_user_id), [{"name": "order-two"}])
    assert names(read_api.get(ONE, {"query": "order"})) == ["order-two"]


def test_an_unknown_user_finds_nothing(read_api, skill):
    answer = read_api.get(ONE, {"user_id": "nobody", "query": "order"})
    assert names(answer) == []
    assert (answer.json()["success"], answer.json()["total_count"]) == (True, 0)


@BOTH
def test_a_stranger_finds_nothing(stranger_api, owner, client_row, skill, path):
    asked = {
        "user_id": "alice",
        "query": "order",
        "org_id": owner.organization.pk,
        "client_id": client_row.pk,
    }
    answer = stranger_api.get(path, asked)
    assert names(answer) == []
    assert answer.json()["total_count"] == 0


@BOTH
def test_a_caller_without_a_key_is_refused(client, skill, path):
    answer = client.get(path, {"user_id": "alice", "query": "order"})
    assert answer.status_code == 401
    assert list(answer.json()) == ["detail"]


@BOTH
@pytest.mark.parametrize("memory_type", ["episodic", "semantic", "resource", "knowledge_vault"])
def test_other_memory_types_find_nothing_and_say_why(read_api, skill, path, memory_type):
    answer = read_api.get(path, {"user_id": "alice", "query": "order", "memory_type": memory_type})
    assert names(answer) == []
    assert answer.json()["memory_type"] == memory_type
    assert answer.json()["message"] == f"No {memory_type} memory is held here, only procedural memory."


@BOTH
def test_every_parameter_of_the_original_is_accepted(read_api, skill, path):
    asked = {
        "user_id": "alice",
        "query": "order",
        "memory_type": "all",
        "search_method": "",
        "search_field": "null",
        "limit": "100",
        "filter_tags": "",
        "similarity_threshold": "0.5",
        "start_date": "2026-01-01T00:00:00",
        "end_date": "2026-02-01T00:00:00",
        "include_core_memory": "false",
        "block_filter_tags": "{}",
    }
    answer = read_api.get(path, asked)
    assert names(answer) == ["pay-an-order"]
    assert answer.json()["memory_type"] == "all"
    assert answer.json()["search_field"] is None


@pytest.mark.parametrize("method", ["bm25", "hybrid", "embedding", "string_match"])
def test_method_and_field_are_echoed(read_api, skill, method):
    asked = {"user_id": "alice", "query": "order", "search_method": method, "search_field": "name"}
    answer = read_api.get(ONE, asked)
    assert names(answer) == ["pay-an-order"]
    assert (answer.json()["search_method"], answer.json()["search_field"]) == (method, "name")


def test_an_empty_query_returns_the_newest_first(read_api, owner):
    publish(owner, [{"name": f"skill-{number}"} for number in range(12)])
    answer = read_api.get(ONE, {"user_id": "alice"})
    assert names(answer) == [f"skill-{number}" for number in range(11, 1, -1)]
    assert (answer.json()["count"], answer.json()["total_count"]) == (10, 12)
    assert {row["score"] for row in answer.json()["results"]} == {None}


@BOTH
@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"memory_type": "dreams"}, "memory_type"),
        ({"search_method": "fuzzy_match"}, "search_method"),
        ({"search_field": "examples"}, "search_field"),
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"start_date": "garbage"}, "start_date"),
        ({"end_date": "2026-02-30"}, "end_date"),
        ({"filter_tags": "{"}, "filter_tags"),
        ({"filter_tags": "[]"}, "filter_tags"),
        ({"filter_tags": "[" * 3_000}, "filter_tags"),
        ({"filter_tags": '{"a": {"$regex": "b"}}'}, "filter_tags"),
        ({"similarity_threshold": "2.5"}, "similarity_threshold"),
        ({"similarity_threshold": "-1"}, "similarity_threshold"),
        ({"similarity_threshold": "nan"}, "similarity_threshold"),
        ({"similarity_threshold": "infinity"}, "similarity_threshold"),
        ({"similarity_threshold": "1e999"}, "similarity_threshold"),
        ({"similarity_threshold": "1.", "limit": "1"}, "similarity_threshold"),
        ({"explain": "maybe"}, "explain"),
        ({"include_core_memory": "maybe"}, "include_core_memory"),
        ({"view": "short"}, "view"),
        ({"token_budget": "0"}, "token_budget"),
        ({"token_budget": "-5"}, "token_budget"),
        ({"token_budget": "1.5"}, "token_budget"),
        ({"token_budget": "many"}, "token_budget"),
        ({"token_budget": "9" * 5_000}, "token_budget"),
    ],
)
def test_wrong_values_are_refused_naming_the_field(read_api, skill, path, asked, field):
    answer = read_api.get(path, {"user_id": "alice", "query": "order"} | asked)
    assert answer.status_code == 400
    assert list(answer.json()) == [field]
    assert all(isinstance(message, str) for message in answer.json()[field])


@BOTH
@pytest.mark.parametrize(
    "name", ["serch_method", "user", "Limit", "q", "search_method[]", "cursor", "read_scopes", "x\u0000"]
)
@pytest.mark.parametrize("value", ["bm25", ""])
def test_a_parameter_that_does_not_exist_is_refused_by_name(read_api, skill, path, name, value):
    answer = read_api.get(path, {"user_id": "alice", "query": "order", name: value})
    assert answer.status_code == 400
    assert answer.json() == {name.rstrip("\0"): ["Unknown query parameter."]}


@BOTH
@pytest.mark.parametrize("blank", ["", "  ", "\t", "\u3000", "\0"])
@pytest.mark.parametrize(
    "name",
    [
        *("memory_type", "search_method", "search_field", "limit", "filter_tags", "similarity_threshold"),
        *("start_date", "end_date", "include_core_memory", "explain", "view", "token_budget"),
        *("client_id", "org_id", "block_filter_tags"),
    ],
)
def test_a_blank_parameter_counts_as_left_out(read_api, skill, path, name, blank):
    asked = {"user_id": "alice", "query": "order"}
    answer = read_api.get(path, asked | {name: blank})
    assert (answer.status_code, answer.json()) == (200, read_api.get(path, asked).json())


def test_a_blank_user_is_the_clients_own_and_a_blank_question_the_newest(read_api, owner, client_row):
    publish(make_owner(owner.organization, client_row.default_user_id), [{"name": "one"}, {"name": "two"}])
    for blank in ("", " ", "\0"):
        assert names(read_api.get(ONE, {"user_id": blank, "query": blank})) == ["two", "one"]


def test_filter_tags_narrow_the_answer(read_api, owner, skill):
    publish(owner, [{"name": "order-two", "filter_tags": {"desk": "us"}}])
    asked = {"user_id": "alice", "query": "order"}
    for wanted, expected in [
        ({"desk": "us"}, ["order-two"]),
        ({"desk": {"$in": ["eu"]}}, ["pay-an-order"]),
        ({"desk": "asia"}, []),
    ]:
        assert names(read_api.get(ONE, asked | {"filter_tags": json.dumps(wanted)})) == expected


def test_an_explanation_comes_only_when_asked_for(read_api, skill):
    asked = {"user_id": "alice", "query": "pay the order"}
    assert "explain" not in read_api.get(ONE, asked).json()["results"][0]
    (row,) = read_api.get(ONE, asked | {"explain": "1"}).json()["results"]
    assert row["explain"]["matched_terms"] == ["pay", "order"]
    assert set(row["explain"]["lanes"]) == {"all", "name_description"}
    assert row["explain"]["lanes"]["all"]["rank"] == 1
    assert row["explain"]["lanes"]["all"]["score"] > 0


@BOTH
@pytest.mark.parametrize(
    "query",
    [
        "order%00",
        "order%ED%A0%80",
        "order%FF",
        "order%20%22%26%7C%21%3A*%20%3C-%3E%20%25_%5C'",
        "order%20" + "%F0%9F%9A%80",
        "order%20" + "word%20" * 400,
    ],
)
def test_no_query_breaks_the_search(read_api, skill, path, query):
    assert names(read_api.get(f"{path}?user_id=alice&query={query}")) == ["pay-an-order"]


@BOTH
def test_nul_and_surrogates_are_cleaned_out_of_every_parameter(read_api, skill, path):
    asked = f"{path}?user_id=alice%00&query=order%00&filter_tags=%7B%22desk%00%22%3A%22eu%22%7D"
    answer = read_api.get(asked)
    assert names(answer) == ["pay-an-order"]
    assert answer.json()["query"] == "order"


@BOTH
def test_nothing_can_be_written_there(api, path):
    assert api.post(path, {}, format="json").status_code == 405


@BOTH
def test_the_number_of_queries_does_not_grow(read_api, owner, path, django_assert_max_num_queries):
    for total in (1, 30):
        publish(owner, [{"name": f"order-{total}-{number}"} for number in range(total)])
        with django_assert_max_num_queries(6):  # the last is the log's, when the answer is sent
            assert len(names(read_api.get(path, {"user_id": "alice", "query": "order"}))) == min(total, 10)


class TestCatalog:
    def test_a_row_is_what_is_needed_to_choose(self, read_api, skill):
        asked = {"user_id": "alice", "query": "order"}
        (full,) = read_api.get(ONE, asked | {"view": "full"}).json()["results"]
        (row,) = read_api.get(ONE, asked | {"view": "catalog"}).json()["results"]
        assert set(full) - set(row) == {"instructions", "triggers", "examples"}
        assert row == {name: value for name, value in full.items() if name in row}

    def test_whose_a_skill_is_stays(self, read_api, skill):
        (row,) = read_api.get(ALL, {"query": "order", "view": "catalog"}).json()["results"]
        assert row["user_id"] == "alice"
        assert "instructions" not in row

    def test_it_can_be_explained(self, read_api, skill):
        asked = {"user_id": "alice", "query": "order", "view": "catalog", "explain": "1"}
        (row,) = read_api.get(ONE, asked).json()["results"]
        assert row["explain"]["matched_terms"] == ["order"]


class TestTokenBudget:
    @pytest.fixture
    def three(self, owner):
        """Found in this order by the empty query; their full rows take 100, 50 and 10 tokens."""
        sizes = [("c-short", 10), ("b-middle", 50), ("a-long", 100)]
        publish(
            owner,
            [
                {"name": name, "description": "d" * 12, "instructions": "i" * (4 * size - 12 - len(name))}
                for name, size in sizes
            ],
        )

    @pytest.mark.parametrize(
        ("asked", "found", "message"),
        [
            ({"token_budget": 160}, ["a-long", "b-middle", "c-short"], None),
            ({"token_budget": 159}, ["a-long", "b-middle"], "The token_budget of 159 holds 2 of 3 rows."),
            ({"token_budget": 150}, ["a-long", "b-middle"], "The token_budget of 150 holds 2 of 3 rows."),
            ({"token_budget": 149}, ["a-long"], "The token_budget of 149 holds 1 of 3 rows."),
            (
                {"token_budget": 99},
                ["a-long", "b-middle", "c-short"],
                "The token_budget of 99 holds 3 of 3 rows, the first as in a catalog: it takes about 100.",
            ),
            (
                {"token_budget": 54},
                ["a-long"],
                "The token_budget of 54 holds 1 of 3 rows, the first as in a catalog: it takes about 100.",
            ),
            (
                {"token_budget": 4},
                [],
                "The token_budget of 4 holds no row; the first of 3 takes about 100.",
            ),
            (
                {"token_budget": 4, "view": "catalog"},
                [],
                "The token_budget of 4 holds no row; the first of 3 takes about 5.",
            ),
            ({"token_budget": 100, "limit": 1}, ["a-long"], None),
            # A catalog's rows take 5 tokens each.
            ({"token_budget": 15, "view": "catalog"}, ["a-long", "b-middle", "c-short"], None),
            (
                {"token_budget": 14, "view": "catalog"},
                ["a-long", "b-middle"],
                "The token_budget of 14 holds 2 of 3 rows.",
            ),
        ],
    )
    def test_it_cuts_the_list_from_its_end_and_says_so(self, read_api, three, asked, found, message):
        for path in (ONE, ALL):
            answer = read_api.get(path, {"user_id": "alice"} | asked)
            assert names(answer) == found
            body = answer.json()
            assert body.get("message") == message
            assert (body["count"], body["total_count"]) == (len(found), 3)

    def test_a_first_row_that_takes_more_by_itself_comes_as_in_a_catalog(self, read_api, three):
        asked = {"user_id": "alice", "explain": "1"}
        for path in (ONE, ALL):
            whole = read_api.get(path, asked).json()["results"]
            first, *others = read_api.get(path, asked | {"token_budget": 99}).json()["results"]
            (brief, *_) = read_api.get(path, asked | {"view": "catalog"}).json()["results"]
            assert (first, others) == (brief, whole[1:])

    def test_where_nothing_was_found_nothing_is_said(self, read_api, three):
        answer = read_api.get(ONE, {"user_id": "alice", "query": "refund", "token_budget": 1})
        assert names(answer) == []
        assert "message" not in answer.json()


class TestStrangers:
    """Whatever a caller says, only the credential says whose skills are searched."""

    @pytest.fixture
    def theirs(self, stranger):
        (skill,) = publish(stranger, [{"name": "order-of-strangers", "filter_tags": {"desk": "eu"}}])
        return skill

    @BOTH
    @pytest.mark.parametrize("method", ["hybrid", "bm25", "embedding", "string_match"])
    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"query": ""},
            {"filter_tags": '{"desk": "eu"}'},
            {"filter_tags": '{"desk": {"$exists": true}}', "explain": "1"},
            {"view": "catalog", "token_budget": 10_000},
            {"search_field": "name"},
        ],
    )
    def test_of_two_organizations_each_finds_its_own(
        self, read_api, stranger_api, owner, stranger, skill, theirs, path, method, more
    ):
        asked = {"user_id": "alice", "query": "order", "search_method": method} | more
        for names_the_other in ({}, {"org_id": stranger.organization.pk, "client_id": "client-1"}):
            answer = read_api.get(path, asked | names_the_other)
            assert names(answer) == ["pay-an-order"]
            assert answer.json()["total_count"] == 1
        assert names(stranger_api.get(path, asked | {"org_id": owner.organization.pk})) == [
            "order-of-strangers"
        ]

    @BOTH
    def test_a_member_of_one_organization_finds_nothing_of_another(self, member_api, skill, theirs, path):
        asked = {"user_id": "alice", "query": "order"}
        assert names(member_api("reviewer").get(path, asked)) == ["pay-an-order"]

    def test_a_search_is_logged_in_the_callers_organization(
        self, stranger_api, owner, stranger, skill, theirs
    ):
        stranger_api.get(ALL, {"query": "order", "org_id": owner.organization.pk})
        event = SearchEvent.objects.get()
        assert (event.organization, event.skill_ids) == (stranger.organization, [theirs.pk])


def test_hostile_tags_are_only_text_and_never_an_error_of_ours(read_api, skill):
    asked = {"user_id": "alice", "query": "order"}
    for wanted in ["') OR true --", "%s", "$1", "🔑", "\u0000desk", "0"]:
        for filter_tags in ({wanted: wanted}, {wanted: {"$exists": True}}, {"x": {"$contains": wanted}}):
            answer = read_api.get(ONE, asked | {"filter_tags": json.dumps(filter_tags)})
            # Without its NUL that key is the skill's own.
            own = filter_tags == {"\u0000desk": {"$exists": True}}
            assert names(answer) == (["pay-an-order"] if own else [])
