"""What the app registers with `mirix.tenants.erasure`."""

from __future__ import annotations

from mirix.tenants.erasure import Eraser
from skills.erasure import clients, owners
from skills.search.cache import cache

ERASER = Eraser(
    name="skills",
    lock_end_user=owners.lock_end_user,
    erase_end_user=owners.erase_end_user,
    end_users_of_client=clients.end_users_of_client,
    lock_client=clients.lock_client,
    erase_client=clients.erase_client,
    is_left=clients.is_left,
    settle=clients.settle,
    afterwards=cache.forget,
)
