"""Embeddings from any OpenAI-compatible endpoint.

What an endpoint answers is checked before anyone uses it: one vector for each text, all of one size, every
number finite. Vectors are scaled to length 1, which leaves their cosine as it is and fits any storage. What
goes wrong is `EmbeddingFailed` with a short reason that holds no text of anybody.
"""

from __future__ import annotations

import binascii
import json
import math
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NoReturn

from django.conf import settings

if TYPE_CHECKING:
    from openai import OpenAI

PUBLIC_URL = "https://api.openai.com/v1"
DOCUMENT_TIMEOUT_SECONDS = 60.0
DOCUMENT_RETRIES = 2
MAX_QUERY_CHARS = 1_000
"""Of longer queries half of it from either end is embedded: a model reads little more, and takes long."""
SHORT_QUERY_CHARS = 300
"""An endpoint that has no time for so few characters has none for any query."""
MAX_DIMENSIONS = 16_000
MAX_ANSWER_BYTES = 64_000_000
REST_SECONDS = 5.0
"""How long queries go without an endpoint that let one of them wait in vain."""
VAIN_SHARE = 0.25
"""How much of the timeout a query may take that fails before it was a wait in vain."""


class EmbeddingFailed(Exception):
    """The endpoint gave no vectors that can be used; the message says why, for operators and callers.

    `refused` tells that it would not take these texts, so that others may fare better.
    """

    def __init__(self, reason: str, *, refused: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.refused = refused


@dataclass(frozen=True, kw_only=True)
class EmbeddingConfig:
    """Where an endpoint is, and how it wants to be asked."""

    model: str
    base_url: str
    api_key: str
    timeout: float
    """Seconds that a query may take."""
    query_prefix: str = ""
    document_prefix: str = ""
    query_input_type: str = ""
    document_input_type: str = ""


class EmbeddingEndpoint:
    """One model behind one endpoint; shared by the threads of a process, which share its connections."""

    def __init__(self, config: EmbeddingConfig) -> None:
        self.config = config
        self.model = config.model
        self._rest = Rest()

    def space(self, kind: str) -> str:
        """Return the name of the space in which vectors of documents lie, `kind` saying what is embedded.

        Only vectors of one space may be compared. It holds the model, and a digest of what is put before
        documents and of the kind.
        """
        config = self.config
        return f"{self.model}#{_digest(config.document_prefix, config.document_input_type, kind)}"

    @cached_property
    def query_key(self) -> str:
        """What the vector of a query depends on beside the query; part of the key that caches it."""
        config = self.config
        asked = (config.base_url, config.model, config.query_prefix, config.query_input_type)
        return _digest(*asked, str(MAX_QUERY_CHARS))

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, of which it takes `MAX_QUERY_CHARS` characters, see `asked_of`.

        Asks once and waits `config.timeout` seconds. After a wait in vain it fails at once for
        `REST_SECONDS`, so that an endpoint in trouble does not hold up every search; where a long query
        waited, only for queries as long as that. Not within a transaction.
        """
        config = self.config
        asked = asked_of(text)
        if reason := self._rest.reason_for(len(asked)):
            raise EmbeddingFailed(reason)
        self.load_client()  # what that takes is no wait
        began = time.monotonic()
        try:
            (vector,) = self._embed(
                [config.query_prefix + asked],
                input_type=config.query_input_type,
                timeout=config.timeout,
                retries=0,
            )
        except EmbeddingFailed as error:
            if time.monotonic() - began >= VAIN_SHARE * config.timeout:
                self._rest.begin(len(asked), error.reason)
            raise
        return vector

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of documents, in their order; for the worker, with patience and retries."""
        if not texts:
            return []
        return self._embed(
            [self.config.document_prefix + text for text in texts],
            input_type=self.config.document_input_type,
            timeout=DOCUMENT_TIMEOUT_SECONDS,
            retries=DOCUMENT_RETRIES,
        )

    def load_client(self) -> None:
        """Load the client and what it speaks with, without asking anything."""
        _ = self._client.embeddings

    def close(self) -> None:
        """Give up the connections; the next call opens new ones."""
        if client := self.__dict__.pop("_client", None):
            client.close()

    @cached_property
    def _client(self) -> OpenAI:
        # It takes a second to import: not before it is needed, and in each process for itself.
        from openai import OpenAI

        # A server of one's own needs no key, the client insists on one.
        return OpenAI(base_url=self.config.base_url, api_key=self.config.api_key or "none", max_retries=0)

    def _embed(
        self, texts: Sequence[str], *, input_type: str, timeout: float, retries: int
    ) -> list[list[float]]:
        import httpx2  # what the client speaks with, and lets its errors pass in a stream
        import openai

        client = self._client.with_options(timeout=timeout, max_retries=retries)
        deadline = time.monotonic() + timeout * (1 + retries)
        body = bytearray()
        try:
            # As a stream: else a server that sends a byte now and then would never be late.
            with client.embeddings.with_streaming_response.create(
                model=self.model,
                input=list(texts),
                extra_body={"input_type": input_type} if input_type else None,
            ) as response:
                for chunk in response.iter_bytes():
                    body += chunk
                    if time.monotonic() > deadline:
                        raise EmbeddingFailed(_late(timeout))
                    if len(body) > MAX_ANSWER_BYTES:
                        raise EmbeddingFailed("the endpoint's answer has no end")
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            raise EmbeddingFailed(_late(timeout)) from error
        except openai.APIStatusError as error:
            _refuse_status(error.status_code, error)
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise EmbeddingFailed("the endpoint cannot be reached, or broke off") from error
        except (openai.OpenAIError, httpx2.InvalidURL, ValueError) as error:
            raise EmbeddingFailed(f"the endpoint cannot be asked ({type(error).__name__})") from error
        return _vectors(bytes(body), len(texts))


class Rest:
    """For how long, and from what length on, queries go without the endpoint. Shared by threads."""

    def __init__(self) -> None:
        self._until, self._from_chars, self._reason = 0.0, 0, ""
        self._lock = threading.Lock()

    def begin(self, chars: int, reason: str) -> None:
        """Begin after a query of so many characters waited in vain; who is out already stays out."""
        chars = 0 if chars <= SHORT_QUERY_CHARS else chars
        with self._lock:
            now = time.monotonic()
            self._from_chars = min(chars, self._from_chars) if now < self._until else chars
            self._until, self._reason = now + REST_SECONDS, reason

    def reason_for(self, chars: int) -> str:
        """Return why a query of so many characters goes without; empty where it may ask."""
        with self._lock:
            rests = chars >= self._from_chars and time.monotonic() < self._until
            return self._reason if rests else ""


def asked_of(query: str) -> str:
    """Return what is embedded of a query: all of it, or both ends, where what is asked mostly stands."""
    if len(query) <= MAX_QUERY_CHARS:
        return query
    half = (MAX_QUERY_CHARS - 1) // 2
    return f"{query[:half]}\n{query[-half:]}"


def get_endpoint() -> EmbeddingEndpoint | None:
    """Return the endpoint that the settings name; None where `MIRIX_EMBEDDING_MODEL` is unset."""
    if not settings.MIRIX_EMBEDDING_MODEL:
        return None
    return _endpoint(
        EmbeddingConfig(
            model=settings.MIRIX_EMBEDDING_MODEL,
            base_url=settings.MIRIX_EMBEDDING_BASE_URL or PUBLIC_URL,
            api_key=settings.MIRIX_EMBEDDING_API_KEY,
            timeout=settings.MIRIX_EMBEDDING_TIMEOUT_SECONDS,
            query_prefix=settings.MIRIX_EMBEDDING_QUERY_PREFIX,
            document_prefix=settings.MIRIX_EMBEDDING_DOCUMENT_PREFIX,
            query_input_type=settings.MIRIX_EMBEDDING_QUERY_INPUT_TYPE,
            document_input_type=settings.MIRIX_EMBEDDING_DOCUMENT_INPUT_TYPE,
        )
    )


def load_client() -> None:
    """Load what asking takes, where an endpoint is configured: a process that serves does it as it starts.

    It takes a second or two, which the first search would have to wait, and every other one with it.
    """
    if endpoint := get_endpoint():
        endpoint.load_client()


@lru_cache(maxsize=8)
def _endpoint(config: EmbeddingConfig) -> EmbeddingEndpoint:
    return EmbeddingEndpoint(config)


def _late(timeout: float) -> str:
    return f"the endpoint gave no answer within {timeout:g} s"


def _refuse_status(status: int, error: Exception) -> NoReturn:
    words = {401: ", the key is not accepted", 403: ", the key may not", 404: ", unknown model or address"}
    words[429] = ", too many requests"
    raise EmbeddingFailed(
        f"the endpoint answered with status {status}{words.get(status, '')}",
        refused=status in (400, 413, 422),
    ) from error


def _vectors(body: bytes, count: int) -> list[list[float]]:
    """Return the vectors of an answer, in the order of the texts."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise EmbeddingFailed("the endpoint's answer is not JSON") from error
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise EmbeddingFailed("the endpoint's answer holds no embeddings")
    if len(items) != count:
        raise EmbeddingFailed(f"the endpoint answered with {len(items)} vectors for {count} texts")
    numbers = [item.get("index", place) for place, item in enumerate(items)]
    if sorted(numbers, key=str) != sorted(range(count), key=str):
        raise EmbeddingFailed("the endpoint numbered its vectors wrongly")
    by_number = dict(zip(numbers, items, strict=True))
    vectors = [_vector(by_number[number].get("embedding")) for number in range(count)]
    sizes = {len(vector) for vector in vectors}
    if len(sizes) > 1:
        raise EmbeddingFailed("the endpoint answered with vectors of different sizes")
    return vectors


def _vector(value: Any) -> list[float]:
    """Return a vector of length 1 from a list of numbers, or from base64 of little-endian 32-bit floats."""
    if isinstance(value, str):
        try:
            data = binascii.a2b_base64(value, strict_mode=True)
            value = struct.unpack(f"<{len(data) // 4}f", data)
        except (ValueError, struct.error) as error:
            raise EmbeddingFailed("the endpoint answered with a vector that cannot be decoded") from error
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_DIMENSIONS:
        raise EmbeddingFailed(
            f"the endpoint answered with a vector that has not 1 to {MAX_DIMENSIONS} numbers"
        )
    if not all(type(number) in (int, float) for number in value):
        raise EmbeddingFailed("the endpoint answered with a vector that does not consist of numbers")
    try:
        length = math.hypot(*value)
    except OverflowError:  # an integer beyond any float
        length = math.inf
    if not math.isfinite(length):
        raise EmbeddingFailed("the endpoint answered with numbers that are not finite")
    if not length:
        raise EmbeddingFailed("the endpoint answered with a vector of zeros")
    return [number / length for number in value]


def _digest(*parts: str) -> str:
    return blake2b(json.dumps(parts).encode(), digest_size=4).hexdigest()
