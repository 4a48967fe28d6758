"""The endpoint of embeddings: what it is asked, and what becomes of bad answers."""

from __future__ import annotations

import gzip
import math
import subprocess
import sys
import time

import pytest

from mirix.llm import checks, embeddings
from mirix.llm.embeddings import (
    MAX_QUERY_CHARS,
    REST_SECONDS,
    SHORT_QUERY_CHARS,
    EmbeddingConfig,
    EmbeddingEndpoint,
    EmbeddingFailed,
    asked_of,
    get_endpoint,
)
from tests.endpoints import scripted_endpoint, word_vector


def failure(call, *arguments) -> EmbeddingFailed:
    with pytest.raises(EmbeddingFailed) as failed:
        call(*arguments)
    return failed.value


def unit(vector):
    return [number / math.hypot(*vector) for number in vector]


def test_without_a_model_there_is_none(settings):
    settings.MIRIX_EMBEDDING_MODEL = ""
    settings.MIRIX_EMBEDDING_BASE_URL = "http://127.0.0.1:9/v1"
    assert get_endpoint() is None


@pytest.mark.parametrize("encoded", [True, False])
def test_vectors_come_in_the_order_of_the_texts_and_of_length_one(endpoint, encoded):
    endpoint.script.base64 = encoded
    endpoint.script.alter = lambda items: list(reversed(items))
    texts = ["charge a card", "refund", "charge twice charge"]
    vectors = get_endpoint().embed_documents(texts)
    assert vectors == [pytest.approx(unit(word_vector(text)), abs=1e-6) for text in texts]
    (request,) = endpoint.script.requests
    assert request == {"model": "scripted", "input": texts, "encoding_format": "base64"}
    assert get_endpoint().embed_documents([]) == []
    assert len(endpoint.script.requests) == 1


def test_prefixes_and_input_types_tell_queries_from_documents(endpoint, settings):
    settings.MIRIX_EMBEDDING_QUERY_PREFIX = "query: "
    settings.MIRIX_EMBEDDING_DOCUMENT_PREFIX = "passage: "
    settings.MIRIX_EMBEDDING_QUERY_INPUT_TYPE = "query"
    settings.MIRIX_EMBEDDING_DOCUMENT_INPUT_TYPE = "passage"
    settings.MIRIX_EMBEDDING_API_KEY = "sesame"
    asked = get_endpoint()
    asked.embed_query("refund")
    asked.embed_documents(["refund"])
    asked.embed_query("How?" + "x" * 10_000 + "Why?")
    asked.close()
    query, document, long_query = endpoint.script.requests
    assert (query["input"], query["input_type"]) == (["query: refund"], "query")
    assert (document["input"], document["input_type"]) == (["passage: refund"], "passage")
    assert long_query["input"] == [f"query: How?{'x' * 495}\n{'x' * 495}Why?"]
    assert set(endpoint.script.keys) == {"Bearer sesame"}


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ({"status": 500}, "the endpoint answered with status 500"),
        ({"status": 401}, "the endpoint answered with status 401, the key is not accepted"),
        ({"status": 404}, "the endpoint answered with status 404, unknown model or address"),
        ({"status": 429}, "the endpoint answered with status 429, too many requests"),
        (
            {"status": 502, "body": b"<html>", "content_type": "text/html"},
            "the endpoint answered with status 502",
        ),
        ({"body": b"<html>Sign in</html>", "content_type": "text/html"}, "the endpoint's answer is not JSON"),
        ({"body": b""}, "the endpoint's answer is not JSON"),
        ({"body": b"\xff\xfe{"}, "the endpoint's answer is not JSON"),
        ({"body": b"[" * 100_000}, "the endpoint's answer is not JSON"),
        ({"body": b"null"}, "the endpoint's answer holds no embeddings"),
        ({"body": b'{"error": "no"}'}, "the endpoint's answer holds no embeddings"),
        (
            {"body": b"{}", "headers": {"Content-Encoding": "gzip"}},
            "the endpoint cannot be reached, or broke off",
        ),
        ({"alter": lambda items: [7]}, "the endpoint's answer holds no embeddings"),
        ({"alter": lambda items: []}, "the endpoint answered with 0 vectors for 1 texts"),
        ({"alter": lambda items: items * 2}, "the endpoint answered with 2 vectors for 1 texts"),
        ({"alter": lambda items: [items[0] | {"index": 3}]}, "the endpoint numbered its vectors wrongly"),
        ({"alter": lambda items: [items[0] | {"index": []}]}, "the endpoint numbered its vectors wrongly"),
        ({"embed": lambda text: [math.nan, 1]}, "the endpoint answered with numbers that are not finite"),
        ({"embed": lambda text: [math.inf, 1]}, "the endpoint answered with numbers that are not finite"),
        ({"embed": lambda text: [0.0, 0.0]}, "the endpoint answered with a vector of zeros"),
        ({"embed": lambda text: []}, "the endpoint answered with a vector that has not 1 to 16000 numbers"),
        (
            {"embed": lambda text: [1.0] * 16_001},
            "the endpoint answered with a vector that has not 1 to 16000 numbers",
        ),
        (
            {"alter": lambda items: [items[0] | {"embedding": "!!!"}]},
            "the endpoint answered with a vector that cannot be decoded",
        ),
        (
            {"alter": lambda items: [items[0] | {"embedding": "AAAAAAA="}]},
            "the endpoint answered with a vector that cannot be decoded",
        ),
        (
            {"alter": lambda items: [items[0] | {"embedding": [1, "x"]}]},
            "the endpoint answered with a vector that does not consist of numbers",
        ),
        (
            {"alter": lambda items: [items[0] | {"embedding": [1, True]}]},
            "the endpoint answered with a vector that does not consist of numbers",
        ),
        (
            {"alter": lambda items: [items[0] | {"embedding": [10**400, 1]}]},
            "the endpoint answered with numbers that are not finite",
        ),
    ],
)
def test_a_bad_answer_fails_with_a_short_reason_without_the_text(endpoint, script, reason):
    for name, value in script.items():
        setattr(endpoint.script, name, value)
    failed = failure(get_endpoint().embed_query, "the secret plan")
    assert failed.reason == str(failed) == reason
    assert not failed.refused
    assert len(endpoint.script.requests) == 1  # a query is not asked again


