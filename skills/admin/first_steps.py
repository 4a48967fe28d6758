"""What to do next where there is nothing yet: commands for a shell that do it, ready to be copied.

What callers wrote stands in them only as a part of an address, encoded, and all of them within quotes.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse

from conversations.models import Session, SessionTag
from mirix.admin_forms import administered_ids
from mirix.tenants.models import Membership, Role
from skills.admin.scope import Scope

PLACEHOLDER = "paste-an-API-key-here"
USER, SESSION = "desk-7", "order-4711"
MAX_NAMED = 5
SAID: Sequence[dict[str, Any]] = (
    {"role": "user", "content": "Refund order 4711, please."},
    {"role": "assistant", "content": "Refunded as a voucher."},
    {"role": "user", "content": "No, it was paid by card. Refund it to the card."},
    {"role": "assistant", "content": "Done: refunded to the card."},
)


@dataclass(frozen=True, kw_only=True)
class KeyHelp:
    """Where the key comes from: a page that makes one, or whom to ask."""

    organization: str
    """Its name; empty where it is not known which one."""
    url: str
    """Of the page, where the user may make one."""
    administrators: list[str]
    """Else who may; empty where nobody may but who runs the installation."""


def send_a_session(request: HttpRequest) -> str:
    """Return the commands that send a session and close it."""
    body = json.dumps({"user_id": USER, "session_id": SESSION, "messages": list(SAID)}, indent=1)
    return _script(
        f'curl -sS {_url(request, "/memory/add_sync")} -H "X-API-Key: $KEY" '
        f"-H 'Content-Type: application/json' -d {shlex.quote(body)}",
        _post(request, f"/v1/sessions/{SESSION}/close", {"user_id": USER}),
    )


def dream(request: HttpRequest, scope: Scope) -> str:
    """Return the command that learns from what the end user of the newest session did; one query."""
    return _script(_post(request, "/memory/auto_dream", _newest_user(scope)))


def ask(request: HttpRequest, scope: Scope) -> str:
    """Return the command that searches in the skills of that end user; one query."""
    asked = _newest_user(scope) | {"query": "how do I refund an order that was paid by card?"}
    return _script(f'curl -sS {_url(request, "/memory/search", asked)} -H "X-API-Key: $KEY"')


def help_with_key(request: HttpRequest, scope: Scope) -> KeyHelp:
    """Return where a key of these organizations comes from; at most one query."""
    allowed = administered_ids(request)
    ids = scope.ids or []
    may = allowed is None or bool(set(allowed) & set(ids))
    return KeyHelp(
        organization=scope.chosen.name if scope.chosen else "",
        url=reverse("admin:tenants_apikey_add") if may else "",
        administrators=[] if may else _administrators(ids),
    )


def _administrators(ids: list[str]) -> list[str]:
    members = Membership.objects.for_organizations(ids).filter(role=Role.ADMINISTRATOR, user__is_active=True)
    names = members.order_by("user__username").values_list(f"user__{User.USERNAME_FIELD}", flat=True)
    return list(names.distinct()[:MAX_NAMED])


def _newest_user(scope: Scope) -> dict[str, str]:
    tasks = scope.rows(Session).filter(tag=SessionTag.TASK).order_by("-created_at", "id")
    user_id = tasks.values_list("end_user__user_id", flat=True).first()
    return {"user_id": user_id} if user_id else {}


def _post(request: HttpRequest, path: str, query: dict[str, str]) -> str:
    return f'curl -sS -X POST {_url(request, path, query)} -H "X-API-Key: $KEY"'


def _url(request: HttpRequest, path: str, query: dict[str, str] | None = None) -> str:
    url = request.build_absolute_uri(path)
    return shlex.quote(f"{url}?{urlencode(query)}" if query else url)


def _script(*commands: str) -> str:
    return "\n\n".join((f"KEY='{PLACEHOLDER}'", *commands))
