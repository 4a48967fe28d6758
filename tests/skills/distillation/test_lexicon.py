"""The lexicon: what corrects, what confirms, and what takes it back."""

from __future__ import annotations

import pytest

from skills.distillation.lexicon import asks, confirmation, correction, self_correction, split


def sentence_of(hit) -> str | None:
    return hit.sentence.text if hit else None


@pytest.mark.parametrize(
    "text",
    [
        "I meant the Berlin office, not the one in Bern.",
        "No, I meant the other one.",
        "Actually, I wanted the morning train.",
        "Actually I was looking for a flight to LAS, not LAX.",
        "That's not what I asked for.",
        "That’s not what I asked for.",
        "This is wrong.",
        "That was incorrect, the total is 40.",
        "Those are not the right files.",
        "It isn't the right invoice.",
        "Wrong order!",
        "That's the wrong service.",
        "You used the wrong account.",
        "You've booked the wrong day.",
        "You forgot the attachment.",
        "You misunderstood me.",
        "You should have asked first.",
        "You shouldn't have closed the ticket.",
        "You were supposed to only read the file.",
        "Please don't touch the migrations.",
        "Don't use the staging key for this.",
        "Never force-push to main.",
        "Use the helper from notes/text.py instead.",
        "No, use the test account.",
        "Please send it to accounts instead of me.",
        "The date should be 3 May, not 5 March.",
        "It's Mei Garcia, not Mei Lee.",
        "I said Tuesday, not Thursday.",
        "I need the blue one, not the green one.",
        "I don't want to cancel the flight, just the insurance.",
        "I think there might be a misunderstanding.",
        "I believe there is some confusion.",
        "We are going in circles.",
        "I apologize for any confusion, but I am focusing on the return flight.",
        "That didn't work.",
        "It's still broken.",
        "Why did you delete the branch?",
        "No, the invoice goes to the owner.",
        "I didn't ask you to cancel it.",
        "I did not ask for a refund.",
        "Not 12, 21!",
        "No, not Monday, Tuesday.",
        "Cool, but the total is wrong.",
        "Thanks, but the delivery date is still incorrect.",
    ],
)
def test_a_correction(text):
    assert correction(text, answers_question=False) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Thanks, that's all.",
        "No problem!",
        "No, thank you.",
        "No worries, take your time.",
        "No, just the one.",
        "No, that is all. Thank you.",
        "No, that will be all.",
        "No, that'll be all for today.",
        "No, that's everything, thanks.",
        "No, I'm good.",
        "No, I am all set now.",
        "No thanks",
        "No, I would also like to cancel order 13.",
        "No, I don't need anything else.",
        "No, I'd like to also cancel order 13.",
        "No, you've been very helpful.",
        "No, nothing else for today.",
        "Not now, thanks.",
        "Not Monday, thanks.",
        "Thanks, but the jacket is wrong.",
        "That's not a problem.",
        "Nothing is wrong with it.",
        "I don't think that's wrong.",
        "That isn't wrong.",
        "Correct me if I'm wrong, but is it free?",
        "Don't get me wrong, I like it.",
        "If that's wrong, tell me.",
        "Let me know if it is not right.",
        "Is that wrong?",
        "What's wrong with my order?",
        "Something is wrong with my heater.",
        "My heater doesn't work.",
        "I received the wrong size.",
        "Don't worry about it.",
        "Don't forget the receipt.",
        "I don't know yet.",
        "I don't remember the reservation ID, sorry.",
        "Can I get a voucher instead?",
        "Could you cancel it and book the business class option instead?",
        "I'd like the blue one instead, please?",
        "Sorry for the confusion.",
        "I apologize for the misunderstanding.",
        "There is no misunderstanding.",
        "Actually, I remembered that I also want a window seat.",
        "I wanted to ask about my invoice.",
        "I need it today, not sure about the time.",
        "You should receive my documents tomorrow.",
        "You should have received my e-mail.",
        "You have to understand that I waited for three weeks.",
        "> That's wrong.\nSee the quoted mail above.",
        "```\nassert x, 'that is wrong'\n```",
    ],
)
def test_no_correction(text):
    assert sentence_of(correction(text, answers_question=False)) is None


