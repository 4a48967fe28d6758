"""Markdown as people read it: nothing runs, nothing is fetched, and nothing is hidden."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirix.markdown import MAX_CHARS, render
from mirix.phrases import cut, spans_of

ALLOWED = {
    *(
        "p",
        "br",
        "h4",
        "h5",
        "h6",
        "ol",
        "ul",
        "li",
        "em",
        "strong",
        "code",
        "pre",
        "div",
        "blockquote",
        "hr",
    ),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def marked(phrase: str) -> str:
    return f"<mark>{phrase}</mark>"


def test_the_forms_that_skills_use():
    assert render("# Pay\n\n1. Ask for **the** card.\n2. Run `pay`.\n") == (
        '<h4 class="mx-md__h1">Pay</h4><ol>\n<li>Ask for <strong>the</strong> card.</li>\n'
        "<li>Run <code>pay</code>.</li>\n</ol>\n"
    )
    assert render("```bash\npay --now\n```") == (
        '<div class="mx-label">bash</div><pre class="mx-code">pay --now\n</pre>'
    )


def test_headings_begin_below_those_of_the_page():
    assert re.findall(r"<(h\d)", render("# a\n\n## b\n\n### c\n\n###### d")) == ["h4", "h5", "h6", "h6"]


@pytest.mark.parametrize(
    "text",
    [
        '<img src=x onerror="alert(1)">',
        "<script>alert(1)</script>",
        "[click](javascript:alert(1))",
        '[click](https://example.org "title")',
        "![seen](https://example.org/track.png)",
        "<https://example.org>",
        "[a]: https://example.org 'hidden'",
        "<!-- only agents read this -->",
        "&#106;avascript",
        r"C:\_temp \* x",
    ],
)
def test_what_would_hide_or_be_followed_stays_as_it_was_written(text):
    assert unescape(re.sub(r"</?p>", "", render(text))).strip() == text


@pytest.mark.parametrize("text", ["> " * 25 + "hidden", "|a|b|\n|-|-|\n|1|2|hidden|"])
def test_what_the_form_would_leave_out_is_shown_with_the_whole_text(text):
    assert unescape(render(text)) == f'<pre class="mx-code">{text}</pre>'


def test_what_is_too_long_to_parse_is_shown_as_it_was_written():
    text = "*" * MAX_CHARS + "a"
    assert render(text) == f'<pre class="mx-code">{text}</pre>'


@given(st.text(alphabet="ab1 \n\t#>*_`~|-:.)([]!<&;\\\"'\u202e", max_size=80))
def test_every_letter_shows_and_no_element_is_the_texts_own(text):
    html = render(text)
    assert set(re.findall(r"</?(\w+)", html)) <= ALLOWED
    assert not re.search(r"\s(?:on\w+|href|src)=", html)
    letters = sorted(filter(str.isalpha, text))
    labelled = re.sub(r"<[^>]*>", "", html)
    assert sorted(filter(str.isalpha, unescape(labelled))) == letters


def test_phrases_are_marked_in_text_and_code():
    html = render(
        "Run `pay --now`, then a<b.\n\n```\npay --now 7\n```", phrases=["pay --now", "a<b"], mark=marked
    )
    assert "<code><mark>pay --now</mark></code>" in html
    assert "<mark>pay --now</mark> 7" in html
    assert "<mark>a<b</mark>" in html  # what marks escapes


def test_a_phrase_within_another_is_part_of_that():
    assert spans_of("--force all --force", ["--force", "force all"]) == [(0, 11), (12, 19)]
    assert list(cut("x --force", ["--force", ""])) == [("x ", False), ("--force", True)]


@given(st.text(alphabet="ab", max_size=20), st.lists(st.text(alphabet="ab", max_size=3), max_size=3))
def test_the_parts_joined_are_the_text(text, phrases):
    assert "".join(part for part, _ in cut(text, phrases)) == text
