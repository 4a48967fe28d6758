"""What the settings say about evolution, and the organization's policy."""

from __future__ import annotations

from django.conf import settings

from mirix.tenants.models import ReviewPolicy
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import effective
from skills.evolution.budget import BudgetRule
from skills.evolution.gates import Limits


def limits() -> Limits:
    """Return the gates' constants from the settings."""
    return Limits(
        max_change_chars=settings.MIRIX_SKILL_MAX_EDIT_CHAR_DELTA,
        major_ratio=settings.MIRIX_SKILL_EDIT_MAJOR_RATIO,
        max_instructions_chars=settings.MIRIX_SKILL_MAX_INSTRUCTIONS_CHARS,
    )


def budget_rule() -> BudgetRule:
    """Return the budget's constants from the settings."""
    return BudgetRule(
        base=settings.MIRIX_SKILL_EDIT_BUDGET_B0,
        per_avoid=settings.MIRIX_SKILL_EDIT_BUDGET_ALPHA_FAIL,
        per_learn=settings.MIRIX_SKILL_EDIT_BUDGET_ALPHA_SUCC,
        minimum=settings.MIRIX_SKILL_EDIT_BUDGET_MIN,
        maximum=settings.MIRIX_SKILL_EDIT_BUDGET_MAX,
    )


def publishes_at_once(owner: Owner) -> bool:
    """Return whether the owner's organization lets unflagged proposals through without a person."""
    return effective(owner.organization).review_policy == ReviewPolicy.AUTOMATIC
