"""Deciding one proposal after the other: filters, reasons, undo, and others who are faster."""

from __future__ import annotations

from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from mirix.tenants.models import OrganizationSettings
from mirix.tenants.owners import Owner
from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.publishing import approve, reject
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_owner,
    make_proposal,
    make_skill,
)
from tests.skills.admin.conftest import as_user

pytestmark = pytest.mark.django_db

QUEUE = "/admin/skills/skillrevision/"


@pytest.fixture
def owner() -> Owner:
    return make_owner()


@pytest.fixture
def proposal(owner) -> SkillRevision:
    return waiting(owner, "pay", 0.8)


def waiting(owner: Owner, name: str, importance: float, **fields) -> SkillRevision:
    made = make_proposal(owner, make_content(name=name), **fields)
    made.experiences.add(make_experience(owner, importance=importance))
    return made


def url(view: str, revision: SkillRevision, **filters: str) -> str:
    address = reverse(f"admin:skills_skillrevision_{view}", args=[revision.pk])
    return f"{address}?{urlencode({'_changelist_filters': urlencode(filters)})}" if filters else address


def text_of(response) -> str:
    return unescape(response.content.decode())


class TestTheQueueAsItWasFiltered:
    @pytest.fixture
    def rows(self, owner) -> dict[str, SkillRevision]:
        return {
            name: waiting(owner, name, weight, risk_flags=flags)
            for name, weight, flags in (
                ("a", 0.9, ["new_address"]),
                ("b", 0.7, []),
                ("c", 0.5, ["new_address"]),
                ("d", 0.3, ["credential"]),
            )
        }

    def test_the_list_hands_its_filters_on(self, reviewer, rows):
        found = reviewer.get(QUEUE, {"risk": "new_address"}).content.decode()
        assert "_changelist_filters=risk%3Dnew_address" in found

    def test_place_and_neighbours_are_those_of_the_filter(self, reviewer, rows):
        page = text_of(reviewer.get(url("change", rows["a"], risk="new_address")))
        assert "Proposal 1 of 2 in this filter" in page
        assert url("change", rows["c"], risk="new_address") in page
        assert url("change", rows["b"], risk="new_address") not in page
        assert "Proposal 1 of 4" in text_of(reviewer.get(url("change", rows["a"])))

    @pytest.mark.parametrize("view", ["approve", "reject"])
    def test_after_a_decision_comes_the_next_of_the_filter(self, view, reviewer, rows):
        answer = reviewer.post(url(view, rows["a"], risk="new_address"), {"reason": "No."})
        assert answer["Location"] == url("change", rows["c"], risk="new_address")
        answer = reviewer.post(url(view, rows["c"], risk="new_address"), {"reason": "No."})
        assert answer["Location"] == QUEUE

    def test_a_search_and_an_order_are_kept_too(self, reviewer, rows):
        page = text_of(reviewer.get(url("change", rows["d"], q=rows["d"].pk)))
        assert "Proposal 1 of 1 in this filter" in page
        column = 1  # by name, downwards
        page = reviewer.get(url("change", rows["d"], o=f"-{column}"))
        assert page.context["place"].number == 1

    @pytest.mark.parametrize("filters", [{"nonsense": "1"}, {"state": "rejected"}, {"p": "7"}])
    def test_what_is_no_filter_of_what_waits_is_passed_over(self, filters, reviewer, rows):
        assert "Proposal 1 of 4" in text_of(reviewer.get(url("change", rows["a"], **filters)))

    def test_a_proposal_outside_of_the_filter_leads_into_it(self, reviewer, rows):
        page = text_of(reviewer.get(url("change", rows["b"], risk="credential")))
        assert "Proposal 1 of" not in page
        assert url("change", rows["d"], risk="credential") in page

    def test_no_filter_shows_a_stranger_anything(self, stranger, rows):
        browser = as_user(make_member(stranger.organization))
        own = waiting(stranger, "own", 0.1, risk_flags=["new_address"])
        page = browser.get(url("change", own, risk="new_address"))
        assert (page.context["place"].number, page.context["place"].total) == (1, 1)


