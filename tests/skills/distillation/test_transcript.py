"""The transcript that a model reads: budgets, frame, numbering, and what is not shown."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from skills.distillation.transcript import MIN_TRANSCRIPT_CHARS, Transcript, render
from skills.distillation.types import TranscriptTurn
from skills.search.fingerprints import ServedText
from tests.skills.distillation.sessions import assistant, tool, turns, user

BUDGETS = {"max_chars": 80_000, "max_message_chars": 8_000}


def shown(session, *, first_seq=1, served=(), **budgets) -> Transcript:
    return render(session, first_seq=first_seq, served=ServedText.of(served), **(BUDGETS | budgets))


def without_code(transcript: Transcript) -> str:
    code = transcript.text.split(">", 1)[0].removeprefix("<transcript ")
    assert re.fullmatch(r"[0-9a-f]{8}", code)
    return transcript.text.replace(f" {code}", "")


def plain(count: int, size: int = 1_000) -> list[TranscriptTurn]:
    roles = ("user", "assistant")
    return [
        TranscriptTurn(seq=seq, role=roles[(seq - 1) % 2], content=f"{seq}:" + "x" * (size - len(f"{seq}:")))
        for seq in range(1, count + 1)
    ]


def seqs(transcript: Transcript) -> list[int]:
    return [turn.seq for turn in transcript.seen]


class TestWithinBudget:
    SESSION = turns(
        user("Cancel my order A-17, please."),
        tool("cancel_order", {"order_id": "A-17"}, "Error: reason is required", text="One moment."),
        assistant("Why do you want to cancel it?"),
    )

    def test_all_is_shown_and_numbered(self):
        found = shown(self.SESSION, first_seq=2)

        assert without_code(found) == (
            "<transcript>\n"
            "<context>\n"
            "[turn 1 user]\n"
            "Cancel my order A-17, please.\n"
            "</context>\n"
            "<new turns>\n"
            "[turn 2 assistant]\n"
            'One moment.\n[call cancel_order] {"order_id": "A-17"}\n'
            "[turn 3 tool cancel_order error]\n"
            "[cancel_order] Error: reason is required\n"
            "[turn 4 assistant]\n"
            "Why do you want to cancel it?\n"
            "</new turns>\n"
            "</transcript>"
        )
        assert found.seen == self.SESSION
        assert found.flags == []

    def test_a_session_of_which_nothing_was_learned_has_no_context(self):
        assert "<context" not in shown(self.SESSION).text
        assert "<new turns" not in shown(self.SESSION, first_seq=5).text

    def test_it_is_the_same_each_time(self):
        assert shown(self.SESSION) == shown(list(self.SESSION))

    def test_turns_without_words_and_of_other_roles_are_left_out(self):
        session = [
            TranscriptTurn(seq=1, role="system", content="You are a helpful assistant."),
            TranscriptTurn(seq=2, role="user", content=" \n "),
            TranscriptTurn(seq=3, role="user", content="Hello."),
        ]
        assert seqs(shown(session)) == [3]

    def test_calls_that_are_in_no_text_are_written_out(self):
        call = {"id": "c1", "name": "pay", "arguments": {"amount": 12, "password": "s3cret!"}}
        session = [TranscriptTurn(seq=1, role="assistant", content="", tool_calls=[call])]

        found = shown(session)

        assert found.seen[0].content == '[call pay] {"amount": 12, "password": "[redacted: secret]"}'
        assert found.seen[0].tool_calls[0]["arguments"] == {"amount": 12, "password": "[redacted: secret]"}


words = st.text(st.sampled_from("ab \n<>/[]()transcriptnewtu0123456789\u200b\u202e＜"), max_size=300)
sessions = st.lists(
    st.builds(
        dict,
        role=st.sampled_from(["user", "assistant", "tool"]),
        content=words
        | st.sampled_from(["No, that's wrong, I meant the other one.", "Error: no such order", "w" * 9_000]),
        tool_name=st.sampled_from(["", "find order]\n", "x" * 200]),
        is_error=st.booleans(),
    ),
    max_size=40,
).map(lambda found: [TranscriptTurn(seq=seq, **turn) for seq, turn in enumerate(found, start=1)])


@settings(max_examples=150)
@given(
    sessions,
    st.integers(1, 45),
    st.integers(MIN_TRANSCRIPT_CHARS, 20_000),
    st.integers(200, 9_000),
)
def test_whatever_comes_it_fits_and_holds_what_is_seen(session, first_seq, max_chars, max_message_chars):
    found = shown(session, first_seq=first_seq, max_chars=max_chars, max_message_chars=max_message_chars)
    code = re.match(r"<transcript ([0-9a-f]{8})>\n", found.text)[1]

    assert len(found.text) <= max_chars
    assert found.text.endswith(f"</transcript {code}>")
    assert seqs(found) == sorted(set(seqs(found)))
    position = 0
    for turn in found.seen:
        assert len(turn.content) <= max_message_chars
        assert code not in turn.content
        place = found.text.index(f"[turn {turn.seq} {turn.role}", position)
        position = found.text.index(f" {code}]\n{turn.content}\n", place)
    if any(turn.content.strip() for turn in session):
        assert found.seen