def test_one_missing_vector_or_another_size_of_many_fails_all(endpoint):
    endpoint.script.alter = lambda items: items[:-1]
    assert failure(get_endpoint().embed_documents, ["a", "b"]).reason == (
        "the endpoint answered with 1 vectors for 2 texts"
    )
    endpoint.script.alter = lambda items: items
    endpoint.script.embed = lambda text: [1.0] * len(text)
    assert failure(get_endpoint().embed_documents, ["a", "bb"]).reason == (
        "the endpoint answered with vectors of different sizes"
    )


def test_texts_that_are_refused_are_told_from_an_endpoint_that_fails(endpoint):
    endpoint.script.refuse = lambda text: text == "poison"
    failed = failure(get_endpoint().embed_documents, ["good", "poison"])
    assert (failed.reason, failed.refused) == ("the endpoint answered with status 400", True)


def test_documents_are_asked_for_again_where_the_endpoint_was_busy(endpoint):
    endpoint.script.headers = {"Retry-After-Ms": "1"}

    def busy_once(items):
        endpoint.script.status = 200
        return items

    endpoint.script.status = 429
    endpoint.script.alter = lambda items: setattr(endpoint.script, "alter", busy_once) or items
    assert len(get_endpoint().embed_documents(["a"])) == 1
    assert [request["input"] for request in endpoint.script.requests] == [["a"]] * 3


def test_compressed_answers_are_read(endpoint):
    endpoint.script.body = gzip.compress(b'{"data": [{"embedding": [3, 4]}]}')
    endpoint.script.headers = {"Content-Encoding": "gzip"}
    assert get_endpoint().embed_query("a") == [0.6, 0.8]


@pytest.mark.parametrize("script", [{"slow": 30.0}, {"drip": 0.05}])
def test_a_slow_endpoint_costs_one_search_its_timeout_and_others_nothing(
    endpoint, settings, script, monkeypatch
):
    settings.MIRIX_EMBEDDING_TIMEOUT_SECONDS = 0.3
    get_endpoint().embed_query("so that the client is imported")
    for name, value in script.items():
        setattr(endpoint.script, name, value)
    begin = time.monotonic()
    assert failure(get_endpoint().embed_query, "a").reason == "the endpoint gave no answer within 0.3 s"
    assert 0.2 < time.monotonic() - begin < 5
    assert failure(get_endpoint().embed_query, "b").reason == "the endpoint gave no answer within 0.3 s"
    assert len(endpoint.script.requests) == 2
    endpoint.script.slow = endpoint.script.drip = 0.0
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + REST_SECONDS)
    assert len(get_endpoint().embed_query("c")) == 32


