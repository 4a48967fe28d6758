"""The airline desk's 40 sessions evolved with a model: in one round, in eight, and twice over."""

from __future__ import annotations

import re
from itertools import count
from typing import Any

import pytest

from mirix.tenants.owners import Owner
from mirix.text import slugify
from skills.models import ProposerCall, SkillExperience
from skills.review.publishing import approve
from tests.endpoints import ChatRequest
from tests.skills.evolution.answers import answer, create, edit, operation
from tests.skills.evolution.learning import airline
from tests.skills.evolution.test_airline import DESK, assert_no_twins, dream, texts, waiting

pytestmark = pytest.mark.django_db

HEADING = "# What was learned\n"
MAX_LINE = 110
MAX_LINES = 5


class Material:
    """What a question shows, read as a model reads it."""

    def __init__(self, request: ChatRequest) -> None:
        found = re.search(r"TOPIC: (?:tool|task):(.*)\n", request.user)
        shown = re.search(r"<material (\w{8})>\n(.*)</material \1>", request.user, re.DOTALL)
        assert found
        assert shown
        self.topic = found[1]
        header = rf"^\[(lesson|skill) (\S+) [^\n]*{shown[1]}\]\n"
        kinds = re.split(header, shown[2], flags=re.MULTILINE)[1:]
        blocks = list(zip(kinds[::3], kinds[1::3], kinds[2::3], strict=True))
        self.lessons = {id_: body.split("\n")[0] for kind, id_, body in blocks if kind == "lesson"}
        self.skills = {id_: body for kind, id_, body in blocks if kind == "skill"}

    @property
    def lines(self) -> dict[str, list[str]]:
        """What the lessons say, a line each, with the ids of those that say it."""
        found: dict[str, list[str]] = {}
        for id_, title in self.lessons.items():
            found.setdefault(f"- {title[:MAX_LINE]}", []).append(id_)
        return found


def sensible(request: ChatRequest) -> str:
    """Keep one page a topic: say nothing twice, add what is new, begin a page where there is none."""
    material = Material(request)
    name = slugify(material.topic.replace("_", "-"), 60)
    taken = re.search(r"\[refused: The skill (\S+) ", request.user)
    named = [key for key, page in material.skills.items() if page.startswith(f"name: {name}\n")]
    key = taken[1] if taken else next(iter(named), "")
    page = material.skills.get(key, "")
    known = [id_ for line, ids in material.lines.items() if f"{line}\n" in page for id_ in ids]
    new = [(line, ids) for line, ids in material.lines.items() if f"{line}\n" not in page][:MAX_LINES]
    cited = [id_ for _, ids in new for id_ in ids]
    text = "".join(f"{line}\n" for line, _ in new)
    if not page:
        card = {"description": f"How {name} is done. Use when you do {name}.", "triggers": [material.topic]}
        return answer(create(*cited, name=name, instructions=f"{HEADING}{text}", **card))
    said = [operation("none", *known, skill=key)] if known else []
    return answer(*said, *([edit(key, *cited, changes=[(HEADING, HEADING + text)])] if new else []))


def fickle(request: ChatRequest) -> str:
    """Write a new skill of a new name and in other words at each question, whatever there is."""
    material, number = Material(request), next(FICKLE)
    words = " ".join(f"w{number}x{place}" for place in range(60))
    return answer(
        create(*material.lessons, name=f"way-{number}-of-doing", description=words, instructions=words)
    )


FICKLE = count()


def settle(owner: Owner, session_ids: list[str], suffix: str = "", *, decide: Any = None) -> list[str]:
    """Dream the sessions, then go on until nothing is asked any more; return the revisions written."""
    written: list[str] = []
    for number in count():
        asked = ProposerCall.objects.count()
        report = dream(owner, session_ids if number == 0 else [], suffix)
        written += report.proposed
        for revision in waiting(owner) if decide else ():
            decide(revision=revision)
        if ProposerCall.objects.count() == asked:
            break
        assert number < 20, "it never ends"
    return written


@pytest.mark.parametrize("size", [40, 5])
@pytest.mark.parametrize("decided", ["by nobody", "by a person"])
def test_however_they_are_dreamed_and_twice_over(owner, chat_server, decided, size):
    """As many skills in one round as in eight; then the same lessons change nothing, and are used up."""
    chat_server.answer = sensible
    sessions, decide = list(airline()), approve if decided == "by a person" else None
    for start in range(0, 40, size):
        settle(owner, sessions[start : start + size], decide=decide)
    learned = texts(owner)
    assert {content.name for content in learned} == DESK | {"search-onestop-flight"}
    assert_no_twins(owner)
    assert pending(owner) == 0

    assert settle(owner, sessions, "-again", decide=decide) == []
    assert texts(owner) == learned
    assert pending(owner) == 0


def test_a_model_that_writes_everything_anew_leaves_one_skill_a_topic(owner, chat_server):
    chat_server.answer = fickle
    sessions = list(airline())
    for start in range(0, 40, 5):
        settle(owner, sessions[start : start + 5])
    topics = {call.topic for call in ProposerCall.objects.filter(verdict="ok")}
    skills = len(texts(owner))
    assert 1 < skills <= len(topics)
    settle(owner, sessions, "-again")
    assert len(texts(owner)) == skills
    # Each topic was written about once, and what came later was turned down twice a question.
    assert all(
        "is about this already" in part["reason"]
        for call in ProposerCall.objects.all()
        for part in call.refused
    )


def pending(owner: Owner) -> int:
    return SkillExperience.objects.for_owner(owner).filter(status="pending").count()
