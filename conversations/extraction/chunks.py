"""What the chunks of a streamed reply add up to."""

from __future__ import annotations

from typing import Any


def joined(streamed: Any) -> Any:
    """Return the message that chunks add up to, or their text; None for what are no chunks.

    Knows chunks of chat completions (`choices` with `delta`), chunks whose `content` or `text` is text,
    LangChain's chunks in their `kwargs`, and plain text.
    """
    if not isinstance(streamed, list) or not streamed:
        return None
    if all(isinstance(chunk, str) for chunk in streamed):
        return "".join(streamed) or None
    deltas = [delta for chunk in streamed if (delta := _delta(chunk)) is not None]
    if not deltas:
        return None
    text = "".join(text for delta in deltas if isinstance(text := _text(delta), str))
    calls = _calls(delta.get("tool_calls") for delta in deltas)
    if not text and not calls:
        return None
    return {"role": "assistant", "content": text or None, "tool_calls": calls or None}


def _delta(chunk: Any) -> dict[str, Any] | None:
    if not isinstance(chunk, dict):
        return {"content": chunk} if isinstance(chunk, str) else None
    choices = chunk.get("choices")
    if isinstance(choices, list):
        first = choices[0] if choices and isinstance(choices[0], dict) else {}
        delta = first.get("delta")
        return delta if isinstance(delta, dict) else None
    inner = chunk.get("message", chunk)
    inner = inner.get("kwargs", inner) if isinstance(inner, dict) else inner
    return inner if isinstance(inner, dict) and isinstance(_text(inner), str) else None


def _text(delta: dict[str, Any]) -> Any:
    return delta.get("content", delta.get("text"))


def _calls(parts: Any) -> list[dict[str, Any]]:
    calls: dict[Any, dict[str, Any]] = {}
    for part in parts:
        for position, piece in enumerate(part if isinstance(part, list) else []):
            if not isinstance(piece, dict) or not isinstance(piece.get("function"), dict):
                continue
            index = piece.get("index", position)
            call = calls.setdefault(
                index if isinstance(index, int) else position, {"name": "", "arguments": ""}
            )
            call["id"] = call.get("id") or piece.get("id")
            for name in ("name", "arguments"):
                text = piece["function"].get(name)
                call[name] += text if isinstance(text, str) else ""
    return [
        {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in calls.values()
    ]
