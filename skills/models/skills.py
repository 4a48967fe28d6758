"""Skills and their past: what agents retrieve, every text it ever had, and who decided."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Func, Q, Value

from mirix.ids import id_factory
from mirix.tenants.constraints import SameOwner, owner_key
from mirix.tenants.models import Owned, TenantModel
from mirix.text import MAX_DEPTH
from mirix.words import Words
from skills.content import (
    MAX_DESCRIPTION_CHARS,
    MAX_EXAMPLES,
    MAX_NAME_CHARS,
    MAX_TRIGGERS,
    NAME_PATTERN,
    VERSION_PATTERN,
)
from skills.models.experiences import SkillExperience
from skills.models.runs import AutoDreamRun


class EntryType(models.TextChoices):
    """What kind of procedure a skill is."""

    WORKFLOW = "workflow", "Workflow"
    GUIDE = "guide", "Guide"
    SCRIPT = "script", "Script"


class SkillStatus(models.TextChoices):
    """Only active skills are found by search."""

    ACTIVE = "active", "Active"
    ARCHIVED = "archived", "Archived"
    QUARANTINED = "quarantined", "Quarantined"


class SkillContent(models.Model):
    """The fields that a skill and a revision of it share."""

    name = models.CharField(max_length=MAX_NAME_CHARS)
    entry_type = models.CharField(max_length=16, choices=EntryType.choices, default=EntryType.WORKFLOW)
    description = models.CharField(max_length=MAX_DESCRIPTION_CHARS)
    instructions = models.TextField()
    triggers = models.JSONField(default=list, blank=True)
    examples = models.JSONField(default=list, blank=True)
    filter_tags = models.JSONField(default=dict, blank=True)

    class Meta:
        abstract = True


READABLE = (
    f'!exists($.**{{{MAX_DEPTH}}} ? (@.type() == "array" || @.type() == "object"))'
    ' && !exists($.** ? (@.type() == "number" && (@ >= 1e4300 || @ <= -1e4300)))'
)
"""The JSON path predicate of what Python can read: not too deep, no whole number of over 4,300 digits."""


def of_json(field: str, path: str, name: str) -> models.CheckConstraint:
    """Return the constraint that the JSON path predicate `path` holds of a JSON field."""
    matches = Func(F(field), Value(path), function="jsonb_path_match", output_field=models.BooleanField())
    return models.CheckConstraint(condition=matches, name=name)


def of_content(prefix: str) -> list[models.CheckConstraint]:
    """Return what the database holds of the fields that a skill and a revision share.

    Of texts it holds no bound: a migrated one may be longer than what is written today.
    """
    a_list = f'strict $.type() == "array" && $.size() <= %d && {READABLE}'
    return [
        models.CheckConstraint(condition=Q(name__regex=NAME_PATTERN), name=f"{prefix}_name_slug"),
        models.CheckConstraint(
            condition=Q(entry_type__in=EntryType.values), name=f"{prefix}_entry_type_valid"
        ),
        of_json("triggers", a_list % MAX_TRIGGERS, f"{prefix}_triggers_list"),
        of_json("examples", a_list % MAX_EXAMPLES, f"{prefix}_examples_list"),
        of_json("filter_tags", f'strict $.type() == "object" && {READABLE}', f"{prefix}_filter_tags_object"),
    ]


class Skill(Owned, SkillContent):
    """What an agent retrieves. Only `skills.review` writes it.

    `filter_tags` are the pairs that all supporting sessions share. `version` is semantic: a create
    publishes 0.1.0, an edit raises the patch.
    """

    id = models.CharField(primary_key=True, max_length=128, default=id_factory("proc"), editable=False)
    version = models.CharField(max_length=32, default="0.1.0")
    status = models.CharField(max_length=16, choices=SkillStatus.choices, default=SkillStatus.ACTIVE)
    current_revision = models.ForeignKey(
        "skills.SkillRevision", null=True, on_delete=models.RESTRICT, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "end_user", "name"], name="skill_owner_name_uniq"
            ),
            *of_content("skill"),
            models.CheckConstraint(
                condition=Q(version__regex=VERSION_PATTERN), name="skill_version_semantic"
            ),
            models.CheckConstraint(condition=Q(status__in=SkillStatus.values), name="skill_status_valid"),
            owner_key("skill_owner_key"),
            SameOwner(field="end_user", name="skill_end_user_same_organization"),
            SameOwner(field="current_revision", name="skill_current_revision_same_owner"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="skill_organization_recent"),
            models.Index(fields=["-created_at", "id"], name="skill_recent"),
            models.Index(fields=["end_user", "status", "-updated_at"], name="skill_end_user_recent"),
            models.Index(fields=["organization", "status", "-created_at", "id"], name="skill_status_recent"),
            GinIndex(Words("name", "description"), name="skill_words"),
        ]

    def __str__(self) -> str:
        return self.name


class RevisionAction(models.TextChoices):
    """What a revision does to its skill."""

    CREATE = "create", "Create"
    EDIT = "edit", "Edit"
    IMPORT = "import", "Import"
    MIGRATE = "migrate", "Migrate"
    ROLLBACK = "rollback", "Rollback"
    ARCHIVE = "archive", "Archive"
    RESTORE = "restore", "Restore"
    QUARANTINE = "quarantine", "Quarantine"
    RELEASE = "release", "Release"


class AuthorKind(models.TextChoices):
    """What kind of author wrote a revision, or approved it where `demo` stands in for a person."""

    LLM = "llm", "Model"
    OFFLINE = "offline", "Offline rules"
    HUMAN = "human", "Person"
    IMPORT = "import", "Import"
    DEMO = "demo", "Demonstration"


class RevisionState(models.TextChoices):
    """The one mutable fact of a revision."""

    PROPOSED = "proposed", "Waiting for a decision"
    PUBLISHED = "published", "Published"
    REJECTED = "rejected", "Rejected"
    SUPERSEDED = "superseded", "Superseded by a later proposal"


class SkillRevision(Owned, SkillContent):
    """An immutable snapshot of a skill's content; while `proposed` it is a proposal.

    At most one proposal is open per skill, or per pending new skill: later runs amend it with a new
    revision that supersedes it. `base` is the published revision that a proposal was made against;
    `source` is the row or file that a migrated or imported revision was made from, as it was found.
    `unsupported` lists the commands, paths, flags and addresses that no session behind it speaks of.
    `merged_from` is the version of another skill whose text it takes in; publishing it archives that skill.

    `priority` is the best importance × credibility of its experiences, `evidence_count` their number, and
    `session_count` that of the sessions behind them: a transcript that was sent again under another id is the
    same session, and what is quarantined speaks for nothing. The database itself keeps the three (migration
    0030), in the transaction that gives or takes support; what became of a session later it does not follow.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("rev"), editable=False)
    skill = models.ForeignKey(Skill, null=True, on_delete=models.CASCADE, related_name="revisions")
    base = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")
    supersedes = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")
    merged_from = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="merged_into"
    )
    action = models.CharField(max_length=16, choices=RevisionAction.choices)
    author_kind = models.CharField(max_length=16, choices=AuthorKind.choices)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    run = models.ForeignKey(AutoDreamRun, null=True, on_delete=models.SET_NULL, related_name="revisions")
    experiences = models.ManyToManyField(SkillExperience, related_name="revisions", blank=True)
    priority = models.FloatField(default=0.0, editable=False)
    evidence_count = models.PositiveIntegerField(default=0, editable=False)
    session_count = models.PositiveIntegerField(default=0, editable=False)
    rationale = models.TextField(blank=True)
    source = models.JSONField(null=True, blank=True)
    risk_flags = models.JSONField(default=list, blank=True)
    unsupported = models.JSONField(default=list, blank=True)
    content_hash = models.CharField(max_length=64)
    version = models.CharField(max_length=32, blank=True)
    state = models.CharField(max_length=16, choices=RevisionState.choices, default=RevisionState.PROPOSED)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "revision"
        permissions = [("review_skill", "Can approve and reject proposals")]
        constraints = [
            models.UniqueConstraint(
                fields=["skill"],
                condition=Q(state="proposed", skill__isnull=False),
                name="revision_one_open_per_skill",
            ),
            models.UniqueConstraint(
                fields=["organization", "end_user", "name"],
                condition=Q(state="proposed", skill__isnull=True),
                name="revision_one_open_per_new_name",
            ),
            *of_content("revision"),
            models.CheckConstraint(
                condition=Q(version="") | Q(version__regex=VERSION_PATTERN), name="revision_version_semantic"
            ),
            models.CheckConstraint(
                condition=~Q(state=RevisionState.PUBLISHED) | ~Q(version=""),
                name="revision_published_has_version",
            ),
            models.CheckConstraint(
                condition=Q(action__in=RevisionAction.values), name="revision_action_valid"
            ),
            models.CheckConstraint(
                condition=Q(author_kind__in=AuthorKind.values), name="revision_author_kind_valid"
            ),
            models.CheckConstraint(condition=Q(state__in=RevisionState.values), name="revision_state_valid"),
            owner_key("revision_owner_key"),
            owner_key("revision_organization_key", "organization"),
            SameOwner(field="end_user", name="revision_end_user_same_organization"),
            SameOwner(field="skill", name="revision_skill_same_owner"),
            SameOwner(field="base", name="revision_base_same_owner"),
            SameOwner(field="supersedes", name="revision_supersedes_same_owner"),
            SameOwner(field="merged_from", name="revision_merged_from_same_owner"),
            SameOwner(field="run", name="revision_run_same_owner"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="revision_organization_recent"),
            models.Index(fields=["-created_at", "id"], name="revision_recent"),
            models.Index(fields=["state", "-created_at", "id"], name="revision_state_recent"),
            models.Index(
                fields=["organization", "created_at"],
                condition=Q(state="proposed"),
                name="revision_waiting",
            ),
            models.Index(
                fields=["organization", "-priority", "-session_count", "created_at", "id"],
                condition=Q(state="proposed"),
                include=["action", "author_kind", "entry_type"],
                name="revision_queue",
            ),
            models.Index(
                fields=["-priority", "-session_count", "created_at", "id", "organization"],
                condition=Q(state="proposed"),
                include=["action", "author_kind", "entry_type"],
                name="revision_queue_of_all",
            ),
            models.Index(
                fields=["organization", "state", "-created_at", "id"], name="revision_organization_state"
            ),
            GinIndex(Words("name", "description"), name="revision_words"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class Decision(models.TextChoices):
    """What was decided about a revision."""

    APPROVE = "approve", "Approved"
    REJECT = "reject", "Rejected"


class ReviewDecision(TenantModel):
    """Append-only: who decided what about a revision, when, and why."""

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("decision"), editable=False)
    organization = models.ForeignKey("tenants.Organization", on_delete=models.CASCADE, related_name="+")
    revision = models.ForeignKey(SkillRevision, on_delete=models.CASCADE, related_name="decisions")
    decision = models.CharField(max_length=16, choices=Decision.choices)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_by_name = models.CharField(max_length=150)
    decided_by_kind = models.CharField(max_length=16, choices=AuthorKind.choices, default=AuthorKind.HUMAN)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            SameOwner(field="revision", name="decision_revision_same_organization"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="decision_organization_recent")
        ]

    def __str__(self) -> str:
        return f"{self.decision} {self.revision_id}"
