"""GET `/v1/usage`: what models used for the caller's organization, and what is left of today's budget."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mirix.api.authentication import principal_of
from mirix.api.views import APIView
from mirix.tenants.models import TokenUsage
from mirix.tenants.selectors import effective
from mirix.tenants.usage import tokens_left, tokens_used, usage_of

DAYS_SHOWN = 31


class UsageDaySerializer(serializers.ModelSerializer):
    """A day on which a model was asked."""

    tokens = serializers.IntegerField(help_text="Prompts and answers together.")

    class Meta:
        model = TokenUsage
        fields = ["day", "prompt_tokens", "completion_tokens", "tokens", "calls"]
        extra_kwargs = {"calls": {"help_text": "Requests to an endpoint, retries included."}}


class UsageSerializer(serializers.Serializer):
    """What `/v1/usage` answers."""

    daily_token_budget = serializers.IntegerField(help_text="0 = no limit.")
    tokens_today = serializers.IntegerField()
    tokens_left = serializers.IntegerField(allow_null=True, help_text="Of today; null without a limit.")
    days = UsageDaySerializer(many=True, help_text=f"The latest {DAYS_SHOWN} days with calls, latest first.")


class UsageView(APIView):
    """The tokens of an organization."""

    @extend_schema(
        operation_id="usage_retrieve",
        tags=["usage"],
        summary="Tokens that models used, and what is left of today's budget",
        responses=UsageSerializer,
    )
    def get(self, request: Request) -> Response:
        """Return today and the days before."""
        organization = principal_of(request).organization
        found = {
            "daily_token_budget": effective(organization).daily_token_budget,
            "tokens_today": tokens_used(organization=organization),
            "tokens_left": tokens_left(organization=organization),
            "days": usage_of(organization=organization)[:DAYS_SHOWN],
        }
        return Response(UsageSerializer(found).data)