class TestRest:
    """What a wait in vain means for the next queries."""

    @pytest.fixture
    def asked(self, endpoint, settings):
        settings.MIRIX_EMBEDDING_TIMEOUT_SECONDS = 20.0
        return get_endpoint()

    def test_a_long_query_that_was_late_keeps_no_shorter_one_away(self, endpoint, settings):
        settings.MIRIX_EMBEDDING_TIMEOUT_SECONDS = 0.3
        endpoint.script.slow = 30.0
        asked, long = get_endpoint(), "a" * (SHORT_QUERY_CHARS + 1)
        assert failure(asked.embed_query, long)
        requests = len(endpoint.script.requests)
        for as_long in (long, "b" * MAX_QUERY_CHARS, "c" * 10_000):
            assert failure(asked.embed_query, as_long).reason == "the endpoint gave no answer within 0.3 s"
        assert len(endpoint.script.requests) == requests
        assert not asked._rest.reason_for(SHORT_QUERY_CHARS)

    def test_a_shorter_one_that_is_late_meanwhile_lowers_the_bar_and_a_longer_one_does_not(
        self, endpoint, asked
    ):
        for chars in (900, 600):
            asked._rest.begin(chars, "late")
        asked._rest.begin(800, "late")  # asked before the others were late
        assert len(asked.embed_query("a" * 599)) == 32
        assert failure(asked.embed_query, "a" * 600).reason == "late"

    def test_a_short_query_that_was_late_keeps_all_away_until_the_rest_is_over(
        self, endpoint, asked, monkeypatch
    ):
        asked._rest.begin(SHORT_QUERY_CHARS, "late")
        assert failure(asked.embed_query, "a").reason == "late"
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + REST_SECONDS)
        assert len(asked.embed_query("a")) == 32
        asked._rest.begin(900, "late")
        assert len(asked.embed_query("a")) == 32

    def test_an_error_that_took_long_to_come_is_a_wait_in_vain_and_a_quick_one_is_none(
        self, endpoint, asked, monkeypatch
    ):
        endpoint.script.status = 500
        for text in ("a", "b"):
            assert failure(asked.embed_query, text).reason == "the endpoint answered with status 500"
        assert len(endpoint.script.requests) == 2
        endpoint.script.slow = 0.3
        monkeypatch.setattr(embeddings, "VAIN_SHARE", 0.01)
        for text in ("c", "d"):
            assert failure(asked.embed_query, text).reason == "the endpoint answered with status 500"
        assert len(endpoint.script.requests) == 3


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", ""),
        ("a" * MAX_QUERY_CHARS, "a" * MAX_QUERY_CHARS),
        ("a" * 500 + "b" * 501, "a" * 499 + "\n" + "b" * 499),
    ],
)
def test_of_a_long_query_both_ends_are_embedded(query, asked):
    assert asked_of(query) == asked


def test_an_endpoint_that_is_down_fails_at_once_and_works_as_soon_as_it_is_back(settings):
    with scripted_endpoint() as served:
        pass
    gone = EmbeddingEndpoint(EmbeddingConfig(model="m", base_url=served.url, api_key="", timeout=10))
    for _ in range(2):
        assert failure(gone.embed_query, "a").reason == "the endpoint cannot be reached, or broke off"
    gone.close()


def test_an_address_that_is_none_fails_with_a_reason():
    nowhere = EmbeddingEndpoint(EmbeddingConfig(model="m", base_url="http://", api_key="", timeout=1))
    assert failure(nowhere.embed_query, "a").reason
    nowhere.close()


def test_the_space_changes_with_what_makes_vectors_incomparable(endpoint, settings):
    spaces = {get_endpoint().space("a"), get_endpoint().space("b")}
    settings.MIRIX_EMBEDDING_QUERY_PREFIX = "query: "
    settings.MIRIX_EMBEDDING_BASE_URL = "http://127.0.0.1:9/v1"
    assert get_endpoint().space("a") in spaces
    settings.MIRIX_EMBEDDING_DOCUMENT_PREFIX = "passage: "
    spaces.add(get_endpoint().space("a"))
    settings.MIRIX_EMBEDDING_DOCUMENT_INPUT_TYPE = "passage"
    spaces.add(get_endpoint().space("a"))
    settings.MIRIX_EMBEDDING_MODEL = "other"
    spaces.add(get_endpoint().space("a"))
    assert len(spaces) == 5
    assert sorted(space.partition("#")[0] for space in spaces) == ["other"] + ["scripted"] * 4


def test_the_client_is_imported_only_when_it_is_asked():
    code = "import mirix.llm.embeddings, sys; sys.exit('openai' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("model", "loaded"), [("scripted", "True"), ("", "False")])
def test_a_process_that_serves_loads_it_before_the_first_search(migrated_state, model, loaded):
    migrated_state.hold()
    done = migrated_state.run(
        "-c",
        "import mirix.wsgi, sys; print('openai.resources.embeddings' in sys.modules)",
        env={"MIRIX_EMBEDDING_MODEL": model, "MIRIX_EMBEDDING_BASE_URL": "http://127.0.0.1:9/v1"},
    )
    assert (done.returncode, done.stdout.strip()) == (0, loaded), done.stderr


class TestChecks:
    @pytest.mark.parametrize(
        ("model", "url", "key", "found"),
        [
            ("", "", "", []),
            ("m", "http://127.0.0.1:9", "", []),
            ("m", "", "sesame", []),
            ("m", "", "", [checks.KEY_MISSING]),
            ("", "http://127.0.0.1:9", "", [checks.MODEL_MISSING]),
            ("", "", "sesame", []),
        ],
    )
    def test_an_endpoint_that_cannot_work_is_named(self, settings, model, url, key, found):
        settings.MIRIX_EMBEDDING_MODEL = model
        settings.MIRIX_EMBEDDING_BASE_URL = url
        settings.MIRIX_EMBEDDING_API_KEY = key
        assert [message.id for message in checks.check_embedding_endpoint()] == found
