from __future__ import annotations

from collections import defaultdict

import pytest
import yaml
from django.core.exceptions import ValidationError

from skills.models import Skill
from skills.review.publishing import approve
from skills.search.index import index_skill
from skills.search.service import DEGRADED, METHODS, Place, search
from tests.data import shared
from tests.factories import make_content, make_owner, make_proposal
from tests.skills.search.corpora import publish

pytestmark = pytest.mark.django_db


def names(owner, query, **options) -> list[str]:
    result = search(organization=owner.organization, owner=owner, query=query, **options)
    return [hit.skill.name for hit in result.hits]


def publish_cards(owner):
    return publish(
        owner,
        [
            {"name": "charge-card", "description": "Charge a card.", "instructions": "Ask for 100% of it."},
            {
                "name": "refund",
                "description": "Money back.",
                "instructions": "To the card.",
                "triggers": ["a_b"],
            },
            {"name": "seat", "description": "Choose a seat.", "entry_type": "guide"},
        ],
    )


class TestMethods:
    def test_bm25_ranks_by_its_own_score(self, owner):
        publish_cards(owner)
        result = search(organization=owner.organization, owner=owner, query="card", method="bm25")
        assert [hit.skill.name for hit in result.hits] == ["charge-card", "refund"]
        assert result.hits[0].score > result.hits[1].score > 0
        assert (result.method, result.total_count, result.degraded) == ("bm25", 2, None)

    def test_hybrid_is_the_default_and_has_the_shares_of_the_lexical_list(self, owner):
        publish_cards(owner)
        by_words = search(organization=owner.organization, owner=owner, query="card", method="bm25").hits
        share = by_words[1].score / by_words[0].score
        result = search(organization=owner.organization, owner=owner, query="card")
        assert [(hit.skill.name, hit.score) for hit in result.hits] == [
            ("charge-card", 1 / 16),
            ("refund", share / 17),
        ]
        assert (result.method, result.total_count, result.degraded) == ("hybrid", 2, DEGRADED)

    def test_embedding_without_an_endpoint_is_the_lexical_lists_and_says_so(self, owner):
        publish_cards(owner)
        result = search(organization=owner.organization, owner=owner, query="card", method="embedding")
        assert [hit.skill.name for hit in result.hits] == ["charge-card", "refund"]
        assert (result.method, result.degraded) == ("embedding", DEGRADED)

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("CARD", ["refund", "charge-card"]),
            ("100% of", ["charge-card"]),
            ("A_B", ["refund"]),
            ("guide", ["seat"]),
            ("%", ["charge-card"]),
            ("_", ["refund"]),
            ("\\", []),
            ("'", []),
            ('"a_b"', []),
        ],
    )
    def test_string_match_takes_the_text_as_it_stands_newest_first(self, owner, query, expected):
        publish_cards(owner)
        result = search(organization=owner.organization, owner=owner, query=query, method="string_match")
        assert [hit.skill.name for hit in result.hits] == expected
        assert {hit.score for hit in result.hits} <= {None}
        assert (result.method, result.total_count, result.degraded) == ("string_match", len(expected), None)

    def test_the_default_method_is_a_setting(self, owner, settings):
        settings.MIRIX_SKILL_SEARCH_METHOD = "bm25"
        assert search(organization=owner.organization, owner=owner, query="card").method == "bm25"

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("query", ["", "  ", "\x00"])
    def test_an_empty_query_returns_the_newest(self, owner, method, query):
        publish_cards(owner)
        result = search(organization=owner.organization, owner=owner, query=query, method=method, limit=2)
        assert [hit.skill.name for hit in result.hits] == ["seat", "refund"]
        assert (result.total_count, result.degraded) == (3, None)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("query", ["!!!", "\ud800", "zz\x00y", "€", "' OR 1=1 --", "🚀", "x" * 5_000])
    def test_no_text_breaks_a_search(self, owner, method, query):
        publish_cards(owner)
        assert names(owner, query, method=method) == []


class TestFields:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize(
        ("field", "expected"),
        [
            ("name", ["charge-card"]),
            ("description", ["charge-card"]),
            ("instructions", ["refund"]),
            ("triggers", []),
            ("entry_type", []),
        ],
    )
    def test_a_field_restricts_where_is_looked(self, owner, method, field, expected):
        publish_cards(owner)
        assert names(owner, "card", method=method, field=field) == expected

    def test_entry_type_is_matched_as_it_stands(self, owner):
        publish_cards(owner)
        assert names(owner, "guide", method="bm25", field="entry_type") == ["seat"]

    def test_triggers_are_searched(self, owner):
        publish_cards(owner)
        assert names(owner, "a_b", method="bm25", field="triggers") == ["refund"]
        assert names(owner, "a_b", method="string_match", field="triggers") == ["refund"]


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"method": "fuzzy_match"}, ["search_method"]),
        ({"field": "examples"}, ["search_field"]),
        ({"limit": 0}, ["limit"]),
        ({"limit": 101}, ["limit"]),
        ({"method": "x", "field": "y", "limit": -1}, ["search_method", "search_field", "limit"]),
        ({"filter_tags": {"a": {"$gt": 1}}}, ["filter_tags"]),
    ],
)
def test_unknown_values_are_refused_by_the_names_of_the_api(owner, options, fields):
    with pytest.raises(ValidationError) as refusal:
        names(owner, "card", **options)
    assert list(refusal.value.message_dict) == fields


@pytest.mark.parametrize("method", METHODS)
def test_filter_tags_narrow_every_method(owner, method):
    publish(
        owner,
        [{"name": "card", "filter_tags": {"desk": "eu"}}, {"name": "card-two"}, {"name": "card-three"}],
    )
    for query in ["card", ""]:
        result = search(
            organization=owner.organization,
            owner=owner,
            query=query,
            method=method,
            filter_tags={"desk": "eu"},
        )
        assert [hit.skill.name for hit in result.hits] == ["card"]
        assert result.total_count == 1
        assert names(owner, query, method=method, filter_tags={"desk": {"$in": []}}) == []


