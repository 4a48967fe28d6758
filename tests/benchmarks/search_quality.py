"""How good search is: a judged corpus as the skills of one owner, every query through the real service.

Lanes: `lexical` is what `bm25` answers, `name_description` the list of words in name and description alone,
`semantic` what `embedding` answers, and `hybrid` fuses the three. Figures are means over the queries.

A document becomes a skill by `content_of`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

from django.conf import settings
from rich.console import Console
from rich.progress import Progress

from mirix.ids import new_id
from mirix.llm.embeddings import EmbeddingFailed
from mirix.tenants.owners import Owner
from mirix.text import clean_text, slugify
from skills.content import MAX_INSTRUCTIONS_CHARS, MAX_NAME_CHARS, Content
from skills.interop import skill_md
from skills.interop.frontmatter import Unreadable
from skills.interop.legacy import Names, split_description
from skills.review.adoption import LiveSkill, adopt
from skills.search.embedding import embed_missing
from skills.search.lexical import rank
from skills.search.service import HEAD_FIELDS, search
from tests.benchmarks import Report, Tell, beir
from tests.benchmarks.beir import Corpus, Document
from tests.benchmarks.ranking import ndcg, recall
from tests.benchmarks.vectors import endpoint
from tests.factories import make_owner

METHODS = {"lexical": "bm25", "semantic": "embedding", "hybrid": "hybrid"}
LANES = ("lexical", "name_description", "semantic", "hybrid")
MEASURES: dict[str, tuple[Callable[..., float], int]] = {"ndcg@10": (ndcg, 10), "recall@5": (recall, 5)}
DEPTH = 10
PUBLISHED_AT_ONCE = 500
TOLERANCE = 0.01
"""How far below its better lane the fused list may be."""

Figures = dict[str, dict[str, float]]


def measure(tell: Tell, folder: Path, keep: Path) -> Report:
    """Measure on the corpus in `folder`; vectors are kept in the folder `keep` for the next time."""
    corpus = beir.read(folder)
    tell(f"search: {len(corpus.documents)} documents, {len(corpus.queries)} queries")
    try:
        figures = lanes(corpus, keep)
    except (EmbeddingFailed, FileNotFoundError) as error:
        sys.exit(f"search: no embeddings: {error}")
    counts = {"documents": len(corpus.documents), "queries": len(corpus.queries), "left_out": corpus.left_out}
    return Report(figures={"lanes": figures, **counts}, lines=_lines(figures, corpus))


def lanes(corpus: Corpus, keep: Path) -> Figures:
    """Publish the corpus to a new owner, and return what each lane and the fused list reach on it."""
    owner = make_owner()
    with endpoint(keep) as asked:
        ids = publish(owner, corpus)
        with _progress("embedding documents", len(ids)) as advance:
            refused = embed_missing(owner.organization, progress=advance).refused
        if refused:
            raise EmbeddingFailed(f"{len(refused)} documents were refused")
        with _progress("embedding queries", len(corpus.queries)) as advance:
            asked.embed_queries([_asked(text) for text in corpus.queries.values()], advance)
        found: dict[str, list[tuple[list[str], dict[str, float]]]] = {lane: [] for lane in LANES}
        with _progress("searching", len(corpus.queries)) as advance:
            for number, (name, text) in enumerate(corpus.queries.items(), start=1):
                for lane in LANES:
                    ranked = [ids[skill_id] for skill_id in _ranked(owner, lane, text)]
                    found[lane].append((ranked, corpus.judgements[name]))
                advance(number)
    return {
        lane: {
            name: round(fmean(score(ranked, grades, depth) for ranked, grades in answers), 4)
            for name, (score, depth) in MEASURES.items()
        }
        for lane, answers in found.items()
    }


def publish(owner: Owner, corpus: Corpus) -> dict[str, str]:
    """Make every document an active skill; return the documents' ids by those of the skills."""
    names = Names([], [])
    skills: dict[str, LiveSkill] = {}
    for document_id, document in corpus.documents.items():
        content = content_of(document_id, document, names)
        skills[document_id] = LiveSkill(
            id=new_id("proc"),
            owner=owner,
            content=content,
            version="0.1.0",
            source={},
            created_at=None,
            updated_at=None,
        )
    every = list(skills.values())
    with _progress("publishing", len(every)) as advance:
        for start in range(0, len(every), PUBLISHED_AT_ONCE):
            adopt(skills=every[start : start + PUBLISHED_AT_ONCE], rationale="A document of a judged corpus.")
            advance(start + PUBLISHED_AT_ONCE)
    return {skill.id: document_id for document_id, skill in skills.items()}


def content_of(document_id: str, document: Document, names: Names) -> Content:
    """Return the skill that a document is.

    A text with the frontmatter of a SKILL.md is read as one. Of others the title is the name, and what fits
    of the text the description; the rest are the instructions. A title that its slug does not tell in full
    stands before the text as well.
    """
    title, text = clean_text(document.title), clean_text(document.text)
    try:
        content = skill_md.parse(text.encode(), folder=slugify(title)).file.content
    except Unreadable:
        name = slugify(title, MAX_NAME_CHARS)
        if title and _letters(title) != _letters(name):
            text = f"{title}\n\n{text}".strip()
        description, instructions = split_description(text or title)
        content = Content(name=name, description=description, instructions=instructions)
    base = content.name or slugify(document_id, MAX_NAME_CHARS) or "document"
    return Content(
        **content.as_fields()
        | {
            "name": names.name_for(document_id, None, base),
            "instructions": content.instructions[:MAX_INSTRUCTIONS_CHARS],
        }
    )


def _letters(text: str) -> str:
    return re.sub(r"[^\w+#]|_", "", text).casefold()


def _asked(query: str) -> str:
    """Return a query as the service puts it to the endpoint."""
    return clean_text(query).strip()


def _ranked(owner: Owner, lane: str, query: str) -> list[str]:
    """Return the ids of the skills that a lane finds, best first."""
    organization = owner.organization
    if lane not in METHODS:
        found = rank(
            organization=organization, owner=owner, query=_asked(query), lanes=[HEAD_FIELDS], depth=DEPTH
        )
        return [skill_id for skill_id, _ in found.lanes[0]]
    result = search(organization=organization, owner=owner, query=query, method=METHODS[lane], limit=DEPTH)
    if result.degraded:
        raise EmbeddingFailed(result.degraded)
    return [hit.skill.pk for hit in result.hits]


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def _lines(figures: Figures, corpus: Corpus) -> list[str]:
    weights = ", ".join(f"{weight:g}" for weight in settings.MIRIX_SKILL_HYBRID_WEIGHTS)
    size = f"{len(corpus.documents)} documents, {len(corpus.queries)} queries"
    shown = [
        f"{size}; fused at k = {settings.MIRIX_SKILL_HYBRID_RRF_K}, weights {weights}",
        *(f"left out: {number} {kind}" for kind, number in corpus.left_out.items()),
        f"{'':<18}" + "".join(f"{name:>10}" for name in MEASURES),
    ]
    shown += [f"{lane:<18}" + "".join(f"{figures[lane][name]:>10.3f}" for name in MEASURES) for lane in LANES]
    better = max(figures[lane]["ndcg@10"] for lane in ("lexical", "semantic"))
    ahead = figures["hybrid"]["ndcg@10"] - better
    reached = "reached" if ahead >= -TOLERANCE else "MISSED"
    shown.append(f"hybrid to its better lane: {ahead:+.3f}  goal {-TOLERANCE} {reached}")
    return shown
