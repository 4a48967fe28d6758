"""The names that others give to what a record holds: one table for each."""

from __future__ import annotations

SESSION_IDS = (
    "session_id",
    "sessionId",
    "conversation_id",
    "conversationId",
    "thread_id",
    "threadId",
    "trajectory_id",
    "trajectoryId",
    "instance_id",
    "chat_id",
)
"""Names of a session's id, on a record as on a line of a log; the first that is there counts."""

RECORD_IDS = (*SESSION_IDS, "id", "uuid")
"""The same for a record, which may have a plain id; on a message that would be the message's own."""

MESSAGES = (
    "messages",
    "conversations",
    "conversation",
    "contents",
    "input",
    "lines",
    "history",
    "trajectory",
    "turns",
    "dialog",
    "dialogue",
    "chat",
    "events",
)
"""Names of a session's messages."""

WRAPPERS = ("sample", "data", "record", "conversation", "session", "request", "response", "body")
"""Names under which a record or a message lies one level deeper, with other things beside it."""

MOMENTS = ("timestamp", "created_at", "createdAt", "create_time", "startTime", "start_time", "date")
"""Names of when a session happened, besides `occurred_at`; counted where they hold an ISO 8601 text."""

HEADERS = (
    ("session_meta", "payload", "id"),
    ("session.start", "data", "sessionId"),
    ("session", "", "id"),
    ("thread.started", "", "thread_id"),
)
"""Lines that open a log and name its session: their type, the object that holds the id, the id's name."""
