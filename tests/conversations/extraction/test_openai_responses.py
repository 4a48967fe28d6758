"""OpenAI Responses items and Mistral's entries: each an element of its own."""

from __future__ import annotations

import base64
from random import Random

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import only, reason, told

PAYLOAD = base64.b64encode(Random(4).randbytes(3_000)).decode()


def call(name, call_id, arguments="{}"):
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def output(call_id, given, **fields):
    return {"type": "function_call_output", "call_id": call_id, "output": given} | fields


class TestItems:
    def test_parallel_calls_answered_out_of_order_find_their_names(self):
        items = [call("f", "a", '{"n": 1}'), call("g", "b"), output("b", "two"), output("a", "Error: one")]
        assert told(*items) == [
            ("assistant", '[call f] {"n": 1}'),
            ("assistant", "[call g] {}"),
            ("tool", "[g] two"),
            ("error", "[f] Error: one"),
        ]
        assert [turn.tool_call_id for turn in extract(items).turns] == ["", "", "b", "a"]

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("text", "text"),
            (
                [{"type": "input_text", "text": "one"}, {"type": "input_image", "file_id": "f-1"}],
                "one\n[image: f-1]",
            ),
            ({"a": 1}, '{"a": 1}'),
            (None, "(no output)"),
            ("", "(no output)"),
        ],
    )
    def test_any_output(self, given, expected):
        assert only(output("a", given)).content == f"[tool] {expected}"

    def test_messages_among_the_items(self):
        parts = [
            {"type": "output_text", "text": "Hello.", "annotations": []},
            {"type": "refusal", "refusal": "No."},
        ]
        item = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": parts,
        }
        assert told(item) == [("assistant", "Hello.\nNo.")]
        assert extract([item]).turns[0].message_id == "msg_1"

    @pytest.mark.parametrize(
        ("item", "expected"),
        [
            ({"type": "reasoning", "summary": [], "encrypted_content": "gA"}, "reasoning only"),
            ({"type": "item_reference", "id": "x"}, "reference only"),
            ({"type": "mcp_list_tools", "tools": []}, "tool list only"),
            ({"type": "compaction", "encrypted_content": "gA"}, "compact summary only"),
            ({"role": "developer", "type": "additional_tools", "tools": []}, "developer message"),
        ],
    )
    def test_no_turn(self, item, expected):
        assert reason(item) == expected

    @pytest.mark.parametrize(
        ("item", "expected"),
        [
            (
                {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "q"}},
                [("assistant", '[call web_search] {"type": "search", "query": "q"}')],
            ),
            (
                {"type": "web_search_call", "action": {"query": "q", "sources": [{"url": "https://e.org"}]}},
                [("assistant", '[call web_search] {"query": "q"}'), ("tool", "[web_search] https://e.org")],
            ),
            (
                {"type": "file_search_call", "queries": ["q"], "results": [{"text": "Found.", "score": 1}]},
                [
                    ("assistant", '[call file_search] {"queries": ["q"]}'),
                    ("tool", '[file_search] [{"text": "Found.", "score": 1}]'),
                ],
            ),
            (
                {"type": "code_interpreter_call", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
                [("assistant", '[call code_interpreter] {"code": "1+1"}'), ("tool", "[code_interpreter] 2")],
            ),
            (
                {"type": "image_generation_call", "result": PAYLOAD, "revised_prompt": "A cat"},
                [
                    ("assistant", '[call image_generation] {"revised_prompt": "A cat"}'),
                    ("tool", "[image_generation] [image: 2.9 KB]"),
                ],
            ),
            (
                {"type": "mcp_call", "name": "f", "arguments": "{}", "output": "done", "error": None},
                [("assistant", "[call f] {}"), ("tool", "[f] done")],
            ),
            (
                {"type": "mcp_call", "name": "f", "arguments": "{}", "output": None, "error": "no access"},
                [("assistant", "[call f] {}"), ("error", "[f] no access")],
            ),
            (
                {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
                [("assistant", '[call local_shell] {"command": ["ls"]}')],
            ),
            (
                {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "select 1"},
                [("assistant", "[call sql] select 1")],
            ),
            (
                {"type": "mcp_approval_request", "name": "f", "arguments": '{"a": 1}'},
                [("assistant", '[approval asked] f {"a": 1}')],
            ),
            ({"type": "mcp_approval_response", "approve": False, "reason": "no"}, [("user", "[denied: no]")]),
            ({"type": "input_text", "text": "hello"}, [("user", "hello")]),
        ],
    )
    def test_tools_of_the_provider(self, item, expected):
        assert told(item) == expected

    @pytest.mark.parametrize(
        ("outcome", "role"),
        [
            ({"type": "exit", "exit_code": 0}, "tool"),
            ({"type": "exit", "exit_code": 1}, "error"),
            ({"type": "timeout"}, "error"),
        ],
    )
    def test_output_of_a_shell(self, outcome, role):
        shell = {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}}
        lines = [{"stdout": "a\n", "stderr": "", "outcome": outcome}]
        answer = {"type": "shell_call_output", "call_id": "s", "output": lines}
        assert told(shell, answer)[1] == (role, "[shell] a\n")

    def test_a_search_for_tools_finds_names(self):
        search = {"type": "tool_search_call", "call_id": None, "id": "t", "arguments": {"goal": "g"}}
        found = {"type": "tool_search_output", "call_id": None, "tools": [{"name": "f"}, {"name": "g"}]}
        assert told(search, found) == [
            ("assistant", '[call tool_search] {"goal": "g"}'),
            ("tool", "[tool_search] f\ng"),
        ]


class TestMistral:
    def test_entries(self):
        entries = [
            {"type": "message.input", "role": "user", "content": "Weather?"},
            {"type": "function.call", "tool_call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
            {"type": "function.result", "tool_call_id": "c1", "result": "sunny"},
            {
                "type": "tool.execution",
                "id": "t",
                "name": "web_search",
                "arguments": "{}",
                "info": {"hits": 1},
            },
            {"type": "message.output", "role": "assistant", "content": [{"type": "text", "text": "Sunny."}]},
        ]
        assert told(*entries) == [
            ("user", "Weather?"),
            ("assistant", '[call f] {"a": 1}'),
            ("tool", "[f] sunny"),
            ("assistant", "[call web_search] {}"),
            ("tool", '[web_search] {"hits": 1}'),
            ("assistant", "Sunny."),
        ]
        assert told({"conversation_id": "c", "outputs": entries[3:]}) == told(*entries[3:])

    def test_chunks(self):
        content = [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True},
            {"type": "text", "text": "4"},
            {"type": "reference", "reference_ids": [1]},
        ]
        extraction = extract([{"role": "assistant", "content": content, "tool_calls": None}])
        assert [turn.content for turn in extraction.turns] == ["4"]
        assert extraction.omitted == {"reasoning": 1, "source": 1}

    def test_two_system_messages_and_a_result_after_text(self):
        messages = [
            {"role": "system", "content": "One."},
            {"role": "system", "content": "Two."},
            {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [{"id": "c", "function": {"name": "f"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "22"},
        ]
        extraction = extract(messages)
        assert [item.index for item in extraction.skipped] == [0, 1]
        assert [turn.content for turn in extraction.turns] == ["Looking.\n[call f]", "[f] 22"]
