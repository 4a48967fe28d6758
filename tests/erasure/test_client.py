"""A client is erased: what it sent goes, others' words stay, what rests on both goes back to review."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from rest_framework.test import APIClient

from conversations.models import ConversationMessage, IntakeRecord, Session
from mirix.tenants import erasure
from mirix.tenants.audit import Actor
from mirix.tenants.models import ApiKey, Client, EndUser, ErasureReceipt
from mirix.tenants.owners import Owner
from skills.models import (
    AutoDreamRun,
    DistillationAttempt,
    ProposerCall,
    SearchEvent,
    Skill,
    SkillExperience,
    SkillRevision,
)
from skills.review.publishing import approve
from skills.search.index import index_skill
from skills.search.service import search
from tests.erasure.canary import fill, found
from tests.erasure.test_end_user import make_full_side
from tests.factories import (
    make_attempt,
    make_client,
    make_content,
    make_experience,
    make_intake,
    make_key,
    make_member,
    make_proposal,
    make_proposer_call,
    make_run,
    make_search,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db
ACTOR = Actor(kind="command", name="root")
SECRET = "zanzibar"


def erase(client: Client, **options) -> ErasureReceipt:
    return erasure.erase_client(client=client, actor=ACTOR, **options)


@pytest.fixture
def going(owner) -> Client:
    return make_client(owner.organization, "going")


@pytest.fixture
def staying(owner) -> Client:
    return make_client(owner.organization, "staying")


def said(client: Client, owner: Owner, text: str, **fields) -> Session:
    session = make_session(owner, [{"role": "user", "content": text}], client, **fields)
    make_intake(owner, client, session_id=session.session_id, filter_tags=session.filter_tags)
    return session


def lesson(client: Client, owner: Owner, text: str, **fields) -> SkillExperience:
    session = said(client, owner, text)
    return make_experience(
        owner, session, **({"title": text, "content": text, "quote": text, "status": "consumed"} | fields)
    )


def published(owner: Owner, instructions: str, *support: SkillExperience, **fields) -> Skill:
    skill = make_skill(owner, make_content(instructions=instructions, **fields))
    assert skill.current_revision
    skill.current_revision.experiences.set(support)
    index_skill(skill)
    return skill


def edited(skill: Skill, instructions: str, *support: SkillExperience) -> SkillRevision:
    owner = Owner(organization=skill.organization, end_user=skill.end_user)
    content = make_content(name=skill.name, instructions=instructions)
    revision = make_proposal(owner, content, skill)
    revision.experiences.set(support)
    approve(revision=revision)
    return revision


def names(owner: Owner, query: str) -> list[str]:
    hits = search(organization=owner.organization, owner=owner, query=query, method="bm25").hits
    return [hit.skill.name for hit in hits]


def test_all_that_it_alone_sent_goes_and_the_client_stays(owner, going):
    make_key(going)
    learned = lesson(going, owner, "One.")
    published(owner, "1. One.", learned)
    make_attempt(make_run(owner), learned.session, raw_reply="One.")
    make_search(owner, client=going)

    receipt = erase(going)

    gone = (
        Session, ConversationMessage, IntakeRecord, SkillExperience, Skill, SkillRevision, SearchEvent,
        DistillationAttempt, EndUser,
    )  # fmt: skip
    assert [model.__name__ for model in gone if model.objects.exists()] == []
    assert Client.objects.filter(pk=going.pk).exists()
    assert ApiKey.objects.filter(client=going).exists()
    assert (receipt.kind, receipt.subject_id) == ("client", going.pk)
    assert receipt.counts["skills.skill"] == 1


def test_no_column_holds_a_word_of_what_it_sent():
    """Of an organization with a row of every kind, all of one client and filled with the word."""
    side = make_full_side()
    client = side.rows["tenants.client"]
    for model in (ConversationMessage, IntakeRecord, SkillExperience, SearchEvent):
        model.objects.for_organization(side.organization).update(client=client)
    word = "canary7d1e"
    for model in (
        Session, ConversationMessage, IntakeRecord, SkillExperience, SearchEvent, DistillationAttempt,
        ProposerCall, EndUser, SkillRevision, Skill,
    ):  # fmt: skip
        fill(model, "organization_id = %s", [side.organization.pk], word)
    AutoDreamRun.objects.update(notes=[{"reason": word}], error=word)
    first = SkillExperience.objects.for_organization(side.organization).first()
    for revision in SkillRevision.objects.for_organization(side.organization):
        revision.experiences.set([first])

    erase(client)

    assert found(word) == {}


class TestEndUsersThatItMade:
    def test_those_whom_it_only_named_go(self, owner, going):
        api = APIClient(headers={"X-API-Key": make_key(going)})
        api.post("/users/create_or_get", {"user_id": f"{SECRET}@example.org", "name": SECRET}, format="json")
        assert EndUser.objects.get(user_id=f"{SECRET}@example.org").made_by == going

        receipt = erase(going)

        assert receipt.counts == {"tenants.enduser": 1}
        assert found(SECRET) == {}
        assert EndUser.objects.get() == owner.end_user

    def test_those_of_whom_others_sent_something_stay_without_their_name(self, owner, going, staying):
        EndUser.objects.filter(pk=owner.end_user.pk).update(name=SECRET, made_by=going)
        said(going, owner, "Mine.")
        said(staying, owner, "Theirs.")

        erase(going)

        end_user = EndUser.objects.get()
        assert (end_user.user_id, end_user.name, end_user.made_by) == ("alice", "", None)
        assert [turn.content for turn in ConversationMessage.objects.all()] == ["Theirs."]

    def test_those_whom_others_made_stay(self, going, staying):
        api = APIClient(headers={"X-API-Key": make_key(staying)})
        api.post("/users/create_or_get", {"user_id": "carol", "name": "Carol"}, format="json")
        api.post("/users/create_or_get", {"user_id": "carol"}, headers={"X-API-Key": make_key(going)})

        erase(going)

        assert EndUser.objects.get(user_id="carol").name == "Carol"


def test_what_others_sent_stays(owner, going, staying):
    said(going, owner, "Mine.")
    kept = said(staying, owner, "Theirs.")

    erase(going)

    assert list(Session.objects.all()) == [kept]
    assert [turn.content for turn in ConversationMessage.objects.all()] == ["Theirs."]
    assert EndUser.objects.filter(pk=owner.end_user.pk).exists()


class TestSharedSession:
    def test_the_turns_of_others_stay_and_are_learned_from_anew(self, owner, going, staying):
        session = said(staying, owner, "Theirs.", state="distilled", distilled_through=2, last_error="Oh")
        make_intake(owner, staying, session_id=session.session_id, filter_tags={"team": "red"})
        make_intake(owner, going, session_id=session.session_id, filter_tags={"who": SECRET})
        Session.objects.filter(pk=session.pk).update(last_seq=2, filter_tags={"team": "red", "who": SECRET})
        ConversationMessage.objects.create(
            organization=owner.organization, end_user=owner.end_user, session=session, client=going,
            seq=2, role="user", content=SECRET, content_hash="0" * 64,
        )  # fmt: skip
        make_experience(owner, session, title=SECRET)
        make_attempt(make_run(owner), session, raw_reply=SECRET)

        erase(going)

        session.refresh_from_db()
        assert [turn.content for turn in session.turns.all()] == ["Theirs."]
        assert (session.state, session.distilled_through, session.turn_count) == ("sealed", 0, 1)
        assert (session.filter_tags, session.last_error) == ({"team": "red"}, "")
        assert not SkillExperience.objects.exists()
        assert found(SECRET) == {}


class TestSharedSkill:
    def test_copies_of_a_session_that_stays_speak_for_it_once(self, owner, going, staying):
        text = "Ask which card to use."
        theirs = [lesson(staying, owner, text) for _ in range(2)]
        Session.objects.filter(pk__in=[row.session_id for row in theirs]).update(history_hash="a" * 64)
        published(owner, f"1. {text}", lesson(going, owner, text), *theirs)

        erase(going)

        assert "1 other still speaks for it" in SkillRevision.objects.get(state="proposed").rationale

    def test_it_loses_the_erased_support_and_goes_back_to_review(self, owner, going, staying):
        ours = lesson(going, owner, "Ask which card to use.")
        theirs = lesson(staying, owner, "Ask which card to use.")
        skill = published(owner, "1. Ask which card to use.", ours, theirs)
        assert names(owner, "card") == [skill.name]

        erase(going)

        skill.refresh_from_db()
        assert skill.status == "quarantined"
        assert skill.instructions == "1. Ask which card to use."
        assert names(owner, "card") == []
        proposal = SkillRevision.objects.get(state="proposed")
        assert (proposal.skill, proposal.action, proposal.author_kind) == (skill, "restore", "offline")
        assert list(proposal.experiences.all()) == [theirs]
        assert proposal.rationale == (
            "Some of the sessions behind it were erased. 1 other still speaks for it; until somebody has "
            "decided, no search finds it."
        )
        assert set(SkillExperience.objects.all()) == {theirs}

        approve(revision=proposal)

        assert names(owner, "card") == [skill.name]

    def test_a_text_with_a_word_of_the_erased_alone_goes_back_to_the_last_without(
        self, owner, going, staying
    ):
        theirs = lesson(staying, owner, "Ask which card.")
        skill = published(owner, "1. Ask which card.", theirs)
        edited(skill, f"1. Ask which card.\n2. Greet {SECRET}.", lesson(going, owner, f"Greet {SECRET}."))
        skill.refresh_from_db()
        assert SECRET in skill.instructions

        erase(going)

        skill.refresh_from_db()
        assert (skill.instructions, skill.status) == ("1. Ask which card.", "quarantined")
        assert SkillRevision.objects.get(state="proposed").instructions == "1. Ask which card."
        assert found(SECRET) == {}

    def test_where_no_text_stays_the_lessons_of_others_are_proposed_from_anew(self, owner, going, staying):
        ours, theirs = lesson(going, owner, f"Greet {SECRET}."), lesson(staying, owner, "Ask which card.")
        published(owner, f"1. Greet {SECRET}.\n2. Ask which card.", ours, theirs)

        erase(going)

        assert not Skill.objects.exists()
        theirs.refresh_from_db()
        assert theirs.status == "pending"
        assert AutoDreamRun.objects.get().state == "queued"
        assert found(SECRET) == {}

    def test_a_text_that_was_made_of_a_touched_one_is_touched(self, owner, going, staying):
        skill = published(owner, f"1. Greet {SECRET}.", lesson(going, owner, f"Greet {SECRET}."))
        edited(skill, f"1. Greet {SECRET}.\n2. Ask.", lesson(staying, owner, "Ask."))

        erase(going)

        assert not Skill.objects.exists()
        assert found(SECRET) == {}

    def test_one_that_rests_on_others_alone_is_not_touched(self, owner, going, staying):
        skill = published(owner, "1. Ask.", lesson(staying, owner, "Ask."))
        lesson(going, owner, "Ask.", status="pending")

        erase(going)

        skill.refresh_from_db()
        assert (skill.status, skill.revisions.count()) == ("active", 1)

    def test_a_pending_new_skill_of_both_keeps_what_others_say(self, owner, going, staying):
        ours, theirs = lesson(going, owner, "Ask."), lesson(staying, owner, "Ask.")
        waiting = make_proposal(owner, make_content(instructions="1. Ask."))
        waiting.experiences.set([ours, theirs])
        lost = make_proposal(owner, make_content(instructions=f"1. {SECRET}."))
        lost.experiences.set([lesson(going, owner, SECRET)])

        erase(going)

        assert list(SkillRevision.objects.all()) == [waiting]
        assert list(waiting.experiences.all()) == [theirs]


def test_a_run_that_is_going_on_ends(owner, going, staying):
    said(going, owner, "Mine.")
    said(staying, owner, "Theirs.")
    run = make_run(owner, state="running", fence=1)
    make_proposer_call(run, raw_reply=SECRET)

    erase(going)

    run.refresh_from_db()
    assert (run.state, run.fence) == ("interrupted", 2)
    assert run.error == "Something that it had read was erased."
    assert not ProposerCall.objects.exists()


def test_of_nothing(owner, going):
    assert erase(going).counts == {}
    assert erase(going).total == 0


def test_over_the_api(owner, going, admin_api, stranger_api):
    said(going, owner, "Mine.")
    assert stranger_api.delete(f"/clients/{going.pk}/memories").status_code == 404
    assert Session.objects.count() == 1

    answer = admin_api.delete(f"/clients/{going.pk}/memories")

    assert answer.status_code == 200
    assert answer.json()["preserved"] == ["client", "api_keys"]
    assert answer.json()["receipt"]["kind"] == "client"
    assert not Session.objects.exists()


def test_the_log_of_the_admin_forgets_what_a_skill_that_stays_was_called(owner, going, staying):
    skill = published(owner, "1. Greet.", lesson(staying, owner, "Greet."))
    second = make_proposal(owner, make_content(name=f"greet-{SECRET}", instructions=f"2. {SECRET}."), skill)
    second.experiences.set([lesson(going, owner, f"Greet {SECRET}.")])
    approve(revision=second)
    staff = make_member(owner.organization)
    for row in (skill, second):
        row.refresh_from_db()
        LogEntry.objects.create(
            user=staff,
            content_type=ContentType.objects.get_for_model(row),
            object_id=row.pk,
            object_repr=str(row),
            action_flag=CHANGE,
        )

    erase(going)

    assert Skill.objects.get().pk == skill.pk
    assert found(SECRET) == {}
