from __future__ import annotations

from math import log
from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mirix.text import slugify
from skills.models import Skill, SkillPosting
from skills.search import lexical
from skills.search.lexical import (
    FIELD_WEIGHTS,
    RERANKED,
    asked_terms,
    matched_terms,
    rank,
)
from tests.data import shared
from tests.factories import make_owner
from tests.skills.search.corpora import publish
from tests.skills.search.reference import Benchmark, Corpus, ndcg_at_10

pytestmark = pytest.mark.django_db

ALL = tuple(FIELD_WEIGHTS)


def found(owner, query, fields=ALL, **options) -> list[tuple[str, float]]:
    """What one lane returns, by the skills' names."""
    ranking = rank(
        organization=owner.organization, owner=owner, query=query, lanes=[fields], depth=100, **options
    )
    (lane,) = ranking.lanes
    assert len(lane) == min(ranking.total, 100)
    names = dict(Skill.objects.values_list("pk", "name"))
    return [(names[skill_id], score) for skill_id, score in lane]


def test_scores_are_bm25_as_computed_by_hand(owner):
    publish(
        owner,
        [
            {"name": "pay", "description": "card card number", "instructions": "charge"},
            {"name": "refund", "description": "card", "instructions": "give money back"},
            {"name": "book", "description": "flight", "instructions": "x", "triggers": ["book a seat"]},
        ],
    )
    # Of 3 skills 2 have "card". Descriptions have 3, 1 and 1 terms, 5/3 on average.
    idf = log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    pay = 1.0 * 2 / (0.25 + 0.75 * 3 / (5 / 3))
    refund = 1.0 * 1 / (0.25 + 0.75 * 1 / (5 / 3))
    assert found(owner, "card") == [
        ("refund", pytest.approx(idf * refund / (1.0 + refund), rel=1e-6)),
        ("pay", pytest.approx(idf * pay / (1.0 + pay), rel=1e-6)),
    ]
    # One skill has "book", in two fields: 1 of 1 term in the name, 1 of 3 in the triggers, 1 on average.
    book = 2.0 * 1 / (0.25 + 0.75 * 1 / 1) + 1.5 * 1 / (0.25 + 0.75 * 3 / 1)
    assert found(owner, "book") == [
        ("book", pytest.approx(log(1 + (3 - 1 + 0.5) / (1 + 0.5)) * book / (1.0 + book), rel=1e-6))
    ]


VOCABULARY = [
    "card",
    "cards",
    "refund",
    "no-verify",
    "the",
    "a",
    "getUser",
    "seat",
    "東京",
    "v1.2",
    "e-mail",
    "🚀",
]


@pytest.mark.parametrize("seed", range(12))
def test_scores_equal_the_reference_on_random_corpora(owner, seed):
    random = Random(seed)

    def text(most: int) -> str:
        return " ".join(random.choices(VOCABULARY, k=random.randint(0, most)))

    rows = [
        {
            "name": f"{random.choice(['pay', 'card', 'seat'])}-{number}",
            "description": text(8),
            "instructions": text(40),
            "triggers": [text(4) for _ in range(random.randint(0, 3))],
        }
        for number in range(random.choice([1, 2, 30]))
    ]
    publish(owner, rows)
    publish(make_owner(owner.organization), [{"name": "other", "description": "card the a refund"}])
    corpus = Corpus({row["name"]: {**row, "triggers": "\n".join(row["triggers"])} for row in rows})
    for fields in [ALL, ("name", "description"), *((field,) for field in ALL)]:
        for query in [text(6), "card", "the a", "the card", "seat seat v1.2"]:
            expected = dict(corpus.rank(query, fields))
            scores = dict(found(owner, query, fields))
            assert scores == pytest.approx(expected, rel=1e-5), (query, fields)
            ordered = [expected[name] for name in scores]
            assert ordered == pytest.approx(sorted(ordered, reverse=True), rel=1e-5)


