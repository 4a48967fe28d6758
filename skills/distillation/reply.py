"""The items of a model's reply: what it is asked for, and what is made of what it gives. Pure.

`SCHEMA` is what an endpoint that can holds the model to. What comes back is read kindly, item by item: a
number may be a text, a name a little off, the evidence a bare quote. What then still does not fit falls out
with its reason, and never takes another item along.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from mirix.text import clean_json, clean_text, shorten
from skills.distillation.types import Dropped

SCHEMA_NAME = "experiences"
MAX_ITEMS = 50
MAX_DROPPED = 50
MAX_DROPPED_CHARS = 500
MAX_TEXT_CHARS = 20_000
MAX_TURN_DIGITS = 9
MAX_DEPTH = 20

Kind = Literal["worth_learning", "worth_avoiding"]
Signal = Literal["user_critique", "user_confirmation", "tool_error", "self_correction", "inferred"]


class Evidence(BaseModel):
    """The words that ground a lesson."""

    model_config = ConfigDict(extra="forbid")

    turn: int | None
    quote: str
    signal_type: Signal


class ReplyItem(BaseModel):
    """One lesson as the model tells it."""

    model_config = ConfigDict(extra="forbid")

    experience_type: Kind
    title: Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"\w")]
    content: str
    topic: str
    importance: float
    credibility: float
    evidence: Evidence


def reply_schema() -> dict[str, Any]:
    """Return the JSON schema of a whole reply: every field required, no references, no limits.

    That is the part of the language that all endpoints understand that understand any.
    """
    schema = ReplyItem.model_json_schema()
    evidence = schema["$defs"]["Evidence"]
    properties = _plain(schema["properties"]) | {"evidence": _object(_plain(evidence["properties"]))}
    properties["evidence"]["properties"]["turn"] = {"type": "integer"}
    return _object({SCHEMA_NAME: {"type": "array", "items": _object(properties)}})


def _plain(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    kept = ("type", "enum")
    return {
        name: {key: value for key, value in given.items() if key in kept}
        for name, given in properties.items()
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_items(items: Sequence[dict[str, Any]]) -> tuple[list[ReplyItem], list[Dropped]]:
    """Return the items that hold a lesson, in order, and those that do not with the reason."""
    read: list[ReplyItem] = []
    dropped: list[Dropped] = []
    for item in items:
        if len(read) == MAX_ITEMS:
            dropped.append(drop(f"more than {MAX_ITEMS} lessons of one session", item))
            continue
        try:
            read.append(ReplyItem.model_validate(_straightened(item)))
        except ValidationError as error:
            dropped.append(drop(_reason(error), item))
    return read, dropped


def drop(reason: str, item: Any) -> Dropped:
    """Return an item as one that gave no lesson."""
    text = item if isinstance(item, str) else json.dumps(clean_json(item, MAX_DEPTH), ensure_ascii=False)
    return Dropped(reason=reason, text=shorten(clean_text(text[: MAX_DROPPED_CHARS * 4]), MAX_DROPPED_CHARS))


def bounded(dropped: Sequence[Dropped]) -> list[Dropped]:
    """Return at most `MAX_DROPPED` entries, the last of which counts those that are left out."""
    if len(dropped) <= MAX_DROPPED:
        return list(dropped)
    kept = list(dropped[: MAX_DROPPED - 1])
    return [*kept, Dropped(reason=f"and {len(dropped) - len(kept)} more", text="")]


def _reason(error: ValidationError) -> str:
    """Return which field is wrong, in words that hold nothing of what the model wrote."""
    found = error.errors(include_input=False, include_url=False, include_context=False)[0]
    name = ".".join(str(part) for part in found["loc"])
    match name, found["type"]:
        case "experience_type", _:
            return f"experience_type is none of {', '.join(get_args(Kind))}"
        case "title", "string_pattern_mismatch":
            return "the title is blank"
        case _, "string_type":
            return f"{name} is not a text"
    return f"{name}: {found['msg']}"


# From what models write to what was asked for


def _straightened(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item under the names of the schema, every field there and of its type where that is clear."""
    fields = {_word(name): value for name, value in item.items()}
    return {
        "experience_type": _kind(fields.get("experience_type", fields.get("type"))),
        "title": _text(fields.get("title")),
        "content": _text(fields.get("content", "")),
        "topic": _topic(fields.get("topic")),
        "importance": unit(fields.get("importance")),
        "credibility": unit(fields.get("credibility", fields.get("confidence"))),
        "evidence": _evidence(fields),
    }


