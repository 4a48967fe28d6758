"""Examples for the schema: one talk in every family of shapes, and what intake answers to it.

A customer asks for an order, the agent calls `get_order`, and the call fails. The names of the families are
those of `conversations.extraction.families`.
"""

from __future__ import annotations

import json
from typing import Any

from drf_spectacular.utils import OpenApiExample

ASKED = "Where is my order A-17?"
CALLED = "get_order"
ARGUMENTS = {"order_id": "A-17"}
FAILED = "Error: order not found"
CALL_ID = "call_1"
_AS_TEXT = json.dumps(ARGUMENTS)

SESSION = {
    "session_id": "support-2026-03-01-17",
    "user_id": "desk-4",
    "filter_tags": {"project": "returns"},
}

_CHAT_CALL = {"id": CALL_ID, "type": "function", "function": {"name": CALLED, "arguments": _AS_TEXT}}
_CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "You help customers with their orders."},
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": None, "tool_calls": [_CHAT_CALL]},
    {"role": "tool", "tool_call_id": CALL_ID, "content": FAILED},
]
_RESPONSES_CALL = {"type": "function_call", "call_id": CALL_ID, "name": CALLED, "arguments": _AS_TEXT}
_RESPONSES_OUTPUT = {"type": "function_call_output", "call_id": CALL_ID, "output": FAILED}
_ANTHROPIC_CALL = {"type": "tool_use", "id": CALL_ID, "name": CALLED, "input": ARGUMENTS}
_ANTHROPIC_RESULT = {"type": "tool_result", "tool_use_id": CALL_ID, "is_error": True, "content": FAILED}
_MODEL_MESSAGES: list[dict[str, Any]] = [
    {"type": "human", "content": ASKED},
    {"type": "ai", "content": "", "tool_calls": [{"id": CALL_ID, "name": CALLED, "args": ARGUMENTS}]},
]

MESSAGES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "openai_chat": ("OpenAI chat", _CHAT),
    "openai_responses": (
        "OpenAI Responses",
        [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASKED}]},
            _RESPONSES_CALL,
            _RESPONSES_OUTPUT,
        ],
    ),
    "anthropic": (
        "Anthropic",
        [
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": [_ANTHROPIC_CALL]},
            {"role": "user", "content": [_ANTHROPIC_RESULT]},
        ],
    ),
    "bedrock": (
        "Amazon Bedrock",
        [
            {"role": "user", "content": [{"text": ASKED}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": CALL_ID, "name": CALLED, "input": ARGUMENTS}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": CALL_ID,
                            "status": "error",
                            "content": [{"text": FAILED}],
                        }
                    }
                ],
            },
        ],
    ),
    "gemini": (
        "Gemini",
        [
            {"role": "user", "parts": [{"text": ASKED}]},
            {"role": "model", "parts": [{"functionCall": {"name": CALLED, "args": ARGUMENTS}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": CALLED, "response": {"error": FAILED}}}],
            },
        ],
    ),
    "vercel": (
        "Vercel AI SDK",
        [
            {"id": "m1", "role": "user", "parts": [{"type": "text", "text": ASKED}]},
            {
                "id": "m2",
                "role": "assistant",
                "parts": [
                    {
                        "type": f"tool-{CALLED}",
                        "toolCallId": CALL_ID,
                        "state": "output-error",
                        "input": ARGUMENTS,
                        "errorText": FAILED,
                    }
                ],
            },
        ],
    ),
    "mistral": (
        "Mistral conversations",
        [
            {"type": "message.input", "role": "user", "content": ASKED},
            {"type": "function.call", "tool_call_id": CALL_ID, "name": CALLED, "arguments": _AS_TEXT},
            {"type": "function.result", "tool_call_id": CALL_ID, "result": FAILED},
        ],
    ),
    "pydantic_ai": (
        "Pydantic AI",
        [
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ASKED}]},
            {
                "kind": "response",
                "parts": [
                    {
                        "part_kind": "tool-call",
                        "tool_name": CALLED,
                        "args": ARGUMENTS,
                        "tool_call_id": CALL_ID,
                    }
                ],
            },
            {
                "kind": "request",
                "parts": [
                    {
                        "part_kind": "retry-prompt",
                        "tool_name": CALLED,
                        "tool_call_id": CALL_ID,
                        "content": FAILED,
                    }
                ],
            },
        ],
    ),
    "langchain": (
        "LangChain",
        [
            *({"type": message["type"], "data": message} for message in _MODEL_MESSAGES),
            {"type": "tool", "data": {"tool_call_id": CALL_ID, "status": "error", "content": FAILED}},
        ],
    ),
    "sharegpt": (
        "ShareGPT",
        [
            {"from": "human", "value": ASKED},
            {"from": "function_call", "value": json.dumps({"name": CALLED, "arguments": ARGUMENTS})},
            {"from": "observation", "value": FAILED},
        ],
    ),
    "langsmith": (
        "LangSmith run",
        [
            {
                "id": "run-1",
                "run_type": "llm",
                "inputs": {
                    "messages": [
                        *_MODEL_MESSAGES,
                        {"type": "tool", "tool_call_id": CALL_ID, "status": "error", "content": FAILED},
                    ]
                },
            }
        ],
    ),
    "coding_log": (
        "Log of a coding assistant",
        [
            {"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"role": "user", "content": ASKED}},
            {
                "type": "assistant",
                "uuid": "u2",
                "sessionId": "s1",
                "message": {"role": "assistant", "content": [_ANTHROPIC_CALL]},
            },
            {
                "type": "user",
                "uuid": "u3",
                "sessionId": "s1",
                "message": {"role": "user", "content": [_ANTHROPIC_RESULT]},
            },
        ],
    ),
    "codex_log": (
        "Log of Codex",
        [
            {
                "type": "response_item",
                "payload": {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": ASKED}],
                },
            },
            {"type": "response_item", "payload": _RESPONSES_CALL},
            {"type": "response_item", "payload": _RESPONSES_OUTPUT},
        ],
    ),
    "agent_events": (
        "Events of an agent's session",
        [
            {"type": "user.message", "content": [{"type": "text", "text": ASKED}]},
            {"type": "agent.tool_use", "id": CALL_ID, "name": CALLED, "input": ARGUMENTS},
            {
                "type": "agent.tool_result",
                "tool_use_id": CALL_ID,
                "is_error": True,
                "content": [{"type": "text", "text": FAILED}],
            },
        ],
    ),
    "typed_speech": (
        "Log of Gemini's command line",
        [
            {"type": "user", "content": ASKED},
            {
                "type": "gemini",
                "content": "",
                "toolCalls": [
                    {
                        "id": CALL_ID,
                        "name": CALLED,
                        "args": ARGUMENTS,
                        "status": "error",
                        "result": [{"functionResponse": {"response": {"error": FAILED}}}],
                    }
                ],
            },
        ],
    ),
    "replies": (
        "Whole replies of a provider",
        [
            {"role": "user", "content": ASKED},
            {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [_CHAT_CALL]}}]},
            {"role": "tool", "tool_call_id": CALL_ID, "content": FAILED},
        ],
    ),
}
"""By the family's name: what people call it, and the talk in its shape."""

