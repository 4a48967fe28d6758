"""What a model is told beside the turns: the skills nearest to the session, and nothing that we served."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from conversations.models import Session, SessionState
from mirix.tenants.owners import Owner
from skills import lessons
from skills.distillation.prompt import MAX_SKILLS
from skills.distillation.types import TranscriptTurn
from skills.dream import dream
from skills.models import DistillationAttempt, Skill
from skills.runs import claim
from skills.search.index import index_skill, index_skills
from skills.surroundings import MAX_END_CHARS, query_of, surroundings_of
from tests.endpoints import ChatServer
from tests.factories import make_content, make_owner, make_search, make_session, make_skill, owner_fields
from tests.skills.distillation.answers import answer, told

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ERROR = "Error: reason is required"
WANTED = "Please cancel my order 17, it was placed by mistake."


@pytest.fixture
def session(owner) -> Session:
    return make_session(
        owner,
        [
            {"role": "user", "content": WANTED},
            {"role": "tool", "content": ERROR, "tool_name": "cancel_order"},
        ],
        first_turn_at=NOON,
        last_turn_at=NOON + HOUR,
    )


def skilled(owner: Owner, name: str, description: str = "Use when it is needed.", **fields) -> Skill:
    skill = make_skill(owner, make_content(name=name, description=description, triggers=[]), **fields)
    index_skill(skill)
    return skill


def library(owner: Owner, count: int, begin: int = 0) -> None:
    """Add skills that are about as long as others are."""
    tasks = ("refund", "parcel", "invoice", "address", "voucher", "return", "warranty")
    skills = Skill.objects.bulk_create(
        Skill(
            **owner_fields(owner),
            **make_content(
                name=f"handle-{tasks[number % 7]}-{number}",
                description=f"Use when a customer asks about a {tasks[number % 7]} of order {number}. Checks "
                "what the shop knows about it first, then does what its rules allow, and says so.",
            ).as_fields(),
        )
        for number in range(begin, begin + count)
    )
    index_skills(skills)


def run(owner: Owner) -> None:
    dream(claim=claim(owner=owner, trigger="command", parameters={}), evolving=False)


def known(owner: Owner, session: Session) -> list[str]:
    turns = [
        TranscriptTurn(seq=turn.seq, role=turn.role, content=turn.content, tool_name=turn.tool_name)
        for turn in session.turns.order_by("seq")
    ]
    found = surroundings_of(owner=owner, session=session, turns=turns, first_seq=1)
    return [skill.name for skill in found.skills]


def test_nearest_skills_come_first_and_the_newest_behind_them(owner, session):
    skilled(owner, "cancel-an-order", "Use when an order must be cancelled.")
    for name in ("bake-bread", "paint-walls", "tune-pianos"):
        skilled(owner, name)
    assert known(owner, session) == ["cancel-an-order", "tune-pianos", "paint-walls", "bake-bread"]


def test_however_many_there_are_a_few_are_told(owner, session):
    library(owner, 3 * MAX_SKILLS)
    assert len(set(known(owner, session))) == MAX_SKILLS


def test_only_the_owners_active_skills_are_known(owner, stranger, session):
    for other in (stranger, make_owner(owner.organization)):
        skilled(other, "cancel-an-order")
    skilled(owner, "cancel-an-order", status="archived")
    assert known(owner, session) == []


def test_it_searches_by_what_users_said_first_and_last_and_by_the_tools_of_new_turns():
    said = ["Cancel my order.", "Its number is 17.", "The blue one, I mean."]
    turns = [TranscriptTurn(seq=seq, role="user", content=text) for seq, text in enumerate(said, start=3)]
    turns += [
        TranscriptTurn(seq=1, role="tool", content="…", tool_name="log_in"),
        TranscriptTurn(seq=6, role="tool", content="…", tool_name="cancel_order"),
        TranscriptTurn(seq=7, role="tool", content="…", tool_name="cancel_order"),
    ]
    assert query_of(turns, first_seq=3) == "Cancel my order.\ncancel_order\nThe blue one, I mean."


def test_what_it_searches_by_is_short_and_holds_no_secret():
    long = TranscriptTurn(seq=1, role="user", content="a word " * 10_000)
    key = TranscriptTurn(seq=2, role="user", content="My key is sk-proj-abcdefghijklmnopqrstuvwx0123456789.")
    query = query_of([long, key], first_seq=1)
    assert len(query) <= 2 * MAX_END_CHARS + 1
    assert "abcdefghijklmnop" not in query
    assert query_of([], first_seq=1) == ""


def test_the_model_is_told_of_the_nearest_skills(owner, session, chat_server):
    skilled(owner, "cancel-an-order", "Use when an order must be cancelled.")
    run(owner)
    (request,) = chat_server.requests
    assert "\n- cancel-an-order: Use when an order must be cancelled.\n" in request.user


SERVED = "Ask which of the stored cards to use, then charge it, and send a receipt for the order."


@pytest.mark.parametrize(
    ("moment", "is_masked"),
    [
        pytest.param(NOON - HOUR, True, id="before the session began"),
        pytest.param(NOON + HOUR / 2, True, id="within it"),
        pytest.param(NOON + 2 * HOUR, False, id="later, to somebody who taught the skill"),
    ],
)
def test_what_our_own_search_served_is_not_shown_as_work(owner, chat_server, moment, is_masked):
    make_session(
        owner,
        [{"role": "user", "content": WANTED}, {"role": "tool", "content": f"Skill: {SERVED}"}],
        first_turn_at=NOON,
        last_turn_at=NOON + HOUR,
    )
    skill = make_skill(owner, make_content(instructions=SERVED))
    make_search(owner, [skill], created_at=moment)
    run(owner)
    (request,) = chat_server.requests
    assert (SERVED not in request.user) == is_masked
    assert ("[served by skill search]" in request.user) == is_masked


def test_a_library_of_a_thousand_makes_the_prompt_hardly_longer(owner, session, chat_server):
    def sent() -> int:
        run(owner)
        Session.objects.update(state=SessionState.SEALED, distilled_through=0)
        request = chat_server.requests[-1]
        return len(request.system + request.user)

    library(owner, 10)
    few = sent()
    library(owner, 990, begin=10)
    many = sent()
    assert abs(many - few) < 0.05 * few


def test_nothing_is_sent_twice(owner, session, chat_server):
    chat_server.answer = lambda request: answer(told(2, ERROR))
    run(owner)
    run(owner)
    # Opened and sealed once more, without a new turn.
    Session.objects.update(state=SessionState.SEALED)
    run(owner)
    assert chat_server.calls == 1


def test_the_hash_of_the_input_tells_whether_the_same_was_sent(owner, session, chat_server: ChatServer):
    def hashed() -> str:
        run(owner)
        Session.objects.update(state=SessionState.SEALED, distilled_through=0)
        return DistillationAttempt.objects.latest("created_at").input_hash

    first = hashed()
    assert hashed() == first
    skilled(owner, "cancel-an-order")
    another = hashed()
    assert another != first
    session.turns.filter(seq=1).update(content="Please change my order 17.")
    assert hashed() not in (first, another)


def test_where_no_model_is_asked_nobody_searches(owner, session, settings, django_assert_num_queries):
    skilled(owner, "cancel-an-order")
    settings.MIRIX_DISTILLER = "offline"
    with django_assert_num_queries(2):
        reading = lessons.read(owner, session.pk)
    assert reading.surroundings.skills == ()
