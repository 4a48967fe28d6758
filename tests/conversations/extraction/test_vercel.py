"""Messages of Vercel's AI SDK: the exact turns of one element."""

from __future__ import annotations

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import only, reason, told


def ui(*parts, role="assistant"):
    return {"id": "m1", "role": role, "parts": list(parts)}


def tool(state, **fields):
    return {"type": "tool-f", "toolCallId": "t1", "state": state, "input": {"a": 1}} | fields


CALL = ("assistant", '[call f] {"a": 1}')


class TestInterfaceMessages:
    def test_text_is_kept_and_what_is_beside_it_is_counted(self):
        message = ui(
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm"},
            {"type": "text", "text": "Paris.", "state": "done"},
            {"type": "source-url", "sourceId": "s", "url": "https://e.org", "title": "E"},
            {"type": "data-weather", "id": "d", "data": {"status": "loading"}},
        )
        assert told(message) == [("assistant", "Paris.")]
        assert extract([message]).omitted == {"reasoning": 1, "source": 1, "data": 1}
        assert extract([message]).turns[0].message_id == "m1"

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            (tool("input-available"), [CALL]),
            (tool("output-available", output="sunny"), [CALL, ("tool", "[f] sunny")]),
            (tool("output-available", output={"t": 20}), [CALL, ("tool", '[f] {"t": 20}')]),
            (tool("output-available", output=None), [CALL, ("tool", "[f] (no output)")]),
            (tool("output-error", errorText="timed out"), [CALL, ("error", "[f] timed out")]),
            (
                tool("output-denied", approval={"id": "a", "approved": False, "reason": "too dear"}),
                [CALL, ("error", "[f] denied: too dear")],
            ),
            (tool("approval-requested", approval={"id": "a"}), [CALL]),
            (
                tool("output-available", output="sunny") | {"type": "dynamic-tool", "toolName": "f"},
                [CALL, ("tool", "[f] sunny")],
            ),
            (
                {
                    "type": "tool-invocation",
                    "toolInvocation": {
                        "state": "result",
                        "toolCallId": "t1",
                        "toolName": "f",
                        "args": {"a": 1},
                        "result": "sunny",
                    },
                },
                [CALL, ("tool", "[f] sunny")],
            ),
        ],
    )
    def test_a_part_is_a_call_and_by_its_state_what_came_of_it(self, part, expected):
        assert told(ui(part)) == expected
        assert told(ui({"type": "text", "text": "Hm."}, part))[1:] == expected[1:]

    def test_steps_are_turns_of_their_own(self):
        step = {"type": "step-start"}
        message = ui(step, {"type": "text", "text": "One."}, step, {"type": "text", "text": "Two."})
        assert told(message) == [("assistant", "One."), ("assistant", "Two.")]

    def test_files_become_placeholders(self):
        message = ui(
            {"type": "text", "text": "See:"},
            {
                "type": "file",
                "mediaType": "image/png",
                "filename": "a.png",
                "url": "data:image/png;base64,AAAA",
            },
            role="user",
        )
        assert only(message).content == "See:\n[file: a.png, image/png, 3 B]"

    def test_the_content_beside_parts_is_the_same_text_and_read_where_they_have_none(self):
        text = {"type": "text", "text": "Hello."}
        assert told(ui(text) | {"content": "Hello."}) == [("assistant", "Hello.")]
        assert told(ui() | {"content": "Hello."}) == [("assistant", "Hello.")]

    def test_invocations_and_attachments_beside_the_content_of_older_messages(self):
        message = {
            "role": "assistant",
            "content": "Sunny.",
            "toolInvocations": [
                {"state": "result", "toolCallId": "t1", "toolName": "f", "args": {"a": 1}, "result": "sunny"},
                {"state": "call", "toolCallId": "t2", "toolName": "g", "args": {}},
            ],
        }
        assert told(message) == [
            CALL,
            ("tool", "[f] sunny"),
            ("assistant", "[call g] {}"),
            ("assistant", "Sunny."),
        ]
        attachment = {"name": "a.png", "contentType": "image/png", "url": "data:image/png;base64,AAAA"}
        assert told({"role": "user", "content": "See:", "experimental_attachments": [attachment]}) == [
            ("user", "See:\n[image: a.png, image/png, 3 B]")
        ]

    def test_system_text_is_left_out(self):
        assert reason(ui({"type": "text", "text": "Be brief."}, role="system")) == "system message"


class TestModelMessages:
    CALLS = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Looking."},
            {"type": "tool-call", "toolCallId": "t1", "toolName": "f", "input": {"a": 1}},
            {"type": "tool-call", "toolCallId": "t2", "toolName": "g", "args": {}},
        ],
    }

    def test_calls(self):
        assert told(self.CALLS) == [("assistant", 'Looking.\n[call f] {"a": 1}\n[call g] {}')]

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"output": {"type": "text", "value": "sunny"}}, ("tool", "[g] sunny")),
            ({"output": {"type": "json", "value": {"t": 20}}}, ("tool", '[g] {"t": 20}')),
            ({"output": {"type": "error-text", "value": "no"}}, ("error", "[g] no")),
            ({"output": {"type": "error-json", "value": {"c": 4}}}, ("error", '[g] {"c": 4}')),
            ({"output": {"type": "execution-denied", "reason": "no"}}, ("error", "[g] no")),
            (
                {"output": {"type": "content", "value": [{"type": "text", "text": "sunny"}]}},
                ("tool", "[g] sunny"),
            ),
            ({"result": "sunny"}, ("tool", "[g] sunny")),
            ({"result": "bad luck", "isError": True}, ("error", "[g] bad luck")),
        ],
    )
    def test_results(self, fields, expected):
        parts = [{"type": "tool-result", "toolCallId": "t2"} | fields]
        parts.append({"type": "tool-result", "toolCallId": "t1", "output": {"type": "text", "value": "ok"}})
        message = {"role": "tool", "content": parts}
        assert told(self.CALLS, message)[1:] == [expected, ("tool", "[f] ok")]

    def test_decisions_on_calls_are_the_users(self):
        parts = [
            {"type": "tool-approval-response", "approvalId": "a", "approved": True},
            {"type": "tool-approval-response", "approvalId": "b", "approved": False, "reason": "too dear"},
        ]
        assert told({"role": "tool", "content": parts}) == [("user", "[approved]\n[denied: too dear]")]


def test_invocations_that_are_no_list_cost_nothing():
    message = {"role": "user", "content": "hi", "toolInvocations": True, "experimental_attachments": []}
    assert told(message) == [("user", "hi")]