def test_lanes_of_one_statement_equal_lanes_asked_for_alone(owner, django_assert_num_queries):
    publish(
        owner,
        [
            {"name": "pay-by-card", "description": "charge it", "instructions": "card card"},
            {"name": "refund", "description": "to the card"},
            {"name": "seat", "instructions": "the card is not needed"},
        ],
    )
    lanes = [ALL, ("name", "description")]
    with django_assert_num_queries(1):
        both = rank(organization=owner.organization, owner=owner, query="the card", lanes=lanes, depth=10)
    alone = [
        rank(organization=owner.organization, owner=owner, query="the card", lanes=[lane], depth=10)
        for lane in lanes
    ]
    assert both.lanes == [ranking.lanes[0] for ranking in alone]
    assert (both.total, len(both.lanes[1])) == (3, 2)


def test_postings_are_read_once_a_term_also_where_the_planner_knows_nothing(owner):
    publish(owner, [{"name": f"card-{number}", "description": "the seat"} for number in range(300)])
    with connection.cursor() as cursor:
        # What other tests rolled back still stands in the indexes, and makes them dear; in no new table.
        cursor.execute(f"REINDEX TABLE {SkillPosting._meta.db_table}")
        cursor.execute(
            "UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE oid = %s::regclass",
            [SkillPosting._meta.db_table],
        )
    with CaptureQueriesContext(connection) as captured:
        rank(organization=owner.organization, owner=owner, query="the card seat", lanes=[ALL], depth=10)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {captured[0]['sql']}")
        ((plan,),) = cursor.fetchall()
    reads = [
        node for node in _nodes(plan[0]["Plan"]) if node.get("Index Name") == "posting_organization_term"
    ]
    assert [node["Actual Loops"] for node in reads] == [2, 2]


def _nodes(node):
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)


def test_depth_cuts_the_list_and_not_the_total(owner):
    publish(owner, [{"name": f"card-{number}"} for number in range(5)])
    ranking = rank(organization=owner.organization, owner=owner, query="card", lanes=[ALL], depth=2)
    assert (len(ranking.lanes[0]), ranking.total) == (2, 5)


def test_of_equal_scores_the_older_skill_comes_first(owner):
    skills = publish(owner, [{"name": f"card-{number}"} for number in (3, 1, 2, 5, 4)])
    lane = rank(organization=owner.organization, owner=owner, query="card", lanes=[ALL], depth=9).lanes[0]
    assert len({score for _, score in lane}) == 1
    assert [skill_id for skill_id, _ in lane] == sorted(skill.pk for skill in skills)


def test_statistics_are_those_of_the_scope_that_is_searched(owner):
    mate = make_owner(owner.organization)
    publish(owner, [{"name": "card"}, {"name": "seat"}])
    before = found(owner, "card")
    publish(mate, [{"name": "card"}, {"name": "card-two"}, {"name": "bag"}])
    assert found(owner, "card") == before
    everyone = rank(organization=owner.organization, owner=None, query="card", lanes=[ALL], depth=10)
    corpus = Corpus(
        {name: {"name": name.split("/")[1]} for name in ["1/card", "1/seat", "2/card", "2/card-two", "2/bag"]}
    )
    assert sorted(score for _, score in everyone.lanes[0]) == pytest.approx(
        sorted(score for _, score in corpus.rank("card")), rel=1e-5
    )


def test_eligible_narrows_what_is_found_and_not_the_scores(owner):
    publish(owner, [{"name": "card"}, {"name": "card-two", "filter_tags": {"desk": "eu"}}, {"name": "bag"}])
    eligible = Skill.objects.filter(filter_tags__desk="eu")
    assert found(owner, "card", eligible=eligible) == [
        pair for pair in found(owner, "card") if pair[0] == "card-two"
    ]


def test_stop_words_find_only_where_there_is_nothing_else(owner):
    publish(owner, [{"name": "pay", "description": "the card"}, {"name": "seat", "description": "the seat"}])
    assert [name for name, _ in found(owner, "the card")] == ["pay"]
    assert sorted(name for name, _ in found(owner, "what is the")) == ["pay", "seat"]
    assert found(owner, "what is it") == []


