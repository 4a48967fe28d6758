"""Fixtures of the conversations' tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conversations.envelope import checked
from conversations.intake import Accepted, accept


@pytest.fixture
def add(owner, client_row) -> Callable[..., Accepted]:
    """Add messages to session `s-1` at once; keywords go to the envelope or to `accept`."""

    def add(*messages: Any, session_id: str = "s-1", key: str = "", wait: bool = True, **fields) -> Accepted:
        return accept(
            client=client_row,
            owner=owner,
            envelope=checked(messages=list(messages), session_id=session_id, **fields),
            wait=wait,
            idempotency_key=key,
        )

    return add
