"""GET `/v1/skills/{id}/SKILL.md`: one skill as the file that agents of every make read."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils.http import parse_etags
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics
from rest_framework.request import Request

from mirix.api.authentication import principal_of
from mirix.api.negotiation import OneKind
from mirix.api.views import APIView
from skills.api.skills import SkillFilter
from skills.interop.exporting import skill_md
from skills.interop.skill_md import MEDIA_TYPE, etag_of
from skills.models import Skill
from skills.selectors.skills import skills_of


class SkillMdView(APIView, generics.GenericAPIView):
    """A skill as SKILL.md."""

    content_negotiation_class = OneKind
    action = "retrieve"  # for the filters: no list
    filterset_class = SkillFilter

    def get_queryset(self) -> QuerySet[Skill]:
        """Return the organization's skills."""
        return skills_of(organization=principal_of(self.request).organization)

    @extend_schema(
        operation_id="skills_skill_md",
        tags=["skills"],
        summary="One skill as a SKILL.md file",
        description="The same bytes for the same version. `ETag` is their SHA-256; sent back in "
        "`If-None-Match`, what did not change answers 304.",
        parameters=[
            OpenApiParameter("If-None-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, required=False)
        ],
        responses={(200, "text/markdown"): OpenApiTypes.STR, 304: None},
    )
    def get(self, request: Request, pk: str) -> HttpResponse:
        """Return the file, or that it did not change."""
        data = skill_md(skill=self.get_object())
        etag = f'"{etag_of(data)}"'
        known = parse_etags(request.headers.get("If-None-Match", ""))
        if known == ["*"] or etag in {tag.removeprefix("W/") for tag in known}:
            answer = HttpResponse(status=304)
            del answer["Content-Type"]
        else:
            answer = HttpResponse(data, content_type=MEDIA_TYPE)
            answer["Content-Disposition"] = 'inline; filename="SKILL.md"'
        answer["ETag"] = etag
        return answer
