"""What the user wanted, in the user's words, and a name for it."""

from __future__ import annotations

import pytest

from skills.distillation.intent import request_before, task_slug
from tests.skills.distillation.sessions import assistant, turns, user


def test_the_concrete_request_that_is_akin_to_the_tool_is_taken():
    talk = turns(
        user("Hi! I need some help with my bookings."),
        assistant("With what?"),
        user("I'd like to change my return flight to the morning."),
        assistant("Which class?"),
        user("Please also add one bag."),
        assistant("Shall I go ahead?"),
        user("Yes, please proceed."),
    )
    assert request_before(talk, 8, "change_flight") == "I'd like to change my return flight to the morning."
    assert request_before(talk, 3, "change_flight") == "I need some help with my bookings."


def test_a_short_sentence_in_front_comes_along_because_it_says_why():
    talk = turns(user("Hello! I was charged twice for order 17. Could you refund the second payment?"))
    assert (
        request_before(talk, 9, "refund")
        == "I was charged twice for order 17. Could you refund the second payment?"
    )


def test_where_nobody_asks_the_first_sentence_says_what_it_is_about():
    talk = turns(user("Book a table for tonight."), assistant("Done."), user("I see."))
    assert request_before(talk, 9) == "Book a table for tonight."


def test_nothing_said_is_no_request():
    assert request_before(turns(user("Hi"), user("Yes.")), 9) == ""


def test_e_mail_addresses_and_long_numbers_stay_out():
    talk = turns(user("Please send the bill of card 4111 1111 1111 1111 to jo@mail.example today."))
    assert request_before(talk, 9) == "Please send the bill of card … to … today."


@pytest.mark.parametrize(
    ("request_", "slug"),
    [
        ("I need to change the passenger name on my flight.", "change-passenger-name-flight"),
        ("Could you please cancel reservation SI5UKW?", "cancel-reservation-si-ukw"),
        ("How do I reset my router?", "reset-router"),
        ("", "this-task"),
        ("请帮我取消订单", "this-task"),
    ],
)
def test_a_task_is_named_by_what_is_to_be_done(request_, slug):
    assert task_slug(request_) == slug
