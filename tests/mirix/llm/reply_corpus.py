"""Raw replies as models give them, with what each of them comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

A: dict[str, Any] = {
    "title": "Check the fare rules",
    "content": "Read them before cancelling.",
    "importance": 0.8,
}
B: dict[str, Any] = {"title": "Confirm the amount", "content": "Say it aloud.", "importance": 0.5}
C: dict[str, Any] = {"title": "Retry once", "content": "Then ask.", "importance": 0.3}

TEXT_A = '{"title": "Check the fare rules", "content": "Read them before cancelling.", "importance": 0.8}'
TEXT_B = '{"title": "Confirm the amount", "content": "Say it aloud.", "importance": 0.5}'
TEXT_C = '{"title": "Retry once", "content": "Then ask.", "importance": 0.3}'
ESCAPED_A = TEXT_A.replace('"', '\\"')
TICKS = "```"


@dataclass(frozen=True)
class Case:
    """One reply."""

    name: str
    text: str
    verdict: str
    items: list[dict[str, Any]] = field(default_factory=list)
    how: str = "tolerant"
    reasons: list[str] = field(default_factory=list)
    """Why parts were dropped, in order."""
    truncated: bool = False


def ok(name: str, text: str, *items: dict[str, Any], how: str = "tolerant", **more: Any) -> Case:
    return Case(name, text, "ok", list(items), how, **more)


def empty(name: str, text: str, how: str = "tolerant") -> Case:
    return Case(name, text, "empty", how=how)


def unreadable(name: str, text: str, how: str = "tolerant", **more: Any) -> Case:
    return Case(name, text, "unreadable", how=how, **more)


STRICT = [
    ok("named list", f'{{"experiences": [{TEXT_A}, {TEXT_B}]}}', A, B, how="strict"),
    ok("bare list", f"[{TEXT_A}]", A, how="strict"),
    ok("single object", TEXT_A, A, how="strict"),
    ok("name in capitals", f'{{"Experiences": [{TEXT_A}]}}', A, how="strict"),
    ok("another name", f'{{"lessons": [{TEXT_A}]}}', A, how="strict"),
    ok("another name beside a remark", f'{{"remark": "two", "items": [{TEXT_A}]}}', A, how="strict"),
    ok("wrapped twice", f'{{"response": {{"experiences": [{TEXT_A}]}}}}', A, how="strict"),
    ok(
        "named list in a list",
        f'[{{"experiences": [{TEXT_A}]}}, {{"experiences": [{TEXT_B}]}}]',
        A,
        B,
        how="strict",
    ),
    ok("lists in a list", f"[[{TEXT_A}], [{TEXT_B}]]", A, B, how="strict"),
    ok("one object under the name", f'{{"experiences": {TEXT_A}}}', A, how="strict"),
    ok("objects by number", f'{{"experiences": {{"1": {TEXT_A}, "2": {TEXT_B}}}}}', A, B, how="strict"),
    ok("list as text", f'{{"experiences": "[{ESCAPED_A}]"}}', A, how="strict"),
    ok("elements as text", f'["{ESCAPED_A}"]', A, how="strict"),
    ok(
        "strangers among the items",
        f'[{TEXT_A}, "and", 3, null, {{}}, {TEXT_B}]',
        A,
        B,
        how="strict",
        reasons=["not an object", "not an object", "not an object", "an object without fields"],
    ),
    ok("tool call", f'{{"name": "record", "arguments": {{"experiences": [{TEXT_A}]}}}}', A, how="strict"),
    ok(
        "tool call, arguments as text",
        f'{{"name": "record", "arguments": "{{\\"experiences\\": [{ESCAPED_A}]}}"}}',
        A,
        how="strict",
    ),
    ok(
        "message with tool calls",
        '{"tool_calls": [{"type": "function", "function": '
        f'{{"name": "r", "arguments": {{"experiences": [{TEXT_A}]}}'
        "}}]}",
        A,
        how="strict",
    ),
    ok(
        "one tool call an item",
        f'[{{"name": "r", "parameters": {TEXT_A}}}, {{"name": "r", "parameters": {TEXT_B}}}]',
        A,
        B,
        how="strict",
    ),
    ok(
        "numbers as texts stay texts",
        '[{"title": "x", "importance": "80%"}]',
        {"title": "x", "importance": "80%"},
        how="strict",
    ),
    ok("NUL in a text", '[{"title": "a\\u0000b"}]', {"title": "ab"}, how="strict"),
    ok("lone surrogate", '[{"title": "a\\ud800b"}]', {"title": "a\ufffdb"}, how="strict"),
    empty("empty list", "[]", "strict"),
    empty("empty named list", '{"experiences": []}', "strict"),
    empty("null for the list", '{"experiences": null}', "strict"),
    empty("null", "null", "strict"),
    empty("empty list under another name", '{"lessons": []}', "strict"),
    unreadable("empty object", "{}", "strict"),
    unreadable("a number", "42", "strict"),
    unreadable("a sentence as JSON", '"Nothing to learn here."'),
    unreadable(
        "sentences as JSON",
        '["Check the rules.", "Ask first."]',
        "strict",
        reasons=["not an object", "not an object"],
    ),
    unreadable("true for the list", "true", "strict"),
]
WRAPPED = [
    ok("byte order mark", f"\ufeff[{TEXT_A}]", A, how="strict"),
    ok("fence", f"{TICKS}json\n[{TEXT_A}]\n{TICKS}", A),
    ok("fence without a label", f"{TICKS}\n[{TEXT_A}]\n{TICKS}", A),
    ok("fence on one line", f"{TICKS}json [{TEXT_A}] {TICKS}", A),
    ok("fence never closed", f"{TICKS}json\n[{TEXT_A}]", A),
    ok("fence of tildes", f"~~~json\n[{TEXT_A}]\n~~~", A),
    ok("prose around", f"Here is what I found:\n[{TEXT_A}]\nI hope this helps!", A),
    ok("prose with braces before", f'From the talk {{about travel}} [1]: {{"experiences": [{TEXT_A}]}}', A),
    ok("prose with a template before", f"Use {{name: the one}} so:\n[{TEXT_A}]", A, reasons=["damaged JSON"]),
    ok(
        "several fences",
        f"One:\n{TICKS}json\n[{TEXT_A}]\n{TICKS}\nTwo:\n{TICKS}json\n[{TEXT_B}]\n{TICKS}",
        A,
        B,
    ),
    ok("the same fence twice", f"{TICKS}\n[{TEXT_A}]\n{TICKS}\nAgain:\n{TICKS}\n[{TEXT_A}]\n{TICKS}", A),
    ok("one fence an object", f"{TICKS}json\n{TEXT_A}\n{TICKS}\n{TICKS}json\n{TEXT_B}\n{TICKS}", A, B),
    ok(
        "an object of the prose beside the list",
        f'It sent {{"id": 3}}.\n{{"experiences": [{TEXT_A}]}}',
        A,
        reasons=["outside the list"],
    ),
    ok("lines of JSON", f"{TEXT_A}\n{TEXT_B}\n{TEXT_C}\n", A, B, C),
    ok("objects with commas and no list", f"{TEXT_A},\n{TEXT_B}", A, B),
    ok("a text that holds the JSON", f'"[{ESCAPED_A}]"', A),
    ok("escaped, without the quotes of a text", f"[{ESCAPED_A}]", A, how="repaired"),
    ok("entities", f"[{TEXT_A}]".replace('"', "&quot;"), A),
    ok("thoughts", f"<think>\nMaybe [{TEXT_B}]?\n</think>\n[{TEXT_A}]", A),
    ok("thoughts never opened", f"Maybe {TEXT_B}?\n</think>\n[{TEXT_A}]", A),
    ok("thoughts in brackets", f"[THINK]maybe {TEXT_B}[/THINK][{TEXT_A}]", A),
    ok("thoughts after a word", f"Well. <thinking>{TEXT_B}</thinking> [{TEXT_A}]", A),
    ok(
        "channels",
        f"<|channel|>analysis<|message|>Maybe {TEXT_B}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>[{TEXT_A}]",
        A,
    ),
    ok(
        "the mark of a thought in a quote",
        '[{"title": "Close </think> well"},]',
        {"title": "Close </think> well"},
    ),
    ok(
        "tool call markup",
        f'<tool_call>\n{{"name": "r", "arguments": {{"experiences": [{TEXT_A}]}}}}\n</tool_call>',
        A,
    ),
    ok(
        "tool call by a token",
        f'[TOOL_CALLS][{{"name": "r", "arguments": {{"experiences": [{TEXT_A}]}}}}]',
        A,
    ),
    ok(
        "tool call as XML",
        f'<invoke name="r"><parameter name="experiences">[{TEXT_A}]</parameter></invoke>',
        A,
    ),
    ok("tool call as Python", f'functions.record({{"experiences": [{TEXT_A}]}})', A),
    ok("token at the end", f"[{TEXT_A}]<|im_end|>", A),
    ok("answer element", f"<answer>[{TEXT_A}]</answer>", A),
    empty("empty list in a fence", f"{TICKS}json\n[]\n{TICKS}"),
    empty("empty list after a colon", "Nothing is worth keeping: []"),
    empty("empty named list after prose", 'Nothing new.\n\n{"experiences": []}'),
    empty("empty list after thoughts", "<think>Nothing.</think>\n[]"),
    empty("None", "None"),
    unreadable("empty list in a sentence", "The tool gave [] and the agent looped."),
    unreadable("empty list beside another object", '{"id": 3}\n[]', reasons=["outside the list"]),
    unreadable("refusal", "I'm sorry, but I can't help with that."),
    unreadable("refusal with an empty list", "I cannot go through this transcript.\n[]"),
    unreadable("thoughts alone", f"<think>Let me see. [{TEXT_A}]"),
    unreadable("channel of thoughts alone", f"<|channel|>analysis<|message|>Maybe [{TEXT_A}]<|end|>"),
    unreadable(
        "web page", "<!DOCTYPE html><html><style>a {color: red}</style><script>x = [{y: 1}]</script></html>"
    ),
    unreadable("bad gateway", "502 Bad Gateway\n<html><body>{a: 1}</body></html>"),
    unreadable("prose", "There was nothing remarkable in this session."),
    unreadable("blank", "", "strict"),
    unreadable("white space", " \n\t ", "strict"),
    unreadable("YAML", "experiences:\n  - title: Check the fare rules\n"),
    unreadable("a list in Markdown", "- **Check the fare rules**: read them.\n- Ask first."),
]
BENT = [
    ok("trailing commas", '[{"title": "x", "n": 1,},]', {"title": "x", "n": 1}),
    ok("single quotes", "[{'title': 'don\\'t', 'content': 'it\\'s'}]", {"title": "don't", "content": "it's"}),
    ok("Python", "[{'title': \"don't\", 'a': True, 'b': None}]", {"title": "don't", "a": True, "b": None}),
    ok("apostrophe in single quotes", "[{'title': 'don't'}]", {"title": "don't"}),
    ok("smart quotes", "[{“title”: “x”, “content”: “don’t “y””}]", {"title": "x", "content": "don’t “y”"}),
    ok(
        "NaN",
        '[{"title": "x", "importance": NaN, "credibility": -Infinity}]',
        {"title": "x", "importance": None, "credibility": None},
    ),
    ok(
        "numbers of all kinds",
        "[{a: .5, b: 5., c: +1, d: 80%, e: 1e3}]",
        {"a": 0.5, "b": 5.0, "c": 1, "d": "80%", "e": 1000.0},
    ),
    ok("comments", '[ // first\n{"title": "x" /* yes */, # so\n"n": 1}]', {"title": "x", "n": 1}),
    ok(
        "keys without quotes",
        '[{title: "x", kind: worth_learning}]',
        {"title": "x", "kind": "worth_learning"},
    ),
    ok("raw line break in a text", '[{"title": "a\nb"}]', {"title": "a\nb"}),
    ok("unknown escapes", r'[{"title": "C:\dir \_x_ it\'s"}]', {"title": r"C:\dir \_x_ it's"}),
    ok(
        "no comma at a line end",
        '[{"title": "x"\n"n": 1}\n{"title": "y"}]',
        {"title": "x", "n": 1},
        {"title": "y"},
    ),
    ok("full-width marks", '[{"title"："x"，"n"：1}]', {"title": "x", "n": 1}),
    ok("the rest left out", f"[{TEXT_A}, ...]", A, reasons=["left out by the model"]),
    ok("a brace too many", f"[{TEXT_A}}}, {TEXT_B}]", A, B),
    ok("triple quotes", '[{"title": """a "b" c"""}]', {"title": 'a "b" c'}),
    ok("a key twice with one value", '[{"title": "x", "title": "x"}]', {"title": "x"}),
    ok(
        "a key twice with two values",
        f'[{{"title": "x", "title": "y"}}, {TEXT_A}]',
        A,
        reasons=["damaged JSON"],
    ),
    ok(
        "quotes that are not escaped",
        f'[{{"title": "He said "no" again", "content": "x"}}, {TEXT_A}]',
        {"title": 'He said "no" again', "content": "x"},
        A,
        how="repaired",
    ),
    ok(
        "the same under the name",
        f'{{"experiences": [{TEXT_A}, {{"title": "a "b" c", "content": "x"}}]}}',
        A,
        {"title": 'a "b" c', "content": "x"},
        how="repaired",
    ),
    ok(
        "a single object with quotes",
        '{"title": "a "b" c", "content": "x"}',
        {"title": 'a "b" c', "content": "x"},
        how="repaired",
    ),
    ok("rubbish between items", f"[{TEXT_A}, and then: {TEXT_B}]", A, B, reasons=["damaged JSON"]),
    ok("a remark with quotes before the list", f'{{"remark": "a "b" c", "experiences": [{TEXT_A}]}}', A),
    ok(
        "a decimal comma",
        '[{"title": "x", "importance": 0,8}]',
        {"title": "x", "importance": "0,8"},
        how="repaired",
    ),
    ok(
        "texts without quotes",
        "[{title: look first, content: then leap}]",
        {"title": "look first", "content": "then leap"},
        how="repaired",
    ),
    unreadable("two titles", '[{"title": "x", "title": "y"}]', reasons=["damaged JSON"]),
    unreadable("a field run into the next", '{"title": "a, "content": "b", "n": 1', reasons=["cut off"]),
]
CUT = [
    ok(
        "in the second item", f'[{TEXT_A}, {{"title": "Confirm the am', A, reasons=["cut off"], truncated=True
    ),
    ok(
        "in the second item, unnoticed",
        f'{{"experiences": [{TEXT_A}, {{"title": "Con',
        A,
        reasons=["cut off"],
    ),
    ok("in a fence", f'{TICKS}json\n[{TEXT_A}, {TEXT_B}, {{"ti', A, B, reasons=["cut off"], truncated=True),
    ok("between items", f"[{TEXT_A}, {TEXT_B},", A, B, truncated=True),
    ok("before the last brackets", f'{{"experiences": [{TEXT_A}', A, truncated=True),
    ok(
        "after inner evidence",
        f'[{TEXT_A}, {{"title": "x", "evidence": [{{"quote": "y"}}], "content": "cut',
        A,
        reasons=["cut off"],
    ),
    ok(
        "right after inner evidence",
        f'[{TEXT_A}, {{"title": "x", "evidence": [{{"quote": "y"}}]',
        A,
        reasons=["damaged JSON"],
    ),
    ok("in a line of JSON", f'{TEXT_A}\n{{"title": "Con', A, reasons=["cut off"]),
    unreadable(
        "in the first item", '{"experiences": [{"title": "Check the fa', reasons=["cut off"], truncated=True
    ),
    unreadable(
        "in a single object", '{"title": "Check the fare rules", "content": "Read', reasons=["cut off"]
    ),
    unreadable("at the first bracket", "[", truncated=True),
    unreadable("in the name", '{"experie', truncated=True),
]
CORPUS = [*STRICT, *WRAPPED, *BENT, *CUT]
