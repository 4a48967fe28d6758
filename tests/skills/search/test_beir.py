"""Reading judged corpora: what counts, what is left out, and what is refused."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks import beir
from tests.benchmarks.beir import Document

DOCUMENTS = [
    {"_id": "pay", "title": "Pay", "text": "Pay an order.", "metadata": {}},
    {"_id": "fly", "title": "", "text": "Book a flight."},
    {"_id": 7, "text": "Seven."},
]
QUERIES = [{"_id": "q1", "text": "how to pay"}, {"_id": "q2", "text": "fly"}]
JUDGEMENTS = "query-id\tcorpus-id\tscore\nq1\tpay\t2\nq1\t7\t1\nq2\tfly\t1\n"


@pytest.fixture
def folder(tmp_path):
    """A corpus that can be read."""
    write(tmp_path, "corpus.jsonl", DOCUMENTS)
    write(tmp_path, "queries.jsonl", QUERIES)
    write(tmp_path, "qrels/test.tsv", JUDGEMENTS)
    return tmp_path


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        content if isinstance(content, str) else "".join(f"{json.dumps(row)}\n" for row in content)
    )


def test_documents_queries_and_grades_are_read(folder):
    corpus = beir.read(folder)
    assert corpus.documents == {
        "pay": Document(title="Pay", text="Pay an order."),
        "fly": Document(title="", text="Book a flight."),
        "7": Document(title="", text="Seven."),
    }
    assert corpus.queries == {"q1": "how to pay", "q2": "fly"}
    assert corpus.judgements == {"q1": {"pay": 2.0, "7": 1.0}, "q2": {"fly": 1.0}}
    assert corpus.left_out == {}


def test_what_cannot_count_is_left_out_and_told(folder):
    empty = [{"_id": "blank", "title": " ", "text": ""}, {"_id": "pay", "text": "Pay again."}]
    write(folder, "corpus.jsonl", DOCUMENTS + empty)
    write(folder, "queries.jsonl", [*QUERIES, {"_id": "q3", "text": "unjudged"}, {"_id": "q4", "text": None}])
    more = "q2\tdeleted\t1\nq2\tblank\t1\nq9\tfly\t1\nq1\tfly\t0\nq3\tpay\t0\n"
    write(folder, "qrels/test.tsv", JUDGEMENTS + more)
    corpus = beir.read(folder)
    assert corpus.documents["pay"].text == "Pay an order."
    assert corpus.judgements == {"q1": {"pay": 2.0, "7": 1.0}, "q2": {"fly": 1.0}}
    assert corpus.queries.keys() == {"q1", "q2"}
    assert corpus.left_out == {
        "documents without text or of an id that came before": 2,
        "queries without text or of an id that came before": 1,
        "judgements of documents or queries that are not there": 3,
        "queries without a relevant document": 1,
    }


def test_a_query_whose_documents_are_all_gone_does_not_count(folder):
    write(folder, "corpus.jsonl", DOCUMENTS[:1])
    corpus = beir.read(folder)
    assert corpus.queries == {"q1": "how to pay"}
    assert corpus.judgements == {"q1": {"pay": 2.0}}


def test_the_test_split_goes_before_others_and_all_of_them_before_a_file_beside(folder):
    write(folder, "qrels/train.tsv", "query-id\tcorpus-id\tscore\nq2\tpay\t1\n")
    assert beir.read(folder).judgements["q2"] == {"fly": 1.0}
    (folder / "qrels/test.tsv").rename(folder / "qrels/dev.tsv")
    assert beir.read(folder).judgements["q2"] == {"fly": 1.0, "pay": 1.0}
    (folder / "qrels/dev.tsv").rename(folder / "qrels.tsv")
    (folder / "qrels/train.tsv").unlink()
    assert beir.read(folder).judgements["q2"] == {"fly": 1.0}


def test_line_ends_and_marks_of_other_systems_are_no_text(folder):
    (folder / "qrels/test.tsv").write_bytes(b"\xef\xbb\xbf" + JUDGEMENTS.replace("\n", "\r\n").encode())
    assert beir.read(folder).judgements["q2"] == {"fly": 1.0}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", "{}\n", 'corpus.jsonl, line 1: not an object with an "_id"'),
        ("corpus.jsonl", "\n[" + "\n", "corpus.jsonl, line 2: not JSON"),
        ("queries.jsonl", "[" * 100_000, "queries.jsonl, line 1: not JSON"),
        ("qrels/test.tsv", "h\th\th\nq1 pay 1\n", "line 2: 1 columns, not query, document and grade"),
        ("qrels/test.tsv", "h\th\th\nq1\tpay\tgood\n", "line 2: the grade is not a number"),
        ("qrels/test.tsv", "h\th\th\n", "no query has a relevant document"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(folder, name, content, message):
    write(folder, name, content)
    with pytest.raises(beir.Unusable) as refused:
        beir.read(folder)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(beir.Unusable, match=r"missing|no judgements"):
        beir.read(folder)


def test_what_is_no_folder_is_refused(tmp_path):
    with pytest.raises(beir.Unusable, match="nowhere is not a folder"):
        beir.read(tmp_path / "nowhere")
