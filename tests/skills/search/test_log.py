"""The log of searches: what it holds, when it is written, and that it is in nobody's way."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.core.signals import request_finished
from django.db import IntegrityError, OperationalError, close_old_connections, connection, transaction
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from mirix.tenants.models import Client
from skills.api.search import SearchView
from skills.models import Returned, SearchEvent, SearchSource
from skills.search import log
from skills.search.index import index_skill
from skills.search.service import DEGRADED, search
from tests.factories import make_client, make_content, make_key, make_owner, make_search, make_skill
from tests.skills.search.corpora import publish

pytestmark = pytest.mark.django_db

ONE = "/memory/search"
ALL = "/memory/search_all_users"


@pytest.fixture
def skill(owner):
    skill = make_skill(owner, make_content(name="pay-an-order", filter_tags={"desk": "eu"}))
    index_skill(skill)
    return skill


def values(event: SearchEvent) -> dict[str, Any]:
    fields = SearchEvent._meta.concrete_fields
    return {field.attname: getattr(event, field.attname) for field in fields if field.name != "created_at"}


class TestWhatItHolds:
    def test_a_search_of_a_client(self, read_api, owner, client_row, skill):
        asked = {
            "user_id": "alice",
            "query": "pay the order",
            "search_method": "bm25",
            "search_field": "name",
            "filter_tags": '{"desk": {"$in": ["eu"]}}',
            "similarity_threshold": 0.4,
            "limit": 5,
            "token_budget": 900,
        }
        answer = read_api.get(ONE, asked).json()
        event = SearchEvent.objects.get()
        assert event.duration_ms > 0
        assert values(event) == {
            "id": event.pk,
            "organization_id": owner.organization.pk,
            "end_user_id": owner.end_user.pk,
            "client_id": client_row.pk,
            "user_id": None,
            "source": "api",
            "query": "pay the order",
            "method": "bm25",
            "field": "name",
            "filter_tags": {"desk": {"$in": ["eu"]}},
            "similarity_threshold": 0.4,
            "limit": 5,
            "token_budget": 900,
            "view": "full",
            "skill_ids": [skill.pk],
            "revision_ids": [skill.current_revision_id],
            "scores": [answer["results"][0]["score"]],
            "total_count": 1,
            "degraded": "",
            "duration_ms": event.duration_ms,
        }

    def test_results_have_their_ranks(self, owner):
        skills = [make_skill(owner), make_skill(owner)]
        event = make_search(owner, skills)
        event.refresh_from_db()
        assert list(event.results) == [
            Returned(1, skills[0].pk, skills[0].current_revision_id, 1.0),
            Returned(2, skills[1].pk, skills[1].current_revision_id, 0.5),
        ]

    def test_a_search_across_the_organization_names_no_end_user(self, read_api, owner, skill):
        read_api.get(ALL, {"query": "order", "view": "catalog"})
        event = SearchEvent.objects.get()
        assert (event.organization, event.end_user, event.view) == (owner.organization, None, "catalog")
        assert event.skill_ids == [skill.pk]

    def test_a_member_is_named_and_no_client(self, member_api, skill):
        member_api("reviewer").get(ONE, {"user_id": "alice", "query": "order"})
        event = SearchEvent.objects.get()
        assert event.client is None
        assert event.user.memberships.get().role == "reviewer"

    def test_what_the_search_had_to_do_without(self, read_api, skill):
        read_api.get(ONE, {"user_id": "alice", "query": "order"})
        assert SearchEvent.objects.get().degraded == DEGRADED

    def test_the_newest_have_no_score(self, read_api, skill):
        read_api.get(ONE, {"user_id": "alice"})
        assert SearchEvent.objects.get().scores == [None]

    def test_a_skill_without_a_revision(self, read_api, owner):
        publish(owner, [{"name": "order"}])
        read_api.get(ONE, {"user_id": "alice", "query": "order"})
        assert SearchEvent.objects.get().revision_ids == [""]

    def test_a_token_budget_beyond_every_answer_is_logged_as_the_most_there_is(self, read_api, skill):
        answer = read_api.get(ONE, {"user_id": "alice", "query": "order", "token_budget": 10**12})
        assert answer.status_code == 200
        assert SearchEvent.objects.get().token_budget == 2_147_483_647

    def test_what_a_token_budget_left_out_was_not_returned(self, read_api, skill):
        read_api.get(ONE, {"user_id": "alice", "query": "order", "token_budget": 1})
        event = SearchEvent.objects.get()
        assert (event.skill_ids, event.total_count) == ([], 1)

    def test_a_search_that_found_nothing_is_one_too(self, read_api, skill):
        read_api.get(ONE, {"user_id": "alice", "query": "refund"})
        event = SearchEvent.objects.get()
        assert (event.query, event.skill_ids, event.total_count) == ("refund", [], 0)

    @pytest.mark.parametrize(
        "asked", [{"user_id": "nobody"}, {"memory_type": "episodic"}, {"limit": 0}, {"search_method": "x"}]
    )
    def test_where_nothing_is_searched_nothing_is_kept(self, read_api, skill, asked):
        read_api.get(ONE, {"user_id": "alice", "query": "order"} | asked)
        assert not SearchEvent.objects.exists()

    def test_a_caller_who_is_refused_leaves_nothing(self, client, skill):
        client.get(ONE, {"user_id": "alice", "query": "order"})
        assert not SearchEvent.objects.exists()

    def test_a_long_query_is_cut_and_says_so(self, read_api, skill):
        read_api.get(ONE, {"user_id": "alice", "query": "order " * 1_999 + "order."})
        query = SearchEvent.objects.get().query
        assert len(query) == log.MAX_QUERY_CHARS
        assert query.endswith("… [truncated, 12000 characters in all]")

    @pytest.mark.parametrize("last", ["y", "ö", "\N{ROCKET}"])
    def test_long_tags_are_kept_as_the_beginning_of_their_text(self, read_api, skill, last):
        tags = {"desk": {"$in": ["x" * 10_000, last]}, "team": "a"}
        read_api.get(ONE, {"user_id": "alice", "query": "order", "filter_tags": json.dumps(tags)})
        kept = SearchEvent.objects.get().filter_tags
        assert list(kept) == [log.CUT_TAGS]
        assert len(kept[log.CUT_TAGS]) == log.MAX_TAGS_CHARS
        assert kept[log.CUT_TAGS].startswith('{"desk": {"$in": ["xxx')
        assert kept[log.CUT_TAGS].endswith("… [truncated, 10041 characters in all]")

    def test_tags_that_just_fit_are_kept_whole(self, owner, skill):
        result = search(organization=owner.organization, owner=owner, query="order")
        for chars, key in ((log.MAX_TAGS_CHARS, "desk"), (log.MAX_TAGS_CHARS + 1, log.CUT_TAGS)):
            event = log.log_search(
                organization=owner.organization,
                owner=owner,
                source=SearchSource.API,
                query="order",
                filter_tags={"desk": "x" * (chars - len('{"desk": ""}'))},
                limit=10,
                result=result,
                returned=result.hits,
                seconds=0.1,
            )
            assert list(event.filter_tags) == [key]

    def test_odd_characters_are_kept_clean(self, read_api, skill):
        read_api.get(f"{ONE}?user_id=alice&query=order%00%ED%A0%80%F0%9F%9A%80")
        assert SearchEvent.objects.get().query.startswith("order")


@pytest.fixture
def connected():
    """Let responses be closed as by a server, and the test go on with its connection."""
    request_finished.disconnect(close_old_connections)
    yield
    request_finished.connect(close_old_connections)


@pytest.fixture
def answer(client_row, connected):
    """Makes an answer of the view that is not closed yet."""

    def make():
        request = RequestFactory().get(
            ONE, {"user_id": "alice", "query": "order"}, headers={"X-API-Key": make_key(client_row)}
        )
        return SearchView.as_view()(request).render()

    return make


class TestWhenItIsWritten:
    def test_once_and_not_before_the_answer_is_closed(self, answer, skill):
        response = answer()
        assert response.status_code == 200
        assert not SearchEvent.objects.exists()
        response.close()
        assert SearchEvent.objects.count() == 1
        response.close()
        assert SearchEvent.objects.count() == 1

    def test_with_one_statement(self, answer, skill):
        response = answer()
        with CaptureQueriesContext(connection) as queries:
            response.close()
        (insert,) = (query["sql"] for query in queries.captured_queries)
        assert insert.startswith('INSERT INTO "skills_searchevent"')


class TestInNobodysWay:
    @pytest.mark.parametrize(
        "error", [OperationalError("the server has gone"), IntegrityError("Failing row"), ValueError("order")]
    )
    def test_a_failure_is_counted_and_logged_without_what_was_asked(
        self, read_api, skill, monkeypatch, caplog, error
    ):
        def fail(**fields: Any) -> None:
            raise error

        monkeypatch.setattr(SearchEvent.objects, "create", fail)
        monkeypatch.setattr(log, "failures", log.Failures())
        with caplog.at_level(logging.ERROR):
            for _ in range(2):
                answer = read_api.get(ONE, {"user_id": "alice", "query": "order"})
                assert [row["id"] for row in answer.json()["results"]] == [skill.pk]
        assert log.failures.count == 2
        assert caplog.messages == [
            f"A search was not logged ({type(error).__name__}, failure {number} of this process)"
            for number in (1, 2)
        ]

    @pytest.mark.django_db(transaction=True)
    def test_a_client_that_is_gone_by_then_costs_the_event_alone(self, client_row, answer, skill, caplog):
        response = answer()
        Client.objects.filter(pk=client_row.pk).delete()
        with caplog.at_level(logging.ERROR):
            response.close()
        assert not SearchEvent.objects.exists()
        assert [message[:24] for message in caplog.messages] == ["A search was not logged "]


class TestErasure:
    def test_events_go_with_their_end_user_and_no_others(self, owner):
        other = make_owner(owner.organization)
        make_search(owner)
        kept = [make_search(other), make_search(owner, end_user=None)]
        owner.end_user.delete()
        assert set(SearchEvent.objects.all()) == set(kept)

    def test_events_go_with_the_client_that_asked(self, owner, client_row):
        make_search(owner, client=client_row)
        kept = make_search(owner)
        client_row.delete()
        assert SearchEvent.objects.get() == kept

    def test_events_go_with_their_organization(self, owner, stranger):
        make_search(owner)
        kept = make_search(stranger)
        owner.organization.delete()
        assert SearchEvent.objects.get() == kept

    def test_an_event_outlives_a_person_and_a_skill(self, owner, member_api, skill):
        member_api("operator").get(ONE, {"user_id": "alice", "query": "order"})
        event = SearchEvent.objects.get()
        event.user.delete()
        skill.current_revision = None
        skill.save()
        skill.delete()
        event.refresh_from_db()
        assert (event.user, len(event.skill_ids)) == (None, 1)


class TestTheBorder:
    @pytest.mark.parametrize(
        "fields",
        [
            lambda stranger: {"end_user": stranger.end_user},
            lambda stranger: {"client": make_client(stranger.organization)},
        ],
    )
    def test_an_event_names_nobody_of_another_organization(self, owner, stranger, fields):
        make_search(owner, **fields(stranger))
        with pytest.raises(IntegrityError, match="same_organization"):
            connection.check_constraints()

    def test_the_lists_are_of_one_length(self, owner):
        with pytest.raises(IntegrityError, match="searchevent_lists_of_one_length"), transaction.atomic():
            make_search(owner, skill_ids=["proc-1"])
