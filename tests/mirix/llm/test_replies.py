"""Replies of a model: what is read, what is refused, and that no reply breaks the reader or takes it long."""

from __future__ import annotations

from mirix.llm.replies import parse_reply


def test_a_plain_list_is_read_strictly() -> None:
    reply = parse_reply('{"experiences": [{"title": "Ask before cancelling"}]}')
    assert (reply.verdict, reply.how) == ("ok", "strict")
    assert reply.items == [{"title": "Ask before cancelling"}]


def test_a_blank_reply_is_unreadable_and_an_empty_list_is_empty() -> None:
    assert parse_reply(" \n").verdict == "unreadable"
    assert parse_reply("[]").verdict == "empty"
