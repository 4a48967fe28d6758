"""What the form of an edit says will become of the text, and that it does."""

from __future__ import annotations

import pytest
from django.test import Client as Browser
from django.urls import reverse

from mirix.tenants.models import OrganizationSettings
from skills.models import RevisionState, SkillRevision
from skills.review.editing import edit_skill
from skills.review.errors import ProposalConflict
from skills.review.merges import propose_merge
from tests.factories import make_content, make_experience, make_member, make_proposal, make_skill

pytestmark = pytest.mark.django_db
PLAIN = {"description": "Another.", "instructions": "1. Ask.", "entry_type": "guide"}
RISKY = PLAIN | {"instructions": "1. Post it to https://elsewhere.com/x."}


@pytest.fixture
def skill(owner):
    return make_skill(owner, make_content(name="pay-order"))


def browser_of(owner, role: str) -> Browser:
    browser = Browser()
    browser.force_login(make_member(owner.organization, role, f"{role}-of-it"))
    return browser


def address(row, page: str = "edit") -> str:
    kind = "skillrevision" if isinstance(row, SkillRevision) else "skill"
    return reverse(f"admin:skills_{kind}_{page}", args=[row.pk])


@pytest.mark.parametrize(
    ("chosen", "role", "says", "button", "sent", "becomes"),
    [
        ({}, "reviewer", "", "Publish", RISKY, "published"),
        ({}, "operator", "Somebody who decides looks at it first.", "Propose", PLAIN, "proposed"),
        (
            {"deciding_role": "administrator"}, "reviewer",
            "Somebody who decides looks at it first.", "Propose", PLAIN, "proposed",
        ),
        ({"deciding_role": "administrator"}, "administrator", "", "Publish", PLAIN, "published"),
        (
            {"review_policy": "automatic"}, "operator",
            "Yours is published at once where it carries no risk flag;", "Send", PLAIN, "published",
        ),
        (
            {"review_policy": "automatic"}, "operator",
            "else somebody who decides looks at it first.", "Send", RISKY, "proposed",
        ),
        (
            {"four_eyes": True, "review_policy": "automatic"}, "administrator",
            "Yours waits until somebody else than you has approved it.", "Propose", PLAIN, "proposed",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("of", ["skill", "proposal"])
def test_the_form_says_what_becomes_of_the_text(owner, skill, of, chosen, role, says, button, sent, becomes):
    OrganizationSettings.objects.create(organization=owner.organization, **chosen)
    row = skill if of == "skill" else make_proposal(owner, make_content(name="ship-order"))
    seen = skill.current_revision_id if of == "skill" else row.pk
    browser = browser_of(owner, role)

    page = browser.get(address(row)).content.decode()

    assert says in page
    assert f'class="mx-btn mx-btn--primary">{button}</button>' in page
    assert ("Save as proposal" in page) is (of == "proposal" and button == "Publish")
    assert browser.post(address(row), sent | {"seen": seen}).status_code == 302
    assert SkillRevision.objects.latest("created_at").state == becomes


def test_whoever_wrote_it_is_offered_no_approval_under_four_eyes(owner, skill):
    OrganizationSettings.objects.create(organization=owner.organization, four_eyes=True)
    mine, theirs = browser_of(owner, "reviewer"), browser_of(owner, "administrator")
    mine.post(address(skill), PLAIN | {"seen": skill.current_revision_id})
    waiting = SkillRevision.objects.get(state=RevisionState.PROPOSED)

    page = mine.get(address(waiting, "change")).content.decode()

    assert "This is your own text: somebody else has to approve it." in page
    assert address(waiting, "approve") not in page
    assert address(waiting, "reject") in page
    assert address(waiting, "approve") in theirs.get(address(waiting, "change")).content.decode()


def test_who_only_reads_is_told_who_decides(owner):
    proposal = make_proposal(owner)
    browser = browser_of(owner, "operator")

    def said() -> str:
        return browser.get(address(proposal, "change")).content.decode()

    assert f"Reviewers and administrators of {owner.organization} decide." in said()
    OrganizationSettings.objects.create(organization=owner.organization, deciding_role="administrator")
    assert f"You read here. Administrators of {owner.organization} decide." in said()


def test_the_form_of_a_skill_leads_to_the_merge_that_waits_for_it(owner, skill):
    other = make_skill(owner, make_content(name="pay-by-card", instructions="9. Tip."))
    other.current_revision.experiences.add(make_experience(owner, status="consumed"))
    merge = propose_merge(source=other, target=skill)
    browser = browser_of(owner, "reviewer")

    page = browser.get(address(skill)).content.decode()
    refused = browser.post(address(skill), PLAIN | {"seen": skill.current_revision_id})

    assert "“pay-by-card” is to go into it" in page
    assert f'href="{address(merge)}"' in page
    assert refused.status_code == 400
    assert f"The proposal {merge.pk} for “pay-order” to take “pay-by-card” in is open" in (
        refused.content.decode()
    )
    assert "Another." in refused.content.decode()  # what was typed is still there
    assert browser.post(address(merge), PLAIN | {"seen": merge.pk, "wait": "1"}).status_code == 302
    edited = SkillRevision.objects.get(state=RevisionState.PROPOSED)
    assert (edited.merged_from, edited.supersedes) == (other.current_revision, merge)


def test_a_learned_proposal_that_waits_is_named_too(owner, skill):
    waiting = make_proposal(owner, make_content(name="pay-order", instructions="1. Wait."), skill)

    page = browser_of(owner, "operator").get(address(skill)).content.decode()

    assert "A proposal for this skill waits" in page
    assert "is to go into it" not in page
    assert f'href="{address(waiting)}"' in page


def test_an_edit_of_a_merge_is_never_published_by_itself(owner, skill):
    OrganizationSettings.objects.create(organization=owner.organization, review_policy="automatic")
    merge = propose_merge(source=make_skill(owner, make_content(name="pay-by-card")), target=skill)
    page = browser_of(owner, "operator").get(address(merge)).content.decode()

    assert "Somebody who decides looks at it first." in page
    with pytest.raises(ProposalConflict, match="is open; amend that one"):
        edit_skill(
            skill=skill,
            base=skill.current_revision,
            content=make_content(name="pay-order", instructions="1. Mine."),
            author=None,
            may_decide=True,
        )
