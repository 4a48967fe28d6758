"""What search keeps in Redis: the same answers whatever Redis does, none older than what was published."""

from __future__ import annotations

import inspect
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import pytest
from django.db import connection, transaction
from hypothesis import given
from hypothesis import strategies as st
from redis.exceptions import RedisError

from mirix import redis as redis_access
from mirix.caches import caches
from skills.models import SearchChange, Skill, SkillStatus
from skills.search import analysis, lexical, semantic, service
from skills.search import cache as module
from skills.search.cache import Found, SearchCache, _read_found, _seal, _write_found, _write_vector
from skills.search.changes import changes_of, note_change
from skills.search.embedding import embed_missing
from skills.search.index import index_skill, rebuild, remove_skill
from skills.search.service import search
from tests.factories import make_owner
from tests.redis import redis, redis_server
from tests.skills.search.corpora import publish

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def redis_url():
    with redis() as url:
        yield url


@pytest.fixture
def kept(settings, redis_url, monkeypatch) -> SearchCache:
    """A cache of a process that just began, in an empty Redis."""
    settings.CACHES = caches(redis_url)
    client().flushdb()
    cache = SearchCache()
    monkeypatch.setattr(service, "cache", cache)
    return cache


def client():
    from django.core.cache import cache

    return cache.client.get_client(write=True)


def keys(what: str = "") -> list[str]:
    return sorted(name.decode() for name in client().keys(f"mirix:search:*{what}*"))


@pytest.fixture
def cards(owner, endpoint) -> dict[str, Skill]:
    skills = publish(owner, [{"name": "card"}, {"name": "card-payment"}, {"name": "seat"}])
    embed_missing()
    endpoint.script.requests.clear()
    return {skill.name: skill for skill in skills}


def find(owner, query="pay by card", **options):
    return search(organization=owner.organization, owner=owner, query=query, **options)


def shown(result) -> tuple:
    return (
        [(hit.skill.name, hit.score, hit.lanes) for hit in result.hits],
        result.total_count,
        result.degraded,
    )


class TestKept:
    def test_an_answer_that_is_kept_is_the_same_and_asks_neither_endpoint_nor_index(
        self, owner, cards, endpoint, kept, django_assert_num_queries
    ):
        fresh = find(owner, explain=True)
        assert (kept.hits, kept.misses) == (0, 2)
        with django_assert_num_queries(3):  # the number of changes, the skills, the matched terms
            again = find(owner, explain=True)
        assert shown(again) == shown(fresh)
        assert (kept.hits, len(endpoint.script.requests)) == (1, 1)

    def test_without_redis_nothing_is_kept_and_no_statement_is_added(
        self, owner, cards, settings, django_assert_num_queries
    ):
        settings.MIRIX_EMBEDDING_MODEL = ""
        for _ in range(2):
            with django_assert_num_queries(2):
                find(owner)

    @pytest.mark.parametrize(
        "other",
        [
            {"query": "pay by cards"},
            {"method": "embedding"},
            {"method": "bm25"},
            {"field": "name"},
            {"similarity_threshold": 0.5},
            {"filter_tags": {"team": "a"}},
        ],
    )
    def test_another_question_is_another_answer(self, owner, cards, kept, other):
        find(owner)
        before = len(keys("found"))
        find(owner, **other)
        assert len(keys("found")) == before + 1

    def test_the_limit_cuts_what_is_kept(self, owner, cards, kept):
        find(owner, limit=1)
        assert [hit.skill.name for hit in find(owner, limit=3).hits] == ["card", "card-payment", "seat"]
        assert kept.hits == 1

    def test_nobody_gets_what_was_kept_for_another(self, owner, stranger, cards, kept):
        mate = make_owner(owner.organization)
        find(owner)
        assert find(mate).hits == find(stranger).hits == []

    def test_a_search_across_the_organization_keeps_the_vector_alone(self, owner, cards, kept):
        for _ in range(2):
            search(organization=owner.organization, owner=None, query="card")
        assert (keys("found"), len(keys("vector")), kept.hits) == ([], 1, 1)

    def test_keys_hold_no_word_of_the_query(self, owner, cards, kept):
        find(owner, "unspeakable")
        everything = [name.encode() + client().get(name) for name in keys()]
        assert len(everything) == 2
        assert not [data for data in everything if b"unspeakable" in data]
        assert all(0 < client().ttl(name) <= module.VECTOR_SECONDS for name in keys())

    def test_an_answer_that_had_to_do_without_its_endpoint_is_not_kept(self, owner, cards, endpoint, kept):
        endpoint.script.status = 500
        assert find(owner).degraded == "the endpoint answered with status 500; lexical lane alone"
        assert keys() == []
        endpoint.script.status = 200
        assert find(owner).degraded is None


