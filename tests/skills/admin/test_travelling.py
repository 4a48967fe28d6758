"""Skills out of the admin as a ZIP, and in as proposals."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils.html import escape

from skills.admin import travelling
from skills.interop.exporting import skill_md
from skills.models import Skill, SkillRevision
from tests.factories import make_content, make_member, make_owner, make_skill, make_superuser
from tests.skills.admin.conftest import as_user

pytestmark = pytest.mark.django_db
LIST = "/admin/skills/skill/"
IMPORT = "/admin/skills/skill/import/"
TEXT = b"---\nname: pay\ndescription: How to pay.\n---\n1. Pay.\n"


@pytest.fixture
def operator(owner) -> Client:
    return as_user(make_member(owner.organization, "operator", "olga"))


def chosen(*skills: Skill) -> dict[str, Any]:
    return {"action": "export_selected", "_selected_action": [skill.pk for skill in skills]}


def names_in(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.namelist()


class TestExport:
    def test_selected_skills_leave_as_an_archive(self, owner, reviewer):
        skills = [make_skill(owner, make_content(name=name)) for name in ("a", "b", "c")]
        answer = reviewer.post(LIST, chosen(*skills[:2]))

        assert answer.status_code == 200
        assert answer["Content-Type"] == "application/zip"
        assert answer["Content-Disposition"] == 'attachment; filename="skills.zip"'
        assert names_in(answer.content) == ["skills/a/SKILL.md", "skills/b/SKILL.md"]
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.read("skills/a/SKILL.md") == skill_md(skill=skills[0])

    def test_one_skill_is_called_by_its_name(self, owner, reviewer):
        answer = reviewer.post(LIST, chosen(make_skill(owner, make_content(name="a"))))

        assert answer["Content-Disposition"] == 'attachment; filename="a.zip"'
        assert names_in(answer.content) == ["a/SKILL.md"]

    def test_of_a_stranger_nothing_leaves(self, owner, stranger, reviewer):
        theirs = make_skill(stranger, make_content(name="theirs"))
        mine = make_skill(owner, make_content(name="mine"))

        assert names_in(reviewer.post(LIST, chosen(mine, theirs)).content) == ["mine/SKILL.md"]
        alone = reviewer.post(LIST, chosen(theirs))
        assert alone["Content-Type"] != "application/zip"
        assert b"theirs" not in alone.content

    def test_across_organizations_each_has_its_folder(self, owner):
        elsewhere = make_owner(user_id="bob")
        skills = [make_skill(whose, make_content(name="pay")) for whose in (owner, elsewhere)]
        answer = as_user(make_superuser()).post(LIST, chosen(*skills))

        assert len(set(names_in(answer.content))) == 2
        assert all(len(name.split("/")) == 5 for name in names_in(answer.content))

    def test_too_many_at_once(self, owner, reviewer, monkeypatch):
        monkeypatch.setattr(travelling, "MAX_EXPORTED", 1)
        skills = [make_skill(owner, make_content(name=name)) for name in "ab"]
        answer = reviewer.post(LIST, chosen(*skills), follow=True)

        assert b"At most 1 skills at once" in answer.content


class TestImport:
    def send(self, client: Client, owner: Any, **sent: Any) -> Any:
        return client.post(IMPORT, {"end_user": owner.end_user.pk, **sent})

    def test_the_list_leads_to_it_for_those_who_may(self, owner, reviewer, operator):
        assert IMPORT.encode() in operator.get(LIST).content
        assert IMPORT.encode() not in reviewer.get(LIST).content
        assert reviewer.get(IMPORT).status_code == 403
        assert self.send(reviewer, owner, text=TEXT.decode()).status_code == 403
        assert b"multipart/form-data" in operator.get(IMPORT).content

    def test_an_archive_becomes_proposals(self, owner, operator):
        make_skill(owner, make_content(name="known"))
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("pay/SKILL.md", TEXT)
            archive.writestr("known/SKILL.md", TEXT.replace(b"pay", b"known", 1))
            archive.writestr("../SKILL.md", TEXT)
            archive.writestr("bad/SKILL.md", b"<script>alert(1)</script>")
        answer = self.send(operator, owner, file=SimpleUploadedFile("my <b>.zip", stream.getvalue()))
        page = answer.content.decode()
        waiting = SkillRevision.objects.filter(state="proposed").order_by("name")

        assert answer.status_code == 200
        assert "1 new, 1 edit, 0 unchanged, 2 refused" in page
        assert "Its path leads out of the archive." in page
        assert escape("my <b>.zip:pay/SKILL.md") in page
        assert [(row.name, row.action, row.author.username) for row in waiting] == [
            ("known", "edit", "olga"),
            ("pay", "import", "olga"),
        ]
        assert all(f"/admin/skills/skillrevision/{row.pk}/change/" in page for row in waiting)
        assert Skill.objects.get().name == "known"
        assert operator.get(f"/admin/skills/skillrevision/{waiting[0].pk}/change/").status_code == 200

    def test_a_pasted_text(self, owner, operator):
        pasted = TEXT.replace(b"\n", b"\r\n").decode()

        assert "1 new," in self.send(operator, owner, text=pasted).content.decode()
        assert SkillRevision.objects.get().instructions == "1. Pay."
        assert "1 unchanged" in self.send(operator, owner, text=pasted).content.decode()

    @pytest.mark.parametrize(
        "sent",
        [
            {},
            {"text": "  "},
            {"text": "x", "file": SimpleUploadedFile("x.md", TEXT)},
        ],
    )
    def test_one_of_both_is_needed(self, owner, operator, sent):
        answer = self.send(operator, owner, **sent)

        assert answer.status_code == 400
        assert b"Choose a file or paste a text." in answer.content
        assert not SkillRevision.objects.exists()

    def test_no_end_user_of_a_stranger(self, stranger, operator):
        answer = self.send(operator, stranger, text=TEXT.decode())

        assert answer.status_code == 400
        assert not SkillRevision.objects.exists()

    def test_a_file_that_is_too_large(self, owner, operator, monkeypatch):
        monkeypatch.setattr(travelling, "MAX_ARCHIVE_BYTES", 10)
        answer = self.send(operator, owner, file=SimpleUploadedFile("x.zip", TEXT))

        assert answer.status_code == 400
        assert b"larger than 10 bytes" in answer.content

    def test_more_files_than_a_request_may_hold(self, owner, operator, monkeypatch):
        monkeypatch.setattr(travelling, "MAX_UPLOADED", 1)
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("a/SKILL.md", TEXT)
            archive.writestr("b/SKILL.md", TEXT.replace(b"pay", b"other", 1))
        page = self.send(operator, owner, file=SimpleUploadedFile("x.zip", stream.getvalue())).content

        assert b"1 new, 0 edits, 0 unchanged, 1 refused" in page
        assert b"Only the first 1 files were read" in page
        assert SkillRevision.objects.count() == 1

    @pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"PK\x05\x06" + b"\x00" * 18, b"\xff" * 100])
    def test_what_is_no_skill_is_told(self, owner, operator, data):
        answer = self.send(operator, owner, file=SimpleUploadedFile("x.zip", data))

        assert answer.status_code == 200
        assert b"1 refused" in answer.content
