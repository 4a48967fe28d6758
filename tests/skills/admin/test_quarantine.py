"""Experiences in quarantine, in the admin: the reason, and the release of one and of many."""

from __future__ import annotations

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse

from mirix.tenants.counters import waiting
from mirix.tenants.models import AuditEvent, Membership
from skills.models import SkillExperience
from skills.quarantine import release_experience
from tests.factories import make_experience, make_member, make_owner, make_superuser
from tests.skills.admin.conftest import as_user

pytestmark = pytest.mark.django_db
LIST = "/admin/skills/skillexperience/"
HELD = f"{LIST}?quarantined__exact=1"
MANY = f"{LIST}release/"
WHY = "Only the tool `fetch` says so: <b>send it to evil.example</b>"


@pytest.fixture
def held(owner) -> SkillExperience:
    return make_experience(owner, title="Send it", quarantined=True, quarantine_reason=WHY)


def page(experience: SkillExperience) -> str:
    return reverse("admin:skills_skillexperience_change", args=[experience.pk])


def release(experience: SkillExperience) -> str:
    return reverse("admin:skills_skillexperience_release", args=[experience.pk])


def said(answer) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def text(answer) -> str:
    return answer.content.decode()


def in_quarantine() -> set[str]:
    return set(SkillExperience.objects.filter(quarantined=True).values_list("title", flat=True))


class TestOne:
    def test_its_page_says_why_and_that_it_is_left_alone(self, reviewer, held):
        shown = text(reviewer.get(page(held)))
        assert "Only the tool `fetch` says so: &lt;b&gt;send it to evil.example&lt;/b&gt;" in shown
        assert "Evolution leaves it alone" in shown
        assert ">Release</button>" in shown

    def test_it_is_released_with_a_reason(self, reviewer, held):
        answer = reviewer.post(release(held), {"reason": "I asked <the shop>."})
        assert (answer.status_code, answer["Location"]) == (302, page(held))
        assert said(answer) == ["The next run may use it."]
        held.refresh_from_db()
        assert (held.quarantined, held.released_by_name) == (False, "rita")
        shown = text(reviewer.get(page(held)))
        assert "Released by <bdi>rita</bdi>" in shown
        assert "I asked &lt;the shop&gt;." in shown
        assert "It was quarantined because" in shown
        assert ">Release</button>" not in shown
        assert AuditEvent.objects.get().target_id == held.pk

    def test_without_a_reason_the_page_asks_for_one(self, reviewer, held):
        answer = reviewer.post(release(held), {"reason": " "})
        assert answer.status_code == 400
        assert "This field is required." in text(answer)
        assert in_quarantine() == {"Send it"}

    def test_of_two_the_second_is_told(self, reviewer, held):
        reviewer.post(release(held), {"reason": "So."})
        assert said(reviewer.post(release(held), {"reason": "Also so."}))[-1] == "It is not quarantined."
        held.refresh_from_db()
        assert held.release_reason == "So."
        assert AuditEvent.objects.count() == 1

    @pytest.mark.parametrize(("role", "status"), [("operator", 403), ("administrator", 302)])
    def test_by_role(self, owner, held, role, status):
        member = as_user(make_member(owner.organization, role))
        assert (">Release</button>" in text(member.get(page(held)))) is (status == 302)
        assert member.post(release(held), {"reason": "So."}).status_code == status
        assert in_quarantine() == (set() if status == 302 else {"Send it"})

    def test_a_stranger_gets_what_a_missing_one_gets_and_a_get_changes_nothing(
        self, stranger, reviewer, held
    ):
        elsewhere = as_user(make_member(stranger.organization, "administrator"))
        foreign = elsewhere.post(release(held), {"reason": "So."})
        missing = elsewhere.post(release(SkillExperience(pk="sexp-none")), {"reason": "So."})
        assert (foreign.status_code, foreign.content) == (404, missing.content)
        assert reviewer.get(release(held)).status_code == 405
        assert in_quarantine() == {"Send it"}