class TestReasons:
    @pytest.mark.parametrize(
        ("sent", "kept"),
        [
            ({"why": "case"}, "It holds for one case alone"),
            ({"why": "case", "reason": "Card 6."}, "It holds for one case alone: Card 6."),
            ({"why": "other", "reason": "Too long."}, "Too long."),
            ({"why": "nonsense", "reason": "Too long."}, "Too long."),
            ({"reason": " Too long.\x00 "}, "Too long."),
        ],
    )
    def test_what_was_chosen_and_what_was_written_is_kept(self, sent, kept, reviewer, proposal):
        assert reviewer.post(url("reject", proposal), sent).status_code == 302
        assert ReviewDecision.objects.get().reason == kept

    def test_something_else_without_words_is_no_reason(self, reviewer, proposal):
        answer = reviewer.post(url("reject", proposal), {"why": "other", "reason": " "})
        assert answer.status_code == 400
        assert "a rejection needs a reason" in text_of(answer)
        assert 'value="other" required checked' in text_of(answer)
        assert not ReviewDecision.objects.exists()


class TestUndo:
    def test_after_an_approval_the_next_page_offers_to_take_it_back(self, reviewer, proposal):
        answer = reviewer.post(url("approve", proposal), follow=True)
        assert f'action="{url("undo", proposal)}"' in text_of(answer)
        assert "undo" not in text_of(reviewer.get(QUEUE))
        said = text_of(reviewer.post(url("undo", proposal), follow=True))
        assert "Taken back:" in said
        assert Skill.objects.get().status == "archived"

    def test_after_a_rejection_too_and_its_own_page_offers_it_later(self, reviewer, proposal):
        answer = reviewer.post(url("reject", proposal), {"why": "other", "reason": "Slipped."}, follow=True)
        assert f'action="{url("undo", proposal)}"' in text_of(answer)
        assert "Propose again" in text_of(reviewer.get(url("change", proposal)))
        said = text_of(reviewer.post(url("undo", proposal), follow=True))
        assert f"Taken back: {proposal.name} waits again." in said
        again = SkillRevision.objects.get(state="proposed")
        assert "Nothing was changed" in text_of(reviewer.post(url("undo", proposal), follow=True))
        assert SkillRevision.objects.get(state="proposed") == again

    def test_what_was_published_since_is_not_undone(self, owner, reviewer, proposal):
        skill = approve(revision=proposal)
        edit = make_proposal(owner, make_content(name="pay", instructions="Run."), skill)
        approve(revision=edit)
        said = text_of(reviewer.post(url("undo", proposal), follow=True))
        assert "Nothing was changed" in said
        assert Skill.objects.get().version == "0.1.1"

    def test_an_edit_that_is_published_goes_on_with_the_queue_and_can_be_undone(
        self, owner, reviewer, proposal
    ):
        second = waiting(owner, "second", 0.2)
        sent = {
            "description": "Another.",
            "instructions": "Another.",
            "entry_type": "guide",
            "seen": proposal.pk,
        }
        answer = reviewer.post(url("edit", proposal), sent)
        assert answer["Location"] == url("change", second)
        written = Skill.objects.get().current_revision
        assert url("undo", written) in text_of(reviewer.get(answer["Location"]))
        reviewer.post(url("undo", written))
        assert Skill.objects.get().status == "archived"


class TestMerging:
    def test_it_leads_to_the_change_that_waits(self, owner, reviewer, proposal):
        skill = make_skill(owner, make_content(name="charge", instructions="1. Wait.\n"))
        make_skill(owner, make_content(name="third"))
        form = reviewer.get(url("merge", proposal), {"into": skill.pk})
        assert f'<option value="{skill.pk}" selected>charge 0.1.0</option>' in text_of(form)
        answer = reviewer.post(url("merge", proposal), {"target": skill.pk, "reason": ""})
        made = SkillRevision.objects.get(state="proposed")
        assert answer["Location"] == url("change", made)
        assert made.skill == skill

    def test_a_skill_of_somebody_else_is_no_choice(self, owner, reviewer, proposal):
        make_skill(owner)
        foreign = make_skill(make_owner(owner.organization))
        answer = reviewer.post(url("merge", proposal), {"target": foreign.pk})
        assert answer.status_code == 400
        assert not ReviewDecision.objects.exists()


