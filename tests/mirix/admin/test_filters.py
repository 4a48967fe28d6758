"""Filters of the admin's pages: they set text, and never lose or run any of it."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from mirix.templatetags.mirix_admin import ago, coded, plainly, written


@pytest.mark.parametrize(
    ("back", "words"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=3), "3\xa0minutes ago"),
        (timedelta(days=2, hours=3), "2\xa0days ago"),
    ],
)
def test_an_age_is_told_in_its_largest_unit(back, words):
    assert ago(timezone.now() - back) == words


def test_no_moment_has_no_age():
    assert ago(None) == "–"


def test_json_reads_plainly():
    assert plainly("as it is") == "as it is"
    assert plainly({"é": [1]}) == '{\n  "é": [\n    1\n  ]\n}'


def test_code_headings_and_items_stand_out():
    assert coded("call `pay`, <b>") == "call <code>`pay`</code>, &lt;b&gt;"
    assert written("## Avoid\n- one `x`\n12. two\nplain") == (
        '<span class="mx-line mx-line--heading">## Avoid</span>'
        '<span class="mx-line mx-line--item">- one <code>`x`</code></span>'
        '<span class="mx-line mx-line--item">12. two</span>'
        '<span class="mx-line mx-line--plain">plain</span>'
    )


@given(st.text(alphabet="ab`#-1. <>&\"'\n{}"))
def test_nothing_is_lost_and_nothing_becomes_markup(text):
    lines = re.findall(r'<span class="mx-line mx-line--\w+">(.*?)</span>', written(text), re.DOTALL)
    shown = "\n".join(html.unescape(re.sub(r"</?code>", "", line)) for line in lines)
    assert shown == text
    assert set(re.findall(r"<[^>]*>", coded(text))) <= {"<code>", "</code>"}
