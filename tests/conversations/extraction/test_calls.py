"""Calls of tools and what the tools returned: the exact line, the data beside it, the name found again."""

from __future__ import annotations

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import call, only


class TestCalls:
    def test_a_call_is_a_line_with_its_arguments_verbatim_and_data_beside_it(self):
        turn = only(
            {"role": "assistant", "content": None, "tool_calls": [call("get_order", '{"id":  "A-1"}')]}
        )
        assert turn.content == '[call get_order] {"id":  "A-1"}'
        assert turn.tool_calls == [{"id": "call_1", "name": "get_order", "arguments": {"id": "A-1"}}]

    @pytest.mark.parametrize("message", [{}, {"content": None}, {"content": ""}, {"content": []}])
    def test_a_call_alone_makes_a_turn_whatever_the_content_is(self, message):
        turn = only({"role": "assistant", "tool_calls": [call("f", "{}")]} | message)
        assert turn.content == "[call f] {}"

    def test_parallel_calls_follow_the_text_in_their_order(self):
        calls = [call("f", '{"n": 1}', "a"), call("f", '{"n": 2}', "b")]
        turn = only({"role": "assistant", "content": "Both:", "tool_calls": calls})
        assert turn.content == 'Both:\n[call f] {"n": 1}\n[call f] {"n": 2}'
        assert [item["id"] for item in turn.tool_calls] == ["a", "b"]

    def test_arguments_as_an_object(self):
        turn = only({"role": "assistant", "tool_calls": [call("f", {"city": "Kraków", "n": [1, None]})]})
        assert turn.content == '[call f] {"city": "Kraków", "n": [1, null]}'
        assert turn.tool_calls[0]["arguments"] == {"city": "Kraków", "n": [1, None]}

    @pytest.mark.parametrize("arguments", ['{"a": ', "not json", "5", '"text"', "[" * 5_000])
    def test_arguments_that_are_no_object_stay_text(self, arguments):
        turn = only({"role": "assistant", "tool_calls": [call("f", arguments)]})
        assert turn.content == f"[call f] {arguments}"
        assert turn.tool_calls[0]["arguments"] == arguments

    @pytest.mark.parametrize(("arguments", "data"), [(None, {}), ("", "")])
    def test_a_call_without_arguments(self, arguments, data):
        turn = only({"role": "assistant", "tool_calls": [call("f", arguments)]})
        assert (turn.content, turn.tool_calls[0]["arguments"]) == ("[call f]", data)

    def test_not_a_number_in_arguments_becomes_null_in_the_data(self):
        turn = only({"role": "assistant", "tool_calls": [call("f", '{"a": NaN}')]})
        assert turn.content == '[call f] {"a": NaN}'
        assert turn.tool_calls[0]["arguments"] == {"a": None}

    def test_the_older_function_call(self):
        turn = only(
            {
                "role": "assistant",
                "content": "Looking.",
                "function_call": {"name": "find", "arguments": '{\n  "q": 1\n}'},
            }
        )
        assert turn.content == 'Looking.\n[call find] {\n  "q": 1\n}'
        assert turn.tool_calls == [{"id": "", "name": "find", "arguments": {"q": 1}}]

    def test_a_custom_tool_and_a_flat_call(self):
        custom = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
        flat = {"id": "c2", "name": "add", "args": {"a": 1}}
        turn = only({"role": "assistant", "tool_calls": [custom, flat]})
        assert turn.content == '[call sql] select 1\n[call add] {"a": 1}'

    def test_a_single_call_where_a_list_was_asked_for(self):
        assert only({"role": "assistant", "tool_calls": call("f", "{}")}).content == "[call f] {}"

    @pytest.mark.parametrize(
        ("raw", "line"),
        [
            ({"id": "x"}, "[call]"),
            ("do it", "[call] do it"),
            ({"function": {"arguments": "{}"}}, "[call] {}"),
            ({"function": {"name": 7, "arguments": "{}"}}, "[call 7] {}"),
        ],
    )
    def test_a_malformed_call_is_kept_as_far_as_it_goes(self, raw, line):
        assert only({"role": "assistant", "tool_calls": [raw]}).content == line

    def test_the_calls_as_data_are_bounded_as_a_whole(self):
        big = {"text": "x" * 40_000}
        turn = only({"role": "assistant", "tool_calls": [call("f", big, "a"), call("g", big, "b")]})
        assert turn.truncated
        assert turn.tool_calls[0]["arguments"] == big
        cut = turn.tool_calls[1]["arguments"]
        assert isinstance(cut, str)
        assert cut.endswith("… [truncated, 40012 characters in all]")

    def test_ten_thousand_calls_do_not_pass_the_bound_either(self):
        turn = only({"role": "assistant", "tool_calls": [call("f", "{}", f"{n}") for n in range(10_000)]})
        assert turn.truncated
        assert len(turn.tool_calls) == 1_708
        assert len(turn.content) == 65_536


