"""GET `/v1/experiences` and `/v1/experiences/{id}`, POST `/v1/experiences/{id}/release`."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mirix.tenants.models import AuditEvent
from skills.models import SkillExperience
from tests.factories import (
    make_attempt,
    make_content,
    make_experience,
    make_owner,
    make_proposal,
    make_run,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db

NOT_FOUND = {"detail": "Not found."}


def ids(answer) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


def test_an_experience_shows_its_evidence(read_api, owner):
    session = make_session(
        owner, [{"role": "user", "content": "No, use the other card."}], filter_tags={"desk": "air"}
    )
    attempt = make_attempt(make_run(owner), session)
    experience = make_experience(owner, session, attempt=attempt, title="Ask for the card", details={"n": 1})
    turn = session.turns.get()

    answer = read_api.get(f"/v1/experiences/{experience.pk}")

    assert answer.status_code == 200
    assert answer.json() == {
        "id": experience.pk,
        "user_id": "alice",
        "session_id": session.session_id,
        "run_id": attempt.run_id,
        "client_id": turn.client_id,
        "experience_type": "worth_learning",
        "title": "Ask for the card",
        "content": "Use the other card.",
        "topic": "tool:pay",
        "details": {"n": 1},
        "importance": 0.8,
        "credibility": 0.9,
        "model_credibility": None,
        "signal_type": "user_critique",
        "quote": "use the other card",
        "turn": f"convmsg-{turn.pk}",
        "turn_seq": 1,
        "turn_pruned_at": None,
        "verified": True,
        "quarantined": False,
        "quarantine_reason": "",
        "released_at": None,
        "released_by": None,
        "release_reason": "",
        "status": "pending",
        "superseded_by_id": None,
        "revisions": [],
        "filter_tags": {"desk": "air"},
        "created_at": experience.created_at.isoformat().replace("+00:00", "Z"),
    }


def test_the_evidence_outlives_its_turn(read_api, owner):
    experience = make_experience(owner)
    experience.turn.delete()

    row = read_api.get(f"/v1/experiences/{experience.pk}").json()

    assert (row["turn"], row["turn_seq"], row["quote"]) == (None, 1, "use the other card")


def test_lists_are_newest_first_and_paged_by_cursor(read_api, owner):
    made = [make_experience(owner).pk for _ in range(5)]

    first = read_api.get("/v1/experiences", {"limit": 2})
    second = read_api.get(first.json()["next"])

    assert ids(first) + ids(second) == made[:0:-1]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"experience_type": "worth_avoiding"}, "avoid"),
        ({"signal_type": "tool_error"}, "avoid"),
        ({"status": "consumed"}, "used"),
        ({"verified": "false"}, "loose"),
        ({"quarantined": "true"}, "held"),
        ({"topic": "tool:book"}, "avoid"),
        ({"session_id": "s-other"}, "used"),
        ({"user_id": "bob"}, "bobs"),
        ({"created_before": "2020-01-01T00:00:00Z"}, None),
        ({"user_id": "nobody"}, None),
    ],
)
def test_lists_can_be_narrowed(read_api, owner, query, expected):
    made = {
        "avoid": make_experience(
            owner, experience_type="worth_avoiding", signal_type="tool_error", topic="tool:book"
        ),
        "used": make_experience(
            owner,
            make_session(owner, [{"role": "user", "content": "no"}], session_id="s-other"),
            status="consumed",
        ),
        "loose": make_experience(owner, verified=False, credibility=0.3),
        "held": make_experience(owner, quarantined=True),
        "bobs": make_experience(make_owner(owner.organization, "bob")),
    }

    assert ids(read_api.get("/v1/experiences", query)) == ([made[expected].pk] if expected else [])


def test_the_experiences_of_a_run(read_api, owner):
    session = make_session(owner, [{"role": "user", "content": "no"}])
    run = make_run(owner)
    of_run = make_experience(owner, session, attempt=make_attempt(run, session))
    make_experience(owner, session)

    assert ids(read_api.get("/v1/experiences", {"run_id": run.pk})) == [of_run.pk]


@pytest.mark.parametrize("query", [{"status": "eaten"}, {"created_after": "soon"}, {"user_id": "a\x00b"}])
def test_wrong_filters_name_their_field(read_api, owner, query):
    answer = read_api.get("/v1/experiences", query)
    assert answer.status_code == 400
    assert list(answer.json()) == list(query)


def test_a_stranger_sees_nothing(stranger_api, owner):
    experience = make_experience(owner)

    assert ids(stranger_api.get("/v1/experiences")) == []
    assert ids(stranger_api.get("/v1/experiences", {"user_id": "alice"})) == []
    foreign = stranger_api.get(f"/v1/experiences/{experience.pk}")
    missing = stranger_api.get("/v1/experiences/sexp-none")
    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content
    assert foreign.json() == NOT_FOUND


def test_nobody_reads_without_a_key(client, owner):
    assert client.get("/v1/experiences").status_code == 401


def test_a_longer_list_takes_no_more_queries(read_api, owner):
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert read_api.get("/v1/experiences").status_code == 200
        return len(captured)

    make_experience(owner)
    read_api.get("/v1/experiences")
    one = queries()
    for _ in range(19):
        make_experience(owner)

    assert queries() == one == 2


class TestRelease:
    @pytest.fixture
    def held(self, owner) -> SkillExperience:
        return make_experience(owner, quarantined=True, quarantine_reason="Only a tool says so.")

    def release(self, api, experience, **body):
        return api.post(f"/v1/experiences/{experience.pk}/release", body, format="json")

    def test_a_member_releases_it_with_a_reason(self, member_api, read_api, held):
        answer = self.release(member_api("reviewer"), held, reason="I asked the shop.")

        assert answer.status_code == 200
        held.refresh_from_db()
        row = answer.json()
        assert (row["quarantined"], row["quarantine_reason"]) == (False, "Only a tool says so.")
        assert row["released_at"] == held.released_at.isoformat().replace("+00:00", "Z")
        assert (row["released_by"], row["release_reason"]) == (held.released_by_name, "I asked the shop.")
        assert held.released_by_name == AuditEvent.objects.get().actor_name != ""
        assert read_api.get(f"/v1/experiences/{held.pk}").json() == row | {"released_by": None}

    def test_again_it_is_answered_as_it_is(self, member_api, held):
        first = self.release(member_api("reviewer"), held, reason="So.")
        second = self.release(member_api("reviewer"), held, reason="Also so.")

        assert first.json() == second.json()
        assert AuditEvent.objects.count() == 1

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"reason": " "},
            {"reason": "\u200b"},
            {"reason": 7},
            {"reason": "x" * 2_001},
            {"reason": "x", "all": 1},
        ],
    )
    def test_what_is_wrong_names_its_field(self, member_api, held, body):
        answer = self.release(member_api("administrator"), held, **body)

        assert answer.status_code == 400
        assert list(answer.json()) == (["all"] if "all" in body else ["reason"])
        held.refresh_from_db()
        assert held.quarantined

    def test_no_key_and_no_operator_may(self, member_api, admin_api, held):
        assert self.release(member_api("operator"), held, reason="So.").json() == {
            "detail": "This needs the role reviewer or administrator; yours is operator."
        }
        assert self.release(admin_api, held, reason="So.").json() == {
            "detail": "Releases are for members; a key may not decide."
        }
        held.refresh_from_db()
        assert held.quarantined

    def test_a_stranger_gets_what_a_missing_one_gets(self, member_api, stranger, held):
        api = member_api("administrator", stranger.organization)
        foreign = self.release(api, held, reason="So.")
        missing = api.post("/v1/experiences/sexp-none/release", {"reason": "So."}, format="json")

        assert (foreign.status_code, foreign.content) == (404, missing.content)
        held.refresh_from_db()
        assert held.quarantined
        assert not AuditEvent.objects.exists()


def test_lineage_from_the_skill_to_the_words_and_back(read_api, stranger_api, owner):
    skill = make_skill(owner)
    first = make_experience(owner, status="consumed")
    second, other = make_experience(owner, status="consumed"), make_experience(owner)
    skill.current_revision.experiences.add(first)
    waiting = make_proposal(owner, make_content(name=skill.name), skill=skill)
    waiting.experiences.add(first, second)

    def of(api, **asked):
        return set(ids(api.get("/v1/experiences", asked)))

    assert of(read_api, skill_id=skill.pk) == {first.pk, second.pk}
    assert of(read_api, revision_id=skill.current_revision_id) == {first.pk}
    assert of(read_api, revision_id=waiting.pk) == {first.pk, second.pk}
    assert of(read_api, turn=f"convmsg-{other.turn_id}") == {other.pk}
    for nothing in ("convmsg-0", "1", "convmsg-", f"convmsg-{'9' * 18}", f"convmsg-{'9' * 30}"):
        assert of(read_api, turn=nothing) == set()
    for asked in (
        {"skill_id": skill.pk},
        {"revision_id": waiting.pk},
        {"turn": f"convmsg-{other.turn_id}"},
    ):
        assert of(stranger_api, **asked) == set()
    assert read_api.get(f"/v1/experiences/{first.pk}").json()["revisions"] == [
        {
            "revision_id": waiting.pk,
            "skill_id": skill.pk,
            "name": skill.name,
            "version": "",
            "state": "proposed",
        },
        {
            "revision_id": skill.current_revision_id,
            "skill_id": skill.pk,
            "name": skill.name,
            "version": "0.1.0",
            "state": "published",
        },
    ]
