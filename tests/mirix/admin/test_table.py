"""The rows of a list: cell by cell what the theme's own tag would show, at a fraction of its cost."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.messages.storage.fallback import FallbackStorage
from django.test import RequestFactory
from unfold.templatetags.unfold_list import items_for_result

from mirix.admin_table import Table
from skills.models import Skill
from tests.factories import make_content, make_owner, make_skill, make_superuser
from tests.mirix.admin.test_pages import ROWS, WITHOUT_OWNER, as_user, changelist

pytestmark = pytest.mark.django_db

MODELS = {model._meta.label_lower: model for model in admin.site._registry}
HOSTILE = '<img src=x onerror="alert(1)">'


def list_of(label: str, query: str = "") -> Any:
    """Return a list as a superuser sees it."""
    request = RequestFactory().get(changelist(label) + query)
    request.user = make_superuser()
    request.session = {}  # type: ignore[assignment]
    request._messages = FallbackStorage(request)  # type: ignore[attr-defined]
    return admin.site._registry[MODELS[label]].get_changelist_instance(request)


def without_blanks(html: str) -> str:
    return re.sub(r"\s+", " ", html).replace("> ", ">").replace(" <", "<").replace(" >", ">")


@pytest.mark.parametrize("query", ["", "?o=2"])
@pytest.mark.parametrize("label", sorted(MODELS))
def test_rows_are_those_of_the_theme(label, query, owner):
    make_owner()  # of an organization of its own, so that there is one to filter by
    for _ in range(2):
        ROWS[label](owner) if label in ROWS else WITHOUT_OWNER[label]()
    found = list_of(label, query)
    theirs = ["".join(items_for_result(found, row, None)) for row in found.result_list]
    assert [without_blanks(row) for row in Table(found).rows()] == [without_blanks(row) for row in theirs]
    assert len(theirs) >= (0 if label == "procrastinate.procrastinatejob" else 1)


def test_what_was_written_is_shown_as_text(owner):
    make_skill(owner, make_content(name="refund", description=HOSTILE))
    [row] = Table(list_of("skills.skill")).rows()
    assert "<img" not in row
    assert "&lt;img src=x" in row


def test_a_key_is_escaped_in_its_checkbox():
    box, _ = Table(list_of("skills.skill"))._shown("action_checkbox", Skill(pk='"><b>'))
    assert 'value="&quot;&gt;&lt;b&gt;"' in box


def test_the_list_shows_them(owner):
    skill = make_skill(owner)
    page = as_user(make_superuser()).get(changelist("skills.skill"))
    [row] = Table(list_of("skills.skill")).rows()
    assert row in page.content.decode()
    assert skill.name in row
