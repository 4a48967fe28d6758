"""Made-up skills by the thousand, out of the sentences of real ones: always the same for the same seed.

Words keep about the frequencies that they have in the shared skills and tool descriptions. Vectors of 384
numbers lie around as many centres as there are tool descriptions: a skill around those of what it says, a
query around that of the tool it asks for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

from tests.data import shared

SIZE = 384
NOISE = 1.0
"""How long what is added to a centre of length 1 is."""

Vector = list[float]


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question, and its vector."""

    text: str
    vector: Vector


class Library:
    """What documents and queries are made of."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._noise = np.random.default_rng(seed)
        retrieval = shared("retrieval/metatool_single")
        self._tools = [row["text"] for row in _rows(retrieval / "corpus.jsonl")]
        self._questions = [row["text"].strip() for row in _rows(retrieval / "queries.jsonl")]
        self._heads, self._lines = _sentences(shared("skills"))

    @cached_property
    def _centres(self) -> np.ndarray:
        return _unit(self._noise.standard_normal((len(self._tools), SIZE)))

    def skill(self, number: int, lines: int) -> dict[str, Any]:
        """Return the fields of a skill with about `lines` lines of instructions, and its `vector`."""
        chance = self._chance
        topics = chance.sample(range(len(self._tools)), 2)
        text = self._mixed(self._tools[topics[0]], self._tools[topics[1]])
        words = re.findall(r"[a-z]{3,12}", text.casefold())
        body = [chance.choice(self._lines) for _ in range(chance.randint(lines // 2, lines * 3 // 2))]
        body.insert(0, text)
        return {
            "name": "-".join([*chance.sample(words, min(3, len(words))), str(number)]),
            "description": f"{chance.choice(self._heads)} {text}"[:1_024],
            "instructions": "\n".join(body),
            "triggers": [
                " ".join(chance.sample(words, min(4, len(words)))) for _ in range(chance.randint(0, 3))
            ],
            "vector": self._near(*topics),
        }

    def queries(self, count: int) -> list[Query]:
        """Return different questions; beyond the questions there are, mixtures of two."""
        asked = self._chance.sample(self._questions, min(count, len(self._questions)))
        while len(asked) < count:
            asked.append(self._mixed(*self._chance.sample(self._questions, 2)))
        return [
            Query(text=text, vector=self._near(self._chance.randrange(len(self._tools)))) for text in asked
        ]

    def long_query(self, chars: int) -> Query:
        """Return a text of so many characters."""
        text = ""
        while len(text) < chars:
            text += f"{self._chance.choice(self._questions)} {self._chance.choice(self._lines)} "
        return Query(text=text[:chars].strip(), vector=self._near(self._chance.randrange(len(self._tools))))

    def _mixed(self, first: str, second: str) -> str:
        """Return the beginning of one text and the end of the other."""
        head, tail = first.split(), second.split()
        return " ".join(
            head[: 1 + self._chance.randrange(len(head))] + tail[self._chance.randrange(len(tail)) :]
        )

    def _near(self, *topics: int) -> Vector:
        centre = _unit(self._centres[list(topics)].sum(axis=0))
        noise = _unit(self._noise.standard_normal(SIZE))
        vector: Vector = np.round(_unit(centre + NOISE * noise), 5).tolist()
        return vector


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _sentences(folder: Path) -> tuple[list[str], list[str]]:
    """Return the descriptions of the skills in a folder, and the lines of their instructions."""
    heads, lines = [], []
    for path in sorted(folder.rglob("SKILL.md")):
        _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
        heads.append(str(yaml.safe_load(front)["description"]))
        lines += [line.strip() for line in body.splitlines() if line.strip()]
    return heads, lines
