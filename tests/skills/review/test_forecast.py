"""What approving would do, said beforehand: just what the service does, or refuses in the same words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mirix.tenants.models import OrganizationSettings
from mirix.tenants.selectors import effective
from skills.content import Content
from skills.models import Skill, SkillRevision
from skills.review.errors import ReviewError
from skills.review.forecast import Forecast, approval_of, lapses, with_what_decides
from skills.review.history import archive
from skills.review.merges import propose_merge
from skills.review.publishing import approve, reject
from tests.factories import make_content, make_experience, make_member, make_proposal, make_skill

pytestmark = pytest.mark.django_db

STEPS = "1. Ask.\n2. Charge it.\n3. Say thanks.\n"


@pytest.fixture
def rita(owner):
    return make_member(owner.organization, "reviewer", "rita")


def chosen(owner, **fields) -> None:
    OrganizationSettings.objects.update_or_create(organization=owner.organization, defaults=fields)


def published(owner, name: str = "pay", **fields) -> Skill:
    return approve(revision=make_proposal(owner, make_content(name=name, instructions=STEPS, **fields)))


def changed(skill: Skill, old: str, new: str, owner) -> SkillRevision:
    text = replace(Content.of(skill), instructions=skill.instructions.replace(old, new))
    return make_proposal(owner, text, skill)


def moved_on(owner, old: str, new: str) -> SkillRevision:
    """A proposal for a skill whose first step was changed by somebody else since."""
    skill = published(owner)
    late = changed(skill, old, new, owner)
    SkillRevision.objects.filter(pk=late.pk).update(state="rejected")  # only one may wait
    approve(revision=changed(skill, "Ask.", "Ask twice.", owner))
    SkillRevision.objects.filter(pk=late.pk).update(state="proposed")
    return SkillRevision.objects.get(pk=late.pk)


def a_new_skill(owner, rita):
    return make_proposal(owner, make_content(name="pay"))


def an_edit(owner, rita):
    return changed(published(owner), "Ask.", "Ask first.", owner)


def one_that_fits_a_later_version(owner, rita):
    return moved_on(owner, "Say thanks.", "Say goodbye.")


def one_that_clashes_with_a_later_version(owner, rita):
    return moved_on(owner, "Ask.", "Ask nobody.")


def an_edit_of_what_is_archived(owner, rita):
    skill = published(owner)
    edit = changed(skill, "Ask.", "Ask first.", owner)
    archive(skill=skill, reason="Out of use.")
    return edit


def one_that_nothing_verified_supports(owner, rita):
    found = a_new_skill(owner, rita)
    found.experiences.add(make_experience(owner, verified=False, credibility=0.3))
    return found


def one_that_a_single_session_supports(owner, rita):
    chosen(owner, min_supporting_sessions=2)
    found = a_new_skill(owner, rita)
    found.experiences.add(make_experience(owner))
    return found


def ones_own_text(owner, rita):
    chosen(owner, four_eyes=True)
    return make_proposal(owner, make_content(name="pay"), author=rita, author_kind="human")


def one_whose_name_is_taken(owner, rita):
    found = a_new_skill(owner, rita)
    make_skill(owner, make_content(name="pay"))
    return found


def one_that_breaks_a_rule(owner, rita):
    return make_proposal(owner, make_content(name="pay", description="x" * 500, instructions="  "))


def a_merge(owner, rita):
    target, source = make_skill(owner, make_content(name="pay")), make_skill(owner)
    return propose_merge(source=source, target=target)


def a_merge_of_what_is_gone(owner, rita):
    found = a_merge(owner, rita)
    source = found.merged_from.skill
    approve(revision=make_proposal(owner, replace(Content.of(source), description="Other."), source))
    return found


def a_merge_into_what_is_archived(owner, rita):
    found = a_merge(owner, rita)
    archive(skill=found.skill, reason="Out of use.")
    return found


FINE = (a_new_skill, an_edit, one_that_fits_a_later_version, an_edit_of_what_is_archived, a_merge)
REFUSED = (
    one_that_clashes_with_a_later_version,
    one_that_nothing_verified_supports,
    one_that_a_single_session_supports,
    ones_own_text,
    one_whose_name_is_taken,
    one_that_breaks_a_rule,
    a_merge_of_what_is_gone,
    a_merge_into_what_is_archived,
)


def name_of(case: Callable) -> str:
    return case.__name__


def looked_at(revision: SkillRevision) -> SkillRevision:
    return with_what_decides(SkillRevision.objects.filter(pk=revision.pk)).get()


def ahead(revision: SkillRevision, rita) -> Forecast:
    row = looked_at(revision)
    return approval_of(row, decided_by=rita, chosen=effective(row.organization))


@pytest.mark.parametrize("case", FINE, ids=name_of)
def test_what_is_foretold_is_what_is_published(case, owner, rita):
    revision = case(owner, rita)
    found = ahead(revision, rita)
    assert found.refusal == ""

    skill = approve(revision=revision, decided_by=rita)

    assert (skill.version, Content.of(skill)) == (found.version, found.after)
    assert found.is_rebased == (case is one_that_fits_a_later_version)


@pytest.mark.parametrize("case", REFUSED, ids=name_of)
def test_what_would_be_refused_is_refused_in_the_same_words(case, owner, rita):
    revision = case(owner, rita)
    found = ahead(revision, rita)

    with pytest.raises(ReviewError) as refused:
        approve(revision=revision, decided_by=rita)

    assert found.refusal == str(refused.value) != ""


@pytest.mark.parametrize("case", FINE + REFUSED, ids=name_of)
def test_whether_a_rejected_one_lapses_is_foretold(case, owner, rita):
    revision = case(owner, rita)
    found = lapses(looked_at(revision))

    assert found == (reject(revision=revision, decided_by=rita, reason="No.").state == "superseded")


def test_many_cost_as_many_queries_as_one(owner, rita):
    def look() -> int:
        with CaptureQueriesContext(connection) as queries:
            rows = list(with_what_decides(SkillRevision.objects.filter(state="proposed")))
            settings = effective(owner.organization)
            assert all(not approval_of(row, decided_by=rita, chosen=settings).refusal for row in rows)
        return len(queries)

    merge = a_merge(owner, rita)
    merge.experiences.add(make_experience(owner))
    one = look()
    for number in range(10):
        skill = published(owner, f"pay-{number}")
        changed(skill, "Ask.", "Ask first.", owner).experiences.add(make_experience(owner))

    assert look() == one