def test_stop_words_rank_the_best_that_the_other_terms_found_and_no_others(owner):
    rows = [
        {"name": f"n{number}", "description": "card " + "seat " * number + "the " * (number % 7)}
        for number in range(RERANKED + 30)
    ]
    publish(owner, rows)
    query = "the card of a the"
    best = found(owner, query)
    expected = dict(Corpus({row["name"]: row for row in rows}).rank(query))
    assert [name for name, _ in best] != [name for name, _ in found(owner, "card")]
    assert dict(best) == pytest.approx({name: expected[name] for name, _ in best}, rel=1e-5)
    assert {name for name, _ in best} == {name for name, _ in found(owner, "card")}
    everyone = rank(organization=owner.organization, owner=owner, query=query, lanes=[ALL], depth=100)
    assert everyone.total == RERANKED + 30


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("東京", ["tokyo"]),
        ("京", ["tokyo"]),
        ("東京のホテル", ["tokyo"]),
        ("c", ["lang"]),
        ("C++", ["lang"]),
        ("🚀", ["ship"]),
        ("skip hooks no-verify", ["ship"]),
        ("--no-verify", ["ship"]),
        ("getUserById", ["lang"]),
        ("get_user_by_id", ["lang"]),
        ("econnreset", ["ship"]),
        ("nginx.conf", ["lang"]),
        ("3.11", ["lang"]),
        ('"ship" & !lang | (nginx:*) <-> %_', ["lang", "ship"]),
        ("ship'; DROP TABLE skills_skill; --", ["ship"]),
        ("%", []),
        ("_", []),
        ("\\", []),
        ("'", []),
        ("zzz", []),
        ("", []),
    ],
)
def test_any_text_is_only_text(owner, query, expected):
    publish(
        owner,
        [
            {"name": "tokyo", "description": "東京都で泊まるとき。", "instructions": "旅館を探す"},
            {
                "name": "lang",
                "description": "C and C++ and getUserById",
                "instructions": "python3.11 /etc/nginx/nginx.conf",
            },
            {
                "name": "ship",
                "description": "Ship 🚀 on ECONNRESET",
                "instructions": "git commit --no-verify",
            },
        ],
    )
    assert sorted(name for name, _ in found(owner, query)) == expected


def test_a_query_of_2000_characters_is_answered_by_its_first_terms(owner):
    publish(owner, [{"name": "card"}, {"name": "seat"}])
    words = " ".join(f"word{number}" for number in range(400))[:1_990]
    assert [name for name, _ in found(owner, f"card {words}")] == ["card"]
    assert [name for name, _ in found(owner, "card " * 400)] == ["card"]


def test_matched_terms_stand_in_the_order_of_the_query(owner):
    card, seat = publish(
        owner, [{"name": "card", "description": "the number"}, {"name": "seat", "instructions": "card"}]
    )
    matched = matched_terms(
        organization=owner.organization,
        owner=owner,
        query="number of the card",
        skill_ids=[card.pk, seat.pk],
    )
    assert matched == {card.pk: ["number", "card", "the"], seat.pk: ["card"]}