def _word(value: Any) -> str:
    """Return a name as the schema writes names: `Worth-Learning` is `worth_learning`."""
    return re.sub(r"[\s_-]+", "_", str(value)[:100].strip(" \t\r\n\"'`*.")).casefold()


def _kind(value: Any) -> Any:
    word = _word(value) if isinstance(value, str) else value
    short = {"learning": "worth_learning", "learn": "worth_learning"}
    short |= {"avoiding": "worth_avoiding", "avoid": "worth_avoiding"}
    return short.get(word, word) if isinstance(word, str) else word


def _text(value: Any) -> Any:
    """Return a text of bounded length, one that came in pieces joined; what is none stays as it is."""
    if value is None:
        return ""
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        value = "\n".join(value)
    return clean_text(value[:MAX_TEXT_CHARS]) if isinstance(value, str) else value


def _topic(value: Any) -> str:
    return clean_text(value[:MAX_TEXT_CHARS]) if isinstance(value, str) else ""


def unit(value: Any) -> float:
    """Return a score from 0 to 1: `"80%"` and `"8/10"` are 0.8; what is no number is 0."""
    if isinstance(value, bool):
        return 0.0
    if isinstance(value, str):
        value = _number(value)
    if not isinstance(value, int | float) or value != value:  # NaN alone is not itself
        return 0.0
    return float(min(1, max(0, value)))


_SCORE = re.compile(r"^\D{0,3}?(-?\d{1,9}(?:[.,]\d{1,9})?|\.\d{1,9})\s*(?:(%)|/\s*(\d{1,9}))?\s*$")


def _number(text: str) -> float:
    """Return the number that a text is, NaN where it is none."""
    text = text.strip()[:40]
    if match := _SCORE.match(text):
        whole = 100.0 if match[2] else float(match[3] or 1)
        return float(match[1].replace(",", ".")) / whole if whole else math.nan
    return {"inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}.get(
        text.lower(), math.nan
    )


def _evidence(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the evidence of an item, whether it is an object, a list of some, a bare quote or spread out."""
    given = fields.get("evidence")
    if isinstance(given, list):
        given = next((part for part in given if isinstance(part, dict | str) and part), None)
    inner = {_word(name): value for name, value in given.items()} if isinstance(given, dict) else {}
    found = fields | inner
    quote = given if isinstance(given, str) else found.get("quote")
    signal = _word(found.get("signal_type", found.get("signal", "")))
    turn = next((found[name] for name in ("turn", "turn_seq", "turn_number", "seq") if name in found), None)
    return {
        "turn": _turn(turn),
        "quote": unquoted(clean_text(quote[:MAX_TEXT_CHARS])) if isinstance(quote, str) else "",
        "signal_type": signal if signal in get_args(Signal) else "inferred",
    }


def _turn(value: Any) -> int | None:
    """Return the first number of `7`, `"#7"`, `"turn 7"`, `[7, 8]`; None where there is none."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 10**MAX_TURN_DIGITS else None
    match = re.search(r"\d+", value[:100]) if isinstance(value, str) else None
    return int(match.group()) if match and len(match.group()) <= MAX_TURN_DIGITS else None


_PAIRS = {'"': '"', "“": "”", "„": "“", "«": "»", "‘": "’", "「": "」"}


_HEADER = re.compile(r"^\[turn \d+ [^\]\n]{1,120}\]\s")


def unquoted(quote: str) -> str:
    """Return a quote without its turn's header, quotation marks around it and dots of omission at its ends.

    What stood between quotation marks in the turn is found without them as well.
    """
    quote = _HEADER.sub("", quote.strip(), count=1).strip()
    if len(quote) > 1 and _PAIRS.get(quote[0]) == quote[-1] and quote[0] not in quote[1:-1]:
        quote = quote[1:-1].strip()
    for dots in ("…", "..."):
        quote = quote.removeprefix(dots).removesuffix(dots).strip()
    return quote
