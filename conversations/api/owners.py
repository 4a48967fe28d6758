"""Whose sessions a request is about: its `user_id`, in the query or the body, else the default end user."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from mirix.api.authentication import principal_of
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import find_owner
from mirix.tenants.services import get_or_create_end_user

USER_ID = OpenApiParameter(
    "user_id",
    OpenApiTypes.STR,
    description="Your own id of the end user; omitted: the client's default end user. Members must name one.",
)


def owner_to_read(request: Request, body_user_id: str | None = None) -> Owner | None:
    """Return the owner a request names; None when the caller's organization knows no such end user."""
    return find_owner(principal=principal_of(request), user_id=_user_id(request, body_user_id))


def owner_to_write(request: Request, body_user_id: str | None = None) -> Owner:
    """Return the owner a request names; the end user is made on first use."""
    principal = principal_of(request)
    user_id = principal.named_user(_user_id(request, body_user_id))
    end_user = get_or_create_end_user(
        organization=principal.organization, user_id=user_id, made_by=principal.client
    )
    return Owner(organization=principal.organization, end_user=end_user)


def _user_id(request: Request, body_user_id: str | None) -> str | None:
    in_query = request.query_params.get("user_id") or None
    if in_query and body_user_id and in_query != body_user_id:
        raise ValidationError({"user_id": ["The query and the body name different users."]})
    return in_query or body_user_id
