"""JSON values from bytes: lines and documents, told apart by content, never more than the limit held."""

from __future__ import annotations

import gzip
import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.records.streams import DOCUMENT, LINES, Values
from conversations.records.values import Fault, Value
from mirix.text import clean_text

KEYS = st.text(max_size=3).map(clean_text)
"""Two keys that become one are a fault of their own."""
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
CONTAINER = st.lists(JSON, min_size=1, max_size=3) | st.dictionaries(KEYS, JSON, max_size=3)


def read(data: bytes | str, limit: int = 1_000_000) -> tuple[str, list[Any]]:
    """The form of a source and what it holds: data of values, faults as they are."""
    values = Values(BytesIO(data if isinstance(data, bytes) else data.encode()), limit=limit)
    found = [value.data if isinstance(value, Value) else value for value in values]
    return values.form, found


class TestForm:
    @pytest.mark.parametrize(
        ("text", "form", "values"),
        [
            ('{"a": 1}\n{"a": 2}\n', LINES, [{"a": 1}, {"a": 2}]),
            ('{"a": 1}', LINES, [{"a": 1}]),
            ("[1, 2]\n[3]\n", LINES, [[1, 2], [3]]),
            ("[1, 2]", DOCUMENT, [1, 2]),
            ("[\n1,\n2\n]\n", DOCUMENT, [1, 2]),
            ('[\n{"a": 1}\n]', DOCUMENT, [{"a": 1}]),
            ('{\n  "a": [1,\n 2]\n}\n', DOCUMENT, [{"a": [1, 2]}]),
            ('{\n"a": 1\n}\n{\n"a": 2\n}\n', DOCUMENT, [{"a": 1}, {"a": 2}]),
            ('[{"a": 1},\n {"a": 2}]', DOCUMENT, [{"a": 1}, {"a": 2}]),
            ("[]", DOCUMENT, []),
            ("", LINES, []),
            (" \n\n", LINES, []),
        ],
    )
    def test_by_content(self, text, form, values):
        assert read(text) == (form, values)

    def test_a_byte_order_mark_and_blank_lines_do_not_count(self):
        assert read(b'\xef\xbb\xbf\n{"a": 1}\r\n\n{"a": 2}') == (LINES, [{"a": 1}, {"a": 2}])
        assert read(b"\xef\xbb\xbf[\n1]") == (DOCUMENT, [1])

    def test_a_first_line_that_was_cut_does_not_hide_the_others(self):
        form, (fault, value) = read('{"a": "x\n{"a": 2}\n')
        assert (form, fault.line, value) == (LINES, 1, {"a": 2})

    @given(st.lists(CONTAINER, max_size=5))
    def test_lines_give_back_what_was_written(self, values):
        text = "".join(json.dumps(value) + "\n" for value in values)
        form, found = read(text)
        assert found == (values[0] if form == DOCUMENT else values)

    @given(st.lists(JSON, max_size=5), st.sampled_from([None, 1]))
    def test_documents_give_back_what_was_written(self, values, indent):
        assert read(json.dumps(values, indent=indent)) == (DOCUMENT, values)


class TestFaults:
    def test_a_broken_line_costs_only_itself(self):
        _, found = read('{"a": 1}\n{"a": nope}\n\n{"a": 3}\n')
        assert found[0] == {"a": 1}
        assert isinstance(found[1], Fault)
        assert found[1].line == 2
        assert found[1].reason.startswith("not valid JSON: Expecting value")
        assert found[2] == {"a": 3}

    def test_what_is_broken_in_a_list_ends_it_and_what_came_before_stays(self):
        form, found = read('[\n{"a": 1},\n{"a": nope},\n{"a": 3}\n]')
        assert form == DOCUMENT
        assert found == [
            {"a": 1},
            Fault(line=3, reason="not valid JSON: Expecting value; the rest of the file is left out"),
        ]

    def test_a_refused_item_of_a_list_costs_only_itself(self):
        _, found = read('[\n{"a": 1, "a": 2},\n{"a": 3}]')
        assert found == [
            Fault(line=2, reason="not valid JSON: the key 'a' stands twice in one object"),
            {"a": 3},
        ]

    @pytest.mark.parametrize("text", ['[\n{"a": 1', "[\n1 2]", "[\n1,]", "[\n1", "[\n"])
    def test_a_list_without_its_end_is_a_fault(self, text):
        _, found = read(text)
        assert isinstance(found[-1], Fault) or text == "[\n"

    @pytest.mark.parametrize("text", [b"[" * 100_000, b"[\n" + b"[" * 100_000])
    def test_deep_nesting(self, text):
        _, found = read(text)
        assert len(found) == 1
        assert "nested too deeply" in found[0].reason

    def test_a_number_that_nobody_can_hold(self):
        for text in ("[\n" + "1" * 50_000 + "]", '{"a": ' + "1" * 50_000 + "}"):
            _, [fault] = read(text)
            assert fault.reason.startswith("not valid JSON: Exceeds the limit")

    def test_many_blank_lines_count_and_cost_nothing(self):
        _, found = read(b"\n" * 200_000 + b"nope\n" + b"\n" * 200_000 + b'{"a": 1}')
        assert (found[0].line, found[1]) == (200_001, {"a": 1})

    def test_a_document_that_is_not_utf_8(self):
        _, found = read(b'[\n"a",\n"\xff"]')
        assert "not UTF-8" in found[-1].reason


class TestLimit:
    def test_a_line_beyond_it_is_refused_and_the_next_is_read(self):
        _, found = read('{"a": "' + "x" * 200_000 + '"}\n{"a": 2}\n', limit=1_000)
        assert found == [
            Fault(line=1, reason="larger than 0.001 MB, the limit for one session"),
            {"a": 2},
        ]

    def test_a_list_in_one_line_may_be_longer_than_it(self):
        values = [{"a": "x" * 500} for _ in range(1_000)]
        assert read(json.dumps(values), limit=200_000) == (DOCUMENT, values)

    def test_an_item_beyond_it_is_refused(self):
        form, found = read("[\n1,\n" + json.dumps("x" * 500_000) + "]", limit=100_000)
        assert form == DOCUMENT
        assert found[0] == 1
        assert found[1].reason.startswith("larger than 0.1 MB")


class TestGzip:
    def test_it_is_unpacked_whatever_its_name(self):
        assert read(gzip.compress(b'{"a": 1}\n{"a": 2}\n')) == (LINES, [{"a": 1}, {"a": 2}])

    def test_a_broken_one_is_a_fault(self):
        packed = gzip.compress(b'{"a": 1}\n' * 10_000)
        for broken in (packed[:-20], packed[:20] + b"xxxx" + packed[24:]):
            _, found = read(broken)
            assert found[-1].line == 0
            assert found[-1].reason.startswith("cannot be unpacked")

    def test_a_stream_is_not_closed(self):
        stream = BytesIO(b'{"a": 1}')
        list(Values(stream, limit=100))
        assert not stream.closed
