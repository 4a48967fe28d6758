"""Anthropic's blocks and Bedrock's: the exact turns of one message."""

from __future__ import annotations

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import only, reason, told


def use(name, call_id, arguments=None, kind="tool_use"):
    return {"type": kind, "id": call_id, "name": name, "input": arguments or {}}


def result(call_id, content, **fields):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | fields


class TestBlocks:
    def test_text_and_calls_are_one_turn_and_thoughts_are_counted(self):
        message = {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "EqEC"},
                {"type": "text", "text": "Looking."},
                use("f", "t1", {"a": 1}),
                use("g", "t2"),
            ],
        }
        extraction = extract([message])
        assert [turn.content for turn in extraction.turns] == ['Looking.\n[call f] {"a": 1}\n[call g] {}']
        assert extraction.turns[0].tool_calls == [
            {"id": "t1", "name": "f", "arguments": {"a": 1}},
            {"id": "t2", "name": "g", "arguments": {}},
        ]
        assert extraction.omitted == {"reasoning": 1}

    def test_several_results_in_one_message_are_several_turns_and_find_their_names_in_any_order(self):
        calls = {"role": "assistant", "content": [use("f", "t1"), use("g", "t2"), use("f", "t3")]}
        results = {
            "role": "user",
            "content": [
                result("t3", "three"),
                result("t2", [{"type": "text", "text": "two"}], is_error=True),
                result("t1", None),
                {"type": "text", "text": "Go on."},
            ],
        }
        turns = extract([calls, results]).turns[1:]
        assert [
            (turn.index, turn.role, turn.content, turn.tool_call_id, turn.is_error) for turn in turns
        ] == [
            (1, "tool", "[f] three", "t3", False),
            (1, "tool", "[g] two", "t2", True),
            (1, "tool", "[f] (no output)", "t1", False),
            (1, "user", "Go on.", "", False),
        ]

    def test_what_the_block_says_of_itself_goes_before_its_text(self):
        content = [result("t", "Error: none found", is_error=False), result("t", "Error: none found")]
        assert [role for role, _ in told({"role": "user", "content": content})] == ["tool", "error"]

    def test_media_in_a_result(self):
        image = {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "A" * 2_000},
        }
        message = {"role": "user", "content": [result("t", [{"type": "text", "text": "Here:"}, image])]}
        assert only(message).content == "[tool] Here:\n[image: image/png, 1.5 KB]"

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ({"type": "text", "media_type": "text/plain", "data": "The words."}, "The words."),
            ({"type": "content", "content": [{"type": "text", "text": "The words."}]}, "The words."),
            (
                {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"},
                "[document: T, application/pdf, 6 B]",
            ),
            ({"type": "url", "url": "https://e.org/a.pdf"}, "[document: T, https://e.org/a.pdf]"),
            ({"type": "file", "file_id": "file_1"}, "[document: T]"),
        ],
    )
    def test_documents(self, source, expected):
        part = {"type": "document", "title": "T", "source": source}
        assert only({"role": "user", "content": [part]}).content == expected

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            ({"type": "compaction", "content": "So far …"}, "compact summary only"),
            ({"type": "fallback", "from": {}, "to": {}}, "notice only"),
            ({"type": "redacted_thinking", "data": "Eo"}, "reasoning only"),
        ],
    )
    def test_what_is_no_part_of_the_conversation(self, part, expected):
        assert reason({"role": "assistant", "content": [part]}) == expected

    def test_why_a_reply_was_stopped_is_text(self):
        details = {"type": "refusal", "explanation": "Blocked."}
        assert only({"role": "assistant", "content": [], "stop_details": details}).content == "Blocked."