def test_a_flat_no_answers_a_question_but_a_spoken_correction_still_counts():
    assert correction("No, it wasn't made in the last 24 hours.", answers_question=True) is None
    assert correction("No, it goes to the owner.", answers_question=True) is None
    assert correction("No, I meant the owner.", answers_question=True) is not None


def test_the_sentence_that_says_what_was_meant_is_preferred():
    hit = correction("That's wrong. I meant Bern, not Berlin. Can you check?", answers_question=False)
    assert sentence_of(hit) == "I meant Bern, not Berlin."
    assert hit.informative
    assert not correction("That's wrong.", answers_question=False).informative


@pytest.mark.parametrize(
    "text",
    [
        "That worked!",
        "Yes, that worked.",
        "It works now, thank you.",
        "Great, everything works again.",
        "That fixed it.",
        "This solved my problem.",
        "That did the trick.",
        "That's exactly what I needed.",
        "Exactly what I was looking for, thanks.",
        "The issue is resolved.",
        "All tests pass now.",
        "The tests are green.",
        "I can confirm it works.",
        "Perfect!",
        "Perfect, thank you.",
        "That's perfect.",
        "Spot on.",
        "Great job!",
        "Well done.",
    ],
)
def test_a_confirmation(text):
    assert confirmation(text, approves_plan=False) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Yes, go ahead.",
        "Yes, please proceed.",
        "Perfect, please go ahead.",
        "Perfect, let's do it.",
        "Sounds perfect.",
        "Yes, that works for me.",
        "That will work.",
        "Thanks!",
        "Thank you so much for your help!",
        "Great! That's all I needed.",
        "Yes, everything looks correct. Please go ahead with the update.",
        "Yes, I confirm.",
        "That didn't work.",
        "It never worked.",
        "It has not worked yet.",
        "That is not exactly what I needed.",
        "That's almost perfect.",
        "Not perfect, but fine.",
        "Let me know if it works now.",
        "I hope that fixed it.",
        "That would be perfect.",
        "Does it work now?",
        "Once the tests pass, merge it.",
        "Perfect timing, I was about to call.",
        "That worked, but you used the wrong account.",
    ],
)
def test_no_confirmation(text):
    assert sentence_of(confirmation(text, approves_plan=False)) is None


def test_praise_for_a_plan_confirms_nothing_yet():
    assert confirmation("Perfect!", approves_plan=True) is None
    assert confirmation("That worked!", approves_plan=True) is not None


@pytest.mark.parametrize(
    "text",
    [
        "I apologize, I should have checked the status first.",
        "I made a mistake in the second line.",
        "My mistake: the port is 8531.",
        "I mistakenly used the old key.",
        "I misread the date.",
        "I was wrong about the limit.",
        "I overlooked the second reservation.",
        "My previous answer was wrong.",
        "My edit command did not use the proper indentation.",
        "I apologize for the mistake in the total.",
        "Oops, I deleted the wrong branch.",
        "On second thought, the first query is enough.",
        "Let me correct that.",
    ],
)
def test_an_own_correction(text):
    assert self_correction(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "I apologize for the inconvenience.",
        "I apologize for the delay, here is the list.",
        "I'm sorry, but I cannot find the order.",
        "I apologize, but it seems that no news are available.",
        "Oops, it seems that the service is not available at the moment.",
        "I don't think I made a mistake.",
        "Did I misread the date?",
        "If I misunderstood, please tell me.",
        "You should have checked the status.",
    ],
)
def test_no_own_correction(text):
    assert sentence_of(self_correction(text)) is None


@pytest.mark.parametrize(
    ("text", "asking"),
    [
        ("Shall I cancel it?", True),
        ("Here are the details. Please confirm if you would like to proceed.", True),
        ("Which of the two is it? I can do either.", True),
        ("It is cancelled.", False),
        ("It is cancelled. Is there anything else I can help you with?", False),
        ("It is cancelled. If you need further assistance, feel free to ask!", False),
        ("", False),
    ],
)
def test_whether_a_message_ends_by_asking(text, asking):
    assert asks(text) is asking


def test_sentences_keep_their_place_in_the_text():
    text = "One. v2.1 is two!\n\n  Three"
    found = split(text)
    assert [sentence.text for sentence in found] == ["One.", "v2.1 is two!", "Three"]
    assert all(text[sentence.start : sentence.end] == sentence.text for sentence in found)
