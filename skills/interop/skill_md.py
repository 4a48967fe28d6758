r"""A skill as a SKILL.md file, and back: the same bytes for the same skill, nothing lost on the way. Pure.

    ---
    name: "pay-invoice"
    description: "Pay an invoice. Use when …"
    metadata:
      "mirix-version": "0.1.2"
      "mirix-entry-type": "workflow"
      "mirix-triggers": "[\"pay\"]"
    ---

    1. …

    ## Examples
    …

At the top stand only fields that the format knows; ours are under `metadata` with a prefix. A description
with `<` or `>` is written without, as some readers refuse them, and kept whole beside it. Files of other
tools are read as far as they can be: what is odd is a warning, what cannot be read is `Unreadable`.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from mirix.text import clean_json, clean_text, shorten, slugify
from skills.content import MAX_NAME_CHARS, MAX_TRIGGER_CHARS, MAX_TRIGGERS, Content, entry_type_of
from skills.interop import example_text, frontmatter
from skills.interop.frontmatter import Unreadable
from skills.interop.legacy import is_valid_name, split_description, tags
from skills.review.validation import json_errors

FILE_NAME = "SKILL.md"
MEDIA_TYPE = "text/markdown; charset=utf-8"
PREFIX = "mirix-"
OURS = ("description", "entry-type", "triggers", "examples", "filter-tags")
PROVENANCE = ("version", "revision", "author", "published", "experiences")
"""Where a text comes from: version, id of the revision, kind of author, when, on how many experiences."""
FIELDS = ("license", "compatibility", "allowed-tools")
MAX_FIELD_CHARS = {"license": 1_000, "compatibility": 500, "allowed-tools": 5_000}
MAX_METADATA_CHARS = 20_000
"""Of all that other tools say; more is left out, so that what is written can be read again."""
MAX_KEY_CHARS = 100
MAX_PROVENANCE_CHARS = 128


@dataclass(frozen=True, kw_only=True)
class SkillFile:
    """What a SKILL.md says."""

    content: Content
    provenance: dict[str, str] = field(default_factory=dict)
    """Keys of `PROVENANCE`."""
    fields: dict[str, str] = field(default_factory=dict)
    """Keys of `FIELDS`."""
    metadata: dict[str, str] = field(default_factory=dict)
    """What other tools say about it."""


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """A file that was read, and what was odd about it."""

    file: SkillFile
    warnings: list[str]
    is_ours: bool
    """Whether we wrote it: then what it does not name is not there, else its tool may not know it."""


# ---- Writing ---------------------------------------------------------------------------------------


def render(file: SkillFile) -> bytes:
    """Return the bytes of the file."""
    content = cleaned(file.content)
    plain = _plain_description(content.description, content.name)
    values = {
        "version": file.provenance.get("version", ""),
        "entry-type": content.entry_type,
        "description": content.description if plain != content.description else "",
        "triggers": _compact(content.triggers) if content.triggers else "",
        "examples": str(len(content.examples)) if content.examples else "",
        "filter-tags": _compact(content.filter_tags) if content.filter_tags else "",
    } | {name: file.provenance.get(name, "") for name in PROVENANCE[1:]}
    head = frontmatter.written(
        {
            "name": content.name,
            "description": plain,
            **{name: file.fields[name] for name in FIELDS if name in file.fields},
            "metadata": {PREFIX + name: value for name, value in values.items() if value}
            | dict(sorted(file.metadata.items())),
        }
    )
    return f"{head}\n{content.instructions}\n{example_text.render(content.examples)}".encode()


def etag_of(data: bytes) -> str:
    """Return the hash of a file's bytes, SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def cleaned(content: Content) -> Content:
    """Return a content as a file holds it: storable texts in NFC, no tag of a single session."""
    return Content(
        name=content.name,
        entry_type=content.entry_type,
        description=clean_text(content.description),
        instructions=clean_text(content.instructions),
        triggers=clean_json(content.triggers),
        examples=clean_json(content.examples),
        filter_tags=clean_json(tags(content.filter_tags)),
    )


def _plain_description(text: str, name: str) -> str:
    plain = clean_text(re.sub("[<>]", "", text))
    return plain if plain.strip() else name


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


# ---- Reading ---------------------------------------------------------------------------------------


