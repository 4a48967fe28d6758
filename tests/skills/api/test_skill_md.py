"""GET `/v1/skills/{id}/SKILL.md`."""

from __future__ import annotations

import hashlib

import pytest

from skills.interop.exporting import skill_md
from skills.models import Skill
from skills.review.publishing import approve
from tests.factories import make_content, make_proposal, make_skill

pytestmark = pytest.mark.django_db
NOT_FOUND = b'{"detail":"Not found."}'


@pytest.fixture
def skill(owner) -> Skill:
    return make_skill(owner, make_content(name="pay", description="Wie man zahlt: ü"))


def test_the_file(read_api, skill):
    answer = read_api.get(f"/v1/skills/{skill.pk}/SKILL.md")

    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer.content == skill_md(skill=skill)
    assert answer["ETag"] == f'"{hashlib.sha256(answer.content).hexdigest()}"'


@pytest.mark.parametrize("accept", ["text/markdown", "*/*", "application/json", "image/png"])
def test_it_is_the_file_whatever_a_caller_accepts(read_api, skill, accept):
    assert read_api.get(f"/v1/skills/{skill.pk}/SKILL.md", headers={"Accept": accept}).status_code == 200
    missing = read_api.get("/v1/skills/proc-none/SKILL.md", headers={"Accept": accept})
    assert (missing.status_code, missing.content) == (404, NOT_FOUND)


@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', "*"])
def test_what_did_not_change_is_not_sent_again(read_api, skill, form):
    path = f"/v1/skills/{skill.pk}/SKILL.md"
    etag = read_api.get(path)["ETag"]
    answer = read_api.get(path, headers={"If-None-Match": form.format(etag)})

    assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", etag)


def test_a_new_version_is_another_file(owner, read_api, skill):
    path = f"/v1/skills/{skill.pk}/SKILL.md"
    etag = read_api.get(path)["ETag"]
    approve(revision=make_proposal(owner, make_content(name="pay", instructions="2. New."), skill))
    answer = read_api.get(path, headers={"If-None-Match": etag})

    assert answer.status_code == 200
    assert answer["ETag"] != etag
    assert b"2. New." in answer.content


def test_of_a_stranger_and_of_nobody_are_one_answer(stranger, read_api, skill):
    theirs = make_skill(stranger, make_content(name="pay"))
    foreign = read_api.get(f"/v1/skills/{theirs.pk}/SKILL.md")
    missing = read_api.get("/v1/skills/proc-none/SKILL.md")

    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content == NOT_FOUND
    of_foreign, of_missing = dict(foreign.headers), dict(missing.headers)
    assert of_foreign.pop("X-Request-ID") != of_missing.pop("X-Request-ID")
    assert of_foreign == of_missing
