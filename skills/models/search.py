"""The lexical index: which term stands how often in which field of which skill."""

from __future__ import annotations

from django.db import models

from mirix.tenants.models import Owned
from skills.models.skills import Skill


class SkillDocument(Owned):
    """The length of an indexed skill, field by field, in terms; one row per active skill."""

    skill = models.OneToOneField(Skill, on_delete=models.CASCADE, primary_key=True, related_name="document")
    name_length = models.PositiveIntegerField()
    triggers_length = models.PositiveIntegerField()
    description_length = models.PositiveIntegerField()
    instructions_length = models.PositiveIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["end_user"], name="document_end_user"),
            models.Index(fields=["organization"], name="document_organization"),
        ]

    def __str__(self) -> str:
        return self.skill_id


class SkillPosting(Owned):
    """How often a term stands in each field of a skill."""

    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="postings")
    term = models.CharField(max_length=64)
    name_count = models.PositiveIntegerField(default=0)
    triggers_count = models.PositiveIntegerField(default=0)
    description_count = models.PositiveIntegerField(default=0)
    instructions_count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["skill", "term"], name="posting_skill_term_uniq")]
        indexes = [
            models.Index(fields=["end_user", "term"], name="posting_end_user_term"),
            models.Index(fields=["organization", "term"], name="posting_organization_term"),
        ]

    def __str__(self) -> str:
        return f"{self.term} in {self.skill_id}"
