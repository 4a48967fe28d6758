"""The calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from time import monotonic, sleep
from typing import Any, Literal
from urllib.parse import quote
from uuid import uuid4

from mirix.client.answers import Added, Dream, Erased, Found, FoundForAll, Run, Session, Skill
from mirix.client.transport import Call, Key, Transport, is_header, json_bytes

Method = Literal["hybrid", "bm25", "embedding", "string_match"]
SERVER_WAITS_SECONDS = 25
OPEN = frozenset({"queued", "running"})


class Mirix:
    """A server of mirix, as one API key sees it.

    Use it as a context, or call `close`: connections are kept between calls. Threads may share one.

    What the server is too busy for (429, 503) is tried again, up to `retries` times, after the pause that it
    names, at most `longest_pause` seconds. So is a request whose connection was lost, here or at a proxy
    (502, 504), where doing it twice does no harm: all but `auto_dream` and what erases. `timeout` bounds a
    try, in seconds.
    Redirects are not followed, and proxies named in the environment not used.

    Every call returns the JSON object of the answer and raises a `MirixError` of its kind otherwise. Optional
    arguments that are not given are not sent, so that the server's defaults hold.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        longest_pause: float = 60.0,
    ) -> None:
        if timeout <= 0 or retries < 0 or longest_pause < 0:
            raise ValueError("timeout must be positive, retries and longest_pause not negative.")
        self._transport = Transport(
            base_url, Key(api_key), timeout=timeout, retries=retries, longest_pause=longest_pause
        )

    def __repr__(self) -> str:
        return f"Mirix({self._transport.base_url!r})"

    def __enter__(self) -> Mirix:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept; a later call opens a new one."""
        self._transport.close()

    def add(
        self,
        messages: Iterable[Any],
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        session_tag: Literal["task", "conversation"] | None = None,
        filter_tags: Mapping[str, Any] | None = None,
        occurred_at: datetime | str | None = None,
        history: Literal["delta", "full"] | None = None,
        idempotency_key: str | None = None,
    ) -> Added:
        """Hand over messages; the worker stores their turns.

        `messages` are as your framework has them, tool calls and results included, also as objects with
        `model_dump`; what became of each is told by `/v1/intake/{intake_id}`. Without `session_id` nothing is
        learned; without `user_id` they are the client's default end user's. `filter_tags` are kept with the
        session. `history="full"` says that the messages are the session from its start, `"delta"` that they
        are new; else the server finds out.

        The request carries `idempotency_key`, a new one for each call unless given, so that it is done once
        however often it is sent. Give your own to repeat a call after an error or a restart.

        Raises `BadRequest` naming the field, `Conflict` when the key was another request's, `TooLarge`.
        """
        return self._add(
            "/memory/add",
            messages,
            idempotency_key,
            session_id=session_id,
            user_id=user_id,
            session_tag=session_tag,
            filter_tags=filter_tags,
            occurred_at=occurred_at,
            history=history,
        )

    def add_sync(
        self,
        messages: Iterable[Any],
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        session_tag: Literal["task", "conversation"] | None = None,
        filter_tags: Mapping[str, Any] | None = None,
        occurred_at: datetime | str | None = None,
        history: Literal["delta", "full"] | None = None,
        idempotency_key: str | None = None,
    ) -> Added:
        """Hand over messages and wait until their turns are stored; `turns` of the answer accounts for each.

        Arguments and errors are those of `add`. Of turns that could not be stored the answer says so in
        `session["state"]`, `missed`; the request is kept all the same.
        """
        return self._add(
            "/memory/add_sync",
            messages,
            idempotency_key,
            session_id=session_id,
            user_id=user_id,
            session_tag=session_tag,
            filter_tags=filter_tags,
            occurred_at=occurred_at,
            history=history,
        )

    def close_session(self, session_id: str, *, user_id: str | None = None) -> Session:
        """Say that a session is complete, so that it can be learned from; doing it again changes nothing.

        Raises `NotFound` when the end user has no such session.
        """
        path = f"/v1/sessions/{_segment(session_id)}/close"
        call = Call(method="POST", path=path, body=json_bytes(_given(user_id=user_id)))
        return self._transport.send(call)

    def retry_session(self, session_id: str, *, user_id: str | None = None) -> Session:
        """Have a session that was given up, or rests after a failure, learned from anew by the next run.

        Raises `NotFound` when the end user has no such session.
        """
        path = f"/v1/sessions/{_segment(session_id)}/retry"
        call = Call(method="POST", path=path, body=json_bytes(_given(user_id=user_id)))
        return self._transport.send(call)

    def auto_dream(
        self,
        *,
        user_id: str | None = None,
        dry_run: bool | None = None,
        last_n_sessions: int | None = None,
        model: str | None = None,
        wait: int | None = None,
    ) -> Dream:
        """Learn from an end user's sealed sessions now, the oldest `last_n_sessions` of them.

        The run is done by the worker. The server waits for its end for `wait` seconds, 25 at most and unless
        given; when the run is not over by then, `state` is `queued` or `running`: see `wait_for_run`. While a
        run of the end user goes on, that one is answered. `dry_run` only says what there is to learn from.

        Raises `NotFound` for an unknown end user, `Conflict` while a run with other parameters goes on. After
        `Unreachable` with `sent` the run may go on; asking again answers it.
        """
        body = _given(user_id=user_id, dry_run=dry_run, last_n_sessions=last_n_sessions, model=model)
        waits = SERVER_WAITS_SECONDS if wait is None else min(wait, SERVER_WAITS_SECONDS)
        call = Call(
            method="POST",
            path="/memory/auto_dream",
            query=_query(wait=wait),
            body=json_bytes(body),
            repeatable=bool(dry_run),
            patience=max(waits, 0),
        )
        return self._transport.send(call)

    def run(self, run_id: str) -> Run:
        """Return a run as it stands; raises `NotFound`."""
        return self._transport.send(Call(method="GET", path=f"/v1/runs/{_segment(run_id)}"))

    def wait_for_run(self, run_id: str, *, seconds: float = 300.0, every: float = 1.0) -> Run:
        """Return a run once it has ended, or as it stands after `seconds`; look at it `every` so often."""
        deadline = monotonic() + seconds
        while (run := self.run(run_id))["state"] in OPEN and (left := deadline - monotonic()) > 0:
            sleep(min(every, left))
        return run

    def search(
        self,
        query: str = "",
        *,
        user_id: str | None = None,
        memory_type: str | None = None,
        search_method: Method | None = None,
        search_field: str | None = None,
        limit: int | None = None,
        filter_tags: Mapping[str, Any] | None = None,
        similarity_threshold: float | None = None,
        explain: bool | None = None,
        token_budget: int | None = None,
        view: Literal["catalog", "full"] | None = None,
    ) -> Found:
        """Find an end user's skills for what is to be done, best first; an empty query finds the newest.

        `search_method` is `hybrid` unless the server is set otherwise; `search_field` searches one field.
        `filter_tags` narrow by the skills' tags: `{"project": "returns"}` is equality, and the operators are
        `{"k": {"$in": [v]}}`, `{"k": {"$contains": v}}` and `{"k": {"$exists": True}}`.
        `similarity_threshold` is a cosine distance and applies to embeddings alone. `token_budget` cuts the
        list to what takes about so many tokens, and a first row that alone takes more has no long texts;
        `view="catalog"` leaves them out of all rows. `skill` fetches them. `explain` adds to each row its
        rank and score by lane, and the terms that matched.

        An unknown `user_id` finds nothing, and is no error. Raises `BadRequest` naming the argument.
        """
        asked = _query(
            query=query,
            user_id=user_id,
            memory_type=memory_type,
            search_method=search_method,
            search_field=search_field,
            limit=limit,
            filter_tags=filter_tags,
            similarity_threshold=similarity_threshold,
            explain=explain,
            token_budget=token_budget,
            view=view,
        )
        return self._transport.send(Call(method="GET", path="/memory/search", query=asked))

    def search_all_users(
        self,
        query: str = "",
        *,
        memory_type: str | None = None,
        search_method: Method | None = None,
        search_field: str | None = None,
        limit: int | None = None,
        filter_tags: Mapping[str, Any] | None = None,
        similarity_threshold: float | None = None,
        explain: bool | None = None,
        token_budget: int | None = None,
        view: Literal["catalog", "full"] | None = None,
    ) -> FoundForAll:
        """Find skills of all end users of the key's organization, each row with its `user_id`.

        Arguments and errors are those of `search`.
        """
        asked = _query(
            query=query,
            memory_type=memory_type,
            search_method=search_method,
            search_field=search_field,
            limit=limit,
            filter_tags=filter_tags,
            similarity_threshold=similarity_threshold,
            explain=explain,
            token_budget=token_budget,
            view=view,
        )
        return self._transport.send(Call(method="GET", path="/memory/search_all_users", query=asked))

    def skill(self, skill_id: str) -> Skill:
        """Return one skill of the key's organization; raises `NotFound`."""
        return self._transport.send(Call(method="GET", path=f"/v1/skills/{_segment(skill_id)}"))

    def erase_user(self, user_id: str) -> Erased:
        """Erase an end user with everything that is theirs, for good; needs a key with `admin`.

        `user_id` is yours, or the `enduser-…` id. Raises `NotFound` when there is none, also once it is
        erased. After `Unreachable` with `sent` it may be done; asking again tells.
        """
        return self._erase(f"/users/{_segment(user_id)}/memories")

    def erase_client(self, client_id: str) -> Erased:
        """Erase everything that came through a client, as `erase_user` does; the client and its keys stay.

        Skills that others' sessions support too lose the erased support and go back to review.
        """
        return self._erase(f"/clients/{_segment(client_id)}/memories")

    def erase_skill(self, skill_id: str) -> Erased:
        """Erase one skill with its whole past, as `erase_user` does."""
        return self._erase(f"/memory/procedural/{_segment(skill_id)}")

    def _erase(self, path: str) -> Erased:
        return self._transport.send(Call(method="DELETE", path=path, repeatable=False))

    def _add(self, path: str, messages: Iterable[Any], idempotency_key: str | None, **envelope: Any) -> Added:
        if isinstance(messages, str | bytes | Mapping):
            raise TypeError(f"messages must be a list of messages, not {type(messages).__name__}.")
        key = uuid4().hex if idempotency_key is None else idempotency_key
        if not key or not is_header(key):
            raise ValueError("idempotency_key must be one line of printable ASCII characters.")
        call = Call(
            method="POST",
            path=path,
            body=json_bytes({"messages": list(messages), **_given(**envelope)}),
            headers={"Idempotency-Key": key},
        )
        return self._transport.send(call)


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _query(**arguments: Any) -> dict[str, str]:
    return {name: _parameter(value) for name, value in _given(**arguments).items()}


def _parameter(value: Any) -> str:
    return _text(value) if isinstance(value, str) else json_bytes(value).decode()


def _segment(text: str) -> str:
    return quote(_text(text), safe="")


def _text(text: str) -> str:
    """Return a text that UTF-8 can hold: halves of a pair put together, lone ones replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
