"""POST `/v1/proposals/{id}/approve` and `…/reject`."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.publishing import approve, reject
from tests.conftest import bearer
from tests.factories import (
    make_client,
    make_content,
    make_experience,
    make_key,
    make_member,
    make_proposal,
    make_skill,
    make_superuser,
    make_token,
)

pytestmark = pytest.mark.django_db
NOT_FOUND = b'{"detail":"Not found."}'


@pytest.fixture
def proposal(owner) -> SkillRevision:
    return make_proposal(owner, make_content(name="pay"))


@pytest.fixture
def reviewer(owner):
    return make_member(owner.organization, "reviewer", username="rita")


@pytest.fixture
def review(owner, reviewer) -> APIClient:
    return bearer(make_token(reviewer, owner.organization))


def decide(api: APIClient, proposal: SkillRevision | str, decision: str, **body: str):
    pk = proposal if isinstance(proposal, str) else proposal.pk
    return api.post(f"/v1/proposals/{pk}/{decision}", body, format="json")


def state(proposal: SkillRevision) -> str:
    proposal.refresh_from_db()
    return proposal.state


class TestDeciding:
    def test_approving_publishes_in_the_members_name(self, review, reviewer, proposal):
        answer = decide(review, proposal, "approve", reason="Right.")

        assert answer.status_code == 200
        skill = Skill.objects.get()
        row = answer.json()
        assert (row["id"], row["state"], row["version"]) == (proposal.pk, "published", "0.1.0")
        assert (row["skill_id"], skill.name, skill.current_revision_id) == (skill.pk, "pay", proposal.pk)
        assert row["decisions"] == [
            {
                "decision": "approve",
                "decided_by": "rita",
                "decided_by_kind": "human",
                "reason": "Right.",
                "created_at": row["decisions"][0]["created_at"],
            }
        ]
        assert ReviewDecision.objects.get().decided_by == reviewer

    def test_approving_needs_no_body(self, review, proposal):
        assert review.post(f"/v1/proposals/{proposal.pk}/approve").status_code == 200
        assert state(proposal) == "published"

    def test_rejecting_keeps_the_reason(self, review, reviewer, proposal):
        answer = decide(review, proposal, "reject", reason="Too vague.")

        assert answer.status_code == 200
        assert (answer.json()["state"], answer.json()["decisions"][0]["reason"]) == ("rejected", "Too vague.")
        assert ReviewDecision.objects.get().decided_by == reviewer
        assert not Skill.objects.exists()

    @pytest.mark.parametrize("decision", ["approve", "reject"])
    def test_the_same_decision_again_changes_nothing(self, review, owner, proposal, decision):
        first = decide(review, proposal, decision, reason="So.")
        mate = bearer(make_token(make_member(owner.organization, "administrator"), owner.organization))
        second = decide(mate, proposal, decision, reason="Also so.")

        assert (first.status_code, second.status_code) == (200, 200)
        assert first.json() == second.json()
        assert ReviewDecision.objects.count() == 1

    def test_an_approved_one_is_found_by_the_next_search(self, review, api, owner, proposal):
        decide(review, proposal, "approve")

        found = api.get("/memory/search", {"user_id": "alice", "query": "pay an order"}).json()["results"]
        assert [row["name"] for row in found] == ["pay"]

    def test_who_decided_is_shown_to_members_alone(self, review, api, proposal):
        decide(review, proposal, "approve")

        path = f"/v1/proposals/{proposal.pk}"
        assert api.get(path).json()["decisions"][0]["decided_by"] is None
        assert review.get(path).json()["decisions"][0]["decided_by"] == "rita"
        [revision] = review.get(f"/v1/skills/{Skill.objects.get().pk}/revisions").json()["results"]
        assert revision["decisions"][0]["decided_by"] == "rita"


class TestRefusals:
    def test_the_opposite_decision(self, review, proposal, owner):
        approve(revision=proposal)
        answer = decide(review, proposal, "reject", reason="No.")
        proposal.refresh_from_db()

        assert answer.status_code == 409
        day = f"{proposal.decided_at:%Y-%m-%d %H:%M}"
        assert answer.json() == {"detail": f"{proposal.pk} was published on {day} UTC. Nothing was changed."}

        other = make_proposal(owner)
        reject(revision=other, reason="No.")
        assert decide(review, other, "approve").status_code == 409
        assert ReviewDecision.objects.count() == 2

    def test_a_superseded_one_names_its_successor(self, review, owner, proposal):
        SkillRevision.objects.filter(pk=proposal.pk).update(state="superseded")
        latest = make_proposal(owner, supersedes=proposal)

        for answer in (decide(review, proposal, "approve"), decide(review, proposal, "reject", reason="No.")):
            assert answer.status_code == 409
            assert answer.json() == {
                "detail": f"{proposal.pk} was superseded by {latest.pk}; decide the latest proposal. "
                "Nothing was changed."
            }

    def test_a_skill_that_moved_on(self, review, owner):
        skill = make_skill(owner, make_content(name="pay"))
        late = make_proposal(owner, make_content(name="pay", instructions="1. Pay."), skill)
        early = make_proposal(
            owner, make_content(name="pay", instructions="1. Ask."), skill, state="superseded"
        )
        skill.version, skill.current_revision = "0.1.1", early
        skill.save()

        answer = decide(review, late, "approve")

        assert answer.status_code == 409
        assert answer.json() == {
            "detail": f"{late.pk} was made against version 0.1.0 of “pay”, which is at 0.1.1 by now. "
            "Reject it, and the next run proposes anew."
        }
        assert state(late) == "proposed"

    def test_unverified_evidence_alone(self, review, owner, proposal):
        proposal.experiences.add(make_experience(owner, verified=False, credibility=0.3))

        answer = decide(review, proposal, "approve")

        assert answer.status_code == 409
        assert answer.json()["detail"].endswith(
            "Reject it, or leave it until a run adds evidence that is verified."
        )
        assert state(proposal) == "proposed"

    def test_a_name_that_is_taken(self, review, owner, proposal):
        make_skill(owner, make_content(name="pay"))

        answer = decide(review, proposal, "approve")

        assert answer.status_code == 409
        assert answer.json() == {
            "detail": "name: Another skill is called “pay” already. "
            "Reject it: as it is, it cannot be published."
        }
        assert (state(proposal), Skill.objects.count()) == ("proposed", 1)

    @pytest.mark.parametrize(
        ("decision", "body", "field"),
        [
            ("reject", {}, "reason"),
            ("reject", {"reason": ""}, "reason"),
            ("reject", {"reason": " \n"}, "reason"),
            ("reject", {"reason": "\u200b\u3164"}, "reason"),
            ("reject", {"reason": None}, "reason"),
            ("reject", {"reason": 5}, "reason"),
            ("reject", {"reason": True}, "reason"),
            ("reject", {"reason": "x" * 2001}, "reason"),
            ("reject", {"reason": "a\x00"}, "reason"),
            ("approve", {"reason": "x" * 2001}, "reason"),
            ("approve", {"reason": ["a"]}, "reason"),
            ("approve", {"reason": 0}, "reason"),
            ("approve", {"force": True}, "force"),
        ],
    )
    def test_bad_input_names_the_field(self, review, proposal, decision, body, field):
        answer = review.post(f"/v1/proposals/{proposal.pk}/{decision}", body, format="json")

        assert (answer.status_code, list(answer.json())) == (400, [field])
        assert state(proposal) == "proposed"


@pytest.mark.parametrize("decision", ["approve", "reject"])
class TestWhoDecides:
    @pytest.mark.parametrize("role", ["reviewer", "administrator", "superuser"])
    def test_reviewers_administrators_and_superusers(self, member_api, proposal, decision, role):
        assert decide(member_api(role), proposal, decision, reason="So.").status_code == 200
        assert state(proposal) != "proposed"

    def test_no_operator(self, member_api, proposal, decision):
        answer = decide(member_api("operator"), proposal, decision, reason="So.")

        assert answer.status_code == 403
        assert answer.json() == {
            "detail": "This needs the role reviewer or administrator; yours is operator."
        }
        assert state(proposal) == "proposed"

    @pytest.mark.parametrize("permission", ["read", "write", "admin"])
    def test_no_key(self, client_row, proposal, decision, permission):
        api = APIClient(headers={"X-API-Key": make_key(client_row, permission)})
        answers = [decide(api, pk, decision, reason="So.") for pk in (proposal.pk, "rev-none")]

        assert {answer.status_code for answer in answers} == {403}
        assert answers[0].json() == {"detail": "Decisions are for members; a key may not decide."}
        assert answers[0].content == answers[1].content
        assert state(proposal) == "proposed"

    def test_no_trusted_client(self, client_row, proposal, decision, settings):
        settings.MIRIX_TRUST_CLIENT_ID_HEADER = True
        api = APIClient(headers={"X-Client-ID": client_row.pk})

        assert decide(api, proposal, decision, reason="So.").status_code == 403
        assert state(proposal) == "proposed"

    def test_a_key_beside_a_token_speaks_first(self, client_row, owner, reviewer, proposal, decision):
        token = make_token(reviewer, owner.organization)
        api = APIClient(headers={"X-API-Key": make_key(client_row), "Authorization": f"Bearer {token}"})

        assert decide(api, proposal, decision, reason="So.").status_code == 403
        assert state(proposal) == "proposed"

    def test_nobody_without_a_credential(self, proposal, decision):
        assert decide(APIClient(), proposal, decision, reason="So.").status_code == 401
        assert state(proposal) == "proposed"

    def test_no_stranger_and_missing_is_the_same(self, stranger, member_api, proposal, decision):
        strangers = [
            member_api("administrator", stranger.organization),
            bearer(make_token(make_superuser(), stranger.organization)),
        ]
        for api in strangers:
            answers = [decide(api, pk, decision, reason="So.") for pk in (proposal.pk, "rev-none", "%00")]
            assert {(answer.status_code, answer.content) for answer in answers} == {(404, NOT_FOUND)}
        assert state(proposal) == "proposed"
        assert not ReviewDecision.objects.exists()

    def test_a_key_of_a_stranger_learns_nothing(self, stranger, proposal, decision):
        api = APIClient(headers={"X-API-Key": make_key(make_client(stranger.organization), "admin")})

        assert decide(api, proposal, decision, reason="So.").status_code == 403


def test_rejecting_what_does_not_fit_any_more_lets_it_lapse(review, owner):
    skill = make_skill(owner, make_content(name="pay"))
    late = make_proposal(owner, make_content(name="pay", instructions="1. Pay."), skill, base=None)
    lesson = make_experience(owner, status="consumed")
    late.experiences.add(lesson)

    answer = decide(review, late, "reject", reason="It moved on.")

    lesson.refresh_from_db()
    assert (answer.status_code, state(late), lesson.status) == (200, "superseded", "pending")
    again = decide(review, late, "reject", reason="It moved on.")
    assert (again.status_code, again.content) == (200, answer.content)
    assert ReviewDecision.objects.count() == 1
