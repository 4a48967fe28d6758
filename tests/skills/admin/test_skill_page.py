"""The page of a skill: what it says, what became of each revision, where it comes from, how it is used."""

from __future__ import annotations

import html
import io
import re
import zipfile
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from mirix.days import today
from skills.admin import timeline
from skills.content import Content
from skills.interop.exporting import skill_md
from skills.models import Skill, SkillExperience, SkillRevision
from skills.review.publishing import approve, reject
from skills.review.undoing import undo_approval
from skills.selectors import lineage, use
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_proposal,
    make_search,
    make_session,
    make_skill,
)
from tests.mirix.admin.test_pages import as_user

pytestmark = pytest.mark.django_db
HOSTILE = '"><img src=x onerror=alert(1)>'
TURNS = [{"role": "user", "content": "No, use the other card."}]


@pytest.fixture
def browser(owner) -> Browser:
    return as_user(make_member(owner.organization, "reviewer", "rita"))


def path_of(skill: Skill) -> str:
    return f"/admin/skills/skill/{skill.pk}/change/"


def shown(browser: Browser, skill: Skill):
    answer = browser.get(path_of(skill))
    assert answer.status_code == 200
    return answer


def learned(owner, skill: Skill | None = None, number: int = 1, **fields) -> SkillRevision:
    """A revision with so many experiences behind it, each of a session of its own."""
    made = make_proposal(owner, skill=skill, **fields)
    for _ in range(number):
        made.experiences.add(make_experience(owner, make_session(owner, TURNS)))
    return made


class TestWhatItSays:
    def test_instructions_as_they_read_and_their_source_beside(self, browser, owner):
        text = "# Pay\n\n1. Ask **first**.\n\n<img src=x onerror=alert(1)> [here](javascript:alert(1))"
        page = shown(browser, make_skill(owner, make_content(instructions=text))).content.decode()
        assert "<li>Ask <strong>first</strong>.</li>" in page
        assert '<pre class="mx-code"># Pay\n\n1. Ask **first**.\n\n&lt;img src=x' in page
        assert "<img src=x" not in page
        assert 'href="javascript:' not in page

    def test_one_that_no_agent_finds_says_who_took_it_out_of_use_and_why(self, browser, owner):
        rita = make_member(owner.organization, username="ruth")
        proposal = make_proposal(owner)
        skill = approve(revision=proposal, decided_by=rita)
        undo_approval(revision=SkillRevision.objects.get(pk=proposal.pk), decided_by=rita)
        page = shown(browser, skill).content.decode()
        assert "No agent finds it: it is archived." in page
        assert "Taken back right after it was approved." in page
        assert f"/admin/skills/skill/{skill.pk}/restore/" in page


class TestVersions:
    def test_every_revision_with_what_became_of_it(self, browser, owner):
        ruth = make_member(owner.organization, username="ruth")
        first = approve(revision=make_proposal(owner, rationale="It went wrong twice."), decided_by=ruth)
        content = Content.of(first)
        wrong = make_proposal(owner, replace(content, description="Wrong."), first)
        reject(revision=wrong, reason="Not true.", decided_by=ruth)
        lapsed = make_proposal(owner, content, first, state="superseded")
        amended = make_proposal(owner, content, first, state="superseded")
        waits = make_proposal(owner, content, first, supersedes=amended)
        entries = shown(browser, first).context["timeline"].entries
        assert [(each.revision.pk, each.word, each.why, each.successor) for each in entries] == [
            (waits.pk, "Waits", "", ""),
            (amended.pk, "Amended", "", waits.pk),
            (lapsed.pk, "Lapsed", "Its skill said something else by then.", ""),
            (wrong.pk, "Rejected", "Not true.", ""),
            (first.current_revision_id, "Published", "It went wrong twice.", ""),
        ]
        assert [each.is_now for each in entries] == [False, False, False, False, True]
        page = shown(browser, first).content.decode()
        assert "Rejected by <bdi>ruth</bdi>" in page
        compare = f"/admin/skills/skill/{first.pk}/compare/"
        assert f'{compare}?from={first.current_revision_id}&amp;to={waits.pk}"' in page
        assert browser.get(compare, {"from": wrong.pk, "to": lapsed.pk}).status_code == 200
        assert "/rollback/" not in page  # there is but one version

    def test_of_very_many_the_newest_and_a_link_to_all(self, browser, owner, monkeypatch):
        monkeypatch.setattr(timeline, "SHOWN", 3)
        skill = make_skill(owner)
        for number in range(1, 5):
            make_proposal(owner, skill=skill, state="published", version=f"0.1.{number}")
        answer = shown(browser, skill)
        versions = [each.revision.version for each in answer.context["timeline"].entries]
        assert versions == ["0.1.4", "0.1.3", "0.1.2"]
        link = f"/admin/skills/skillrevision/?skill={skill.pk}&amp;state=all"
        assert f'<a href="{link}">All 5 revisions</a>' in answer.content.decode()
        rows = browser.get(link.replace("&amp;", "&")).context["cl"].result_list
        assert {row.version or row.action for row in rows} == {"0.1.0", "0.1.1", "0.1.2", "0.1.3", "0.1.4"}
        old = skill.current_revision_id
        compared = browser.get(f"/admin/skills/skill/{skill.pk}/compare/", {"from": old, "to": "0.1.4"})
        assert f'<option value="{old}" selected>' in compared.content.decode()


