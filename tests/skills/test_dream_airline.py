"""The main job on real input: forty sessions of an airline's desk, from import to proposals."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from conversations.intake import import_session
from conversations.models import ConversationMessage, Session
from skills.models import AutoDreamRun, RevisionState, SkillExperience, SkillRevision
from tests.data import records
from tests.factories import make_client, make_owner

pytestmark = pytest.mark.django_db


def import_desk(owner, suffix: str = "") -> None:
    client = make_client(owner.organization)
    for record in records("traj/tau_airline_dev.jsonl"):
        session_id = record["session_id"] + suffix
        import_session(client=client, owner=owner, session_id=session_id, messages=record["messages"])


@pytest.fixture
def desk(owner) -> dict[str, list[ConversationMessage]]:
    """The sessions with the turns in which a tool reports an error, by session id."""
    import_desk(owner)
    errors: dict[str, list[ConversationMessage]] = {}
    for turn in ConversationMessage.objects.filter(role="tool", is_error=True).select_related("session"):
        errors.setdefault(turn.session.session_id, []).append(turn)
    return errors


def auto_dream(owner, capsys, sessions: int = 50) -> dict:
    who = ("--organization", owner.organization.name, "--user", owner.end_user.user_id)
    options = (*who, "--last-n-sessions", str(sessions))
    call_command("auto_dream", *options, "--json")
    return json.loads(capsys.readouterr().out)


def waiting_names(owner) -> list[str]:
    rows = SkillRevision.objects.for_owner(owner).filter(state=RevisionState.PROPOSED)
    return sorted(rows.values_list("name", flat=True))


def test_forty_sessions_become_evidence_and_proposals(owner, desk, capsys):
    assert (len(desk), sum(map(len, desk.values()))) == (13, 35)

    answer = auto_dream(owner, capsys)

    assert answer["success"]
    assert sum(answer["sessions"].values()) == len(answer["results"]) == 40
    assert answer["sessions"]["retry"] == answer["sessions"]["dead"] == 0
    assert set(Session.objects.values_list("state", flat=True)) == {"distilled"}

    experiences = SkillExperience.objects.select_related("turn", "session")
    assert answer["processed"]["procedural"]["total"] == len(experiences)
    for experience in experiences:
        assert experience.verified
        assert experience.turn.session == experience.session
        assert experience.quote in experience.turn.content
        assert experience.client == experience.turn.client
    for session_id, turns in desk.items():
        quotes = experiences.filter(session__session_id=session_id, signal_type="tool_error")
        assert {experience.turn for experience in quotes} & set(turns), session_id

    waiting = SkillRevision.objects.filter(state=RevisionState.PROPOSED)
    assert sorted(answer["proposals"]) == sorted(waiting.values_list("pk", flat=True))
    assert 0 < len(answer["proposals"]) <= 6
    for revision in waiting:
        assert revision.run_id == answer["run_id"]
        assert revision.experiences.exists()


def test_again_nothing_is_distilled(owner, desk, capsys):
    first = auto_dream(owner, capsys)
    second = auto_dream(owner, capsys)

    assert second["sessions"] == {"distilled": 0, "empty": 0, "retry": 0, "dead": 0, "deferred": 0}
    assert second["results"] == []
    assert SkillExperience.objects.count() == first["processed"]["procedural"]["total"]
    assert AutoDreamRun.objects.filter(state="finished").count() == 2


def test_eight_dreams_come_to_what_one_comes_to_and_twice_over_to_nothing_more(owner, desk, capsys):
    """The sessions in eight dreams of five, in one of forty, and once more under other ids."""
    other = make_owner(owner.organization)
    import_desk(other)
    for _ in range(8):
        assert sum(auto_dream(owner, capsys, 5)["sessions"].values()) == 5
    auto_dream(other, capsys, 40)
    call_command("evolve", "--organization", other.organization.name, "--user", other.end_user.user_id)
    assert waiting_names(owner) == waiting_names(other)
    capsys.readouterr()
    before = set(SkillRevision.objects.values_list("pk", flat=True))

    import_desk(owner, suffix="-again")
    answers = [auto_dream(owner, capsys) for _ in range(3)]

    assert [sum(answer["sessions"].values()) for answer in answers] == [40, 0, 0]
    assert answers[0]["processed"]["procedural"]["total"] > 0
    assert [answer["proposals"] for answer in answers] == [[], [], []]
    assert set(SkillRevision.objects.values_list("pk", flat=True)) == before
