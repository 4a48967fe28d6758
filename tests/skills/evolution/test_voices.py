"""Who speaks for something: sessions, and not the copies of one."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skills.evolution.voices import voices
from tests.skills.evolution.experiences import corrected, failed

WISH = corrected("Just the insurance.", topic="task:refund", request="Refund it", session_id="s-1")
OTHER = corrected("Only the insurance.", topic="task:refund", request="Refund it", session_id="s-2")


def test_every_session_counts_once():
    assert voices([]) == 0
    assert voices([WISH, replace(OTHER, session_id="s-1")]) == 1
    assert voices([WISH, OTHER]) == 2


def test_a_copy_of_a_session_is_no_other_voice():
    assert voices([WISH, replace(WISH, id="sexp-2", session_id="s-1-again")]) == 1


def test_a_copy_of_which_a_part_is_set_aside_is_one_still():
    error = replace(failed("no funds", ("card", 1, 2)), session_id="s-1")
    copy = [replace(item, session_id="s-0") for item in (WISH, error)]
    assert voices([error, *copy]) == 1
    assert voices([copy[0], WISH, error]) == 1


def test_the_same_words_about_another_case_are_another_voice():
    error = failed("no funds", ("card", "gift_1", "credit_2"))
    assert voices([error, failed("no funds", ("card", "gift_3", "credit_4"))]) == 2


def test_what_was_heard_counts_no_more():
    assert voices([WISH, OTHER], heard=[WISH]) == 1
    assert voices([replace(OTHER, session_id="s-1")], heard=[WISH]) == 0
    assert voices([replace(WISH, session_id="s-3")], heard=[WISH]) == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=12))
def test_telling_it_all_again_adds_no_voice(told):
    first = [replace(WISH, session_id=session, quote=words) for session, words in told]
    again = [replace(item, session_id=f"{item.session_id}-again") for item in first]
    assert voices(first) <= len({session for session, _ in told})
    assert voices([*first, *again]) == voices(first)
    assert voices(again, heard=first) == 0


def test_a_transcript_that_was_sent_again_is_one_voice_whatever_was_learned_from_it():
    first = replace(WISH, transcript="abc")
    again = replace(OTHER, transcript="abc")
    assert voices([first, again]) == 1
    assert voices([again], heard=[first]) == 0
    assert voices([first, replace(OTHER, transcript="def")]) == 2