class TestServerTools:
    @pytest.mark.parametrize(
        ("kind", "content", "expected"),
        [
            (
                "web_search",
                [
                    {
                        "type": "web_search_result",
                        "title": "T",
                        "url": "https://e.org",
                        "page_age": "2 days ago",
                    },
                    {
                        "type": "web_search_result",
                        "title": "U",
                        "url": "https://u.org",
                        "encrypted_content": "E",
                    },
                ],
                ("tool", "T <https://e.org> (2 days ago)\nU <https://u.org>"),
            ),
            (
                "web_search",
                {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
                ("error", "max_uses_exceeded"),
            ),
            (
                "web_fetch",
                {
                    "type": "web_fetch_result",
                    "url": "https://e.org",
                    "content": {"type": "document", "source": {"type": "text", "data": "The page."}},
                },
                ("tool", "https://e.org\nThe page."),
            ),
            (
                "code_execution",
                {
                    "type": "code_execution_result",
                    "stdout": "1\n",
                    "stderr": "",
                    "return_code": 0,
                    "content": [],
                },
                ("tool", "1\n"),
            ),
            (
                "bash_code_execution",
                {"stdout": "a", "stderr": "b", "return_code": 2, "content": [{"type": "x", "file_id": "f"}]},
                ("error", 'a\nb\n[{"type": "x", "file_id": "f"}]'),
            ),
            (
                "bash_code_execution",
                {"stdout": "a", "stderr": "", "return_code": 0, "warning": "w", "seconds": 2, "more": [""]},
                ("tool", 'a\n{"warning": "w"}'),
            ),
            (
                "web_fetch",
                {"type": "web_fetch_result", "url": "https://e.org", "content": "x", "warning": "cut"},
                ("tool", 'https://e.org\nx\n{"warning": "cut"}'),
            ),
            (
                "web_fetch",
                {"type": "web_fetch_tool_result_error", "error_code": "unavailable", "reason": "closed"},
                ("error", 'unavailable\n{"reason": "closed"}'),
            ),
            (
                "bash_code_execution",
                {
                    "stdout": "",
                    "stderr": "",
                    "return_code": 0,
                    "content": [{"type": "bash_code_execution_output", "file_id": "file_1"}],
                },
                ("tool", "[file: file_1]"),
            ),
            (
                "text_editor_code_execution",
                {"type": "text_editor_code_execution_view_result", "content": "line 1", "num_lines": 1},
                ("tool", "line 1"),
            ),
            (
                "text_editor_code_execution",
                {
                    "type": "text_editor_code_execution_str_replace_result",
                    "lines": ["-a", "+b"],
                    "new_start": 1,
                },
                ("tool", "-a\n+b"),
            ),
            (
                "text_editor_code_execution",
                {"type": "text_editor_code_execution_create_result", "is_file_update": False},
                ("tool", '{"is_file_update": false}'),
            ),
            ("advisor", {"type": "advisor_result", "text": "Be brief."}, ("tool", "Be brief.")),
            (
                "advisor",
                {"type": "advisor_redacted_result", "encrypted_content": "E"},
                ("tool", "(no output)"),
            ),
            (
                "tool_search",
                {"tool_references": [{"type": "tool_reference", "tool_name": "get_weather"}]},
                ("tool", "get_weather"),
            ),
            ("mcp", [{"type": "text", "text": "hello"}], ("tool", "hello")),
        ],
    )
    def test_a_call_and_what_it_gave_are_two_turns(self, kind, content, expected):
        message = {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Looking."},
                use("it", "s1", kind="server_tool_use"),
                {"type": f"{kind}_tool_result", "tool_use_id": "s1", "content": content},
                {"type": "text", "text": "Done."},
            ],
        }
        role, text = expected
        assert told(message) == [
            ("assistant", "Looking.\n[call it] {}"),
            (role, f"[it] {text}"),
            ("assistant", "Done."),
        ]


class TestBedrock:
    def test_calls_results_and_thoughts(self):
        calls = {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "E"}}},
                {"text": "Looking."},
                {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}},
            ],
        }
        parts = [
            {"text": "21"},
            {"json": {"b": 2}},
            {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
        ]
        results = {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t1", "content": parts, "status": "success"}},
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "no"}], "status": "error"}},
                {"cachePoint": {"type": "default"}},
            ],
        }
        assert told(calls, results) == [
            ("assistant", 'Looking.\n[call f] {"a": 1}'),
            ("tool", '[f] 21\n{"b": 2}\n[image: png, 3 B]'),
            ("error", "[f] no"),
        ]
        assert extract([calls, results]).omitted == {"reasoning": 1, "notice": 1}

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            (
                {"document": {"name": "D", "format": "txt", "source": {"bytes": "AAAA"}}},
                "[document: D, txt, 3 B]",
            ),
            ({"document": {"name": "D", "format": "txt", "source": {"text": "The words."}}}, "The words."),
            (
                {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/v.mp4"}}}},
                "[video: mp4, s3://b/v.mp4]",
            ),
            ({"image": None}, "[image]"),
            ({"guardContent": {"text": {"text": "Looked at.", "qualifiers": ["query"]}}}, "Looked at."),
            (
                {"guardContent": {"image": {"format": "png", "source": {"bytes": "AAAA"}}}},
                "[image: png, 3 B]",
            ),
        ],
    )
    def test_media(self, part, expected):
        assert only({"role": "user", "content": [part]}).content == expected

    def test_a_whole_reply(self):
        message = {"role": "assistant", "content": [{"text": "Hello."}]}
        assert told({"output": {"message": message}, "stopReason": "end_turn"}) == [("assistant", "Hello.")]
