"""POST `/users/create_or_get`: the end user behind a caller's own id."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mirix.api.authentication import principal_of
from mirix.api.views import APIView
from mirix.tenants.models import EndUser
from mirix.tenants.selectors import find_owner_of
from mirix.tenants.services import get_or_create_end_user


class EndUserRequest(serializers.Serializer):
    """Body of `/users/create_or_get`."""

    user_id = serializers.CharField(
        max_length=256,
        required=False,
        help_text="Your own id of the user; omitted: the client's default. Members must name one.",
    )
    name = serializers.CharField(max_length=256, required=False, allow_blank=True, default="")


class EndUserSerializer(serializers.ModelSerializer):
    """An end user as the API shows it."""

    organization_id = serializers.CharField()

    class Meta:
        model = EndUser
        fields = ["id", "user_id", "name", "organization_id", "created_at"]


class EndUserView(APIView):
    """Create an end user, or return the one that exists."""

    @extend_schema(
        operation_id="users_create_or_get",
        tags=["users"],
        request=EndUserRequest,
        responses={
            200: OpenApiResponse(EndUserSerializer, description="It existed."),
            201: OpenApiResponse(EndUserSerializer, description="It was created."),
        },
    )
    def post(self, request: Request) -> Response:
        """Return the end user; 201 when it was made by this call."""
        principal = principal_of(request)
        body = EndUserRequest(data=request.data)
        body.is_valid(raise_exception=True)
        user_id = principal.named_user(body.validated_data.get("user_id"))
        known = find_owner_of(organization=principal.organization, user_id=user_id)
        end_user = (
            known.end_user
            if known
            else get_or_create_end_user(
                organization=principal.organization,
                user_id=user_id,
                name=body.validated_data["name"],
                made_by=principal.client,
            )
        )
        return Response(EndUserSerializer(end_user).data, status=200 if known else 201)
