"""System checks of how callers are recognized."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks

TRUSTED_CLIENT_ID = "mirix.W001"


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
