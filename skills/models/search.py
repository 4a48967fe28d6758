"""The indexes of search: which term stands how often in which field of a skill, and where it lies in a space.

See `skills.search`.
"""

from __future__ import annotations

from django.db import models
from pgvector.django import HalfVectorField

from mirix.tenants.constraints import SameOwner
from mirix.tenants.models import EndUser, Organization, Owned, TenantModel
from skills.models.skills import Skill

MAX_TERM_CHARS = 64
MAX_SPACE_CHARS = 255


class SkillDocument(Owned):
    """The length of an indexed skill, field by field, in terms; one row per active skill."""

    # A number, and four bytes of it: it stands in every posting. Indexing anew keeps it.
    id = models.AutoField(primary_key=True)
    skill = models.OneToOneField(Skill, on_delete=models.CASCADE, related_name="document")
    name_length = models.SmallIntegerField()
    triggers_length = models.SmallIntegerField()
    description_length = models.SmallIntegerField()
    instructions_length = models.SmallIntegerField()

    class Meta:
        constraints = [SameOwner(field="skill", name="document_skill_same_owner")]

    def __str__(self) -> str:
        return self.skill_id


class SkillPosting(TenantModel):
    """How often a term stands in each field of a skill, and how long these fields are.

    A skill has hundreds of postings, and a search reads them in one index and nothing else. So a row carries
    its document (with which it goes), its tenant, and the numbers that a score is made of. The tenant's
    columns and the lengths are copies of the document's and need no constraint of their own.
    """

    pk = models.CompositePrimaryKey("document", "term")
    document = models.ForeignKey(
        SkillDocument, on_delete=models.CASCADE, related_name="postings", db_index=False
    )
    term = models.CharField(max_length=MAX_TERM_CHARS, db_collation="C")
    organization = models.ForeignKey(
        Organization, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    end_user = models.ForeignKey(
        EndUser, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    name_count = models.SmallIntegerField()
    triggers_count = models.SmallIntegerField()
    description_count = models.SmallIntegerField()
    instructions_count = models.SmallIntegerField()
    name_length = models.SmallIntegerField()
    triggers_length = models.SmallIntegerField()
    description_length = models.SmallIntegerField()
    instructions_length = models.SmallIntegerField()

    class Meta:
        indexes = [
            models.Index(
                fields=["organization", "term", "end_user"],
                include=[
                    "document",
                    "name_count",
                    "triggers_count",
                    "description_count",
                    "instructions_count",
                    "name_length",
                    "triggers_length",
                    "description_length",
                    "instructions_length",
                ],
                name="posting_organization_term",
            )
        ]

    def __str__(self) -> str:
        return f"{self.term} in {self.document_id}"


class SkillEmbedding(Owned):
    """Where a skill lies in one space: that of a model, told what is embedded and how.

    Written by the worker after a skill was published; goes with the skill, and when it is not active any
    more. Only vectors of one space and size may be compared; the column takes any size for that reason.
    """

    skill = models.ForeignKey(
        Skill, on_delete=models.CASCADE, related_name="embeddings", db_index=False
    )  # the constraint's index begins with it
    space = models.CharField(max_length=MAX_SPACE_CHARS, db_collation="C")
    text_hash = models.CharField(max_length=32, blank=True)
    """Of the text that was embedded; empty where the skill has another one by now."""
    dimensions = models.PositiveSmallIntegerField()
    vector = HalfVectorField()
    """Of length 1."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["skill", "space"], name="embedding_skill_space"),
            SameOwner(field="skill", name="embedding_skill_same_owner"),
        ]
        indexes = [
            models.Index(fields=["organization", "end_user", "space"], name="embedding_owner_space"),
        ]

    def __str__(self) -> str:
        return f"{self.skill_id} in {self.space}"


class SearchChange(Owned):
    """How often something that an owner's searches rest on has changed: the sum of the owner's rows.

    Each change inserts a row and folds the owner's earlier ones into it, those that nobody else is folding
    at that moment: so the sum grows by one with each commit, and no change waits for another.
    """

    id = models.BigAutoField(primary_key=True)
    amount = models.BigIntegerField()

    class Meta:
        constraints = [SameOwner(field="end_user", name="change_end_user_same_organization")]
        indexes = [models.Index(fields=["organization", "end_user"], name="change_owner")]

    def __str__(self) -> str:
        return f"{self.end_user_id}: {self.amount}"
