"""Judged corpora in the layout of BEIR: `corpus.jsonl`, `queries.jsonl`, and judgements in `qrels/`. Pure.

A line of the corpus is `{"_id", "title", "text"}`, the title optional; one of the queries `{"_id", "text"}`.
Judgements are rows of `query-id`, `corpus-id` and grade, parted by tabs, below a header: those of
`qrels/test.tsv`, else of all files in `qrels/`, else of `qrels.tsv`. A grade above 0 is relevant.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLUMNS = 3


class Unusable(ValueError):
    """The folder holds no corpus that can be measured; the message says where, and what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """One text that may be found."""

    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Documents and queries by id, and for each query that can be judged its relevant documents' grades."""

    documents: dict[str, Document]
    queries: dict[str, str]
    judgements: dict[str, dict[str, float]]
    left_out: dict[str, int]
    """What cannot count, by kind: how many."""


def read(folder: Path) -> Corpus:
    """Read a corpus.

    What cannot count is left out and counted: documents and queries without text, those whose id came
    before, queries nobody judged, and judgements of documents or queries that are not there (any more).
    Raises `Unusable` where a file is missing or cannot be read, and where nothing is left to measure.
    """
    if not folder.is_dir():
        raise Unusable(f"{folder} is not a folder")
    left_out: defaultdict[str, int] = defaultdict(int)
    documents: dict[str, Document] = {}
    for name, record in _records(folder / "corpus.jsonl"):
        document = Document(title=_text(record, "title"), text=_text(record, "text"))
        if name in documents or not (document.title or document.text):
            left_out["documents without text or of an id that came before"] += 1
        else:
            documents[name] = document
    asked: dict[str, str] = {}
    for name, record in _records(folder / "queries.jsonl"):
        if name in asked or not _text(record, "text"):
            left_out["queries without text or of an id that came before"] += 1
        else:
            asked[name] = _text(record, "text")
    judgements: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for query, document_id, grade in _judgements(folder):
        if query not in asked or document_id not in documents:
            left_out["judgements of documents or queries that are not there"] += 1
        elif grade > 0:
            judgements[query][document_id] = grade
    left_out["queries without a relevant document"] = len(asked.keys() - judgements.keys())
    if not judgements:
        raise Unusable(f"{folder}: no query has a relevant document")
    return Corpus(
        documents=documents,
        queries={name: text for name, text in asked.items() if name in judgements},
        judgements=dict(judgements),
        left_out={kind: number for kind, number in left_out.items() if number},
    )


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in _lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Unusable(f"{path}, line {number}: not JSON") from error
        name = record.get("_id") if isinstance(record, dict) else None
        if not isinstance(name, str | int) or name == "":
            raise Unusable(f'{path}, line {number}: not an object with an "_id"')
        yield str(name), record


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return value.strip() if isinstance(value, str) else ""


def _judgements(folder: Path) -> Iterator[tuple[str, str, float]]:
    for path in _judgement_files(folder):
        for number, line in _lines(path):
            row = line.rstrip("\r\n").split("\t")
            if len(row) != COLUMNS:
                raise Unusable(f"{path}, line {number}: {len(row)} columns, not query, document and grade")
            try:
                yield row[0], row[1], float(row[2])
            except ValueError as error:
                if number > 1:  # the header
                    raise Unusable(f"{path}, line {number}: the grade is not a number") from error


def _judgement_files(folder: Path) -> list[Path]:
    found = [folder / "qrels" / "test.tsv"]
    if not found[0].exists():
        found = sorted((folder / "qrels").glob("*.tsv")) or [folder / "qrels.tsv"]
    if not found[0].exists():
        raise Unusable(f"{folder}: no judgements, neither in qrels/ nor as qrels.tsv")
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers."""
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line
    except FileNotFoundError as error:
        raise Unusable(f"{path} is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{path} cannot be read: {error}") from error
