"""The OpenAI chat family, message by message: the exact turn, or the exact reason for none."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import call, only, reason, told

EXPECTED = "expected an object with “role” and “content”, or another shape of docs/shapes.md"
PNG = base64.b64encode(b"\x89PNG" + bytes(1_020)).decode()


class TestContent:
    @pytest.mark.parametrize("role", ["user", "assistant"])
    def test_a_string_is_kept_word_for_word(self, role):
        turn = only({"role": role, "content": "  Two\r\nlines,\tkept. "})
        assert (turn.role, turn.content) == (role, "  Two\r\nlines,\tkept. ")

    def test_text_parts_of_every_name_are_joined_by_lines(self):
        parts = [
            {"type": "text", "text": "one"},
            {"type": "input_text", "text": "two"},
            {"type": "output_text", "text": "three", "annotations": []},
            "four",
            {"text": "five"},
            {"type": "text", "text": {"value": "six"}},
        ]
        assert only({"role": "user", "content": parts}).content == "one\ntwo\nthree\nfour\nfive\nsix"

    def test_a_single_part_where_a_list_was_asked_for(self):
        assert only({"role": "user", "content": {"type": "text", "text": "hello"}}).content == "hello"

    @pytest.mark.parametrize(
        "message",
        [
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot do that."}]},
            {"role": "assistant", "content": None, "refusal": "I cannot do that."},
            {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "I cannot do that."}},
        ],
    )
    def test_refusals_and_spoken_words_are_text(self, message):
        assert only(message).content == "I cannot do that."

    @pytest.mark.parametrize("content", [None, "", "  \n", [], [None], [{"type": "text", "text": ""}]])
    def test_a_message_without_text_is_empty(self, content):
        assert reason({"role": "user", "content": content}) == "empty message"

    def test_a_message_without_the_key_content_is_empty(self):
        assert reason({"role": "assistant"}) == "empty message"

    @pytest.mark.parametrize(
        "message",
        [
            {"role": "assistant", "content": None, "reasoning_content": "Let me think."},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Let me think."}]},
            {"role": "assistant", "content": "", "reasoning": "Let me think."},
        ],
    )
    def test_reasoning_alone_is_left_out(self, message):
        assert reason(message) == "reasoning only"

    def test_reasoning_beside_an_answer_is_left_out(self):
        message = {
            "role": "assistant",
            "reasoning_content": "secret",
            "content": [{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "Four."}],
        }
        assert only(message).content == "Four."

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            (
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                "[image: image/png, 1.0 KB]",
            ),
            (
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png?sig=secret#x"}},
                "[image: https://example.org/a.png]",
            ),
            (
                {"type": "image_url", "image_url": "https://example.org/a.png"},
                "[image: https://example.org/a.png]",
            ),
            ({"type": "input_image", "file_id": "file-1"}, "[image: file-1]"),
            ({"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}}, "[audio: wav, 1.0 KB]"),
            (
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"},
                },
                "[file: a.pdf, application/pdf, 1.0 KB]",
            ),
            ({"type": "file", "file": {"file_id": "file-1"}}, "[file: file-1]"),
            (
                {"type": "document_url", "document_url": "https://example.org/b.pdf"},
                "[document: https://example.org/b.pdf]",
            ),
            ({"type": "image_url", "image_url": None}, "[image]"),
        ],
    )
    def test_media_become_a_placeholder_and_never_base64(self, part, expected):
        assert only({"role": "user", "content": [part]}).content == expected
        assert only({"role": "user", "content": ["See:", part]}).content == f"See:\n{expected}"

    def test_an_unknown_part_leaves_a_marker_beside_what_is_known(self):
        content = [{"type": "text", "text": "Look."}, {"type": "hologram", "data": "…"}]
        assert only({"role": "user", "content": content}).content == (
            "Look.\n[unknown content part “hologram”, left out]"
        )

    @pytest.mark.parametrize(
        ("content", "named"),
        [
            ([{"type": "hologram"}], "“hologram”"),
            (5, "“a number”"),
            (True, "“a boolean”"),
            ([["nested"]], "“a list”"),
            ({"foo": 1}, "“object without a type”"),
            ([{"type": "text", "text": 5}], "“text”"),
        ],
    )
    def test_content_that_nobody_knows_is_reported_with_what_was_expected(self, content, named):
        assert reason({"role": "user", "content": content}) == (
            f"unknown content: {named}; expected a string or a list of text, image, audio and file parts"
        )

    def test_the_report_on_unknown_parts_stays_short(self):
        content = [{"type": f"hologram {number}"} for number in range(10_000)]
        assert len(reason({"role": "user", "content": content})) < 200


class TestRoles:
    @pytest.mark.parametrize(
        ("role", "expected"), [("system", "system message"), ("developer", "developer message")]
    )
    def test_instructions_of_the_operator_are_left_out(self, role, expected):
        assert reason({"role": role, "content": "Be brief."}) == expected

    def test_agent_is_another_word_for_assistant(self):
        assert only({"role": "agent", "content": "Going north."}).role == "assistant"

    @pytest.mark.parametrize(
        ("role", "expected"),
        [("narrator", "unknown role “narrator”"), (None, "the role is null"), (7, "the role is a number")],
    )
    def test_an_unknown_role_is_named(self, role, expected):
        assert reason({"role": role, "content": "x"}) == (
            f"{expected}; expected system, developer, user, assistant, tool or function"
        )

    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            ("hi", f"{EXPECTED}, got a string"),
            (None, f"{EXPECTED}, got null"),
            ([], f"{EXPECTED}, got a list"),
            ({}, f"{EXPECTED}, got an object with nothing"),
            (
                {"speaker": "a", "parts": []},
                EXPECTED + ", got an object with “speaker”, “parts”",
            ),
        ],
    )
    def test_an_unknown_shape_is_named(self, message, expected):
        assert reason(message) == expected

    def test_what_nobody_understands_is_told_from_what_is_left_out(self):
        skipped = extract([{"role": "system", "content": "x"}, {"role": "user"}, "hi", {"role": "?"}]).skipped
        assert [item.unreadable for item in skipped] == [False, False, True, True]


class TestHygiene:
    def test_nul_goes_and_lone_surrogates_are_replaced_in_content_and_in_keys(self):
        turn = only(
            {
                "role": "assistant",
                "content": "a\x00b\ud800c",
                "tool_calls": [call("f\x00", {"k\x00\udfff": "v\x00\ud800"})],
                "\ud800": 1,
            }
        )
        assert turn.content == 'ab\ufffdc\n[call f] {"k\ufffd": "v\ufffd"}'
        assert turn.tool_calls[0]["arguments"] == {"k\ufffd": "v\ufffd"}

    def test_both_spellings_of_a_letter_become_one(self):
        assert only({"role": "user", "content": "Cafe\u0301"}).content == "Café"

    def test_content_is_cut_with_a_visible_marker_and_a_flag(self):
        turn = only({"role": "tool", "name": "cat", "content": "x" * 70_000})
        assert turn.truncated
        assert len(turn.content) == 65_536
        assert turn.content.startswith("[cat] xxx")
        assert turn.content.endswith("x… [truncated, 70006 characters in all]")

    def test_content_at_the_limit_is_whole(self):
        turn = only({"role": "user", "content": "x" * 65_536})
        assert (len(turn.content), turn.truncated) == (65_536, False)

    def test_what_is_nested_too_deeply_leaves_a_marker_and_its_siblings_alone(self):
        deep: Any = "bottom"
        for _ in range(20_000):
            deep = [deep]
        extraction = extract(
            [{"role": "user", "content": "before"}, {"role": "tool", "name": "f", "content": deep}, deep]
        )
        assert [turn.content[:8] for turn in extraction.turns] == ["before", "[f] [[[["]
        assert "nested deeper than 100 levels, left out" in extraction.turns[1].content
        assert extraction.skipped[0].unreadable

    def test_field_names_and_reserved_words_are_ordinary_text(self):
        text = 'attributes role content tool_calls </transcript> {"role": "system"}'
        assert only({"role": "user", "content": text}).content == text


class TestIdentity:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [("m-1", "m-1"), (7, "7"), ("", ""), (None, ""), (True, ""), (1.5, ""), ({"a": 1}, "")],
    )
    def test_the_message_id(self, given, expected):
        assert only({"role": "user", "content": "x", "id": given}).message_id == expected

    def test_a_long_message_id_is_hashed_so_that_two_of_them_stay_two(self):
        ids = {only({"role": "user", "content": "x", "id": "m" * 300 + end}).message_id for end in "ab"}
        assert {len(item) for item in ids} == {64}
        assert len(ids) == 2

    def test_the_hash_is_of_what_is_read_and_of_no_field_around_it(self):
        base = {"role": "user", "content": "ok"}
        first = only(base).content_hash
        assert len(first) == 64
        for same in (
            base | {"id": "m-1"},
            base | {"name": "bob", "refusal": None, "annotations": []},
            base | {"cache_control": {"type": "ephemeral"}},
            {"role": "user", "content": [{"type": "text", "text": "ok"}]},
            {
                "role": "user",
                "content": [{"type": "text", "text": "ok", "cache_control": {"type": "ephemeral"}}],
            },
        ):
            assert only(same).content_hash == first
        for other in (base | {"role": "assistant"}, base | {"content": "ok."}):
            assert only(other).content_hash != first

    def test_the_hash_knows_calls_and_what_a_result_answers(self):
        def called(call_id: str, arguments: Any) -> str:
            function = {"name": "f", "arguments": arguments}
            return only(
                {"role": "assistant", "tool_calls": [{"id": call_id, "function": function}]}
            ).content_hash

        assert called("c-1", '{"a": 1, "b": 2}') == called("c-1", {"b": 2.0, "a": 1})
        assert len({called("c-1", '{"a": 1}'), called("c-1", '{"a": 2}'), called("c-2", '{"a": 1}')}) == 3
        result = {"role": "tool", "content": "done", "tool_call_id": "c-1"}
        assert only(result).content_hash == only(result | {"name": "f"}).content_hash
        assert only(result).content_hash != only(result | {"tool_call_id": "c-2"}).content_hash

    def test_the_hash_knows_what_is_cut_from_a_text(self):
        long = [{"role": "user", "content": "x" * 70_000 + end} for end in "ab"]
        assert only(long[0]).content_hash != only(long[1]).content_hash

    def test_the_hash_survives_the_database_spelling_of_numbers_and_keys(self):
        first = {"role": "tool", "content": {"b": 1e22, "a": 2.0}}
        second = {"content": {"a": 2, "b": 10_000_000_000_000_000_000_000}, "role": "tool"}
        assert only(first).content_hash == only(second).content_hash


class TestOmitted:
    def test_what_is_left_out_of_a_message_with_a_turn_is_counted(self):
        thought = {"role": "assistant", "content": "Four.", "reasoning_content": "2 + 2 is 4."}
        parts = [
            {"type": "thinking", "thinking": "…"},
            {"type": "hologram"},
            {"type": "text", "text": "Five."},
        ]
        extraction = extract([thought, {"role": "assistant", "content": parts}])
        assert extraction.left_out == {0: {"reasoning": 1}, 1: {"reasoning": 1, "unknown content": 1}}
        assert extraction.omitted == {"reasoning": 2, "unknown content": 1}

    def test_what_is_skipped_has_its_reason_and_is_not_counted_twice(self):
        thought = {"role": "assistant", "content": None, "reasoning_content": "2 + 2 is 4."}
        assert extract([thought, {"role": "system", "content": "Be brief."}]).omitted == {}


class TestNothingReadableIsLost:
    def test_an_error_beside_no_content_is_what_the_tool_returned(self):
        turn = only({"role": "tool", "tool_call_id": "z", "name": "f", "error": "only error"})
        assert (turn.content, turn.is_error) == ("[f] only error", True)

    def test_an_error_beside_content_is_said_too(self):
        turn = only({"role": "tool", "name": "f", "content": "x", "error": {"message": "oops detail"}})
        assert (turn.content, turn.is_error) == ('[f] x\n{"message": "oops detail"}', True)

    def test_other_fields_of_a_result_without_content_are_its_output(self):
        turn = only(
            {"role": "tool", "name": "f", "content": "", "stderr": "no such file", "tool_call_ids": ["1"]}
        )
        assert turn.content == '[f] {"stderr": "no such file"}'

    @pytest.mark.parametrize(
        ("fields", "content"),
        [
            ({"stderr": "denied"}, '{"stderr": "denied"}'),
            ({"content": "x", "stderr": "denied"}, 'x\n{"stderr": "denied"}'),
            ({"content": "x", "output": "y"}, 'x\n{"output": "y"}'),
            ({"content": "x", "shown": {"as": ["two words"]}}, 'x\n{"shown": {"as": ["two words"]}}'),
            ({"content": "x", "error": "bad", "hint": "retry"}, 'x\nbad\n{"hint": "retry"}'),
        ],
    )
    def test_words_in_any_field_of_a_result_are_told(self, fields, content):
        assert only({"role": "tool", "name": "f"} | fields).content == f"[f] {content}"

    @pytest.mark.parametrize(
        "fields",
        [
            {"output": "x"},
            {"shown": "plain"},
            {"requestId": "a b", "created_at": "1 May", "encrypted_note": "a b", "metadata": {"a": "b c"}},
            {"rows": [1, 2]},
        ],
    )
    def test_a_repetition_and_what_is_no_words_are_not(self, fields):
        assert only({"role": "tool", "name": "f", "content": "x"} | fields).content == "[f] x"

    def test_an_error_in_a_field_that_nobody_reads_fails_the_result(self):
        part = {"type": "tool_result", "tool_use_id": "t", "content": "x", "error": "bad", "stderr": "denied"}
        turn = only({"role": "user", "content": [part]})
        assert (turn.content, turn.is_error) == ('[tool] x\nbad\n{"stderr": "denied"}', True)

    @pytest.mark.parametrize(
        "message",
        [
            {"type": "function_call_output", "call_id": "a", "stderr": "denied"},
            {"type": "function.result", "tool_call_id": "a", "stderr": "denied"},
            {"type": "tool", "tool_call_id": "a", "content": "", "stderr": "denied"},
            {"type": "agent.tool_result", "tool_use_id": "a", "stderr": "denied"},
            {"type": "tool.execution_complete", "data": {"toolCallId": "a", "stderr": "denied"}},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "stderr": "denied"}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "stderr": "denied"}}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a", "stderr": "denied"}]},
            {"role": "user", "parts": [{"functionResponse": {"stderr": "denied"}}]},
            {"kind": "request", "parts": [{"part_kind": "tool-return", "content": "", "stderr": "denied"}]},
            {"type": "message", "message": {"role": "toolResult", "stderr": "denied"}},
        ],
    )
    def test_so_it_is_in_every_family(self, message):
        assert only(message).content == '[tool] {"stderr": "denied"}'

    @pytest.mark.parametrize("role", ["tool", "TOOL", "user"])
    def test_the_results_of_coheres_tools_are_a_turn_each(self, role):
        calls = [{"name": name, "parameters": {"a": 1}} for name in "fg"]
        asked = {"role": "assistant", "content": "", "tool_calls": calls}
        results = [
            {"call": calls[0], "outputs": [{"sum": 3}]},
            {"call": calls[1], "outputs": [{"a": "b"}, {"c": "d"}]},
        ]
        assert told(asked, {"role": role, "tool_results": results})[1:] == [
            ("tool", '[f] {"sum": 3}'),
            ("tool", '[g] [{"a": "b"}, {"c": "d"}]'),
        ]

    def test_a_result_that_is_empty_stays_empty(self):
        assert (
            only({"role": "tool", "name": "f", "content": None, "error": None}).content == "[f] (no output)"
        )

    def test_words_in_a_part_of_an_unknown_type_are_read(self):
        parts = [{"type": "mystery", "text": "readable words that matter"}, {"type": "text", "text": "hi"}]
        assert only({"role": "user", "content": parts}).content == "[mystery] readable words that matter\nhi"

    def test_a_call_that_is_said_in_two_ways_is_one(self):
        part = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
        twice = {"role": "assistant", "content": [part], "tool_calls": [call("f", {"x": 1}, "a")]}
        assert [made["id"] for made in only(twice).tool_calls] == ["a"]
        older = {"name": "f", "arguments": "{}"}
        both = {"role": "assistant", "tool_calls": [call("f", "{}", "a")], "function_call": older}
        assert [made["name"] for made in only(both).tool_calls] == ["f"]

    @pytest.mark.parametrize(
        "calls",
        [
            '[{"id": "c", "function": {"name": "f", "arguments": "{}"}}]',
            "{'id': 'c', 'name': 'f', 'arguments': {}}",
            [{"id": "c", "tool_name": "f", "arguments": {}}],
            [{"id": "c", "function": "f", "arguments": {}}],
        ],
    )
    def test_calls_as_text_and_under_other_names_keep_their_tool(self, calls):
        turn = only({"role": "assistant", "content": "", "tool_calls": calls})
        assert turn.tool_calls == [{"id": "c", "name": "f", "arguments": {}}]

    def test_calls_and_results_of_haystack(self):
        origin = {"id": "x", "tool_name": "f", "arguments": {"a": 1}}
        results = [
            {"result": "boom", "origin": origin, "error": True},
            {"result": "3", "origin": origin, "error": False},
        ]
        assert told(
            {"role": "assistant", "content": [{"tool_call": origin}]},
            *({"role": "tool", "content": [{"tool_call_result": result}]} for result in results),
        ) == [("assistant", '[call f] {"a": 1}'), ("error", "[f] boom"), ("tool", "[f] 3")]

    def test_older_haystack_puts_a_stroke_before_its_fields(self):
        origin = {"id": "x", "tool_name": "f", "arguments": {"a": 1}}
        called = {"_role": "assistant", "_content": [{"text": "Hi"}, {"tool_call": origin}]}
        result = {"tool_call_result": {"result": "3", "origin": origin, "error": False}}
        more = {"_name": None, "_meta": {}}
        assert told(called | more, {"_role": "tool", "_content": [result]} | more) == [
            ("assistant", 'Hi\n[call f] {"a": 1}'),
            ("tool", "[f] 3"),
        ]

    @pytest.mark.parametrize(
        ("attachment", "content"),
        [
            ({"name": "a.txt", "content": "readable"}, "[file: a.txt]\nreadable"),
            ({"text": "readable"}, "[file]\nreadable"),
            ({"name": "b.pdf", "url": "https://e.org/b.pdf"}, "[file: b.pdf, https://e.org/b.pdf]"),
            ({"type": "image_url", "image_url": "https://e.org/c.png"}, "[image: https://e.org/c.png]"),
        ],
    )
    def test_what_is_attached_is_read(self, attachment, content):
        message = {"role": "user", "content": "", "attachments": [attachment]}
        assert only(message).content == content
        assert only(message | {"content": "hi"}).content == f"hi\n{content}"

    @pytest.mark.parametrize(
        "thought",
        [
            "abc</think>",
            "abc\n</think>\n\n",
            "[THINK]abc[/THINK]",
            "<reasoning>abc</reasoning>",
            "<think>a<think>b</think>c</think>",
        ],
    )
    def test_thoughts_of_every_template_are_left_out(self, thought):
        assert only({"role": "assistant", "content": f"{thought}answer"}).content == "answer"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "<|channel|>analysis<|message|>a < b<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
                ["Yes."],
            ),
            (
                "<|channel|>commentary<|message|>one<|channel|>final <|constrain|>json<|message|>2<|return|>",
                ["one\n\n2"],
            ),
            ("<|channel|>analysis<|message|>hm", []),
        ],
    )
    def test_what_is_said_on_the_channel_of_analysis_is_left_out(self, text, said):
        extraction = extract([{"role": "assistant", "content": text}])
        assert [turn.content for turn in extraction.turns] == said

    def test_markers_of_channels_without_end_cost_no_more_than_their_length(self):
        for text in (
            "<|channel|>a<|message|>" * 50_000,
            "<|channel|>" + "a" * 1_000_000,
            "<|channel|>a" * 50_000,
        ):
            assert len(extract([{"role": "assistant", "content": text}]).turns) <= 1

    @pytest.mark.parametrize(
        "text",
        [
            "End with `</think>` always",
            "A <think>tag</think>s",
            "[THINKER] x",
            "Write <|channel|>analysis<|message|>a<|end|> first",
        ],
    )
    def test_what_is_said_about_thoughts_stays(self, text):
        assert only({"role": "assistant", "content": text}).content == text

    def test_two_calls_that_are_alike_are_two(self):
        turn = only({"role": "assistant", "tool_calls": [call("f", "{}", "a"), call("f", "{}", "b")]})
        assert [made["id"] for made in turn.tool_calls] == ["a", "b"]
