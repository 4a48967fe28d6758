"""SKILL.md as a format: bytes that every reader takes, nothing lost, and tolerance for what is found."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import pytest
import strictyaml
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from skills_ref.parser import parse_frontmatter
from skills_ref.validator import validate_metadata

from mirix.text import clean_json, clean_text
from skills.content import Content
from skills.interop.frontmatter import Unreadable
from skills.interop.skill_md import FIELDS, SkillFile, parse, render
from tests.data import shared
from tests.factories import make_content

HOSTILE = [
    "a: b",
    "---",
    "a --- b",
    "\n---\n",
    "\"quoted\" and 'single'",
    "back\\slash \\u0041 \\",
    "# comment",
    "- item",
    "{flow: map}",
    "[list]",
    "&anchor *alias !!python/object:os.system",
    "% directive",
    "| > |- >-",
    "null",
    "true",
    "1e5",
    "\u202eright to left\u202c",
    "שלום עולם",
    "技能 🛠️ \U000e0041",
    "zero\u200bwidth\u2060\ufeff",
    "line\u2028separator\u2029\x85\x0b\x0c",
    "tab\tand\r\ncarriage\rreturn",
    "  blanks around  ",
    "<b>tags</b> & </transcript>",
    "e<\u0301",
    ">\u0338",
    "\x1b[31mred\x07\x7f\x9f",
    "\ufffe\uffff\xa0",
    "## Examples",
    "\n## Examples\n\n### Example 1\n\n- **a**: b\n",
    "$(rm -rf /) `id` {{ 7*7 }} {% now %}",
    "../../etc/passwd",
    "'; DROP TABLE skills; --",
]
texts = (
    st.text(max_size=80) | st.sampled_from(HOSTILE) | st.lists(st.sampled_from(HOSTILE)).map("".join)
).map(clean_text)
filled = texts.filter(str.strip)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
names = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True)
contents = st.builds(
    Content,
    name=names,
    description=filled.map(lambda text: text[:1024]) | st.just("é" * 1024) | st.just("<" * 1024),
    instructions=filled,
    entry_type=st.sampled_from(["workflow", "guide", "script"]),
    triggers=st.lists(filled.map(lambda text: text[:512]).filter(str.strip), max_size=3),
    examples=st.lists(st.dictionaries(texts, values, max_size=3), max_size=3).map(clean_json),
    filter_tags=st.dictionaries(texts, values, max_size=2)
    .map(clean_json)
    .map(lambda tags: {key: value for key, value in tags.items() if key != "session_id"}),
)
keys = filled.map(lambda text: text.strip()[:100].strip()).filter(
    lambda text: text and not text.startswith("mirix-") and text not in ("triggers",)
)
files = st.builds(
    SkillFile,
    content=contents.filter(lambda content: content.description.strip()),
    provenance=st.fixed_dictionaries(
        {}, optional={"version": st.just("0.1.7"), "revision": st.just("rev-1"), "author": st.just("human")}
    ),
    fields=st.dictionaries(
        st.sampled_from(FIELDS), filled.map(lambda text: text.strip()[:500].strip()).filter(bool), max_size=3
    ),
    metadata=st.dictionaries(keys, texts, max_size=3),
)


def head_of(data: bytes) -> str:
    return data.decode().split("---", 2)[1]


@given(files)
@example(SkillFile(content=make_content(description="d" * 1024, instructions="1. Do.\n")))
def test_out_in_out_is_the_same_bytes(file):
    data = render(file)
    again = parse(data, file.content.name)

    assert again.warnings == []
    assert again.file.content.hash == file.content.hash
    assert render(again.file) == data == render(file)


@given(files)
def test_every_reader_takes_what_is_written(file):
    data = render(file)
    strict = strictyaml.load(head_of(data)).data
    plain = yaml.safe_load(head_of(data))
    metadata, body = parse_frontmatter(data.decode())

    assert validate_metadata(metadata, Path(file.content.name)) == []
    assert strict == plain
    assert strict["name"] == file.content.name
    assert not {"<", ">"} & set(strict["description"])
    assert all(isinstance(value, str) for value in strict.get("metadata", {}).values())
    assert data.startswith(b"---\n")
    assert body.startswith(file.content.instructions.strip()[:20])


def test_what_it_looks_like():
    content = Content(
        name="pay-invoice",
        description="Pay an invoice: use <b>when</b> one is due --- or overdue.",
        instructions="1. Look it up.\n\n## Avoid\n\n- Paying twice.",
        triggers=["pay", 'a "bill"'],
        examples=[{"input": "Pay 17.", "output": {"paid": True}}, {"note": "two\nlines"}],
        filter_tags={"team": "billing"},
    )
    file = SkillFile(
        content=content,
        provenance={"version": "0.1.2", "revision": "rev-1", "author": "llm"},
        fields={"license": "MIT"},
        metadata={"tags": "a, b"},
    )

    assert (
        render(file).decode()
        == r"""---
