"""Experiences: what one session taught, with the words that prove it."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from conversations.models import ConversationMessage, Session, TurnRole
from mirix.ids import id_factory
from mirix.tenants.constraints import SameOwner, owner_key
from mirix.tenants.models import Client, Owned
from mirix.words import Words

MAX_TITLE_CHARS = 256
MAX_CONTENT_CHARS = 8_192
MAX_QUOTE_CHARS = 512


class ExperienceType(models.TextChoices):
    """Whether the lesson is something to repeat or something to keep away from."""

    WORTH_LEARNING = "worth_learning", "Worth learning"
    WORTH_AVOIDING = "worth_avoiding", "Worth avoiding"


class SignalType(models.TextChoices):
    """What in the session speaks for the lesson; it decides the band of the credibility."""

    USER_CRITIQUE = "user_critique", "User critique"
    USER_CONFIRMATION = "user_confirmation", "User confirmation"
    TOOL_ERROR = "tool_error", "Tool error"
    SELF_CORRECTION = "self_correction", "Self-correction"
    INFERRED = "inferred", "Inferred"


class ExperienceStatus(models.TextChoices):
    """Whether evolution has used the experience."""

    PENDING = "pending", "Pending"
    CONSUMED = "consumed", "Consumed"
    SUPERSEDED = "superseded", "Superseded"


class SkillExperience(Owned):
    """One transferable lesson from one session.

    Written by a run in one transaction with its attempt. `topic` is what the lesson is about
    (`tool:update_order`, `task:…`); `details` holds the facts behind an offline lesson as data. The quote
    stands word for word in the turn; it stays here when the turn is pruned, with who spoke (`turn_role`) and
    when that was done (`turn_pruned_at`).

    One that a newer one took the place of is `superseded`, and `superseded_by` names that
    (`skills.superseding`); what came from elsewhere as superseded names none.

    Evolution leaves one alone while it is `quarantined`. Why it was stays when a person releases it, beside
    who that was, when and why.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("sexp"), editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="experiences")
    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="+")
    attempt = models.ForeignKey(
        "skills.DistillationAttempt", null=True, on_delete=models.SET_NULL, related_name="experiences"
    )
    experience_type = models.CharField(max_length=16, choices=ExperienceType.choices)
    title = models.CharField(max_length=MAX_TITLE_CHARS)
    content = models.TextField(blank=True)
    topic = models.CharField(max_length=160, blank=True)
    details = models.JSONField(default=dict, blank=True)
    importance = models.FloatField(validators=[MinValueValidator(0.0), MaxValueValidator(1.0)])
    credibility = models.FloatField(validators=[MinValueValidator(0.0), MaxValueValidator(1.0)])
    model_credibility = models.FloatField(null=True, blank=True)
    signal_type = models.CharField(max_length=24, choices=SignalType.choices)
    quote = models.CharField(max_length=MAX_QUOTE_CHARS, blank=True)
    quote_hash = models.CharField(max_length=64, blank=True)
    turn = models.ForeignKey(
        ConversationMessage, null=True, on_delete=models.SET_NULL, related_name="experiences"
    )
    turn_seq = models.PositiveIntegerField(null=True)
    turn_role = models.CharField(max_length=16, choices=TurnRole.choices, blank=True)
    turn_pruned_at = models.DateTimeField(null=True, blank=True)
    verified = models.BooleanField(default=False)
    quarantined = models.BooleanField(default=False)
    quarantine_reason = models.CharField(max_length=256, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    released_by_name = models.CharField(max_length=150, blank=True)
    release_reason = models.TextField(blank=True)
    status = models.CharField(
        max_length=16, choices=ExperienceStatus.choices, default=ExperienceStatus.PENDING
    )
    superseded_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="superseded"
    )
    # The model that was asked what to make of it and left it pending, with the version of the question.
    considered_by = models.CharField(max_length=200, blank=True, editable=False)
    filter_tags = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = "experience"
        constraints = [
            models.CheckConstraint(
                condition=Q(importance__gte=0, importance__lte=1, credibility__gte=0, credibility__lte=1),
                name="experience_scores_unit",
            ),
            models.CheckConstraint(
                condition=Q(verified=True) | Q(credibility__lte=0.3), name="experience_unverified_capped"
            ),
            models.CheckConstraint(
                condition=Q(experience_type__in=ExperienceType.values), name="experience_type_valid"
            ),
            models.CheckConstraint(
                condition=Q(status__in=ExperienceStatus.values), name="experience_status_valid"
            ),
            models.CheckConstraint(
                condition=Q(superseded_by=None) | Q(status=ExperienceStatus.SUPERSEDED),
                name="experience_superseded_by_status",
            ),
            owner_key("experience_owner_key"),
            SameOwner(field="superseded_by", name="experience_superseded_by_same_owner"),
            SameOwner(field="session", name="experience_session_same_owner"),
            SameOwner(field="attempt", name="experience_attempt_same_owner"),
            SameOwner(field="client", name="experience_client_same_organization"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="experience_organization_recent"),
            models.Index(fields=["-created_at", "id"], name="experience_recent"),
            models.Index(
                fields=["organization", "experience_type", "created_at"], name="experience_type_of_day"
            ),
            models.Index(
                fields=["organization", "-created_at", "id"],
                condition=Q(quarantined=True),
                name="experience_quarantined",
            ),
            models.Index(
                "end_user",
                (F("importance") * F("credibility")).desc(),
                "created_at",
                condition=Q(status="pending"),
                name="experience_pending_priority",
            ),
            models.Index(
                fields=["organization", "status", "-created_at", "id"], name="experience_status_recent"
            ),
            GinIndex(Words("title", "topic"), name="experience_words"),
        ]

    def __str__(self) -> str:
        return self.title
