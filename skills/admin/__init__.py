"""The admin of what was learned: the queue of proposals first, then everything a decision may need."""

from skills.admin.experiences import ExperienceAdmin
from skills.admin.proposer_calls import ProposerCallAdmin
from skills.admin.revisions import RevisionAdmin
from skills.admin.runs import AttemptAdmin, RunAdmin
from skills.admin.searches import SearchEventAdmin
from skills.admin.sessions import LearnedSessionAdmin
from skills.admin.skills import SkillAdmin

__all__ = [
    "AttemptAdmin",
    "ExperienceAdmin",
    "LearnedSessionAdmin",
    "ProposerCallAdmin",
    "RevisionAdmin",
    "RunAdmin",
    "SearchEventAdmin",
    "SkillAdmin",
]
