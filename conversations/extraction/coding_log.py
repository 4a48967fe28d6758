"""Lines of a coding assistant's log: `{"type": "user", "message": {…}, "uuid", "parentUuid", "sessionId" …}`.

The message inside is in the Anthropic shape. Around it stand lines that are about the session: summaries,
snapshots of files, hooks, progress. What the assistant's program put in by itself is no turn: reminders,
notes marked as meta, summaries of what was cut from the context. What was typed while it worked is one.

Logs of the same build whose lines are `{"type": "message", "message": {…}}` are read here too.
"""

from __future__ import annotations

import re
from typing import Any

from conversations.extraction.calls import make_call
from conversations.extraction.errors import truth
from conversations.extraction.reading import Family, Reading
from conversations.extraction.types import Role

SPEAKERS = ("user", "assistant", "message")
MARKS = frozenset(
    {"uuid", "parentUuid", "leafUuid", "leafUuids", "sessionId", "session_id", "isSidechain", "isMeta"}
    | {"messageId", "parentId", "subtype", "toolUseID"}
)
ABOUT_THE_SESSION = {
    "summary": "summary",
    "system": "system",
    "compaction": "compact summary",
    "branch_summary": "summary",
    "attachment": "attachment",
    "result": "result of the run",
}
REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>", re.DOTALL)
QUEUED = ("queued_command", "queued_prompt")


def matches(line: dict[str, Any]) -> bool:
    """Return whether a line has a message inside, or is about the session and bears the marks of a log."""
    kind = line.get("type")
    if not isinstance(kind, str) or "role" in line or "payload" in line:
        return False
    if kind in SPEAKERS and isinstance(line.get("message"), dict | str):
        return True
    return (kind in ABOUT_THE_SESSION and "content" not in line) or not MARKS.isdisjoint(line)


def read(line: dict[str, Any], reading: Reading) -> None:
    """Read a line by its type."""
    kind = line["type"]
    if kind in SPEAKERS:
        _read_message(line, reading)
    elif kind == "attachment" and isinstance(prompt := _queued_prompt(line), str | list):
        reading.content("user", _without_reminders(prompt, reading))
    else:
        reading.omit(ABOUT_THE_SESSION.get(kind, f"log line “{kind[:64]}”"))


def _read_message(line: dict[str, Any], reading: Reading) -> None:
    """Read the message inside, unless the assistant's program wrote it."""
    if line.get("isCompactSummary") is True:
        reading.omit("compact summary")
    elif line.get("isMeta") is True:
        reading.omit("note of the program")
    elif line.get("isApiErrorMessage") is True:
        reading.omit("error of the model's service")
    else:
        _read_inner(line, reading)


def _read_inner(line: dict[str, Any], reading: Reading) -> None:
    message, role = line.get("message"), _role(line)
    if not isinstance(message, dict):
        if isinstance(message, str):
            reading.say(role, message)
        return
    content = _without_reminders(message.get("content"), reading)
    match message.get("role", role):
        case "toolResult":
            reading.result(
                content,
                name=message.get("toolName"),
                call_id=message.get("toolCallId"),
                is_error=truth(message.get("isError")),
                holder=message,
            )
        case "bashExecution":
            reading.say("user", f"! {message.get('command', '')}")
            reading.result(message.get("output"), name="bash", is_error=bool(message.get("exitCode")))
        case "custom" | "hookMessage" | "branchSummary" | "compactionSummary":
            reading.omit("note of the program")
        case _ if content is None and line.get("toolUseResult"):
            reading.result(line["toolUseResult"])
        case _:
            reading.inner({"role": role, **message, "content": content})


def _role(line: dict[str, Any]) -> Role:
    return "assistant" if line["type"] == "assistant" else "user"


def _queued_prompt(line: dict[str, Any]) -> Any:
    """Return what a person typed while the assistant worked, which the log has as an attachment."""
    attachment = line.get("attachment")
    if not isinstance(attachment, dict) or attachment.get("type") not in QUEUED:
        return None
    return attachment.get("prompt")


def _without_reminders(content: Any, reading: Reading) -> Any:
    """Return content without the reminders to the model that the assistant's program put into it."""
    if isinstance(content, str):
        text, count = REMINDER.subn("", content)
        for _ in range(count):
            reading.omit("system")
        return text if count else content
    if isinstance(content, list):
        return [_without_reminders(part, reading) for part in content]
    if isinstance(content, dict) and content.get("type") in ("text", "tool_result"):
        changed = {
            name: _without_reminders(content[name], reading)
            for name in ("text", "content")
            if isinstance(content.get(name), str | list)
        }
        return content | changed
    return content


def _read_call(part: dict[str, Any], reading: Reading, role: Role) -> None:
    reading.call(make_call(id=part.get("id"), name=part.get("name"), arguments=part.get("arguments")))


FAMILY = Family(
    name="coding_log",
    matches=matches,
    read=read,
    parts={"toolCall": _read_call},
)