class TestChanges:
    """Whatever changes what agents may find is seen by the very next search, the cache warm."""

    def test_publishing_archiving_and_removing(self, owner, cards, kept):
        find(owner)
        publish(owner, [{"name": "card-refund"}])
        assert "card-refund" in [hit.skill.name for hit in find(owner).hits]
        Skill.objects.filter(pk=cards["card"].pk).update(status=SkillStatus.ARCHIVED)
        assert "card" not in [hit.skill.name for hit in find(owner).hits], "even where no service was asked"
        index_skill(Skill.objects.get(pk=cards["card"].pk))
        assert find(owner).total_count == 3
        remove_skill(cards["seat"].pk)
        assert find(owner).total_count == 2

    def test_a_new_vector(self, owner, cards, kept):
        publish(owner, [{"name": "card-refund"}])
        assert find(owner).degraded == "1 of 4 skills have no embedding yet; found by words alone"
        embed_missing()
        assert find(owner).degraded is None

    def test_the_number_grows_with_every_change_of_the_owner_alone(self, owner, stranger):
        mate = make_owner(owner.organization)
        (skill,) = publish(owner, [{"name": "card"}])
        before = changes_of(owner)
        index_skill(skill)
        assert changes_of(owner) == before + 1
        rebuild(owner.organization)
        assert changes_of(owner) == before + 2
        assert (changes_of(mate), changes_of(stranger)) == (0, 0)

    def test_the_rows_of_an_owner_are_folded(self, owner):
        (skill,) = publish(owner, [{"name": "card"}])
        for _ in range(5):
            note_change([skill, skill])
        assert SearchChange.objects.for_owner(owner).count() == 1

    def test_a_change_that_is_undone_counts_nothing(self, owner):
        (skill,) = publish(owner, [{"name": "card"}])
        before = changes_of(owner)
        with transaction.atomic():
            note_change([skill])
            transaction.set_rollback(True)
        assert changes_of(owner) == before


@pytest.mark.django_db(transaction=True)
def test_changes_at_once_wait_for_nobody_and_are_all_counted():
    owner = make_owner()
    (skill,) = publish(owner, [{"name": "card"}])
    before, threads = changes_of(owner), 8
    together = Barrier(threads)

    def change(_: int) -> None:
        try:
            for _ in range(5):
                with transaction.atomic():
                    note_change([skill])
                    together.wait(timeout=30)  # all of them hold what they wrote at the same moment
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(change, range(threads)))
    assert changes_of(owner) == before + threads * 5
    note_change([skill])
    assert SearchChange.objects.for_owner(owner).count() == 1


class TestRedisAtFault:
    def test_down_it_is_left_in_peace_and_answers_are_the_same(
        self, owner, cards, settings, monkeypatch, caplog
    ):
        cache = SearchCache()
        monkeypatch.setattr(service, "cache", cache)
        with redis_server() as url:
            settings.CACHES = caches(url)
            fresh = find(owner)
        for _ in range(3):
            assert shown(find(owner)) == shown(fresh)
        assert cache.redis.failures == 1
        assert caplog.text.count("Redis is out of reach") == 1

    def test_slow_it_costs_one_search_its_patience(self, owner, cards, kept, monkeypatch):
        fresh = find(owner)
        monkeypatch.setattr(redis_access, "monotonic", lambda: 1_000.0)
        client().execute_command("CLIENT", "PAUSE", "1500", "ALL")
        for _ in range(3):
            assert shown(find(owner)) == shown(fresh)
        assert kept.redis.failures == 1
        while True:  # the next test wants it awake
            with suppress(RedisError):
                client().ping()
                break

    def test_flushed_it_is_filled_again(self, owner, cards, kept):
        fresh = find(owner)
        client().flushdb()
        assert shown(find(owner)) == shown(fresh)
        assert len(keys()) == 2

    @pytest.mark.parametrize(
        "garbage",
        [
            b"",
            b"\x00\xff",
            b"null",
            b"[]",
            b"[1,2,3]",
            b'[{"all":[["proc-x"]]},1,null]',
            b'[{"all":[["proc-x",NaN]]},1,null]',
            b'[{"all":[[1,1.0]]},1,null]',
            b'[{},"1",null]',
            b"[" * 100_000,
            b"AAAA",
            b"[{},0,null]",
            b'[{"all":[],"x":[]},0,null]',
            b'[{"all":[],"name_description":[],"semantic":[]},-5,null]',
            b'[{"all":[["proc-\\u0000",1.0]],"name_description":[],"semantic":[]},1,null]',
            b'[{"all":[["proc-\\ud800",1.0]],"name_description":[],"semantic":[]},1,null]',
            b'[{"all":[["proc-x",' + b"9" * 400 + b']],"name_description":[],"semantic":[]},1,null]',
            b'[{"all":[],"name_description":[],"semantic":[]},0,"\\ud800"]',
            b'[{"all":[],"name_description":[],"semantic":[]},' + b"9" * 21 + b",null]",
            _write_vector([1.0] + [0.0] * 20_000),
        ],
    )
    def test_full_of_garbage_it_is_made_anew_and_counted(self, owner, cards, kept, garbage):
        fresh = find(owner)
        for name in keys():
            client().set(name, garbage)
        assert shown(find(owner)) == shown(fresh)
        assert (kept.garbage, kept.redis.failures) == (2, 0)
        assert shown(find(owner)) == shown(fresh)
        assert kept.garbage == 2, "it was made anew"

    def test_the_answer_to_another_question_is_garbage(self, owner, cards, kept):
        fresh = find(owner, method="bm25")
        (name,) = keys("found")
        find(owner, "seat", method="bm25")
        (other,) = set(keys("found")) - {name}
        client().set(name, client().get(other))
        assert shown(find(owner, method="bm25")) == shown(fresh)
        assert kept.garbage == 1

    def test_what_was_sealed_with_another_secret_is_garbage(self, owner, cards, kept, settings):
        fresh = find(owner)
        sealed = {name.rpartition(":")[0].split(":")[-1]: client().get(name) for name in keys()}
        settings.SECRET_KEY = "another"
        find(owner)
        for name in keys():
            client().set(name, sealed[name.rpartition(":")[0].split(":")[-1]])
        assert shown(find(owner)) == shown(fresh)
        assert kept.garbage == 2

    def test_a_vector_that_fits_no_skill_is_asked_for_again(self, owner, cards, endpoint, kept):
        embed = endpoint.script.embed
        endpoint.script.embed = lambda text: [1.0, 0.0]
        assert find(owner).degraded == "none of 3 skills has an embedding of this model; lexical lane alone"
        endpoint.script.embed = embed
        assert find(owner).degraded is None

    def test_a_value_of_another_type_is_garbage(self, owner, cards, kept):
        fresh = find(owner)
        for name in keys():
            client().delete(name)
            client().lpush(name, "x")
        assert shown(find(owner)) == shown(fresh)
        assert (kept.garbage, kept.redis.failures) == (2, 0)

    def test_who_writes_foreign_skills_into_it_leaks_none(self, owner, stranger, cards, kept):
        (foreign,) = publish(stranger, [{"name": "card"}])
        fresh = find(owner)
        (name,) = keys("found")
        planted = json.dumps([{"all": [[foreign.pk, 9.0]], "name_description": []}, 1, None]).encode()
        client().set(name, planted)
        assert shown(find(owner)) == shown(fresh)
        client().set(name, _seal(name, planted) + planted)
        assert find(owner).hits == []


