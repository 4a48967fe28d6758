"""BM25F and its quality figures in plain Python, written from the formula and not from the SQL."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from skills.search.analysis import is_stop_word, long_query_terms, query_terms, term_counts
from skills.search.analysis import terms as all_terms

WEIGHTS = {"name": 2.0, "triggers": 1.5, "description": 1.0, "instructions": 0.5}
K1, B = 1.0, 0.75
STOP_IDF, BEST = 1.0, 100


class Corpus:
    """Documents as dicts of field texts, and how a query ranks them."""

    def __init__(self, documents: dict[str, dict[str, str]]) -> None:
        self.counts = {
            key: {field: term_counts(texts.get(field, "")) for field in WEIGHTS}
            for key, texts in documents.items()
        }
        self.having: dict[str, set[str]] = defaultdict(set)
        for key, fields in self.counts.items():
            for counts in fields.values():
                for term in counts:
                    self.having[term].add(key)
        self.averages = {
            field: sum(fields[field].total() for fields in self.counts.values()) / max(1, len(documents))
            for field in WEIGHTS
        }

    def rank(self, query: str, fields: tuple[str, ...] = tuple(WEIGHTS)) -> list[tuple[str, float]]:
        terms = self.asked(query)
        finding = [term for term in terms if not is_stop_word(term)] or list(terms)
        scores: dict[str, float] = defaultdict(float)
        for term in finding:
            having = {
                key for key in self.having[term] if any(self.counts[key][field][term] for field in fields)
            }
            for key in having:
                scores[key] += terms[term] * self.idf(len(having)) * self.saturated(key, term, fields)
        for key in sorted(scores, key=lambda key: -scores[key])[:BEST]:
            for term in terms.keys() - set(finding):
                scores[key] += terms[term] * STOP_IDF * self.saturated(key, term, fields)
        return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))

    def asked(self, query: str) -> dict[str, float]:
        if sum(not is_stop_word(term) for term in all_terms(query)) <= 48:
            return query_terms(query, 32)
        terms = long_query_terms(query, 300)
        worth = {
            term: weight * self.idf(min(1_000, len(self.having[term])))
            for term, weight in terms.items()
            if self.having.get(term)
        }
        return {term: terms[term] for term in sorted(worth, key=lambda term: -worth[term])[:32]}

    def idf(self, having: int) -> float:
        return math.log(1 + (len(self.counts) - having + 0.5) / (having + 0.5))

    def saturated(self, key: str, term: str, fields: tuple[str, ...]) -> float:
        frequency = 0.0
        for field in fields:
            counts = self.counts[key][field]
            if counts[term]:
                length = 1 - B + B * counts.total() / self.averages[field]
                frequency += WEIGHTS[field] * counts[term] / length
        return frequency / (K1 + frequency)


@dataclass(frozen=True)
class Benchmark:
    """A corpus in BEIR layout: documents, queries, and for each query what is relevant."""

    documents: dict[str, dict[str, str]]
    queries: dict[str, str]
    relevant: dict[str, set[str]]

    @classmethod
    def read(cls, folder: Path) -> Benchmark:
        documents = {
            row["_id"]: {"name": row["title"], "description": row["text"]}
            for row in _rows(folder / "corpus.jsonl")
        }
        queries = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
        relevant: dict[str, set[str]] = defaultdict(set)
        for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
            query, document, _ = line.split("\t")
            relevant[query].add(document)
        return cls(documents, queries, relevant)


def ndcg_at_10(ranked: list[str], relevant: set[str]) -> float:
    gain = sum(1 / math.log2(place + 2) for place, key in enumerate(ranked[:10]) if key in relevant)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(10, len(relevant))))


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
