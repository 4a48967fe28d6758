"""`quickstart`: the first run on a machine that has nothing, and every run after it."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command

from conversations.models import ConversationMessage, Session
from mirix.tenants.models import ApiKey, EndUser, Organization
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import find_principal
from skills import demo, runs
from skills.models import ReviewDecision, RevisionState, RunState, Skill, SkillExperience, SkillRevision
from skills.review.publishing import reject
from skills.runs import claim
from tests.factories import make_owner, make_session

pytestmark = pytest.mark.django_db(transaction=True)


def quickstart(*options: str) -> str:
    out = StringIO()
    call_command("quickstart", "--no-serve", *options, stdout=out, stderr=StringIO())
    return out.getvalue()


def counts() -> dict[str, int]:
    models = (Session, ConversationMessage, SkillExperience, SkillRevision, Skill, ReviewDecision, ApiKey)
    return {model.__name__: model.objects.count() for model in models}


def demo_owner() -> Owner:
    organization = Organization.objects.get(name=demo.ORGANIZATION)
    return Owner(
        organization=organization,
        end_user=EndUser.objects.get(organization=organization, user_id=demo.USER_ID),
    )


def test_the_first_run_learns_publishes_most_and_leaves_three_proposals():
    answer = json.loads(quickstart("--json"))

    assert answer["sessions_loaded"] == len(list(demo.sample_sessions())) == 13
    assert authenticate(username="admin", password=answer["password"]).is_superuser
    assert find_principal(key=answer["api_key"]).organization.name == "demo"
    assert len(answer["proposals"]) == demo.LEFT_TO_THE_NEWCOMER
    assert sorted(answer["approved"]) == [skill["name"] for skill in answer["skills"]]
    assert len(answer["skills"]) >= 4
    assert set(ReviewDecision.objects.values_list("decided_by_kind", "reason")) == {("demo", demo.REASON)}
    for revision in SkillRevision.objects.filter(state__in=["proposed", "published"]):
        assert revision.experiences.filter(verified=True).exists()


def test_what_it_prints_names_skills_evidence_password_and_a_search_that_finds():
    printed = quickstart()

    for skill in Skill.objects.all():
        assert skill.name in printed
        quote = skill.current_revision.experiences.order_by("-importance").first().quote
        assert re.sub(r"\W", "", quote)[:30] in re.sub(r"\W", "", printed)
    password = re.search(r"user admin, password (\S+)", printed).group(1)
    assert authenticate(username="admin", password=password) is not None
    assert find_principal(key=re.search(r"(mx_\S+)", printed).group(1)) is not None
    table = printed[printed.index("Search: ") :]
    assert "refund-payment" in table
    assert "http://127.0.0.1:8531/admin/" in table


def test_under_one_skill_each_quote_stands_once():
    printed = quickstart()

    panels = re.findall(r"╭.*?╰", printed, re.DOTALL)
    assert len(panels) == Skill.objects.count() + demo.LEFT_TO_THE_NEWCOMER
    for panel in panels:
        text = " ".join(line.strip("│ ") for line in panel.splitlines())
        quotes = re.findall(r"“([^”]+)” \([\w-]+, turn \d+\)", text)
        assert quotes
        assert len(set(quotes)) == len(quotes)


def test_a_second_run_adds_nothing_and_shows_no_secret_again():
    quickstart()
    before = counts()

    answer = json.loads(quickstart("--json"))

    assert counts() == before
    assert answer["sessions_loaded"] == 0
    assert answer["approved"] == []
    assert answer["password"] is answer["api_key"] is None


@pytest.mark.parametrize("step", ["learn", "approve_most"])
def test_a_run_that_died_is_finished_by_the_next(monkeypatch, step):
    class Killed(BaseException):
        pass

    def die(**_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(demo, step, die)
        with pytest.raises(Killed):
            quickstart()

    assert len(json.loads(quickstart("--json"))["proposals"]) == demo.LEFT_TO_THE_NEWCOMER
    assert Session.objects.count() == 13


def test_once_a_person_has_decided_it_approves_nothing_more():
    quickstart()
    proposal = SkillRevision.objects.filter(state=RevisionState.PROPOSED).first()
    reject(revision=proposal, reason="Not for us.")

    quickstart()

    assert SkillRevision.objects.filter(state=RevisionState.PROPOSED).count() == 2
    assert ReviewDecision.objects.exclude(decided_by_kind="demo").count() == 1


def test_in_an_organization_that_somebody_uses_it_approves_nothing():
    """`demo` may be a name that a person chose; what is in it then is theirs to decide."""
    organization = Organization.objects.create(name=demo.ORGANIZATION)
    make_session(make_owner(organization), [{"role": "user", "content": "hello"}])

    answer = json.loads(quickstart("--json"))

    assert answer["approved"] == answer["skills"] == []
    assert len(answer["proposals"]) >= 7
    assert not ReviewDecision.objects.exists()


def test_it_touches_no_other_organization():
    stranger = make_owner()
    make_session(stranger, [{"role": "user", "content": "hello"}])

    quickstart()

    assert {row.organization for row in Skill.objects.all()} == {demo_owner().organization}
    assert SkillExperience.objects.for_owner(stranger).count() == 0


def test_sessions_that_are_not_samples_are_left_to_a_person():
    """Also under the demonstration's own user: what is real is not published by a stand-in."""
    organization = Organization.objects.create(name=demo.ORGANIZATION)
    make_session(make_owner(organization, demo.USER_ID), [{"role": "user", "content": "hello"}])

    printed = quickstart()

    assert not ReviewDecision.objects.exists()
    assert not Skill.objects.exists()
    assert "Nothing is published: this organization is in use, so a person decides." in " ".join(
        printed.split()
    )


def test_what_is_shown_once_is_shown_before_anything_can_go_wrong(monkeypatch):
    class Killed(BaseException):
        pass

    def die(**_: object) -> None:
        raise Killed

    monkeypatch.setattr(demo, "learn", die)
    out = StringIO()
    with pytest.raises(Killed):
        call_command("quickstart", "--no-serve", stdout=out, stderr=StringIO())

    password = re.search(r"user admin, password (\S+)", out.getvalue()).group(1)
    assert authenticate(username="admin", password=password) is not None
    assert find_principal(key=re.search(r"(mx_\S+)", out.getvalue()).group(1)) is not None


def test_it_waits_for_the_run_of_another(monkeypatch):
    organization = Organization.objects.create(name=demo.ORGANIZATION)
    held = claim(owner=make_owner(organization, demo.USER_ID), trigger="automatic")
    monkeypatch.setattr(runs.time, "sleep", lambda _: held.end(RunState.FINISHED))

    assert len(json.loads(quickstart("--json"))["proposals"]) == demo.LEFT_TO_THE_NEWCOMER
