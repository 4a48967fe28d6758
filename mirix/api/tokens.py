"""POST `/auth/token` and `/auth/token/refresh`: tokens for members."""

from __future__ import annotations

import unicodedata
from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import AuthenticationFailed, ValidationError
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from mirix.api.authentication import REFUSED
from mirix.api.views import APIView
from mirix.tenants.models import Role
from mirix.tenants.tokens import MAX_CHARS, Pair, find_member, issue, renew
from mirix.text import clean_text

CHALLENGE = 'Bearer realm="mirix"'
WHICH = "Name the organization by its name or id: you are not a member of exactly one."
NOT_YOURS = "You are not a member of an organization of this name or id."
NOT_TEXT = "This is not valid text."
MAX_PASSWORD_CHARS = 4096


def _require_text(value: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise serializers.ValidationError(NOT_TEXT)


class TokenRequest(serializers.Serializer):
    """Body of `/auth/token`."""

    username = serializers.CharField(max_length=150, validators=[_require_text])
    password = serializers.CharField(
        max_length=MAX_PASSWORD_CHARS, trim_whitespace=False, validators=[_require_text], write_only=True
    )
    organization = serializers.CharField(
        max_length=128,
        required=False,
        help_text="Name or id; may be left out by a member of exactly one organization.",
    )

    def validate_username(self, username: str) -> str:
        """Return the name as the login form of the admin reads it."""
        return unicodedata.normalize("NFKC", username)


class RefreshRequest(serializers.Serializer):
    """Body of `/auth/token/refresh`."""

    refresh = serializers.CharField(max_length=MAX_CHARS, write_only=True)


class TokenAnswer(serializers.Serializer):
    """Two tokens, and what they open."""

    access = serializers.CharField(help_text="Send it as `Authorization: Bearer …`.")
    refresh = serializers.CharField(help_text="Serves once, for the next pair.")
    token_type = serializers.CharField(help_text="Always `Bearer`.")
    expires_in = serializers.IntegerField(help_text="Seconds that the access token lives.")
    organization_id = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.choices, help_text="Each request looks it up anew.")


class _TokenView(APIView):
    authentication_classes: list[type] = []
    permission_classes = [AllowAny]
    route_kind = "auth"

    def get_authenticate_header(self, request: Request) -> str:
        """Return the challenge, so that refusals are 401 here too."""
        return CHALLENGE

    def answer(self, pair: Pair) -> Response:
        """Answer the tokens, and let nobody on the way keep them."""
        data = {
            "access": pair.access,
            "refresh": pair.refresh,
            "token_type": "Bearer",
            "expires_in": pair.expires_in,
            "organization_id": pair.principal.organization.pk,
            "role": pair.principal.role,
        }
        return Response(TokenAnswer(data).data, headers={"Cache-Control": "no-store"})


REFUSALS: dict[int, Any] = {
    400: OpenApiResponse(description="Invalid, naming the field."),
    401: OpenApiResponse(description="Refused; the answer does not tell why."),
    429: OpenApiResponse(description="Too many attempts; see Retry-After."),
}


class TokenView(_TokenView):
    """Name and password for two tokens."""

    @extend_schema(
        operation_id="auth_token",
        tags=["auth"],
        summary="Log in as a member",
        request=TokenRequest,
        responses={200: TokenAnswer, **REFUSALS},
        auth=[],
    )
    def post(self, request: Request) -> Response:
        """Answer tokens for one organization of the person."""
        body = TokenRequest(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        # Django hashes once for unknown names too, so that time tells no more than the answer does.
        user = authenticate(request._request, username=asked["username"], password=asked["password"])
        if not isinstance(user, User):
            raise AuthenticationFailed(REFUSED)
        organization = clean_text(asked.get("organization", ""))
        principal = find_member(user=user, organization=organization)
        if principal is None:
            raise ValidationError({"organization": [NOT_YOURS if organization else WHICH]})
        pair = issue(principal=principal)
        user_logged_in.send(sender=User, request=request._request, user=user)
        return self.answer(pair)


class RefreshView(_TokenView):
    """A refresh token for the next two."""

    @extend_schema(
        operation_id="auth_token_refresh",
        tags=["auth"],
        summary="Renew a member's tokens",
        description="A refresh token serves once. One that comes a second time was copied: then every token "
        "of the same login is refused, and the member logs in again.",
        request=RefreshRequest,
        responses={200: TokenAnswer, **REFUSALS},
        auth=[],
    )
    def post(self, request: Request) -> Response:
        """Answer the next two tokens, with the role of today."""
        body = RefreshRequest(data=request.data)
        body.is_valid(raise_exception=True)
        pair = renew(refresh=body.validated_data["refresh"])
        if pair is None:
            raise AuthenticationFailed(REFUSED)
        return self.answer(pair)
