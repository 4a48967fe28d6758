"""The shapes of the answers, for type checkers; each is the plain dict that the server sent.

Further fields may follow in later releases.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Skipped(TypedDict):
    """A message without a turn, by its index in the request."""

    index: int
    reason: str
    unreadable: NotRequired[bool]


class Turns(TypedDict):
    """What became of the messages of a request."""

    stored: int
    truncated: int
    duplicate: int
    skipped: list[Skipped]
    roles: dict[str, int]
    omitted: NotRequired[dict[str, int]]
    truncated_at: NotRequired[list[list[int]]]
    duplicate_at: NotRequired[list[list[int]]]


class SessionBrief(TypedDict):
    """The session after a request; `state` is `missed`, with the reason, where turns could not be stored."""

    session_id: str
    state: str
    turn_count: NotRequired[int]
    reason: NotRequired[str]


class Added(TypedDict):
    """The answer to `add` and `add_sync`; `turns` is None while the worker has yet to store them."""

    success: bool
    message: str
    status: Literal["processed", "queued"]
    message_count: int
    intake_id: str
    session: SessionBrief | None
    turns: Turns | None


class Session(TypedDict):
    """A session; `state` is `open`, `sealed`, `distilled` or `dead`. Times are ISO 8601."""

    session_id: str
    user_id: str
    tag: str
    filter_tags: dict[str, Any]
    state: str
    turn_count: int
    closed_at: str | None
    sealed_at: str | None
    distilled_at: str | None
    distilled_through: int
    last_error: str


class Skill(TypedDict):
    """A skill as `/v1/skills/{id}` has it; `status` is `active`, `archived` or `quarantined`."""

    id: str
    user_id: str
    name: str
    entry_type: str
    description: str
    instructions: str
    triggers: list[str]
    examples: list[Any]
    version: str
    status: str
    revision_id: str | None
    filter_tags: dict[str, Any]
    created_at: str
    updated_at: str


class Row(TypedDict):
    """One skill that was found. `score` compares within one answer; None where nothing was ranked.

    The long texts are left out of a catalog, and of a first row that alone breaks a token budget; `user_id`
    is there where all users' skills were searched.
    """

    memory_type: str
    id: str
    user_id: NotRequired[str]
    name: str
    entry_type: str
    description: str
    instructions: NotRequired[str]
    triggers: NotRequired[list[str]]
    examples: NotRequired[list[Any]]
    version: str
    revision_id: str | None
    filter_tags: dict[str, Any]
    score: float | None
    created_at: str
    updated_at: str
    explain: NotRequired[dict[str, Any]]


class Found(TypedDict):
    """The answer to a search, best first.

    `total_count` is how many match before the list is cut; `degraded` says what the search had to do without.
    """

    success: bool
    query: str
    memory_type: str
    search_field: str | None
    search_method: str
    date_range: None
    results: list[Row]
    count: int
    total_count: int
    degraded: str | None
    message: NotRequired[str]


class FoundForAll(Found):
    """The answer to a search across the organization; each row has its `user_id`."""

    client_id: str | None
    organization_id: str
    filter_tags: dict[str, Any] | None


class Dream(TypedDict):
    """What a run came to, or has come to so far.

    `state` is `queued`, `running`, `finished`, `failed`, `interrupted` or `abandoned`, and None for a dry
    run. `changes` has the ids of skills that were published, `proposals` those of revisions that wait for a
    person.
    """

    success: bool
    message: str
    run_id: str | None
    state: str | None
    dry_run: bool
    last_dream_at: str | None
    processed: dict[str, dict[str, int]]
    skills_changed: int
    changes: dict[str, list[str]]
    proposals: list[str]
    sessions: dict[str, int]
    would_distil: NotRequired[dict[str, int]]


class Run(TypedDict):
    """A run as `/v1/runs/{id}` has it; `state` as in `Dream`."""

    id: str
    user_id: str
    trigger: str
    state: str
    parameters: dict[str, Any]
    counts: dict[str, Any]
    tokens: int
    error: str
    created_at: str
    started_at: str | None
    heartbeat_at: str | None
    finished_at: str | None
    progress: dict[str, int]
    notes: list[Any]
    attempts: list[dict[str, Any]]


class Receipt(TypedDict):
    """What remains of an erasure: counts and SHA-256 digests by table, and no word of what was erased."""

    id: str
    kind: str
    subject_id: str
    subject_hash: str
    counts: dict[str, int]
    digests: dict[str, str]
    total: int
    created_at: str


class Erased(TypedDict):
    """The answer to what erases; `preserved` names what of the subject stays."""

    success: bool
    message: str
    preserved: list[str]
    receipt: Receipt
