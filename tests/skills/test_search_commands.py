"""The commands `search` and `search_index`."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from skills.models import SearchEvent, Skill, SkillDocument, SkillPosting
from skills.search.embedding import embed_missing
from skills.search.service import DEGRADED
from skills.selectors.searches import use_of
from tests.factories import make_owner, make_skill
from tests.skills.search.corpora import publish

pytestmark = pytest.mark.django_db


def run(*words: str) -> str:
    output = StringIO()
    call_command(*words, stdout=output, stderr=StringIO())
    return output.getvalue().rstrip()


@pytest.fixture
def where(owner) -> list[str]:
    publish(
        owner,
        [
            {"name": "charge-card", "description": "Charge a card.", "filter_tags": {"desk": "eu"}},
            {"name": "refund", "description": "Money back.", "instructions": "To the card."},
        ],
    )
    publish(make_owner(owner.organization, "bob"), [{"name": "card-two"}])
    return ["--organization", owner.organization.name, "--user", "alice"]


def test_search_shows_what_was_found_best_first(where):
    assert run("search", "which card?", *where).splitlines() == [
        "  1  charge-card 0.1.0  0.0625",
        "     Charge a card.",
        "  2  refund 0.1.0  0.0187",
        "     Money back.",
        f"2 of 2 found by hybrid; degraded: {DEGRADED}",
    ]


def test_search_explains_ranks_and_terms(where):
    lines = run("search", "charge the card", *where, "--explain", "--limit", "1").splitlines()
    assert lines[2].strip().startswith("all #1 (")
    assert lines[2].endswith("terms: charg, card")
    assert run("search", "", *where, "--explain").splitlines()[2].strip() == "not ranked; terms: none"


def test_search_shows_each_lane_and_what_the_answer_left_out(where):
    lines = run("search", "charge the card", *where, "--explain", "--limit", "1").splitlines()
    assert lines[3] == "lane all: 2 ranked"  # to the limit
    rank, score, as_, place, name = lines[4].split()
    assert (rank, as_, place, name) == ("1", "as", "1", "charge-card")
    assert float(score) > 0
    assert lines[5] == "lane name_description: 1 ranked"
    assert lines[7:] == ["lane semantic: could not answer", f"1 of 2 found by hybrid; degraded: {DEGRADED}"]


def test_a_lane_names_what_the_budget_left_out(where):
    words = ["--method", "bm25", "--limit", "2", "--explain", "--token-budget", "10"]
    lines = run("search", "charge the card", *where, *words).splitlines()
    assert lines[5].split() == ["2", lines[5].split()[1], "-", "refund"]
    assert lines[6:] == ["The token_budget of 10 holds 1 of 2 rows.", "1 of 2 found by bm25"]
    answer = json.loads(run("search", "charge the card", *where, *words, "--json"))
    assert answer["message"] == "The token_budget of 10 holds 1 of 2 rows."
    assert [row["returned_as"] for row in answer["lanes"]["all"]] == [1, None]


def test_search_takes_a_threshold_for_meaning(owner, endpoint):
    endpoint.script.embed = lambda text: [0.8, 0.6] if "pay" in text else [1.0, 0.0]
    publish(owner, [{"name": "card"}, {"name": "payment"}])
    embed_missing()
    where = ["--organization", owner.organization.name, "--user", "alice", "--method", "embedding"]
    assert [line[5:9] for line in run("search", "a card", *where).splitlines()[::2][:2]] == ["card", "paym"]
    shown = run("search", "a card", *where, "--similarity-threshold", "0.1", "--explain")
    assert "lane semantic: 1 ranked" in shown
    assert "payment" not in shown


def test_search_answers_in_json(where):
    words = ["--method", "bm25", "--field", "name", "--filter-tags", '{"desk": "eu"}', "--explain", "--json"]
    answer = json.loads(run("search", "card", *where, *words))
    (row,) = answer.pop("results")
    (ranked,) = answer.pop("lanes").pop("name")
    assert ranked == {
        "rank": 1,
        "id": row["id"],
        "name": "charge-card",
        "score": row["score"],
        "returned_as": 1,
    }
    assert answer == {"search_method": "bm25", "degraded": None, "count": 1, "total_count": 1}
    assert (row["name"], row["user_id"], row["version"]) == ("charge-card", "alice", "0.1.0")
    assert row["matched_terms"] == ["card"]
    assert row["lanes"] == {"name": {"rank": 1, "score": row["score"]}}


def test_a_search_is_in_the_log_as_one_by_command(where, owner):
    words = ["--method", "bm25", "--limit", "2", "--token-budget", "10", "--filter-tags", '{"desk": "eu"}']
    words += ["--similarity-threshold", "0.5"]
    run("search", "charge the card", *where, *words)
    event = SearchEvent.objects.get()
    assert (event.source, event.organization, event.end_user) == (
        "command",
        owner.organization,
        owner.end_user,
    )
    assert (event.client, event.user) == (None, None)
    assert (event.query, event.method, event.limit) == ("charge the card", "bm25", 2)
    assert (event.similarity_threshold, event.token_budget) == (0.5, 10)
    assert event.filter_tags == {"desk": "eu"}
    skill = Skill.objects.get(name="charge-card")
    assert event.skill_ids == [skill.pk]
    assert use_of(skill=skill).times == 0, "an operator who looks is no agent that asks"
    run("search", "card", *where[:2])
    assert SearchEvent.objects.latest("created_at").end_user is None


def test_a_search_that_is_refused_is_not_logged(where):
    with pytest.raises(CommandError):
        run("search", "card", *where, "--filter-tags", "{")
    assert not SearchEvent.objects.exists()


def test_search_without_a_user_covers_the_organization(where):
    shown = run("search", "card", *where[:2])
    assert "card-two 0.1.0" in shown
    assert "[bob]" in shown
    assert "[alice]" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--organization", "nowhere"], "unknown organization 'nowhere'"),
        (["--user", "nobody"], "unknown user 'nobody'"),
        (["--limit", "0"], "--limit: '0' is not a whole number from 1 to 100"),
        (["--token-budget", "0"], "--token-budget: '0' is not a whole number"),
        (["--similarity-threshold", "nan"], "'nan' is not a number above 0, at most 2"),
        (["--filter-tags", "{"], "This is not valid JSON."),
    ],
)
def test_search_says_what_is_wrong_in_one_line(where, words, message):
    with pytest.raises(CommandError, match=message):
        run("search", "card", *where, *words)


def test_the_index_tells_how_it_stands_and_is_written_anew(owner, stranger, where):
    make_skill(owner)
    make_skill(stranger)
    Skill.objects.filter(name="refund").update(status="archived")
    here = ["--organization", owner.organization.name]
    assert run("search_index", "status", *here).splitlines() == [
        "3 active skills, 1 of them not indexed; 1 indexed that are not active; 13 postings",
        "write it anew with: ./run search_index rebuild",
    ]
    assert run("search_index", "rebuild", *here).splitlines()[0] == "3 skills indexed"
    state = json.loads(run("search_index", "status", *here, "--json"))
    assert (state["active"], state["missing"], state["outdated"]) == (3, 0, 0)
    assert not SkillDocument.objects.filter(organization=stranger.organization).exists()
    assert run("search_index", "rebuild").splitlines()[0] == "4 skills indexed"


@pytest.mark.django_db(transaction=True)
def test_a_rebuilt_index_is_settled_at_once(where):
    run("search_index", "rebuild")
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = %s", [SkillPosting._meta.db_table])
        assert cursor.fetchone() == (SkillPosting.objects.count(),)
