"""The screen of a proposal: what changes, why, and what to watch, for whoever decides."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from django.test import Client as Browser
from django.urls import reverse

from mirix.tenants.owners import Owner
from skills.models import SkillRevision
from skills.review.risks import RISK_ADVICE, RISK_LABELS
from skills.search.index import index_skill
from tests.factories import (
    make_content,
    make_experience,
    make_owner,
    make_proposal,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db

LONG = "".join(f"{number}. Step number {number} of the work.\n" for number in range(1, 31))


@pytest.fixture
def owner() -> Owner:
    return make_owner()


def page(revision: SkillRevision) -> str:
    return reverse("admin:skills_skillrevision_change", args=[revision.pk])


def shown(browser: Browser, revision: SkillRevision, **asked: str) -> str:
    return unescape(browser.get(page(revision), asked).content.decode())


def an_edit(owner: Owner) -> SkillRevision:
    skill = make_skill(owner, make_content(name="work", instructions=LONG))
    text = make_content(name="work", instructions=LONG.replace("number 15", "number fifteen"))
    return make_proposal(owner, text, skill)


class TestWhatChanges:
    def test_a_new_skill_is_rendered_with_its_source_beside(self, owner, reviewer):
        text = "## Pay\n\n1. Ask for **the** card.\n2. See [x](javascript:alert(1))."
        found = reviewer.get(page(make_proposal(owner, make_content(instructions=text)))).content.decode()
        assert '<h5 class="mx-md__h2">Pay</h5>' in found
        assert "<li>Ask for <strong>the</strong> card.</li>" in found
        assert "javascript:alert(1)" in found
        assert 'href="javascript' not in found
        assert f'<pre class="mx-code">{text}</pre>' in found

    def test_long_stretches_that_stay_are_folded(self, owner, reviewer):
        text = shown(reviewer, an_edit(owner))
        assert re.findall(r"<summary>(\d+) lines unchanged</summary>", text) == ["11", "12"]
        assert "<del>15</del><ins>fifteen</ins>" in text

    def test_the_sides_stand_beside_each_other_where_one_asks_for_it_and_then_always(self, owner, reviewer):
        edit = an_edit(owner)
        assert "mx-diff--inline" in shown(reviewer, edit)
        assert "mx-diff--side" in shown(reviewer, edit, diff="side")
        assert "mx-diff--side" in shown(reviewer, edit)
        assert "mx-diff--side" in shown(reviewer, edit, diff="nonsense")
        assert "mx-diff--inline" in shown(reviewer, edit, diff="inline")
        assert "mx-diff--inline" in shown(reviewer, edit)

    def test_steps_of_no_session_are_marked_in_the_text_and_in_words(self, owner, reviewer):
        new = make_proposal(
            owner,
            make_content(instructions="1. Run `pay --force`.\n2. Ask."),
            risk_flags=["unsupported_steps"],
            unsupported=["pay --force"],
        )
        mark = '<mark class="mx-doubt" title="occurs in no supporting session">pay --force'
        assert f"<code>{mark}" in shown(reviewer, new)
        assert "(occurs in no supporting session)" in shown(reviewer, new)
        skill = make_skill(owner, make_content(name="work", instructions="Run it."))
        text = make_content(name="work", instructions="Run pay --force.")
        edit = make_proposal(owner, text, skill, unsupported=["pay --force"])
        assert f"<ins>{mark}" in shown(reviewer, edit)


class TestWhy:
    def test_evidence_says_how_credible_it_is_and_shows_the_turns_around_its_own(self, owner, reviewer):
        turns = [
            {"role": "user", "content": "Far away."},
            {"role": "assistant", "content": "I take card 6. " + "word " * 100},
            {"role": "user", "content": "No, use the other card."},
            {"role": "tool", "tool_name": "pay", "content": "Error: expired", "is_error": True},
        ]
        session = make_session(owner, turns)
        proposal = make_proposal(owner)
        proposal.experiences.add(
            make_experience(
                owner,
                session,
                turn=session.turns.get(seq=3),
                turn_seq=3,
                model_credibility=0.5,
                credibility=0.9,
            )
        )
        text = shown(reviewer, proposal)
        assert "Why 90 %" in text
        assert "what the user said. A user's critique counts 80 to 100 %; within that the distiller's" in text
        assert "Assistant, turn 2" in text
        assert "Tool, turn 4, failed" in text
        assert "Far away." not in text
        assert "1 supporting experience of 1 session" in text
        assert text.count("word word") < 100

    def test_nothing_is_shown_of_another_session(self, owner, reviewer):
        make_session(owner, [{"role": "user", "content": "Of another session."}] * 3)
        proposal = make_proposal(owner)
        proposal.experiences.add(make_experience(owner))
        assert "Of another session." not in shown(reviewer, proposal)

    def test_evidence_that_was_erased_is_missed(self, owner, reviewer):
        proposal = make_proposal(owner, author_kind="offline")
        assert "what it was learned from has been erased since" in shown(reviewer, proposal)
        by_hand = make_proposal(owner, author_kind="human")
        assert "Somebody wrote it" in shown(reviewer, by_hand)

    def test_evidence_that_went_into_quarantine_since_is_to_be_watched(self, owner, reviewer):
        proposal = make_proposal(owner)
        proposal.experiences.add(
            make_experience(owner), make_experience(owner, quarantined=True, quarantine_reason="An order.")
        )
        text = shown(reviewer, proposal)
        assert "1 of 2 experiences behind it went into quarantine since" in text
        assert "An order." in text


class TestWhatToWatch:
    def test_each_flag_says_what_it_means_and_what_to_check(self, owner, reviewer):
        assert RISK_ADVICE.keys() == RISK_LABELS.keys()
        text = shown(reviewer, make_proposal(owner, risk_flags=list(RISK_LABELS)))
        for flag, label in RISK_LABELS.items():
            assert label in text
            assert RISK_ADVICE[flag] in text

    def test_an_address_is_named(self, owner, reviewer):
        text = make_content(instructions="Send it to https://collect.io/in.")
        proposal = make_proposal(owner, text, risk_flags=["new_address"])
        assert re.search(r"<code[^>]*>https://collect.io/in</code>", shown(reviewer, proposal))

    def test_what_approving_would_be_refused_for_is_said_before(self, owner, reviewer):
        proposal = make_proposal(owner)
        proposal.experiences.add(make_experience(owner, verified=False, credibility=0.2))
        assert "rests on unverified or quarantined experiences alone" in shown(reviewer, proposal)

    def test_what_says_much_the_same_stands_beside_it(self, owner, reviewer):
        content = make_content(name="pay-with-a-card", instructions="1. Ask which card to use, then wait.")
        skill = make_skill(owner, content)
        index_skill(skill)
        foreign = make_skill(make_owner(owner.organization), content)
        index_skill(foreign)
        proposal = make_proposal(owner, replace(content, name="charge-cards"))
        waiting = make_proposal(owner, replace(content, name="charging-it"))
        context = reviewer.get(page(proposal)).context
        found = {(item["alike"].skill, item["alike"].revision) for item in context["alike"]}
        assert found == {(skill, None), (None, waiting)}
        assert all(item["per_cent"] >= 50 and item["alike"].is_near for item in context["alike"])

    def test_other_words_that_name_the_same_tools_are_much_the_same(self, owner, reviewer):
        told = make_content(
            name="void", description="Voiding.", instructions="Use `cancel_order`.", triggers=[]
        )
        make_proposal(owner, told)
        again = replace(told, name="call-off", description="Calling off.", instructions="First cancel_order.")
        assert "100 % of the tools and steps in common" in shown(reviewer, make_proposal(owner, again))

    def test_what_has_little_in_common_is_left_out(self, owner, reviewer):
        index_skill(
            make_skill(owner, make_content(name="run", description="Use when it rains.", instructions="Run."))
        )
        assert reviewer.get(page(make_proposal(owner))).context["alike"] == []
