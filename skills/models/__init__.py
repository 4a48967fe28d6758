"""What was learned: experiences, the runs that found them, skills with their past, how they are searched."""

from skills.models.events import AnswerView, Returned, SearchEvent, SearchSource
from skills.models.experiences import ExperienceStatus, ExperienceType, SignalType, SkillExperience
from skills.models.runs import AutoDreamRun, DistillationAttempt, ProposerCall, RunState, RunTrigger, Verdict
from skills.models.search import SearchChange, SkillDocument, SkillEmbedding, SkillPosting
from skills.models.skills import (
    AuthorKind,
    Decision,
    EntryType,
    ReviewDecision,
    RevisionAction,
    RevisionState,
    Skill,
    SkillRevision,
    SkillStatus,
)

__all__ = [
    "AnswerView",
    "AuthorKind",
    "AutoDreamRun",
    "Decision",
    "DistillationAttempt",
    "EntryType",
    "ExperienceStatus",
    "ExperienceType",
    "ProposerCall",
    "Returned",
    "ReviewDecision",
    "RevisionAction",
    "RevisionState",
    "RunState",
    "RunTrigger",
    "SearchChange",
    "SearchEvent",
    "SearchSource",
    "SignalType",
    "Skill",
    "SkillDocument",
    "SkillEmbedding",
    "SkillExperience",
    "SkillPosting",
    "SkillRevision",
    "SkillStatus",
    "Verdict",
]
