"""POST `/v1/proposals/{id}/approve` and `…/reject`: members decide, by the same services as in the admin."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api.fields import StrictBody, TextField
from mirix.api.authentication import principal_of
from mirix.api.errors import Conflict
from mirix.api.permissions import MayReview
from mirix.api.views import APIView
from mirix.text import clean_text
from skills.api.revisions import ProposalDetailSerializer
from skills.models import SkillRevision
from skills.review.errors import (
    AgainstPolicy,
    AlreadyDecided,
    BaseConflict,
    InvalidContent,
    MayNotDecide,
    ReviewError,
    UnverifiedSupport,
)
from skills.review.publishing import approve, reject
from skills.selectors.proposals import find_revision

MAX_REASON_CHARS = 2_000
WHAT_TO_DO: dict[type[ReviewError], str] = {
    AlreadyDecided: "Nothing was changed.",
    BaseConflict: "Reject it, and the next run proposes anew.",
    AgainstPolicy: "Leave it until more sessions teach it, or until another reviewer decides.",
    UnverifiedSupport: "Reject it, or leave it until a run adds evidence that is verified.",
    InvalidContent: "Reject it: as it is, it cannot be published.",
}


class ApproveRequest(StrictBody):
    """Body of `…/approve`; may be left out."""

    reason = TextField(
        max_length=MAX_REASON_CHARS, required=False, allow_blank=True, default="", help_text="Why."
    )


class RejectRequest(StrictBody):
    """Body of `…/reject`."""

    reason = TextField(max_length=MAX_REASON_CHARS, help_text="Why; a rejection needs it.")


RESPONSES: dict[int, Any] = {
    200: OpenApiResponse(ProposalDetailSerializer, description="Decided, now or before in the same way."),
    400: OpenApiResponse(description="Invalid, naming the field."),
    403: OpenApiResponse(description="No member who may review; a key never is."),
    404: OpenApiResponse(description="No such proposal."),
    409: OpenApiResponse(description="It cannot be decided so; the answer says why and what to do."),
}


class _DecisionView(APIView):
    permission_classes = [MayReview]
    body_class: type[StrictBody]

    def decide(self, revision: SkillRevision, **decision: Any) -> None:
        """Call the service. Raises `ReviewError` for what it refuses."""
        raise NotImplementedError

    def answer(self, request: Request, pk: str) -> Response:
        """Decide in the caller's name and answer the proposal as it is now."""
        caller = principal_of(request)
        revision = _find(request, pk)
        body = self.body_class(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            self.decide(revision, decided_by=caller.user, reason=clean_text(body.validated_data["reason"]))
        except MayNotDecide as error:  # they did, when the request came in
            raise PermissionDenied(str(error)) from error
        except ReviewError as error:
            raise Conflict(f"{error} {WHAT_TO_DO.get(type(error), '')}".strip()) from error
        except ObjectDoesNotExist as error:  # erased on the way
            raise Http404 from error
        return Response(ProposalDetailSerializer(_find(request, pk), context={"request": request}).data)


def _find(request: Request, pk: str) -> SkillRevision:
    revision = find_revision(organization=principal_of(request).organization, revision_id=pk)
    if revision is None:
        raise Http404
    return revision


class ApproveView(_DecisionView):
    """Publish a proposal."""

    body_class = ApproveRequest

    def decide(self, revision: SkillRevision, **decision: Any) -> None:
        """Publish it."""
        approve(revision=revision, **decision)

    @extend_schema(
        operation_id="proposals_approve",
        tags=["proposals"],
        summary="Approve a proposal and publish it",
        description="For members who may review. Approving it again changes nothing.",
        request=ApproveRequest,
        responses=RESPONSES,
    )
    def post(self, request: Request, pk: str) -> Response:
        """Answer the proposal as it is now."""
        return self.answer(request, pk)


class RejectView(_DecisionView):
    """Turn a proposal down."""

    body_class = RejectRequest

    def decide(self, revision: SkillRevision, **decision: Any) -> None:
        """Turn it down."""
        reject(revision=revision, **decision)

    @extend_schema(
        operation_id="proposals_reject",
        tags=["proposals"],
        summary="Reject a proposal",
        description="For members who may review. Its evidence will not propose it again. Rejecting it again "
        "changes nothing.",
        request=RejectRequest,
        responses=RESPONSES,
    )
    def post(self, request: Request, pk: str) -> Response:
        """Answer the proposal as it is now."""
        return self.answer(request, pk)