def parse(data: bytes, folder: str = "") -> ReadFile:
    """Read a file; `folder` is the name of the folder that holds it, "" where there is none.

    Raises `Unreadable` for what is no UTF-8, has no frontmatter that can be read, or no description.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"It is not UTF-8 (byte {error.start:,}).") from error
    head, body = frontmatter.split(text)
    if "\r\n" in head or not _is_ours(head):
        head, body = head.replace("\r\n", "\n"), body.replace("\r\n", "\n")
    found, warnings = frontmatter.read(head)
    return _Reader(found, body, warnings).read(folder, data)


def _is_ours(head: str) -> bool:
    return f'"{PREFIX}entry-type"' in head


class _Reader:
    """Takes the fields of one file one by one; what is left over becomes metadata."""

    def __init__(self, found: dict[str, Any], body: str, warnings: list[str]) -> None:
        self.rest = dict(found)
        self.body = body
        self.warnings = warnings
        metadata = self.rest.pop("metadata", None)
        self.metadata: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
        if metadata and not isinstance(metadata, dict):
            self.rest.setdefault("metadata", metadata)
        self.own = {
            key.removeprefix(PREFIX): _text(self.metadata.pop(key))
            for key in list(self.metadata)
            if key.startswith(PREFIX)
        }
        for key in sorted(self.own.keys() - {*OURS, *PROVENANCE}):
            self.warn(f"{PREFIX}{shorten(key, 40)} is not known here and was left out.")
        self.is_ours = "entry-type" in self.own

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def read(self, folder: str, data: bytes) -> ReadFile:
        """Return the file."""
        name = self.name(folder, data)
        description, overflow = split_description(self.description(name))
        if overflow:
            self.warn("The description is too long; its end stands at the top of the instructions.")
        instructions, examples = self.instructions()
        if not instructions.strip():
            instructions = description
            self.warn("It has no body; its description stands for the instructions.")
        content = Content(
            name=name,
            description=description,
            instructions=f"{overflow}\n\n{instructions}" if overflow else instructions,
            entry_type=entry_type_of(self.own.get("entry-type")),
            triggers=self.triggers(),
            examples=examples,
            filter_tags=self.filter_tags(),
        )
        fields = self.fields()
        return ReadFile(
            file=SkillFile(
                content=cleaned(content),
                provenance={
                    name: self.own[name]
                    for name in PROVENANCE
                    if 0 < len(self.own.get(name, "")) <= MAX_PROVENANCE_CHARS
                },
                fields=fields,
                metadata=self.others(),
            ),
            warnings=self.warnings,
            is_ours=self.is_ours,
        )

    def name(self, folder: str, data: bytes) -> str:
        """Return the name: as given, or what can be made of it, of the folder's, or of the content."""
        given = _text(self.rest.pop("name", "")).strip()
        name = given
        if not is_valid_name(given):
            fallback = f"skill-{hashlib.sha256(data).hexdigest()[:8]}"
            name = slugify(given, MAX_NAME_CHARS) or slugify(folder, MAX_NAME_CHARS) or fallback
            shown = f"The name {shorten(given, 80)!r} is no valid name" if given else "It has no name"
            self.warn(f"{shown}; it is called {name}.")
            if given:
                self.metadata.setdefault("title", given)
        if folder and folder != name:
            self.warn(f"Its folder is called {shorten(folder, 80)!r}.")
        return name

    def description(self, name: str) -> str:
        """Return the whole description."""
        shown = clean_text(_text(self.rest.pop("description", "")))
        whole = self.own.get("description", "")
        if whole and _plain_description(clean_text(whole), name) == shown:
            return whole
        if not shown.strip():
            raise Unreadable("It has no description.")
        return shown if self.is_ours else shown.strip()

    def instructions(self) -> tuple[str, list[Any]]:
        """Return the instructions and the examples."""
        if not self.is_ours:
            return self.body.strip("\n").rstrip(), []
        body = self.body
        examples: list[Any] = []
        if "examples" in self.own:
            taken = example_text.take(body)
            if taken is None or json_errors(taken[1]):
                self.warn("Its section of examples was changed; it is kept as a part of the instructions.")
            else:
                body, examples = taken
        return body.removeprefix("\n").removesuffix("\n"), examples

    def triggers(self) -> list[str]:
        """Return the triggers, ours or those of another tool; what fits no rule stays metadata."""
        if "triggers" in self.own:
            found = _json(self.own["triggers"])
            if _are_triggers(found):
                return found
            self.warn(f"{PREFIX}triggers holds no triggers and was left out.")
        for place in (self.rest, self.metadata):
            given = place.get("triggers")
            found = given if isinstance(given, list) else [given.strip()] if isinstance(given, str) else None
            if found and _are_triggers(found):
                del place["triggers"]
                return found
        return []

    def filter_tags(self) -> dict[str, Any]:
        """Return the tags."""
        if "filter-tags" not in self.own:
            return {}
        found = _json(self.own["filter-tags"])
        if not isinstance(found, dict):
            self.warn(f"{PREFIX}filter-tags holds no tags and was left out.")
        return found if isinstance(found, dict) else {}

    def fields(self) -> dict[str, str]:
        """Return the other fields that the format knows."""
        found = {}
        for name in FIELDS:
            value = self.rest.get(name)
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                value = " ".join(value)
            text = clean_text(_text(value)).strip()
            if len(text) > MAX_FIELD_CHARS[name]:
                self.warn(f"Its {name} is too long for the field; it is kept under metadata.")
                continue
            self.rest.pop(name, None)
            if text:
                found[name] = text
        return found

    def others(self) -> dict[str, str]:
        """Return what other tools say, as texts; fields that the format does not know are among it."""
        if self.rest:
            names = ", ".join(shorten(name, 40) for name in sorted(self.rest)[:10])
            self.warn(f"Kept under metadata, as the format does not know it: {names}.")
        found = {}
        left = MAX_METADATA_CHARS
        for key, value in {**self.rest, **self.metadata}.items():
            name, text = clean_text(key).strip()[:MAX_KEY_CHARS].strip(), clean_text(_text(value))
            if not name or name.startswith(PREFIX):
                continue
            if len(name) + len(text) > left:
                self.warn(f"{shorten(name, 40)} is too long to be kept and was left out.")
                continue
            left -= len(name) + len(text)
            found[name] = text
        return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _compact(value)


def _json(text: str) -> Any:
    """Return the value of a JSON text; None where there is none, or none that could be kept as it is."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if json_errors(found) else found


def _are_triggers(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MAX_TRIGGERS
        and all(isinstance(item, str) and item.strip() and len(item) <= MAX_TRIGGER_CHARS for item in value)
    )
