"""A thin client of mirix's API for agents and programs, with nothing but the standard library.

    from mirix.client import Mirix

    with Mirix("http://127.0.0.1:8531", api_key) as mirix:
        mirix.add_sync(messages, session_id="order-4711", user_id="desk-7")
        found = mirix.search("refund an order that was paid by card", user_id="desk-7")

It imports nothing of the rest of mirix, so the folder can be copied into a program that has no Django.
"""

from mirix.client.client import Mirix
from mirix.client.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    MirixError,
    NotFound,
    ServerError,
    Throttled,
    TooLarge,
    Unauthorized,
    Unreachable,
)

__all__ = [
    "BadRequest",
    "Conflict",
    "Forbidden",
    "Mirix",
    "MirixError",
    "NotFound",
    "ServerError",
    "Throttled",
    "TooLarge",
    "Unauthorized",
    "Unreachable",
]