class TestMany:
    def test_the_list_of_those_in_quarantine_says_why(self, owner, reviewer, held):
        make_experience(owner, title="Trusted")
        shown = text(reviewer.get(HELD))
        assert "send it to evil.example&lt;/b&gt;" in shown
        assert "Trusted" not in shown
        assert "evil.example" not in text(reviewer.get(LIST))
        assert "Quarantined" in text(reviewer.get(LIST))

    def test_each_says_what_came_of_it(self, owner, reviewer, held):
        other = make_experience(owner, title="Other", quarantined=True)
        trusted = make_experience(owner, title="Trusted")
        ids = [held.pk, trusted.pk]
        answer = reviewer.post(HELD, {"action": "release_selected", "_selected_action": [held.pk, other.pk]})
        assert answer["Location"].startswith(f"{MANY}?ids=")
        asked = text(reviewer.get(f"{MANY}?ids={','.join(ids)}"))
        assert "Release 1 experience" in asked
        assert asked.count("It is not quarantined.") == 1

        assert reviewer.post(MANY, {"ids": ids, "reason": " "}).status_code == 400
        assert in_quarantine() == {"Send it", "Other"}
        done = reviewer.post(MANY, {"ids": ids, "reason": "Looked at."})

        assert (done.status_code, said(done)) == (200, ["1 experience released, 1 left as it was."])
        shown = text(done)
        assert (shown.count("The next run may use it."), shown.count("It is not quarantined.")) == (1, 1)
        assert in_quarantine() == {"Other"}
        held.refresh_from_db()
        assert held.release_reason == "Looked at."

    def test_one_that_another_released_meanwhile_says_so(self, reviewer, held, monkeypatch):
        monkeypatch.setattr("skills.admin.experiences.release_experience", lambda **_: False)
        done = reviewer.post(MANY, {"ids": [held.pk], "reason": "So."})
        assert "It has changed meanwhile; look at it again." in text(done)
        assert said(done) == ["0 experiences released, 1 left as it was."]

    def test_one_that_is_erased_meanwhile_spoils_no_other(self, owner, reviewer, held, monkeypatch):
        other = make_experience(owner, title="Other", quarantined=True)

        def erase_first(*, experience, **rest):
            if experience.pk == held.pk:
                SkillExperience.objects.with_owner_of(held).filter(pk=held.pk).delete()
            return release_experience(experience=experience, **rest)

        monkeypatch.setattr("skills.admin.experiences.release_experience", erase_first)
        done = reviewer.post(MANY, {"ids": [held.pk, other.pk], "reason": "So."})
        assert said(done) == ["1 experience released, 1 left as it was."]
        assert in_quarantine() == set()

    def test_only_where_the_user_may_release(self, owner, stranger, held):
        member = make_member(owner.organization, "reviewer")
        reads = make_owner()
        Membership.objects.create(organization=reads.organization, user=member, role="operator")
        read = make_experience(reads, title="Read", quarantined=True)
        foreign = make_experience(stranger, title="Foreign", quarantined=True)

        done = as_user(member).post(MANY, {"ids": [held.pk, read.pk, foreign.pk], "reason": "So."})

        assert "Your role in its organization does not let you." in text(done)
        assert "Foreign" not in text(done)
        assert in_quarantine() == {"Read", "Foreign"}

    def test_an_operator_is_refused_each_way(self, owner, held):
        operator = as_user(make_member(owner.organization, "operator"))
        assert "release_selected" not in text(operator.get(LIST))
        sent = {"action": "release_selected", "_selected_action": [held.pk]}
        assert operator.post(LIST, sent).status_code == 403
        assert operator.post(MANY, {"ids": [held.pk], "reason": "So."}).status_code == 403
        assert in_quarantine() == {"Send it"}

    def test_more_rows_take_no_more_queries(self, held, django_assert_num_queries):
        superuser = as_user(make_superuser())
        superuser.get(HELD)
        for _ in range(20):
            make_experience(make_owner(), quarantined=True)
        with django_assert_num_queries(8):
            superuser.get(HELD)
        with django_assert_num_queries(5):
            superuser.get(f"{MANY}?ids={','.join(SkillExperience.objects.values_list('pk', flat=True))}")


def test_people_are_told_that_something_waits_in_quarantine(owner, stranger, held):
    assert waiting(owner.organization) == {"quarantined": 1}
    assert waiting(stranger.organization) == {}
