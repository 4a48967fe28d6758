"""GET `/v1/proposals`: what waits for a person. Deciding is in `skills.api.decisions`."""

from __future__ import annotations

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_view

from mirix.api.authentication import principal_of
from mirix.api.filters import MomentFilter, UserIdFilter
from mirix.api.views import ReadOnlyModelViewSet
from skills.api.revisions import ProposalDetailSerializer, ProposalSerializer
from skills.models import AuthorKind, RevisionAction, SkillRevision
from skills.selectors.proposals import proposals_of
from skills.selectors.skills import revisions_of


class ProposalFilter(filters.FilterSet):
    """What the list of proposals can be narrowed by."""

    user_id = UserIdFilter()
    skill_id = filters.CharFilter(field_name="skill")
    run_id = filters.CharFilter(field_name="run")
    name = filters.CharFilter()
    action = filters.ChoiceFilter(choices=RevisionAction.choices)
    author_kind = filters.ChoiceFilter(choices=AuthorKind.choices)
    created_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    created_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = SkillRevision
        fields: list[str] = []


@extend_schema_view(
    list=extend_schema(
        operation_id="proposals_list",
        tags=["proposals"],
        summary="List the proposals that wait, newest first",
        description="Of the whole organization, or of one end user with `user_id`.",
    ),
    retrieve=extend_schema(
        operation_id="proposals_retrieve",
        tags=["proposals"],
        summary="One proposal with its changes and its evidence, also after it was decided",
        responses=ProposalDetailSerializer,
    ),
)
class ProposalViewSet(ReadOnlyModelViewSet):
    """Browse the organization's proposals."""

    filterset_class = ProposalFilter

    def get_queryset(self) -> QuerySet[SkillRevision]:
        """Return the waiting proposals; a single one is found by its id whatever became of it."""
        if getattr(self, "swagger_fake_view", False):
            return SkillRevision.objects.none()
        organization = principal_of(self.request).organization
        if self.action == "retrieve":
            return revisions_of(organization=organization)
        return proposals_of(organization=organization)

    def get_serializer_class(self) -> type[ProposalSerializer]:
        """Return the shape of a list or of a single proposal."""
        return ProposalDetailSerializer if self.action == "retrieve" else ProposalSerializer
