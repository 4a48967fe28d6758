"""GET `/v1/skills/{id}/revisions/compare`: what differs between two revisions of a skill, word by word."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from mirix.api.authentication import principal_of
from mirix.api.filters import MAX_NAME_SHOWN
from mirix.api.views import APIView
from mirix.text import clean_text
from skills.api.revisions import ChangeSerializer
from skills.content import Content
from skills.models import RevisionAction, RevisionState, SkillRevision
from skills.review.diffs import changed_words, field_diffs
from skills.selectors.history import NoSuchRevision, pair_of
from skills.selectors.skills import skills_of

PARAMETERS = ("from", "to", "user_id")


class ComparedSerializer(serializers.ModelSerializer):
    """One of the two revisions."""

    action = serializers.ChoiceField(choices=RevisionAction.choices)
    state = serializers.ChoiceField(choices=RevisionState.choices)

    class Meta:
        model = SkillRevision
        fields = ["id", "version", "action", "state", "content_hash", "created_at"]


ComparisonSerializer = type(
    "ComparisonSerializer",
    (serializers.Serializer,),
    {
        "__doc__": "Two revisions of a skill; `added` and `removed` count words, `changes` has what differs.",
        "skill_id": serializers.CharField(),
        "from": ComparedSerializer(allow_null=True, help_text="Null where nothing was published before."),
        "to": ComparedSerializer(),
        "added": serializers.IntegerField(),
        "removed": serializers.IntegerField(),
        "changes": ChangeSerializer(many=True),
    },
)
"""A class statement cannot name a field `from`."""


class CompareView(APIView):
    """Compare two revisions of one of the organization's skills."""

    @extend_schema(
        operation_id="skills_revisions_compare",
        tags=["skills"],
        summary="What differs between two revisions of a skill, word by word",
        parameters=[
            OpenApiParameter(
                "from", str, description="Id or version; omitted: what was published before `to`."
            ),
            OpenApiParameter("to", str, description="Id or version; omitted: the skill of today."),
            OpenApiParameter("user_id", str, description="The skill must be of this end user."),
        ],
        responses={
            200: ComparisonSerializer,
            400: OpenApiResponse(description="No such revision of the skill, or an unknown parameter."),
            404: OpenApiResponse(description="No such skill."),
        },
    )
    def get(self, request: Request, pk: str) -> Response:
        """Answer the fields that differ."""
        if unknown := sorted(set(request.query_params) - {*PARAMETERS}):
            raise ValidationError(
                {clean_text(name)[:MAX_NAME_SHOWN]: ["Unknown query parameter."] for name in unknown}
            )
        asked = {name: clean_text(request.query_params.get(name, "")) for name in PARAMETERS}
        skills = skills_of(organization=principal_of(request).organization).filter(pk=pk)
        if asked["user_id"]:
            skills = skills.filter(end_user__user_id=asked["user_id"])
        skill = skills.first()
        if skill is None:
            raise Http404
        try:
            old, new = pair_of(skill=skill, old=asked["from"], new=asked["to"])
        except NoSuchRevision as error:
            field = "from" if error.name == asked["from"] else "to"
            raise ValidationError({field: ["No revision of this skill has that id or version."]}) from error
        diffs = field_diffs(Content.of(old) if old else None, Content.of(new))
        added, removed = changed_words(diffs)
        comparison: dict[str, Any] = {
            "skill_id": skill.pk,
            "from": old,
            "to": new,
            "added": added,
            "removed": removed,
            "changes": [diff for diff in diffs if diff.changed],
        }
        return Response(ComparisonSerializer(comparison).data)
