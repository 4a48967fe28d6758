"""How the API shows revisions: of a skill as its past, and those that wait as proposals."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mirix.api.authentication import principal_of
from mirix.shapes import as_texts
from skills.content import Content
from skills.models import ReviewDecision, SkillExperience, SkillRevision
from skills.review.diffs import FieldDiff, field_diffs
from skills.review.risks import RISK_LABELS
from skills.selectors.proposals import evidence_of


class DecisionSerializer(serializers.ModelSerializer):
    """What was decided about a revision and why; who it was is for members to see."""

    decided_by = serializers.SerializerMethodField(
        help_text="The member's name; null for keys, and where no person decided."
    )

    class Meta:
        model = ReviewDecision
        fields = ["decision", "decided_by", "decided_by_kind", "reason", "created_at"]

    def get_decided_by(self, decision: ReviewDecision) -> str | None:
        """Return who decided, for members alone."""
        return (decision.decided_by_name or None) if principal_of(self.context["request"]).user else None


class RiskSerializer(serializers.Serializer):
    """Something to look at twice, as a key for programs and in plain words."""

    flag = serializers.ChoiceField(choices=list(RISK_LABELS))
    meaning = serializers.CharField()


class MergedSerializer(serializers.ModelSerializer):
    """The version of another skill that a revision takes in; publishing it archives that skill."""

    revision_id = serializers.CharField(source="pk")
    skill_id = serializers.CharField()

    class Meta:
        model = SkillRevision
        fields: ClassVar[list[str]] = ["skill_id", "revision_id", "name", "version"]


class RevisionSerializer(serializers.ModelSerializer):
    """An immutable snapshot of a skill's content, and what became of it."""

    user_id = serializers.CharField(source="end_user.user_id")
    skill_id = serializers.CharField(allow_null=True, help_text="Null while a new skill waits.")
    base_id = serializers.CharField(allow_null=True, help_text="The revision it was made against.")
    base_version = serializers.SerializerMethodField()
    supersedes_id = serializers.CharField(allow_null=True)
    merged_from = MergedSerializer(allow_null=True)
    run_id = serializers.CharField(allow_null=True)
    risks = serializers.SerializerMethodField()
    decisions = DecisionSerializer(many=True)

    class Meta:
        model = SkillRevision
        fields: ClassVar[list[str]] = [
            "id",
            "user_id",
            "skill_id",
            "action",
            "state",
            "version",
            "base_id",
            "base_version",
            "supersedes_id",
            "merged_from",
            "author_kind",
            "run_id",
            "name",
            "entry_type",
            "description",
            "instructions",
            "triggers",
            "examples",
            "filter_tags",
            "content_hash",
            "rationale",
            "risks",
            "unsupported",
            "decisions",
            "created_at",
            "decided_at",
        ]

    def get_base_version(self, revision: SkillRevision) -> str | None:
        """Return the version that the revision was made against."""
        return revision.base.version if revision.base else None

    @extend_schema_field(RiskSerializer(many=True))
    def get_risks(self, revision: SkillRevision) -> list[dict[str, str]]:
        """Return the flags with what they mean."""
        return [
            {"flag": flag, "meaning": RISK_LABELS.get(flag, flag)} for flag in as_texts(revision.risk_flags)
        ]


class ProposalSerializer(RevisionSerializer):
    """A revision in the queue: what counts most waits first."""

    priority = serializers.FloatField(help_text="The best importance × credibility of its evidence.")
    evidence_count = serializers.IntegerField()

    class Meta(RevisionSerializer.Meta):
        fields: ClassVar[list[str]] = [*RevisionSerializer.Meta.fields, "priority", "evidence_count"]


class SegmentSerializer(serializers.Serializer):
    """A piece of a text that stayed, came or went."""

    kind = serializers.ChoiceField(choices=["equal", "insert", "delete"])
    text = serializers.CharField()


class ChangeSerializer(serializers.Serializer):
    """What becomes of one field; `added` and `removed` count words."""

    field = serializers.CharField()
    added = serializers.IntegerField()
    removed = serializers.IntegerField()
    segments = SegmentSerializer(many=True)


class EvidenceSerializer(serializers.ModelSerializer):
    """A supporting experience: the lesson, and the words it rests on in their turn and session."""

    session_id = serializers.CharField(source="session.session_id")
    turn = serializers.SerializerMethodField(help_text="`convmsg-<n>`; null once the turn is pruned.")

    class Meta:
        model = SkillExperience
        fields = [
            "id",
            "session_id",
            "experience_type",
            "title",
            "importance",
            "credibility",
            "signal_type",
            "quote",
            "turn",
            "turn_seq",
            "verified",
            "quarantined",
        ]

    def get_turn(self, experience: SkillExperience) -> str | None:
        """Return the public id of the turn."""
        return experience.turn.public_id if experience.turn else None


class ProposalDetailSerializer(ProposalSerializer):
    """A revision with the changes against its base, and its evidence."""

    changes = serializers.SerializerMethodField()
    evidence = serializers.SerializerMethodField()

    class Meta(ProposalSerializer.Meta):
        fields: ClassVar[list[str]] = [*ProposalSerializer.Meta.fields, "changes", "evidence"]

    @extend_schema_field(ChangeSerializer(many=True))
    def get_changes(self, revision: SkillRevision) -> Any:
        """Return the fields that change, word by word."""
        before = Content.of(revision.base) if revision.base else None
        changed: list[FieldDiff] = [
            diff for diff in field_diffs(before, Content.of(revision)) if diff.changed
        ]
        return ChangeSerializer(changed, many=True).data

    @extend_schema_field(EvidenceSerializer(many=True))
    def get_evidence(self, revision: SkillRevision) -> Any:
        """Return the supporting experiences, the weightiest first."""
        return EvidenceSerializer(evidence_of(revision=revision), many=True).data
