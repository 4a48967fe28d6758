"""About how many tokens an evolution may take, before it is done; asks nobody."""

from __future__ import annotations

from django.conf import settings
from django.db.models.functions import Length

from mirix.llm.tokens import about_tokens_of
from mirix.tenants.owners import Owner
from skills.evolution.clusters import clusters
from skills.evolution.curator import MAX_POOL
from skills.evolution.library import MAX_CANDIDATES
from skills.evolution.llm import LlmProposer, get_proposer
from skills.evolution.rules import limits
from skills.evolution.views import experience_view
from skills.models import Skill
from skills.selectors.experiences import pending_experiences

LESSONS_CHARS = 4_000
"""What the lessons of a session are taken to need that is still to be distilled."""


def about_proposing(*, owner: Owner, sessions: int = 0, model: str = "") -> int:
    """Return about how many tokens it takes to propose from what is pending, and from so many sessions more.

    One question for each topic that is ready and for each of the sessions, with the owner's longest skills in
    it: rather too many than too few. 0 where rules propose.
    """
    proposer = get_proposer(model, limits())
    if not isinstance(proposer, LlmProposer):
        return 0
    pending = map(experience_view, pending_experiences(owner=owner)[:MAX_POOL])
    asked = [topic for topic in clusters(list(pending)) if proposer.is_ready(topic.experiences, ())]
    size = Length("description") + Length("instructions")
    longest = Skill.objects.for_owner(owner).order_by(size.desc()).values_list(size, flat=True)
    skills = min(sum(longest[:MAX_CANDIDATES]), settings.MIRIX_DISTILLER_MAX_TRANSCRIPT_CHARS)
    told = sum(proposer.estimate(topic.experiences, ()) for topic in asked)
    told += sessions * proposer.estimate_unseen(characters=LESSONS_CHARS)
    return told + (len(asked) + sessions) * about_tokens_of(characters=skills, octets=skills)
