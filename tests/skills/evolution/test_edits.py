"""Edits that a model asks for, from its answer to the text: exactly what was named, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirix.llm.chat import ChatEndpoint, ChatReply
from mirix.text import clean_text
from skills.content import Content
from skills.evolution.anchors import Replacement, apply, undo
from skills.evolution.gates import refusals
from skills.evolution.llm import Draft, LlmProposer
from skills.evolution.types import ExperienceView, SkillView
from tests.skills.evolution.answers import answer, edit

LESSON = ExperienceView(
    id="sexp-1",
    session_id="s-1",
    experience_type="worth_avoiding",
    title="Ask for the reason",
    content="It was refused without one.",
    topic="tool:cancel_order",
    details={},
    importance=0.8,
    credibility=0.9,
    signal_type="tool_error",
    quote="Error: no reason",
    verified=True,
)


@dataclass
class Chat:
    """An endpoint that gives one answer."""

    text: str
    model: str = "scripted"

    def complete(self, **_: Any) -> ChatReply:
        return ChatReply(
            text=self.text,
            raw=self.text,
            finish="stop",
            prompt_tokens=1,
            completion_tokens=1,
            calls=1,
            mode="json_schema",
        )


def asked(content: Content, *changes: tuple[str, ...]) -> Draft:
    """Return what the proposer makes of an answer that edits a skill of this content."""
    skill = SkillView(skill_id="proc-1", revision_id=None, status="active", content=content)
    chat = cast("ChatEndpoint", Chat(answer(edit("proc-1", LESSON, changes=changes))))
    [draft] = LlmProposer(chat).ask([LESSON], [skill]).drafts
    return draft


def content(**fields: Any) -> Content:
    return Content(**({"name": "cancel-order", "description": "Use it.", "instructions": "1. Ask."} | fields))


def gated(before: Content, *changes: tuple[str, ...]) -> list[str]:
    operation = asked(before, *changes).operation
    assert operation is not None
    return refusals(before=before, after=operation.content, experiences=[LESSON])


LONG = "\n".join(f"{n}. Step {n} says what to do with item {n * 7919}." for n in range(1, 61))


@pytest.mark.parametrize(("characters", "refused"), [(799, []), (800, []), (801, ["801"])])
def test_an_edit_of_so_many_characters(characters: int, refused: list[str]):
    reasons = gated(content(instructions=LONG), ("1. Step 1 ", "1. Step 1 " + "x" * characters))
    assert reasons == [
        f"The edit changes {count} characters of the instructions; the limit is 800." for count in refused
    ]


@pytest.mark.parametrize(("share", "refused"), [(0.39, False), (0.40, True), (0.41, True)])
def test_an_edit_of_so_large_a_part(share: float, refused: bool):
    count = round(share * 1_000)
    reasons = gated(
        content(instructions="a" * count + "b" * (1_000 - count)), ("a" * count + "b", "z" * count + "b")
    )
    text = f"The edit changes {share:.2f} of the instructions; the limit is 0.4."
    assert reasons == ([text] if refused else [])


def test_what_a_model_is_not_shown_stays_where_it_is():
    secret = "password: hunter2hunter2"
    draft = asked(content(instructions=f"1. Ask.\n2. Log in ({secret}).\n"), ("1. Ask.", "1. Ask why."))
    assert draft.operation is not None
    assert draft.operation.content.instructions == f"1. Ask why.\n2. Log in ({secret}).\n"


texts = st.text(alphabet="ab 1.\n\r\t\\é", min_size=1, max_size=40).map(clean_text)


@st.composite
def edited(draw: st.DrawFn) -> tuple[Content, list[tuple[str, str, str]]]:
    """A skill, and changes most of which name words of it."""
    before = content(instructions=draw(texts), description=draw(texts), triggers=["cancel it"])
    changes = []
    for _ in range(draw(st.integers(1, 4))):
        field = draw(st.sampled_from(["description", "instructions"]))
        text = getattr(before, field)
        one, other = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        changes.append((draw(st.one_of(st.just(text[one:other]), texts)), draw(texts), field))
    return before, changes


@given(edited())
def test_an_edit_is_made_exactly_and_can_be_undone_or_is_refused(case: tuple[Content, list]):
    before, changes = case
    draft = asked(before, *changes)
    if draft.operation is None:
        assert draft.reason
        return
    after = draft.operation.content
    assert draft.operation.target is not None
    assert draft.operation.target.content == before
    for field in ("description", "instructions"):
        was, became = getattr(before, field), getattr(after, field)
        wanted = [Replacement(old=old, new=new) for old, new, of in changes if of == field]
        assert became == apply(was, wanted)
        assert apply(became, undo(was, wanted)).encode() == was.encode()
    assert replace(after, description="", instructions="") == replace(before, description="", instructions="")