name: "pay-invoice"
description: "Pay an invoice: use bwhen/b one is due \u002d-- or overdue."
license: "MIT"
metadata:
  "mirix-version": "0.1.2"
  "mirix-entry-type": "workflow"
  "mirix-description": "Pay an invoice: use <b>when</b> one is due \u002d-- or overdue."
  "mirix-triggers": "[\"pay\",\"a \\\"bill\\\"\"]"
  "mirix-examples": "2"
  "mirix-filter-tags": "{\"team\":\"billing\"}"
  "mirix-revision": "rev-1"
  "mirix-author": "llm"
  "tags": "a, b"
---

1. Look it up.

## Avoid

- Paying twice.

## Examples

### Example 1

- **input**: Pay 17.
- **output**: {"paid": true}

### Example 2

- **note**: "two\nlines"
"""
    )
    assert parse(render(file), "pay-invoice").file == file


class TestTolerance:
    """What is odd is a warning; only what cannot be read is refused."""

    def test_a_bare_colon_is_read_as_a_quoted_text(self):
        read = parse(b"---\nname: a\ndescription: Use when: asked\n---\nDo it.\n", "a")

        assert read.file.content.description == "Use when: asked"
        assert len(read.warnings) == 1
        assert "quoted" in read.warnings[0]

    @pytest.mark.parametrize(
        ("given_name", "folder", "name"),
        [
            ("PDF Tools", "", "pdf-tools"),
            ("a_b.c", "", "a-bc"),
            ("../../etc/passwd", "", "etcpasswd"),
            ("Crème brûlée", "", "creme-brulee"),
            ("技能", "the-folder", "the-folder"),
            ("--a--", "", "a"),
            ("x" * 128, "", "x" * 64),
        ],
    )
    def test_a_name_is_made_valid_and_kept(self, given_name, folder, name):
        data = f"---\nname: {json.dumps(given_name)}\ndescription: d\n---\nDo.".encode()
        read = parse(data, folder)

        assert read.file.content.name == name
        assert read.file.metadata["title"] == given_name
        assert read.warnings

    def test_without_any_name_it_is_called_after_its_bytes(self):
        first, second = (parse(b"---\nname: '\xe6\x8a\x80'\ndescription: d\n---\nDo.") for _ in range(2))

        assert first.file.content.name == second.file.content.name
        assert first.file.content.name.startswith("skill-")
        assert len(first.file.content.name) == 14

    @pytest.mark.parametrize(
        "data",
        [
            b"\xef\xbb\xbf---\nname: a\ndescription: d\n---\nDo.\n",
            b"\n\n---\nname: a\ndescription: d\n---\nDo.\n",
            b"---\r\nname: a\r\ndescription: d\r\n---\r\nDo.\r\n",
            b"---  \nname: a\ndescription: d\n...\nDo.\n",
            b"---\nname: a\ndescription: >-\n  d\n---\n\n\nDo.",
        ],
    )
    def test_bom_blank_lines_and_line_ends(self, data):
        content = parse(data, "a").file.content

        assert (content.description, content.instructions) == ("d", "Do.")

    def test_what_other_tools_write_is_kept(self):
        read = parse(
            b"---\nname: a\ndescription: d\nversion: 1.10\ntriggers: [x, y]\nuser-invocable: true\n"
            b"allowed-tools: [Read, 'Bash(git:*)']\nlicense: MIT\n"
            b'metadata: {"openclaw": {"always": false}, author: me}\n---\nDo.',
            "a",
        )

        assert read.file.content.triggers == ["x", "y"]
        assert read.file.fields == {"license": "MIT", "allowed-tools": "Read Bash(git:*)"}
        assert read.file.metadata == {
            "version": "1.10",
            "user-invocable": "true",
            "openclaw": '{"always":"false"}',
            "author": "me",
        }

    def test_scalars_are_texts(self):
        content = parse(b"---\nname: 123\ndescription: 2026-01-01\n---\nDo.", "123").file.content

        assert (content.name, content.description) == ("123", "2026-01-01")

    def test_a_long_description_flows_over_into_the_instructions(self):
        words = "word " * 300
        content = parse(f"---\nname: a\ndescription: {words}\n---\nDo.".encode(), "a").file.content

        assert len(content.description) <= 1024
        assert f"{content.description} {content.instructions}".split() == [*words.split(), "Do."]

    def test_without_a_body_the_description_stands_for_it(self):
        assert parse(b"---\nname: a\ndescription: d\n---\n", "a").file.content.instructions == "d"

    def test_of_a_field_that_stands_twice_the_last_counts(self):
        read = parse(b"---\nname: a\ndescription: d\ndescription: e\n---\nDo.", "a")

        assert read.file.content.description == "e"
        assert read.warnings == ["The field 'description' stands twice; the last one counts."]

    def test_an_edited_description_wins_over_the_one_kept_beside_it(self):
        data = render(SkillFile(content=make_content(description="a <b> c")))
        edited = data.replace(b'description: "a b c"', b'description: "new"', 1)

        assert parse(data).file.content.description == "a <b> c"
        assert parse(edited).file.content.description == "new"

    def test_an_edited_section_of_examples(self):
        data = render(SkillFile(content=make_content(examples=[{"a": "b"}], instructions="Do.")))
        more = data + b"\n### Example 2\n\n- **a**: 12 monkeys\n"
        other = data + b"\nSome prose.\n"

        assert parse(more).file.content.examples == [{"a": "b"}, {"a": "12 monkeys"}]
        assert parse(other).file.content.examples == []
        assert parse(other).file.content.instructions.endswith("- **a**: b\n\nSome prose.")
        assert any("examples" in warning for warning in parse(other).warnings)

    def test_a_checkout_that_changed_the_line_ends_is_the_same_skill(self):
        data = render(SkillFile(content=make_content(examples=[{"a": "b"}], instructions="1.\n2.")))

        assert render(parse(data.replace(b"\n", b"\r\n")).file) == data

    @pytest.mark.parametrize("bad", [b"{", b'["a", 1]', b'"a"', b"[" * 5000])
    def test_triggers_of_ours_that_are_none(self, bad):
        value = json.dumps(bad.decode()).encode()
        read = parse(
            b'---\nname: a\ndescription: d\nmetadata:\n  "mirix-entry-type": guide\n  mirix-triggers: '
            + value
            + b"\n---\nDo.",
            "a",
        )

        assert read.file.content.triggers == []
        assert len(read.warnings) == 1


class TestRefused:
    """With a reason that names the cause, in bounded time."""

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"", "does not begin with frontmatter"),
            (b"# A heading\n", "does not begin with frontmatter"),
            (b"---\nname: a\n", "no closing line"),
            (b"---\nname: a\n---\nDo.", "no description"),
            (b"---\nname: a\ndescription: '  '\n---\nDo.", "no description"),
            (b"---\nname: [a\n---\nDo.", "no YAML"),
            (b"---\n- a\n---\nDo.", "holds no fields"),
            (b"---\n---\nDo.", "holds no fields"),
            (b"---\nname: a\ndescription: \x00\n---\n", "no description"),
            (b"---\nname: a\ndescription: '\x1b'\n---\n", "no YAML"),
            (b"---\n? [a]\n: b\n---\nDo.", "no text"),
            (b"\xff\xfe-\x00-\x00-\x00", "not UTF-8"),
            (b"---\nx: &a [1]\ny: *a\n---\nDo.", "aliases"),
            (b"---\nx: &a {b: c}\n<<: *a\n---\nDo.", "aliases"),
            (b"---\nx: " + b"[" * 5000 + b"\n---\n", "nested too deep"),
            (b"---\nx: [" + b"a," * 30000 + b"]\n---\n", "too many fields"),
            (b"---\nx: " + b"a" * 600_000 + b"\n---\n", "more than 600,000"),
        ],
    )
    def test_reasons(self, data, reason):
        with pytest.raises(Unreadable, match=reason):
            parse(data)

    def test_a_bomb_of_aliases(self):
        lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
        with pytest.raises(Unreadable, match="aliases"):
            parse("\n".join(["---", *lines, "---", ""]).encode())

    def test_tags_make_nothing(self):
        read = parse(b"---\nname: a\ndescription: !!python/object/apply:os.getcwd []\n---\nDo.", "a")

        assert read.file.content.description == "[]"


PIECES = [
    *(
        "---\n",
        "...\n",
        "\n",
        "\r\n",
        "\t",
        "  ",
        "- ",
        "? ",
        ": ",
        "[",
        "]",
        "{",
        "}",
        ",",
        '"',
        "'",
        "#",
        "@",
        "`",
    ),
    *("&a ", "*a ", "<<: ", "!!int ", "!<x> ", "!%ff ", "|\n", ">-\n", "%YAML 1.1\n", "%TAG "),
    *('"\\UFFFFFFFF"', '"\\ud800"', "\ufeff", "\x85", "\x00", "é", "🛠", "<", "e\u0301"),
    *("name: a\n", "description: d\n", "metadata:\n", "mirix-entry-type: guide\n", "  mirix-examples: 1\n"),
    *("## Examples\n", "### Example 1\n", "- **a**: 1\n"),
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40).map("".join))
@example("%YAML 1." + "9" * 5_000)
def test_whatever_comes_is_read_or_refused_with_a_reason(text):
    for whole in (text, f"---\ndescription: d\n{text}\n---\nDo."):
        try:
            file = parse(whole.encode("utf-8", "replace"), "a").file
        except Unreadable:
            continue
        written = render(file)
        assert render(parse(written, file.content.name).file) == written
        assert validate_metadata(parse_frontmatter(written.decode())[0], Path(file.content.name)) == []


@pytest.mark.parametrize(
    "head",
    [
        "\n" * 500_000,
        "a: x" + " " * 500_000 + "y: z",
        "a: x" + "\t" * 500_000 + "y: z\nb",
        "- " * 250_000,
        "? " * 250_000,
        '"' + "a: " * 150_000,
        "a: b: c\n" * 60_000,
        "%" * 500_000,
        " " * 500_000 + "a",
        "a: |\n" + " " * 500_000,
    ],
    ids=lambda head: head[:6],
)
def test_no_text_takes_long(head):
    """Bounded by the clock of the processor, which a busy machine does not move."""
    start = time.process_time()
    with contextlib.suppress(Unreadable):
        parse(f"---\n{head}\n---\nDo.".encode())
    assert time.process_time() - start < 15


def test_what_is_kept_of_other_tools_is_bounded():
    read = parse(f"---\nname: a\ndescription: d\nx: {'y' * 30_000}\nz: 1\n---\nDo.".encode(), "a")

    assert read.file.metadata == {"z": "1"}
    assert "x is too long to be kept and was left out." in read.warnings


def test_every_skill_of_the_wild_reads_writes_and_passes():
    found = sorted(shared("skills").glob("*/*/SKILL.md"))
    assert len(found) == 59
    for path in found:
        file = parse(path.read_bytes(), path.parent.name).file
        data = render(file)
        metadata, _ = parse_frontmatter(data.decode())
        assert validate_metadata(metadata, Path(file.content.name)) == [], path
        assert strictyaml.load(head_of(data)).data == yaml.safe_load(head_of(data)), path
        assert render(parse(data, file.content.name).file) == data, path
