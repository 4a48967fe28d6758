"""DELETE `/users/{id}/memories` and `/clients/{id}/memories`: what somebody left here goes for good."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mirix.api.authentication import principal_of
from mirix.api.errors import Conflict
from mirix.api.parsers import refuse_body
from mirix.api.views import APIView
from mirix.tenants.audit import Actor
from mirix.tenants.erasure import NothingThere, erase_client, erase_end_user, find_end_users
from mirix.tenants.models import Client, ErasureReceipt, Permission


class ReceiptSerializer(serializers.ModelSerializer):
    """A receipt as the API shows it: counts and digests, and no word of what was erased."""

    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many rows went, by table."
    )
    digests = serializers.DictField(
        child=serializers.CharField(), help_text="SHA-256 of the keys of the rows, by table."
    )
    total = serializers.IntegerField(help_text="How many rows went in all.")

    class Meta:
        model = ErasureReceipt
        fields = ["id", "kind", "subject_id", "subject_hash", "counts", "digests", "total", "created_at"]


class ErasureAnswer(serializers.Serializer):
    """Answer of an erasure."""

    success = serializers.BooleanField()
    message = serializers.CharField()
    preserved = serializers.ListField(
        child=serializers.CharField(), help_text="What of the subject stays, such as a client's keys."
    )
    receipt = ReceiptSerializer()


def erased(receipt: ErasureReceipt, *, preserved: list[str]) -> Response:
    """Return the answer of an erasure that was done."""
    rows = "1 row" if receipt.total == 1 else f"{receipt.total} rows"
    answer = {
        "success": True,
        "message": f"Erased: {rows}. {receipt.pk} is the receipt.",
        "preserved": preserved,
        "receipt": receipt,
    }
    return Response(ErasureAnswer(answer).data)


class EraseUserView(APIView):
    """Erase everything of an end user, the end user included."""

    required_permission = Permission.ADMIN

    @extend_schema(
        operation_id="users_erase",
        tags=["erasure"],
        summary="Erase everything of an end user",
        description="Sessions, lessons, skills, searches and the end user's own row go at once and for good; "
        "a receipt with counts stays. What a run of theirs writes later is discarded.",
        parameters=[
            OpenApiParameter(
                "pk", OpenApiTypes.STR, "path", description="Your own id of the user, or mirix's `enduser-…`."
            )
        ],
        request=None,
        responses={
            200: ErasureAnswer,
            409: OpenApiResponse(description="The id means two end users: name one by `enduser-…`."),
        },
        examples=[
            OpenApiExample(
                "done",
                value={
                    "success": True,
                    "message": "Erased: 12 rows. erasure-0199a0c1f5e2a7b3c4d5e6 is the receipt.",
                    "preserved": [],
                    "receipt": {
                        "id": "erasure-0199a0c1f5e2a7b3c4d5e6",
                        "kind": "end_user",
                        "subject_id": "enduser-0199a0c1f5e2a7b3c4d5e6",
                        "subject_hash": "0" * 64,
                        "counts": {"conversations.session": 2, "conversations.conversationmessage": 9},
                        "digests": {"conversations.session": "0" * 64},
                        "total": 11,
                        "created_at": "2026-12-02T12:00:00Z",
                    },
                },
                response_only=True,
                status_codes=["200"],
            )
        ],
    )
    def delete(self, request: Request, pk: str) -> Response:
        """Erase; 404 for an end user that is not there or somebody else's."""
        refuse_body(request)
        principal = principal_of(request)
        found = list(find_end_users(organization=principal.organization, name=pk))
        if not found:
            raise Http404
        if len(found) > 1:
            raise Conflict("This id means two end users; name the one by its `enduser-…` id.")
        try:
            receipt = erase_end_user(end_user=found[0], actor=Actor.of_principal(principal))
        except NothingThere as error:  # somebody else was faster
            raise Http404 from error
        return erased(receipt, preserved=[])


class EraseClientView(APIView):
    """Erase everything that came through a client."""

    required_permission = Permission.ADMIN

    @extend_schema(
        operation_id="clients_erase",
        tags=["erasure"],
        summary="Erase everything that came through a client",
        description="Its requests, turns and searches go, and what was learned of them. Skills that others' "
        "sessions support too lose the erased support and go back to review. End users of whom nothing is "
        "left go as well; the client and its keys stay.",
        parameters=[OpenApiParameter("pk", OpenApiTypes.STR, "path", description="The client's id.")],
        request=None,
        responses={200: ErasureAnswer},
    )
    def delete(self, request: Request, pk: str) -> Response:
        """Erase; 404 for a client that is not there or somebody else's."""
        refuse_body(request)
        principal = principal_of(request)
        rows = Client.objects.for_organization(principal.organization).filter(pk=pk)
        client = rows.select_related("organization").first()
        if client is None:
            raise Http404
        try:
            receipt = erase_client(client=client, actor=Actor.of_principal(principal))
        except NothingThere as error:  # gone on the way
            raise Http404 from error
        return erased(receipt, preserved=["client", "api_keys"])
