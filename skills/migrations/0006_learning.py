"""Schema: experiences, runs and their attempts, revisions and decisions, the search index."""

from __future__ import annotations

import functools

import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
from django.conf import settings
from django.db import migrations, models

import mirix.ids


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "__first__"),
        ("conversations", "0001_initial"),
        ("skills", "0005_skill_rules"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="AutoDreamRun",
            fields=[
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "id",
                    models.CharField(
                        default=functools.partial(mirix.ids.new_id, *("run",)),
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("automatic", "Automatic"),
                            ("api", "API"),
                            ("command", "Command"),
                            ("admin", "Admin"),
                        ],
                        max_length=16,
                    ),
                ),
                ("parameters", models.JSONField(blank=True, default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("finished", "Finished"),
                            ("failed", "Failed"),
                            ("abandoned", "Abandoned"),
                        ],
                        default="queued",
                        max_length=16,
                    ),
                ),
                ("fence", models.PositiveIntegerField(default=0)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("counts", models.JSONField(blank=True, default=dict)),
                ("notes", models.JSONField(blank=True, default=list)),
                ("tokens", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "end_user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.enduser"
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.organization",
                    ),
                ),
            ],
            options={
                "verbose_name": "run",
                "indexes": [
                    models.Index(
                        fields=["organization", "-created_at", "id"], name="run_organization_recent"
                    ),
                    models.Index(fields=["end_user", "-created_at"], name="run_end_user_recent"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "running")),
                        fields=("organization", "end_user"),
                        name="run_one_running_per_owner",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "queued")),
                        fields=("organization", "end_user"),
                        name="run_one_queued_per_owner",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["queued", "running", "finished", "failed", "abandoned"])
                        ),
                        name="run_state_valid",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DistillationAttempt",
            fields=[
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "id",
                    models.CharField(
                        default=functools.partial(mirix.ids.new_id, *("attempt",)),
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("distiller", models.CharField(max_length=16)),
                ("model", models.CharField(blank=True, max_length=128)),
                ("prompt_version", models.CharField(blank=True, max_length=32)),
                ("input_hash", models.CharField(max_length=64)),
                ("first_seq", models.PositiveIntegerField()),
                ("last_seq", models.PositiveIntegerField()),
                ("raw_reply", models.TextField(blank=True)),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("ok", "Experiences"),
                            ("empty", "Nothing worth keeping"),
                            ("retry", "To be tried again"),
                            ("dead", "Given up"),
                        ],
                        max_length=8,
                    ),
                ),
                ("prompt_tokens", models.PositiveIntegerField(default=0)),
                ("completion_tokens", models.PositiveIntegerField(default=0)),
                ("duration_ms", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True)),
                (
                    "end_user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.enduser"
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.organization",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="attempts",
                        to="skills.autodreamrun",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="distillation_attempts",
                        to="conversations.session",
                    ),
                ),
            ],
            options={
                "verbose_name": "attempt",
                "indexes": [
                    models.Index(
                        fields=["organization", "-created_at", "id"], name="attempt_organization_recent"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("verdict__in", ["ok", "empty", "retry", "dead"])),
                        name="attempt_verdict_valid",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SkillExperience",
            fields=[
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "id",
                    models.CharField(
                        default=functools.partial(mirix.ids.new_id, *("sexp",)),
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "experience_type",
                    models.CharField(
                        choices=[("worth_learning", "Worth learning"), ("worth_avoiding", "Worth avoiding")],
                        max_length=16,
                    ),
                ),
                ("title", models.CharField(max_length=256)),
                ("content", models.TextField(blank=True)),
                ("topic", models.CharField(blank=True, max_length=160)),
                ("details", models.JSONField(blank=True, default=dict)),
                (
                    "importance",
                    models.FloatField(
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ]
                    ),
                ),
                (
                    "credibility",
                    models.FloatField(
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ]
                    ),
                ),
                ("model_credibility", models.FloatField(blank=True, null=True)),
                (
                    "signal_type",
                    models.CharField(
                        choices=[
                            ("user_critique", "User critique"),
                            ("user_confirmation", "User confirmation"),
                            ("tool_error", "Tool error"),
                            ("self_correction", "Self-correction"),
                            ("inferred", "Inferred"),
                        ],
                        max_length=24,
                    ),
                ),
                ("quote", models.CharField(blank=True, max_length=512)),
                ("quote_hash", models.CharField(blank=True, max_length=64)),
                ("turn_seq", models.PositiveIntegerField(null=True)),
                ("verified", models.BooleanField(default=False)),
                ("quarantined", models.BooleanField(default=False)),
                ("quarantine_reason", models.CharField(blank=True, max_length=256)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("consumed", "Consumed"),
                            ("superseded", "Superseded"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("filter_tags", models.JSONField(blank=True, default=dict)),
                (
                    "attempt",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="experiences",
                        to="skills.distillationattempt",
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.client"
                    ),
                ),
                (
                    "end_user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.enduser"
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.organization",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="experiences",
                        to="conversations.session",
                    ),
                ),
                (
                    "turn",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="experiences",
                        to="conversations.conversationmessage",
                    ),
                ),
            ],
            options={
                "verbose_name": "experience",
                "indexes": [
                    models.Index(
                        fields=["organization", "-created_at", "id"], name="experience_organization_recent"
                    ),
                    models.Index(
                        models.F("end_user"),
                        models.OrderBy(
                            django.db.models.expressions.CombinedExpression(
                                models.F("importance"), "*", models.F("credibility")
                            ),
                            descending=True,
                        ),
                        models.F("created_at"),
                        condition=models.Q(("status", "pending")),
                        name="experience_pending_priority",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("credibility__gte", 0),
                            ("credibility__lte", 1),
                            ("importance__gte", 0),
                            ("importance__lte", 1),
                        ),
                        name="experience_scores_unit",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("verified", True), ("credibility__lte", 0.3), _connector="OR"),
                        name="experience_unverified_capped",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("experience_type__in", ["worth_learning", "worth_avoiding"])),
                        name="experience_type_valid",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["pending", "consumed", "superseded"])),
                        name="experience_status_valid",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SkillRevision",
            fields=[
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=64)),
                (
                    "entry_type",
                    models.CharField(
                        choices=[("workflow", "Workflow"), ("guide", "Guide"), ("script", "Script")],
                        default="workflow",
                        max_length=16,
                    ),
                ),
                ("description", models.CharField(max_length=1024)),
                ("instructions", models.TextField()),
                ("triggers", models.JSONField(blank=True, default=list)),
                ("examples", models.JSONField(blank=True, default=list)),
                ("filter_tags", models.JSONField(blank=True, default=dict)),
                (
                    "id",
                    models.CharField(
                        default=functools.partial(mirix.ids.new_id, *("rev",)),
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("create", "Create"),
                            ("edit", "Edit"),
                            ("import", "Import"),
                            ("migrate", "Migrate"),
                            ("rollback", "Rollback"),
                            ("archive", "Archive"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "author_kind",
                    models.CharField(
                        choices=[
                            ("llm", "Model"),
                            ("offline", "Offline rules"),
                            ("human", "Person"),
                            ("import", "Import"),
                            ("demo", "Demonstration"),
                        ],
                        max_length=16,
                    ),
                ),
                ("rationale", models.TextField(blank=True)),
                ("source", models.JSONField(blank=True, null=True)),
                ("risk_flags", models.JSONField(blank=True, default=list)),
                ("content_hash", models.CharField(max_length=64)),
                ("version", models.CharField(blank=True, max_length=32)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("proposed", "Waiting for a decision"),
                            ("published", "Published"),
                            ("rejected", "Rejected"),
                            ("superseded", "Superseded by a later proposal"),
                        ],
                        default="proposed",
                        max_length=16,
                    ),
                ),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "base",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="skills.skillrevision",
                    ),
                ),
                (
                    "end_user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.enduser"
                    ),
                ),
                (
                    "experiences",
                    models.ManyToManyField(blank=True, related_name="revisions", to="skills.skillexperience"),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.organization",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="revisions",
                        to="skills.autodreamrun",
                    ),
                ),
                (
                    "skill",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="skills.skill",
                    ),
                ),
                (
                    "supersedes",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="skills.skillrevision",
                    ),
                ),
            ],
            options={
                "verbose_name": "revision",
                "permissions": [("review_skill", "Can approve and reject proposals")],
                "indexes": [
                    models.Index(
                        fields=["organization", "-created_at", "id"], name="revision_organization_recent"
                    ),
                    models.Index(
                        condition=models.Q(("state", "proposed")),
                        fields=["organization", "created_at"],
                        name="revision_waiting",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("skill__isnull", False), ("state", "proposed")),
                        fields=("skill",),
                        name="revision_one_open_per_skill",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("skill__isnull", True), ("state", "proposed")),
                        fields=("organization", "end_user", "name"),
                        name="revision_one_open_per_new_name",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "^[a-z0-9]+(-[a-z0-9]+)*$")),
                        name="revision_name_slug",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["proposed", "published", "rejected", "superseded"])
                        ),
                        name="revision_state_valid",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReviewDecision",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(mirix.ids.new_id, *("decision",)),
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "decision",
                    models.CharField(
                        choices=[("approve", "Approved"), ("reject", "Rejected")], max_length=16
                    ),
                ),
                ("decided_by_name", models.CharField(max_length=150)),
                (
                    "decided_by_kind",
                    models.CharField(
                        choices=[
                            ("llm", "Model"),
                            ("offline", "Offline rules"),
                            ("human", "Person"),
                            ("import", "Import"),
                            ("demo", "Demonstration"),
                        ],
                        default="human",
                        max_length=16,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.organization",
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="decisions",
                        to="skills.skillrevision",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["organization", "-created_at", "id"], name="decision_organization_recent"
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="skill",
            name="current_revision",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="skills.skillrevision",
            ),
        ),
        migrations.CreateModel(
            name="SkillDocument",
            fields=[
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("name_length", models.SmallIntegerField()),
                ("triggers_length", models.SmallIntegerField()),
                ("description_length", models.SmallIntegerField()),
                ("instructions_length", models.SmallIntegerField()),
                (
                    "end_user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.enduser"
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.organization",
                    ),
                ),
                (
                    "skill",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="document",
                        to="skills.skill",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="SkillPosting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "document", "term", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("term", models.CharField(db_collation="C", max_length=64)),
                ("name_count", models.SmallIntegerField()),
                ("triggers_count", models.SmallIntegerField()),
                ("description_count", models.SmallIntegerField()),
                ("instructions_count", models.SmallIntegerField()),
                ("name_length", models.SmallIntegerField()),
                ("triggers_length", models.SmallIntegerField()),
                ("description_length", models.SmallIntegerField()),
                ("instructions_length", models.SmallIntegerField()),
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="postings",
                        to="skills.skilldocument",
                    ),
                ),
                (
                    "end_user",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.enduser",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.organization",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["organization", "term", "end_user"],
                        include=(
                            "document",
                            "name_count",
                            "triggers_count",
                            "description_count",
                            "instructions_count",
                            "name_length",
                            "triggers_length",
                            "description_length",
                            "instructions_length",
                        ),
                        name="posting_organization_term",
                    )
                ],
            },
        ),
    ]