class TestLineage:
    def test_from_sessions_to_the_skill_every_node_a_link(self, browser, owner):
        skill = make_skill(owner)
        published = learned(owner, skill, 2, state="published", version="0.1.1")
        waits = learned(owner, skill, 1)
        shared = published.experiences.order_by("pk").first()
        waits.experiences.add(shared)
        learned(owner, skill, 1, state="rejected")
        answer = shown(browser, skill)
        drawing = answer.context["drawing"]
        kinds = [place.node.kind for place in drawing.places]
        assert [kinds.count(kind) for kind in ("session", "experience", "revision", "skill")] == [3, 3, 3, 1]
        # 3 sessions to their experiences, 4 times support, 3 revisions to the skill
        assert len(drawing.lines) == 10
        assert [(branch.node.pk, len(branch.leaves)) for branch in drawing.branches] == [
            (waits.pk, 2),
            (published.pk, 2),
            (skill.current_revision_id, 0),
        ]
        page = answer.content.decode()
        drawn = page[page.index("mx-lineage__drawing") : page.index("</svg>", page.index("mx-lineage__d"))]
        nodes = [html.unescape(url) for url in re.findall(r'class="mx-node [^"]*" href="([^"]+)"', drawn)]
        rest = f"/admin/skills/skillrevision/?skill={skill.pk}&state=all"
        assert sorted(nodes) == sorted([rest, *(place.node.url for place in drawing.places)])
        assert all(browser.get(url).status_code == 200 for url in nodes)
        assert " style=" not in drawn
        assert "<script" not in drawn

    def test_of_very_many_the_newest_and_links_to_the_rest(self, browser, owner, monkeypatch):
        monkeypatch.setattr(lineage, "REVISIONS", 2)
        monkeypatch.setattr(lineage, "EXPERIENCES", 3)
        skill = make_skill(owner)
        for number in range(1, 4):
            learned(owner, skill, 2, state="published", version=f"0.1.{number}")
        learned(owner, skill, 1, state="rejected")
        drawing = shown(browser, skill).context["drawing"]
        assert [branch.node.title for branch in drawing.branches] == ["0.1.3", "0.1.2"]
        assert [more.text for more in drawing.more] == ["and 3 more", "and 3 more", "all 5 revisions"]
        counts = [len(browser.get(more.url).context["cl"].result_list) for more in drawing.more]
        assert counts == [6, 6, 5]
        names = [place.node.kind for place in drawing.places]
        assert (names.count("session"), names.count("experience")) == (3, 3)

    def test_what_is_in_quarantine_and_what_was_erased_is_told(self, browser, owner):
        skill = make_skill(owner)
        held = learned(owner, skill, 1, state="published", version="0.1.1")
        held.experiences.update(quarantined=True)
        make_proposal(owner, skill=skill, state="published", version="0.1.2", author_kind="llm")
        answer = shown(browser, skill)
        tones = {place.node.pk: place.node.tone for place in answer.context["drawing"].places}
        assert tones[held.experiences.get().pk] == "aside"
        page = answer.content.decode()
        drawing = answer.context["drawing"]
        assert list(browser.get(drawing.aside_url).context["cl"].result_list) == [held.experiences.get()]
        assert ">1 experience</a> behind it is in quarantine" in page
        assert "Of 1 revision nothing is left of what taught it: it was erased." in page

    def test_hostile_and_hidden_text_is_text_in_the_drawing_too(self, browser, owner):
        skill = make_skill(owner)
        made = make_proposal(owner, skill=skill, state="published", version="0.1.1")
        session = make_session(owner, TURNS)
        made.experiences.add(make_experience(owner, session, title=f"{HOSTILE}</foreignObject>\u202e"))
        page = shown(browser, skill).content.decode()
        assert "<img src=x" not in page
        assert "\u202e" not in page
        assert page.count("</foreignObject>") == page.count("<foreignObject ")

    def test_the_list_behind_it_is_of_ones_own_skills(self, browser, owner, stranger):
        theirs = make_skill(stranger)
        learned(stranger, theirs, 1, state="published", version="0.1.1")
        learned(owner, make_skill(owner), 1, state="published", version="0.1.1")
        for model in ("conversations/session", "skills/skillexperience", "skills/skillrevision"):
            answer = browser.get(f"/admin/{model}/", {"skill": theirs.pk})
            assert list(answer.context["cl"].result_list) == []
            assert theirs.name not in answer.content.decode()