class TestResults:
    CALL = {"role": "assistant", "tool_calls": [call("get_order", "{}", "c1"), call("pay", "{}", "c2")]}

    def test_the_name_of_the_tool_stands_in_front(self):
        turn = only({"role": "tool", "name": "pay", "tool_call_id": "c2", "content": "done"})
        assert (turn.role, turn.content) == ("tool", "[pay] done")
        assert (turn.tool_name, turn.tool_call_id) == ("pay", "c2")

    def test_a_missing_name_comes_from_the_call(self):
        turn = only({"role": "tool", "tool_call_id": "c2", "content": "done"}, self.CALL)
        assert (turn.content, turn.tool_name) == ("[pay] done", "pay")

    def test_a_name_comes_from_a_call_of_an_earlier_request(self):
        turn = extract([{"role": "tool", "tool_call_id": "c9", "content": "done"}], {"c9": "pay"}).turns[0]
        assert (turn.content, turn.tool_name) == ("[pay] done", "pay")

    def test_call_ids_as_a_list(self):
        turn = only({"role": "tool", "tool_call_ids": ["c2"], "content": "done"}, self.CALL)
        assert (turn.tool_name, turn.tool_call_id) == ("pay", "c2")

    def test_a_repeated_id_means_the_latest_call(self):
        messages = [
            {"role": "assistant", "tool_calls": [call("first", "{}", "same")]},
            {"role": "tool", "tool_call_id": "same", "content": "1"},
            {"role": "assistant", "tool_calls": [call("second", "{}", "same")]},
            {"role": "tool", "tool_call_id": "same", "content": "2"},
        ]
        assert [t.tool_name for t in extract(messages).turns if t.role == "tool"] == ["first", "second"]

    def test_an_id_repeated_within_one_message_is_taken_in_order(self):
        messages = [
            {"role": "assistant", "tool_calls": [call("first", "{}", "same"), call("second", "{}", "same")]},
            {"role": "tool", "tool_call_id": "same", "content": "1"},
            {"role": "tool", "tool_call_id": "same", "content": "2"},
        ]
        assert [t.tool_name for t in extract(messages).turns if t.role == "tool"] == ["first", "second"]

    @pytest.mark.parametrize("missing", [{}, {"id": None}, {"id": ""}])
    def test_without_ids_results_follow_the_order_of_the_calls(self, missing):
        calls = [call("first", "{}"), call("second", "{}")]
        for item in calls:
            del item["id"]
            item.update(missing)
        messages = [
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "", "content": "1"},
            {"role": "tool", "content": "2"},
            {"role": "tool", "content": "3"},
        ]
        assert [t.content for t in extract(messages).turns[1:]] == ["[first] 1", "[second] 2", "[tool] 3"]

    def test_a_name_without_an_id_finds_its_call(self):
        messages = [self.CALL, {"role": "tool", "name": "pay", "content": "done"}]
        assert extract(messages).turns[1].tool_call_id == "c2"

    def test_the_role_function(self):
        turn = only({"role": "function", "name": "find", "content": "3 hits"})
        assert (turn.role, turn.content) == ("tool", "[find] 3 hits")

    @pytest.mark.parametrize("content", [None, "", " ", []])
    def test_a_result_without_output_is_a_turn_that_says_so(self, content):
        turn = only({"role": "tool", "tool_call_id": "c2", "content": content}, self.CALL)
        assert (turn.content, turn.is_error) == ("[pay] (no output)", False)

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ({"a": [1, "é"]}, '{"a": [1, "é"]}'),
            (22, "22"),
            ([1, 2], "[1, 2]"),
            ([{"type": "text", "text": "22"}], "22"),
            ([{"text": "22"}], "22"),
            ([{"text": "a", "price": 3}], '[{"text": "a", "price": 3}]'),
            ({"text": "a", "price": 3}, '{"text": "a", "price": 3}'),
            ({"content": [{"type": "text", "text": "22"}], "isError": False}, "22"),
        ],
    )
    def test_any_json_may_be_a_result(self, content, text):
        assert only({"role": "tool", "name": "f", "content": content}).content == f"[f] {text}"

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"is_error": True}, True),
            ({"isError": True}, True),
            ({"error": "no such order"}, True),
            ({"error": {"code": 404}}, True),
            ({"status": "error"}, True),
            ({"error": None, "status": "success"}, False),
            ({"is_error": False}, False),
            ({}, False),
        ],
    )
    def test_what_the_message_says_of_itself(self, fields, expected):
        assert only({"role": "tool", "name": "f", "content": "nothing"} | fields).is_error is expected

    def test_the_answer_of_a_tool_that_says_of_itself_that_it_is_an_error(self):
        answer = {"content": [{"type": "text", "text": "nothing"}], "isError": True}
        assert only({"role": "tool", "name": "f", "content": answer}).is_error is True

    def test_the_word_of_the_message_goes_before_its_text(self):
        message = {"role": "tool", "name": "f", "content": "Error: none found", "is_error": False}
        assert only(message).is_error is False

    @pytest.mark.parametrize("role", ["user", "assistant"])
    def test_only_results_of_tools_are_errors(self, role):
        assert only({"role": role, "content": "Error: it does not start"}).is_error is False