class TestALongQuery:
    """Of more terms than are asked for: those that say most in the scope are."""

    LOG = "ERROR 2026 deploy of web-7 failed: timeout; " * 20

    def test_words_that_no_skill_has_take_no_place_of_those_that_it_has(self, owner):
        publish(owner, [{"name": "gif"}, {"name": "seat", "description": "the animation"}])
        many = " ".join(f"word{number}" for number in range(200))
        assert found(owner, f"{self.LOG} gif {self.LOG}")[0][0] == "gif"
        for text in (many, self.LOG):
            for query in (f"animated gif {text}", f"{text} animated gif"):
                assert found(owner, query)[0][0] == "gif"

    def test_the_rare_terms_stay_and_of_equal_ones_those_near_to_an_end(self, owner):
        rare, common = ([f"{kind}{chr(97 + n)}q" for n in range(20)] for kind in ("rare", "common"))
        publish(
            owner,
            [{"name": "x", "description": " ".join(rare)}]
            + [{"name": f"y-{number}", "description": " ".join(common)} for number in range(3)],
        )
        padding = "word " * 30
        query = f"{padding} {' '.join(common)} {' '.join(rare)} {padding}"
        chosen = asked_terms(organization=owner.organization, owner=owner, query=query)
        assert list(chosen) == [*reversed(rare), *common[:12]]

    def test_a_term_counts_once_and_more_at_the_ends(self, owner):
        publish(owner, [{"name": "gif", "description": "deploy"}])
        chosen = asked_terms(organization=owner.organization, owner=owner, query=f"{self.LOG} gif")
        assert chosen == {"gif": 1.5, "deploy": 1.5}
        chosen = asked_terms(
            organization=owner.organization, owner=owner, query=f"{self.LOG} gif {self.LOG} {'9' * 100}"
        )
        assert chosen == {"gif": 1.0, "deploy": 1.5}

    def test_statistics_are_those_of_the_scope(self, owner, stranger):
        publish(owner, [{"name": "seat"}])
        publish(make_owner(owner.organization), [{"name": "gif"}])
        publish(stranger, [{"name": "deploy"}])
        query = f"{self.LOG} gif seat"
        asked = {"organization": owner.organization, "query": query}
        assert list(asked_terms(owner=owner, **asked)) == ["seat"]
        assert sorted(asked_terms(owner=None, **asked)) == ["gif", "seat"]

    def test_it_takes_one_statement_more_and_a_short_one_does_not(self, owner, django_assert_num_queries):
        publish(owner, [{"name": "gif"}])
        short = "seat " * 47 + "the gif"
        for query, statements in ((short, 1), (f"{short} gif", 2), (self.LOG, 1)):
            with django_assert_num_queries(statements):
                rank(organization=owner.organization, owner=owner, query=query, lanes=[ALL], depth=10)

    def test_it_equals_the_reference(self, owner):
        random = Random(3)
        words = ["".join(random.choices("abcdefgh", k=4)) for _ in range(120)]
        rows = [
            {"name": f"n{number}", "description": " ".join(random.sample(words, 12))} for number in range(40)
        ]
        publish(owner, rows)
        corpus = Corpus({row["name"]: row for row in rows})
        for _ in range(10):
            query = " ".join(random.choices(words, k=random.choice([20, 60, 200])))
            assert dict(found(owner, query)) == pytest.approx(dict(corpus.rank(query)), rel=1e-5)

    def test_of_each_term_no_more_skills_are_counted_than_needed(self, owner, monkeypatch):
        monkeypatch.setattr(lexical, "COUNTED_UP_TO", 2)
        rows = [{"name": f"deploy-{number}", "description": "gif" * (number > 1)} for number in range(5)]
        publish(owner, rows)
        query = f"deploy {self.LOG} gif"
        assert list(asked_terms(organization=owner.organization, owner=owner, query=query)) == [
            "deploy",
            "gif",
        ]


def test_tool_descriptions_are_found_as_well_as_measured(owner):
    """Public tool descriptions, 199 with 597 questions: nDCG@10 is 0.651."""
    benchmark = Benchmark.read(shared("retrieval/metatool_single"))
    # Names there are no slugs, so that capitals show where words begin: they stand among the triggers.
    rows = [
        {
            "name": slugify(texts["name"]),
            "triggers": [texts["name"]],
            "description": texts["description"],
        }
        for texts in benchmark.documents.values()
    ]
    skills = publish(owner, rows)
    keys = {skill.pk: key for skill, key in zip(skills, benchmark.documents, strict=True)}
    gains = []
    for number, query in benchmark.queries.items():
        ranking = rank(organization=owner.organization, owner=owner, query=query, lanes=[ALL], depth=10)
        ranked = [keys[skill_id] for skill_id, _ in ranking.lanes[0]]
        gains.append(ndcg_at_10(ranked, benchmark.relevant[number]))
    assert sum(gains) / len(gains) >= 0.645