REQUESTS = [
    OpenApiExample(
        name,
        SESSION | {"messages": messages},
        summary=title,
        request_only=True,
    )
    for name, (title, messages) in MESSAGES.items()
]

REPORT: dict[str, Any] = {
    "stored": 3,
    "truncated": 0,
    "duplicate": 0,
    "skipped": [{"index": 0, "reason": "system message"}],
    "omitted": {},
    "roles": {"user": 1, "assistant": 1, "tool": 1},
}
INTAKE_ID = "intake-019a2b3c-4d5e-7f8a-9b0c-1d2e3f405162"
STORED: dict[str, Any] = {
    "success": True,
    "message": "Accepted. 3 turns stored.",
    "status": "processed",
    "message_count": 4,
    "intake_id": INTAKE_ID,
    "session": {"session_id": SESSION["session_id"], "state": "open", "turn_count": 3},
    "turns": REPORT,
}
MISSED = STORED | {
    "message": "Accepted. The turns could not be stored; the request is kept and can be replayed.",
    "session": {
        "session_id": SESSION["session_id"],
        "state": "missed",
        "reason": "storing the turns failed (DataError)",
    },
    "turns": None,
}
QUEUED = STORED | {
    "message": "Accepted. The turns are stored by the worker.",
    "status": "queued",
    "session": {"session_id": SESSION["session_id"], "state": "open", "turn_count": 0},
    "turns": None,
}
UNLEARNED = STORED | {
    "message": "Accepted. Without session_id nothing is learned from it.",
    "message_count": 1,
    "session": None,
    "turns": REPORT
    | {
        "stored": 0,
        "roles": {},
        "skipped": [{"index": 0, "reason": "no session_id: nothing is learned from it"}],
    },
}

_RECORD: dict[str, Any] = {
    "id": INTAKE_ID,
    "user_id": SESSION["user_id"],
    "client_id": "client-019a2b3c-4d5e-7f8a-9b0c-1d2e3f405163",
    "session_id": SESSION["session_id"],
    "session_tag": "",
    "filter_tags": SESSION["filter_tags"],
    "history": "",
    "occurred_at": None,
    "message_count": 4,
    "state": "stored",
    "turns": REPORT,
    "error": "",
    "created_at": "2026-03-01T09:30:00Z",
    "stored_at": "2026-03-01T09:30:01Z",
    "body_pruned_at": None,
}
_UNREADABLE = {
    "index": 3,
    "reason": "expected an object with “role” and “content”, or another shape of docs/shapes.md, got an "
    "object with “what”",
    "unreadable": True,
}
RECORDS: dict[str, dict[str, Any]] = {
    "stored": _RECORD,
    "partial": _RECORD
    | {
        "state": "partial",
        "turns": REPORT
        | {
            "stored": 2,
            "skipped": [*REPORT["skipped"], _UNREADABLE],
            "roles": {"user": 1, "assistant": 1},
        },
    },
    "partly_read": _RECORD
    | {
        "state": "partial",
        "turns": REPORT
        | {
            "omitted": {"unknown content": 1},
            "unread_at": [[1, 1]],
            "unread_turns": {"1": [[1, 1]]},
        },
    },
    "failed": _RECORD
    | {
        "state": "failed",
        "turns": None,
        "error": "storing the turns failed (DataError)",
        "stored_at": None,
    },
    "queued": _RECORD | {"state": "queued", "turns": None, "stored_at": None},
}
"""What the ledger holds of the talk, by its state; `partly_read` where a part of the question is unknown."""


def answer(name: str, value: dict[str, Any], summary: str) -> OpenApiExample:
    """Return an example of a successful answer."""
    return OpenApiExample(name, value, summary=summary, response_only=True, status_codes=["200"])


ADDED_SYNC = [
    answer("stored", STORED, "Stored"),
    answer("missed", MISSED, "Kept, its turns missed"),
    answer("unlearned", UNLEARNED, "Without session_id"),
]
ADDED = [answer("queued", QUEUED, "Queued")]
LEDGER = [answer(name, record, name.capitalize().replace("_", " ")) for name, record in RECORDS.items()]
