"""System checks of how callers are recognized, and who monitors."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks

TRUSTED_CLIENT_ID = "mirix.W001"
GUESSABLE = "mirix.W004"
SHORTEST_TOKEN, FEWEST_CHARACTERS = 32, 10


@checks.register(checks.Tags.security)
def warn_of_trusted_client_ids(**_: Any) -> list[checks.CheckMessage]:
    """Warn, always and not only with `--deploy`, where callers need no secret."""
    if not settings.MIRIX_TRUST_CLIENT_ID_HEADER:
        return []
    return [
        checks.Warning(
            "MIRIX_TRUST_CLIENT_ID_HEADER is true: whoever reaches this server and knows the id of a client "
            "reads and writes in its organization, without a secret.",
            hint="Unset it, or let only a proxy in that authenticates callers and sets X-Client-ID itself.",
            id=TRUSTED_CLIENT_ID,
        )
    ]


@checks.register(checks.Tags.security, deploy=True)
def warn_of_guessable_tokens(**_: Any) -> list[checks.CheckMessage]:
    """Warn where the token of `/metrics` can be guessed, or was never filled in."""
    token = settings.MIRIX_METRICS_TOKEN
    is_filled_in = "FILL-IN" not in token
    if not token or (len(token) >= SHORTEST_TOKEN and len(set(token)) >= FEWEST_CHARACTERS and is_filled_in):
        return []
    return [
        checks.Warning(
            f"MIRIX_METRICS_TOKEN can be guessed: it has {len(token)} characters, {len(set(token))} of them "
            f"different; at least {SHORTEST_TOKEN} and {FEWEST_CHARACTERS} are wanted.",
            hint="Make one with Python: import secrets; secrets.token_urlsafe(48)",
            id=GUESSABLE,
        )
    ]
