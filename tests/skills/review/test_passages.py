"""A difference line by line: which line stands beside which, what is folded, and what is marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skills.review.diffs import diff_texts
from skills.review.passages import Passage, Piece, passage_of


def passage(before: str, after: str, doubted: tuple[str, ...] = ()) -> Passage:
    return passage_of(diff_texts("instructions", before, after), doubted)


def text_of(line) -> str | None:
    return None if line is None else "".join(piece.text for piece in line)


def sides(found: Passage) -> list[tuple[str | None, str | None]]:
    rows = [row for stretch in found.stretches for row in stretch.rows]
    return [(text_of(row.left), text_of(row.right)) for row in rows]


def test_a_line_stands_beside_what_became_of_it():
    found = passage("Ask.\nCharge it.\nSay thanks.", "Ask.\nCharge it once.\nSay thanks.")
    assert sides(found) == [
        ("Ask.", "Ask."),
        ("Charge it.", "Charge it once."),
        ("Say thanks.", "Say thanks."),
    ]
    changed = [row for stretch in found.stretches for row in stretch.rows if row.changed]
    assert [piece for piece in changed[0].both if piece.kind != "equal"] == [Piece("insert", " once")]
    assert (found.added, found.removed) == (1, 0)


def test_a_line_that_came_stands_beside_nothing():
    assert sides(passage("a\nc\n", "a\nb\nc\n")) == [("a", "a"), (None, "b"), ("c", "c")]
    assert sides(passage("a\nb\nc\n", "a\nc\n")) == [("a", "a"), ("b", None), ("c", "c")]


def test_what_stayed_far_from_a_change_is_folded():
    before = "".join(f"line {number}\n" for number in range(20))
    found = passage(before, before.replace("line 9\n", "line nine\n"))
    assert [(stretch.folded, len(stretch.rows)) for stretch in found.stretches] == [
        (True, 6),
        (False, 7),
        (True, 7),
    ]


def test_a_few_lines_are_not_worth_folding():
    before = "".join(f"line {number}\n" for number in range(6))
    found = passage(before, before.replace("line 0\n", "line zero\n"))
    assert not any(stretch.folded for stretch in found.stretches)


def test_what_is_doubted_is_marked_in_the_new_text_also_across_a_change():
    found = passage("Run pay --now today.", "Run pay --force today, rm -rf /.", ("pay --force", "rm -rf /"))
    pieces = [piece for stretch in found.stretches for row in stretch.rows for piece in row.both]
    assert "".join(piece.text for piece in pieces if piece.doubted) == "pay --forcerm -rf /"
    assert not any(piece.doubted for piece in pieces if piece.kind == "delete")


@given(
    *[st.text(alphabet="ab \n", max_size=30)] * 2, st.lists(st.text(alphabet="ab ", min_size=1, max_size=3))
)
def test_each_side_is_its_text_line_by_line(before, after, doubted):
    rows = sides(passage(before, after, tuple(doubted)))
    for place, text in enumerate((before, after)):
        lines = [row[place] for row in rows if row[place] is not None]
        assert "\n".join(lines) in (text, text.removesuffix("\n"))  # the end of the last line is no line