class TestUse:
    def test_a_chart_of_days_each_with_the_list_behind_it(self, browser, owner, stranger):
        skill, other = make_skill(owner), make_skill(owner)
        now = timezone.now()
        for days in (0, 0, 3, 40):
            make_search(owner, [skill, other], created_at=now - timedelta(days=days))
        make_search(owner, [other])
        make_search(owner, [skill], source="admin")
        make_search(stranger, [skill])
        answer = shown(browser, skill)
        chart = answer.context["chart"]
        assert [(row.day, str(row.cells[0][0])) for row in chart.rows] == [
            (today(), "2"),
            (today() - timedelta(days=3), "1"),
        ]
        assert str(answer.context["times"]) == "4"
        urls = [answer.context["use_url"], chart.entries[0].url, *(row.cells[0][1] for row in chart.rows)]
        assert [len(browser.get(url).context["cl"].result_list) for url in urls] == [4, 3, 2, 1]

    def test_it_says_what_the_log_does_not_hold_any_more(self, browser, owner, settings):
        skill = make_skill(owner)
        settings.MIRIX_SEARCH_LOG_RETENTION_DAYS = 7
        page = shown(browser, skill).content.decode()
        first = today() - timedelta(days=7)
        assert "the log keeps 7 days" in page
        assert f"Searches before {first.day} {first:%B} are not kept any more" in page
        settings.MIRIX_SEARCH_LOG_RETENTION_DAYS = 0
        page = shown(browser, skill).content.decode()
        assert "the log keeps" not in page
        assert "are not kept any more" not in page

    def test_it_says_where_there_is_more_than_was_counted(self, browser, owner, monkeypatch):
        monkeypatch.setattr(use, "READ", 2)
        skill = make_skill(owner)
        for days in (1, 2, 3):
            make_search(owner, [skill], created_at=timezone.now() - timedelta(days=days))
        answer = shown(browser, skill)
        cut = today() - timedelta(days=2)
        assert [str(row.cells[0][0]) for row in answer.context["chart"].rows] == ["1", "1+"]
        assert f"what was before {cut.day} {cut:%B} is not in it" in answer.content.decode()


class TestExport:
    def test_the_file_and_the_zip_of_its_folder(self, browser, owner):
        skill = make_skill(owner, make_content(name="pay-an-order"))
        path = f"/admin/skills/skill/{skill.pk}/export/"
        one = browser.get(path)
        assert one.content == skill_md(skill=skill)
        assert one.headers["Content-Type"] == "text/markdown; charset=utf-8"
        assert one.headers["Content-Disposition"] == 'attachment; filename="SKILL.md"'
        packed = browser.get(path, {"as": "zip"})
        assert packed.headers["Content-Disposition"] == 'attachment; filename="pay-an-order.zip"'
        with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
            assert archive.namelist() == ["pay-an-order/SKILL.md"]
            assert archive.read("pay-an-order/SKILL.md") == one.content
        assert browser.get(path, {"as": "pdf"}).status_code == 404
        assert f'href="{path}" download' in shown(browser, skill).content.decode()

    def test_a_stranger_gets_the_404_of_what_is_not_there(self, owner, stranger):
        skill = make_skill(owner)
        theirs = as_user(make_member(stranger.organization))
        assert theirs.get(f"/admin/skills/skill/{skill.pk}/export/").status_code == 404
        assert SkillExperience.objects.count() == 0