@pytest.mark.parametrize("method", METHODS)
class TestWhatIsNeverFound:
    def test_pending_proposals(self, owner, method):
        make_proposal(owner, make_content(name="card"))
        assert names(owner, "card", method=method) == names(owner, "", method=method) == []

    @pytest.mark.parametrize("status", ["archived", "quarantined"])
    def test_skills_that_are_not_active_even_where_the_index_is_behind(self, owner, method, status):
        (skill, _) = publish(owner, [{"name": "card"}, {"name": "card-two"}])
        Skill.objects.filter(pk=skill.pk).update(status=status)
        assert names(owner, "card", method=method) == names(owner, "", method=method) == ["card-two"]

    def test_others_move_up_for_those_where_the_index_is_behind(self, owner, method):
        skills = publish(owner, [{"name": f"card-{number}"} for number in range(5)])
        ranked = names(owner, "card", method=method)
        assert len(ranked) == 5
        Skill.objects.filter(name__in=ranked[:2], pk__in=[skill.pk for skill in skills]).update(
            status="archived"
        )
        for everyone in (owner, None):
            found = search(
                organization=owner.organization, owner=everyone, query="card", method=method, limit=2
            )
            assert [hit.skill.name for hit in found.hits] == ranked[2:4]
            assert found.total_count == 3

    def test_skills_of_others(self, owner, stranger, method):
        mate = make_owner(owner.organization)
        publish(stranger, [{"name": "card"}])
        publish(mate, [{"name": "card-two"}])
        assert names(owner, "card", method=method) == names(owner, "", method=method) == []
        everyone = search(organization=owner.organization, owner=None, query="card", method=method)
        assert [hit.skill.name for hit in everyone.hits] == ["card-two"]


def test_what_is_published_is_found_by_the_very_next_search(owner):
    proposal = make_proposal(owner, make_content(name="rebook", description="Use when a flight is missed."))
    assert names(owner, "missed flight") == []
    skill = approve(revision=proposal)
    assert names(owner, "missed flight") == ["rebook"]
    edit = make_proposal(owner, make_content(name="rebook", description="Use when a train is late."), skill)
    approve(revision=edit)
    assert names(owner, "missed flight") == []
    assert names(owner, "late train") == ["rebook"]
    skill.refresh_from_db()
    skill.status = "archived"
    skill.save()
    index_skill(skill)
    assert names(owner, "late train") == []


def test_an_explanation_names_lanes_and_terms(owner):
    publish_cards(owner)
    first, second = search(
        organization=owner.organization, owner=owner, query="charge the card", explain=True
    ).hits
    assert first.terms == ["charg", "card"]
    assert {lane: place.rank for lane, place in first.lanes.items()} == {"all": 1, "name_description": 1}
    assert second.terms == ["card", "the"]
    assert second.lanes == {"all": Place(rank=2, score=second.lanes["all"].score)}
    assert first.lanes["all"].score > second.lanes["all"].score > 0


@pytest.mark.parametrize(
    ("method", "query", "explain", "queries"),
    [
        ("hybrid", "card", False, 2),
        ("hybrid", "card", True, 3),
        ("bm25", "card", False, 2),
        ("embedding", "card", False, 2),
        ("string_match", "card", False, 2),
        ("hybrid", "", False, 2),
    ],
)
def test_the_number_of_queries_is_fixed(owner, django_assert_num_queries, method, query, explain, queries):
    for total in (1, 30):
        publish(owner, [{"name": f"card-{total}-{number}"} for number in range(total)])
        with django_assert_num_queries(queries):
            names(owner, query, method=method, explain=explain)


QUESTIONS = {
    "how do I expose our REST API to a model as an MCP server?": "mcp-builder",
    "take a screenshot of my local web app with Playwright": "webapp-testing",
    "make an animated GIF for Slack": "slack-gif-creator",
    "write the weekly status report for the leadership": "internal-comms",
    "draw generative art with flow fields in p5.js": "algorithmic-art",
    "which colours and fonts does the Anthropic brand use": "brand-guidelines",
    "a React artifact with shadcn/ui and Tailwind": "web-artifacts-builder",
    "there is a bug and I do not know its root cause": "systematic-debugging",
    "write the failing test first": "test-driven-development",
    "work on a feature in an isolated git worktree": "using-git-worktrees",
    "run several independent tasks in parallel": "dispatching-parallel-agents",
    "all tests pass, do I merge the branch or open a pull request": "finishing-a-development-branch",
    "migrate from mem0 open source to the platform": "mem0-oss-to-platform",
    "Vercel AI SDK with memory": "mem0-vercel-ai-sdk",
    "protect a memory from pruning": "pin",
    "back up all memories to a Markdown file": "export",
}


def test_natural_questions_find_their_skill_first_among_59_real_ones(owner):
    taken: dict[str, int] = defaultdict(int)
    rows = []
    for path in sorted(shared("skills").glob("*/*/SKILL.md")):
        _, head, body = path.read_text().split("---", 2)
        meta = yaml.safe_load(head)
        taken[meta["name"]] += 1
        # Some names stand in two libraries; the second one's skill is as good an answer.
        name = meta["name"] + ("-2" if taken[meta["name"]] > 1 else "")
        rows.append({"name": name, "description": meta["description"][:1_024], "instructions": body})
    publish(owner, rows)
    assert len(rows) == 59
    first = {question: names(owner, question)[0].removesuffix("-2") for question in QUESTIONS}
    assert first == QUESTIONS