class TestOthersWhoAreFaster:
    @pytest.fixture
    def bob(self, owner) -> User:
        return make_member(owner.organization, username="bob")

    def test_an_open_page_is_told_once_that_somebody_decided(self, reviewer, bob, proposal):
        first = reviewer.get(url("state", proposal))
        tag = first["ETag"]
        assert first.json()["state"] == "proposed"
        assert f'data-tag="{tag}"' in text_of(reviewer.get(url("change", proposal)))
        again = reviewer.get(url("state", proposal), headers={"If-None-Match": tag})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag)
        reject(revision=proposal, decided_by=bob, reason="No.")
        told = reviewer.get(url("state", proposal), headers={"If-None-Match": tag})
        assert told.status_code == 200
        assert told.json()["state"] == "rejected"
        assert told.json()["said"].startswith("bob rejected this at ")
        assert told["ETag"] != tag

    def test_an_open_page_is_told_that_the_skill_moved_on(self, owner, reviewer):
        skill = approve(revision=waiting(owner, "pay", 0.5))
        text = make_content(name="pay", instructions="Run.")
        edit = make_proposal(owner, text, skill)
        tag = reviewer.get(url("state", edit))["ETag"]
        other = make_proposal(owner, text, skill, state="published", version="0.1.1")
        Skill.objects.update(current_revision=other, version="0.1.1")
        told = reviewer.get(url("state", edit), headers={"If-None-Match": tag})
        assert told.json() == {
            "state": "proposed",
            "said": "Its skill was published anew: reload to see what approving this would make of it.",
        }

    @pytest.mark.parametrize("view", ["approve", "reject"])
    def test_who_comes_second_reads_who_decided_and_keeps_what_they_wrote(
        self, view, reviewer, bob, proposal
    ):
        reject(revision=proposal, decided_by=bob, reason="Too early.")
        answer = reviewer.post(url(view, proposal), {"why": "other", "reason": "My own long words."})
        said = text_of(answer)
        assert answer.status_code == 409
        assert "Nothing was changed: pay is decided already." in said
        assert "by bob" in said
        assert "Too early." in said
        assert ">My own long words.</textarea>" in said
        assert ReviewDecision.objects.count() == 1

    def test_what_a_service_refuses_is_said_and_keeps_what_they_wrote(self, owner, reviewer):
        proposal = make_proposal(owner)
        proposal.experiences.add(make_experience(owner, verified=False, credibility=0.2))
        answer = reviewer.post(url("approve", proposal))
        assert answer.status_code == 409
        assert "rests on unverified or quarantined experiences alone" in text_of(answer)
        assert not Skill.objects.exists()


class TestWhoMay:
    def test_where_four_eyes_are_wanted_an_edit_is_not_said_to_approve(self, owner, reviewer, proposal):
        assert 'Edit<span class="mx-decide__long"> and approve</span>' in text_of(
            reviewer.get(url("change", proposal))
        )
        OrganizationSettings.objects.update_or_create(
            organization=owner.organization, defaults={"four_eyes": True}
        )
        assert "and approve</span>" not in text_of(reviewer.get(url("change", proposal)))

    @pytest.mark.parametrize("view", ["undo", "merge"])
    def test_an_operator_neither_takes_back_nor_merges(self, view, owner, proposal):
        skill = approve(revision=waiting(owner, "other", 0.1))
        operator = as_user(make_member(owner.organization, "operator"))
        target = skill.current_revision if view == "undo" else proposal
        assert operator.post(url(view, target), {"target": skill.pk}).status_code == 403
        skill.refresh_from_db()
        assert (skill.status, skill.version) == ("active", "0.1.0")
        assert SkillRevision.objects.get(pk=proposal.pk).state == "proposed"
        assert url("merge", proposal) not in text_of(operator.get(url("change", proposal)))

    @pytest.mark.parametrize("view", ["undo", "merge", "state"])
    def test_a_stranger_finds_nothing(self, view, stranger, owner, proposal):
        skill = approve(revision=proposal)
        browser = as_user(make_member(stranger.organization, "administrator"))
        assert browser.get(url(view, proposal)).status_code == 404
        assert browser.post(url(view, proposal), {"target": skill.pk}).status_code == 404
        skill.refresh_from_db()
        assert skill.status == "active"