class TestRelease:
    def test_keys_of_an_earlier_release_go_and_nothing_else(self, owner, cards, kept, monkeypatch, caplog):
        find(owner)
        old = keys()
        client().set("mirix:throttle:x", "1")
        client().set("other:search:1", "1")
        monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
        monkeypatch.setattr(service, "cache", SearchCache())
        fresh = find(owner)
        assert len(keys()) == 2
        assert not set(keys()) & set(old)
        assert client().get("mirix:throttle:x") == client().get("other:search:1") == b"1"
        assert "search in Redis was of another release" in caplog.text
        assert "2 of its keys dropped" in caplog.text
        assert shown(find(owner)) == shown(fresh)

    @pytest.mark.parametrize("part", [analysis, lexical, semantic])
    def test_another_way_to_find_skills_is_another_release(self, monkeypatch, part):
        """Whatever of it changes: a stop word, a weight, how many terms of a query count, a statement."""
        ours, source = module.fingerprint(), inspect.getsource

        def of_another_release(asked):
            return source(asked) + ("\n" if asked is part else "")

        monkeypatch.setattr(inspect, "getsource", of_another_release)
        module._finding.cache_clear()
        assert module.fingerprint() != ours
        monkeypatch.undo()
        module._finding.cache_clear()
        assert module.fingerprint() == ours

    def test_another_stemmer_is_another_release(self, monkeypatch):
        ours = module.fingerprint()
        monkeypatch.setattr(module, "version", lambda name: "another")
        module._finding.cache_clear()
        assert module.fingerprint() != ours
        monkeypatch.undo()
        module._finding.cache_clear()
        assert module.fingerprint() == ours

    def test_the_same_release_keeps_what_is_there(self, owner, cards, kept, monkeypatch, caplog):
        find(owner)
        again = SearchCache()
        monkeypatch.setattr(service, "cache", again)
        find(owner)
        assert again.hits == 1
        assert "another release" not in caplog.text


IDS = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
SCORED = st.tuples(IDS, st.floats(allow_nan=False, allow_infinity=False))


@given(
    lanes=st.dictionaries(st.text(max_size=20), st.lists(SCORED, max_size=5), max_size=3),
    total=st.integers(min_value=0),
    degraded=st.none() | st.text(),
)
def test_what_was_found_is_read_as_it_was_written(lanes, total, degraded):
    found = Found(lanes=lanes, total=total, degraded=degraded)
    assert _read_found(_write_found(found)) == found
