"""DELETE `/memory/procedural/{id}`: one skill goes for good."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from mirix.api.authentication import principal_of
from mirix.api.erasure import ErasureAnswer, erased
from mirix.api.parsers import refuse_body
from mirix.api.views import APIView
from mirix.tenants.audit import Actor
from mirix.tenants.erasure import NothingThere
from mirix.tenants.models import Permission
from mirix.text import clean_text
from skills.erasure.single import erase_skill
from skills.models import Skill


class EraseSkillView(APIView):
    """Erase a skill with its whole past."""

    required_permission = Permission.ADMIN

    @extend_schema(
        operation_id="memory_procedural_erase",
        tags=["erasure"],
        summary="Erase one skill",
        description="The skill goes with its revisions, decisions, proposals and indexes, at once and for "
        "good; a receipt with counts stays. What it left in a skill that it was merged into goes as well, "
        "and that one goes back to review. To take it out of use and keep its past, archive it instead.",
        parameters=[
            OpenApiParameter(
                "user_id", OpenApiTypes.STR, description="Erase it only where it belongs to this end user."
            )
        ],
        request=None,
        responses={200: ErasureAnswer},
    )
    def delete(self, request: Request, pk: str) -> Response:
        """Erase; 404 for a skill that is not there or somebody else's."""
        refuse_body(request)
        principal = principal_of(request)
        rows = Skill.objects.for_organization(principal.organization).filter(pk=pk)
        if user_id := request.query_params.get("user_id"):
            rows = rows.filter(end_user__user_id=clean_text(user_id))
        skill = rows.select_related("organization").first()
        if skill is None:
            raise Http404
        try:
            receipt = erase_skill(skill=skill, actor=Actor.of_principal(principal))
        except NothingThere as error:  # somebody else was faster
            raise Http404 from error
        return erased(receipt, preserved=["experiences"])
