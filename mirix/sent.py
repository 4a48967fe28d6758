"""Doing something once an answer is on its way, so that nobody waits for it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpResponseBase


def when_sent(response: HttpResponseBase, act: Callable[[], object]) -> None:
    """Have `act` called once when the server has sent the response and closes it.

    That is before Django lets go of the database's connections, and after the request's scope has ended.
    `act` must not raise: there is nobody left to be told.
    """
    close = response.close

    def act_and_close() -> None:
        response.close = close  # type: ignore[method-assign]
        try:
            act()
        finally:
            close()

    response.close = act_and_close  # type: ignore[method-assign]
