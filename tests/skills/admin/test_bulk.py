"""Deciding about many proposals at once, and taking many skills out of use or back: a line for each row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mirix.tenants.models import Membership, OrganizationSettings
from skills.content import Content
from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.history import move
from skills.review.merges import propose_merge
from skills.review.publishing import approve, reject
from tests.factories import make_content, make_experience, make_member, make_owner, make_proposal, make_skill
from tests.skills.admin.conftest import as_user

pytestmark = pytest.mark.django_db
QUEUE = "/admin/skills/skillrevision/"
SKILLS = "/admin/skills/skill/"


def said(answer) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def text(answer) -> str:
    return answer.content.decode()


def proposal(owner, name: str, **fields) -> SkillRevision:
    revision = make_proposal(owner, make_content(name=name), **fields)
    revision.experiences.add(make_experience(owner, status="consumed"))
    return revision


def states() -> dict[str, str]:
    return dict(SkillRevision.objects.values_list("name", "state"))


def statuses() -> dict[str, str]:
    return dict(Skill.objects.values_list("name", "status"))


class TestProposals:
    def test_each_is_published_or_says_why_not(self, owner, reviewer):
        good, flagged = proposal(owner, "good"), proposal(owner, "flagged", risk_flags=["new_address"])
        weak = make_proposal(owner, make_content(name="weak"))
        weak.experiences.add(make_experience(owner, verified=False, credibility=0.3))
        done = proposal(owner, "done")
        reject(revision=done, reason="No.")
        ids = [row.pk for row in (good, flagged, weak, done)]

        led = reviewer.post(QUEUE, {"action": "approve_selected", "_selected_action": ids[:3]})
        assert led["Location"].startswith(f"{QUEUE}approve/?ids=")
        asked = text(reviewer.get(f"{QUEUE}approve/?ids={','.join(ids)}"))
        assert "Approve 2 proposals" in asked
        assert "2 of 4 stay as they are: the reason stands beside each." in asked
        assert asked.count("Published as 0.1.0. Agents get it with their next search.") == 2
        assert asked.count(f"{weak.pk} rests on unverified or quarantined experiences alone.") == 1
        assert asked.count("disabled") == 2
        assert "Names an outside address that was not there before" in asked
        assert asked.count("It is decided already.") == 1
        assert not Skill.objects.exists()

        answer = reviewer.post(f"{QUEUE}approve/", {"ids": ids})

        assert said(answer) == ["2 proposals approved, 2 left as they were."]
        assert text(answer).count("Published as 0.1.0.") == 2
        assert f"{weak.pk} rests on unverified or quarantined experiences alone." in text(answer)
        assert states() == {
            "good": "published", "flagged": "published", "weak": "proposed", "done": "rejected",
        }  # fmt: skip
        names = ReviewDecision.objects.filter(decision="approve").values_list("decided_by_name", flat=True)
        assert list(names) == ["rita", "rita"]
        assert LogEntry.objects.filter(change_message="Approved").count() == 2

    def test_each_line_says_what_it_changes_and_what_will_happen(self, owner, reviewer):
        skill = approve(revision=proposal(owner, "pay"))
        edit = make_proposal(owner, replace(Content.of(skill), description="Altogether new."), skill)
        move(skill=skill, act="archive", reason="The shop has closed.")
        create = proposal(owner, "ask")

        asked = text(reviewer.get(f"{QUEUE}approve/?ids={edit.pk},{create.pk}"))
        assert "Edit of 0.1.1" in asked
        assert "Published as 0.1.2. The skill stays archived." in asked
        assert "New workflow" in asked
        assert '<span class="mx-plus">+2</span>' in asked
        assert ">ask</a>" in asked
        assert f"({create.pk})" not in asked
        refused = text(reviewer.get(f"{QUEUE}reject/?ids={edit.pk},{create.pk}"))
        assert refused.count("Rejected: its evidence will not propose it again.") == 2

        done = text(reviewer.post(f"{QUEUE}approve/", {"ids": [edit.pk, create.pk]}))
        assert "Published as 0.1.2; the skill stays archived." in done
        assert "Published as 0.1.0." in done

    def test_what_the_user_wrote_waits_for_other_eyes(self, owner):
        OrganizationSettings.objects.update_or_create(
            organization=owner.organization, defaults={"four_eyes": True}
        )
        rita = make_member(owner.organization, "reviewer", "rita")
        own = make_proposal(owner, make_content(name="own"), author=rita, author_kind="human")
        answers = [text(as_user(rita).get(f"{QUEUE}approve/?ids={own.pk}"))]
        answers.append(text(as_user(rita).post(f"{QUEUE}approve/", {"ids": [own.pk]})))

        assert [f"{own.pk} is your own text: somebody else has to decide." in each for each in answers] == [
            True,
            True,
        ]
        assert states() == {"own": "proposed"}

    def test_hostile_words_are_text(self, owner, reviewer):
        hostile = "<img src=x onerror=alert(1)>"
        row = proposal(owner, "a", risk_flags=[hostile])
        for act in ("approve", "reject"):
            assert hostile not in text(reviewer.get(f"{QUEUE}{act}/?ids={row.pk}"))

    @pytest.mark.parametrize("act", ["approve", "reject"])
    def test_twenty_cost_as_many_queries_as_one(self, act, owner, reviewer):
        def cost() -> int:
            ids = ",".join(SkillRevision.objects.filter(state="proposed").values_list("pk", flat=True))
            with CaptureQueriesContext(connection) as queries:
                reviewer.get(f"{QUEUE}{act}/?ids={ids}")
            return len(queries)

        proposal(owner, "first")
        cost()
        one = cost()
        for number in range(19):
            skill = make_skill(owner)
            edit = make_proposal(owner, replace(Content.of(skill), description=f"{number}."), skill)
            edit.experiences.add(make_experience(owner))
        assert cost() == one

    def test_a_merge_says_what_else_it_does(self, owner, reviewer):
        target, source = make_skill(owner, make_content(name="pay")), make_skill(owner)
        merge = propose_merge(source=source, target=target)

        asked = text(reviewer.get(f"{QUEUE}approve/?ids={merge.pk}"))

        assert f"Approving it also archives “{source.name}”" in asked
        assert "Merge" in text(reviewer.get(QUEUE))

    def test_many_are_rejected_for_one_reason(self, owner, reviewer):
        skill = make_skill(owner, make_content(name="pay"))
        late = make_proposal(owner, replace(Content.of(skill), description="New."), skill, base=None)
        rows = [proposal(owner, "one"), proposal(owner, "two"), late]
        ids = [row.pk for row in rows]
        assert reviewer.post(f"{QUEUE}reject/", {"ids": ids, "reason": " "}).status_code == 400
        assert not ReviewDecision.objects.exists()

        answer = reviewer.post(f"{QUEUE}reject/", {"ids": ids, "reason": "Too vague."})

        assert said(answer) == ["3 proposals rejected."]
        assert text(answer).count("Rejected.") == 2
        assert "Lapsed: its skill says something else by now." in text(answer)
        assert set(ReviewDecision.objects.values_list("reason", flat=True)) == {"Too vague."}

    def test_only_where_the_user_decides(self, owner, stranger):
        member = make_member(owner.organization, "reviewer")
        operated = make_owner()
        Membership.objects.create(organization=operated.organization, user=member, role="operator")
        ids = [proposal(who, name).pk for who, name in ((owner, "a"), (operated, "b"), (stranger, "c"))]

        answer = as_user(member).post(f"{QUEUE}approve/", {"ids": ids})

        assert "Your role in its organization does not let you." in text(answer)
        assert states() == {"a": "published", "b": "proposed", "c": "proposed"}

    def test_an_operator_is_refused_each_way(self, owner):
        operator = as_user(make_member(owner.organization, "operator"))
        row = proposal(owner, "a")
        assert "approve_selected" not in text(operator.get(QUEUE))
        sent = {"action": "approve_selected", "_selected_action": [row.pk]}
        assert operator.post(QUEUE, sent).status_code == 403
        for act in ("approve", "reject"):
            answer = operator.post(f"{QUEUE}{act}/", {"ids": [row.pk], "reason": "So."})
            assert answer.status_code == 403
        assert states() == {"a": "proposed"}


class TestSkills:
    def test_many_are_archived_and_restored(self, owner, reviewer):
        rows = [make_skill(owner, make_content(name=name)) for name in ("a", "b")]
        rows.append(make_skill(owner, make_content(name="gone"), status="archived"))
        ids = [row.pk for row in rows]
        led = reviewer.post(SKILLS, {"action": "archive_selected", "_selected_action": ids})
        assert led["Location"].startswith(f"{SKILLS}archive/?ids=")
        asked = text(reviewer.get(led["Location"]))
        assert "Archive 2 skills" in asked
        assert asked.count("It is archived already.") == 1

        answer = reviewer.post(f"{SKILLS}archive/", {"ids": ids, "reason": "The shop has closed."})

        assert said(answer) == ["2 skills archived, 1 left as it was."]
        assert text(answer).count("Archived, as 0.1.1.") == 2
        assert set(statuses().values()) == {"archived"}
        assert list(ReviewDecision.objects.values_list("reason", flat=True)) == ["The shop has closed."] * 2
        assert said(reviewer.post(f"{SKILLS}restore/", {"ids": ids, "reason": "Open again."})) == [
            "3 skills restored."
        ]

    def test_one_that_may_not_come_back_spoils_no_other(self, owner, reviewer):
        fine, weak = (make_skill(owner, make_content(name=n), status="quarantined") for n in ("a", "b"))
        weak.current_revision.experiences.add(make_experience(owner, quarantined=True))

        answer = reviewer.post(f"{SKILLS}release/", {"ids": [weak.pk, fine.pk], "reason": "Looked at."})

        assert said(answer) == ["1 skill released, 1 left as it was."]
        assert "rests on unverified or quarantined experiences alone" in text(answer)
        assert statuses() == {"a": "active", "b": "quarantined"}

    def test_an_operator_may_export_them_and_no_more(self, owner):
        operator = as_user(make_member(owner.organization, "operator"))
        skill = approve(revision=proposal(owner, "a"))
        page = text(operator.get(SKILLS))
        assert ("export_selected" in page, "archive_selected" in page) == (True, False)
        operator.post(SKILLS, {"action": "archive_selected", "_selected_action": [skill.pk]})
        assert operator.post(f"{SKILLS}archive/", {"ids": [skill.pk], "reason": "So."}).status_code == 403
        assert operator.get(f"{SKILLS}quarantine/?ids={skill.pk}").status_code == 403
        assert statuses() == {"a": "active"}
