"""Hidden characters in a finished page: each is shown, and nothing else of the page changes."""

from __future__ import annotations

import re
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirix.revealing import reveal
from mirix.text import HIDDEN

OVERRIDE = '<span class="mx-hidden" title="U+202E RIGHT-TO-LEFT OVERRIDE">\\u202e</span>'


def test_a_page_without_any_is_returned_as_it_is():
    page = "<!doctype html><title>Überraschung</title><p title='x > y'>a < b &amp; שלום 👩‍👩‍👧</p>"
    assert reveal(page) is page


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<p>\u202egnihtemos</p>", f"<p>{OVERRIDE}gnihtemos</p>"),
        ("a < \u202eb", f"a < {OVERRIDE}b"),
        (
            "<td>a\x07</td>",
            '<td>a<span class="mx-hidden" title="U+0007 control character">\\u0007</span></td>',
        ),
        ("<title>\u202ex</title>", "<title>\\u202ex</title>"),
        ('<option value="\u202ex">\u202ex</option>', '<option value="\u202ex">\\u202ex</option>'),
        ('<a title="> \u202ex" href="/">y</a>', '<a title="> \\u202ex" href="/">y</a>'),
        ('<input value="\u202ex" aria-label="\u202ex">', '<input value="\u202ex" aria-label="\\u202ex">'),
        ("<textarea>\u202e<b></textarea>", "<textarea>\u202e<b></textarea>"),
        ("<script>a<b;'\u202e'</script>\u202e", f"<script>a<b;'\u202e'</script>{OVERRIDE}"),
        ("<!-- \u202e > -->", "<!-- \u202e > -->"),
    ],
)
def test_where_a_character_stands(page: str, shown: str):
    assert reveal(page) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200db", ["U+200D ZERO WIDTH JOINER"]),
        ("\u200c", ["U+200C ZERO WIDTH NON-JOINER"]),
        ("a\ufe0f", ["U+FE0F VARIATION SELECTOR-16"]),
        ("\U0001f600\U000e0148", ["U+E0148 VARIATION SELECTOR-89"]),
        ("\u2764\ufe0f\ufe0f", ["U+FE0F VARIATION SELECTOR-16"]),
        ("👩\u200d💻 1\ufe0f\u20e3 ❤\ufe0f 葛\U000e0100 می\u200cخ क\u094d\u200dष", []),
    ],
)
def test_joiners_and_selectors_show_where_they_do_not_belong(text: str, shown: list[str]):
    assert re.findall('title="([^"]*)"', reveal(f"<p>{text}</p>")) == shown


def test_a_letter_that_looks_like_its_neighbour_is_marked_and_stays():
    mark = '<span class="mx-lookalike" title="U+0430 CYRILLIC SMALL LETTER A">\u0430</span>'
    page = "<title>p\u0430y</title><p title='p\u0430y'>p\u0430ypal.com через API, Δx, αx</p>"
    assert reveal(page) == page.replace(">p\u0430ypal", f">p{mark}ypal")


@given(st.text(alphabet=st.sampled_from("a<>&\"'\u202e\u2066\u200b\x85\U000e0041 \n\r"), max_size=60))
def test_no_text_hides_a_character(text: str):
    page = reveal(f'<p class="x">{escape(text)}</p>')
    assert not HIDDEN.search(page)
    assert page.count('class="mx-hidden"') == len(HIDDEN.findall(text))
