"""What texts mean, for one run: the vectors of skills in store, and of other texts as they are needed.

The present model's space, the same text of a skill as in search: name and description. Without an endpoint
nothing is known, and after the endpoint failed once, nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable

from mirix.llm.embeddings import EmbeddingFailed, get_endpoint
from mirix.tenants.owners import Owner
from skills.content import Content
from skills.models import SkillEmbedding
from skills.search.embedding import BATCH, embedded_text, space_of, text_hash

MAX_ASKED = 500
"""How many texts a run has embedded at most; what comes after them is compared by its words alone."""

Vector = tuple[float, ...]


class Meaning:
    """The vectors of one owner's texts."""

    def __init__(self, owner: Owner) -> None:
        self.failure = ""
        """Why the endpoint is not asked any more."""
        self._endpoint = get_endpoint()
        self._left = MAX_ASKED
        self._known: dict[str, Vector] = {}
        if self._endpoint is not None:
            rows = SkillEmbedding.objects.for_owner(owner).filter(space=space_of(self._endpoint))
            stored = rows.exclude(text_hash="").values_list("text_hash", "vector")
            self._known = {hashed: tuple(vector) for hashed, vector in stored}

    def of(self, content: Content) -> Vector:
        """Return where a text lies; empty where that is not known."""
        return self._known.get(text_hash(content), ())

    def learn(self, contents: Iterable[Content]) -> None:
        """Have those texts embedded that are not known. Not within a transaction."""
        texts = {text_hash(content): embedded_text(content.name, content.description) for content in contents}
        wanted = [hashed for hashed in texts if hashed not in self._known][: self._left]
        for start in range(0, len(wanted), BATCH):
            if self._endpoint is None or self.failure:
                return
            batch = wanted[start : start + BATCH]
            self._left -= len(batch)
            try:
                vectors = self._endpoint.embed_documents([texts[hashed] for hashed in batch])
            except EmbeddingFailed as error:
                self.failure = error.reason
                return
            self._known |= {hashed: tuple(vector) for hashed, vector in zip(batch, vectors, strict=True)}
