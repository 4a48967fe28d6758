"""Where a skill comes from: its latest texts, the experiences behind them, the sessions behind those.

Of each only the newest are read, so that a skill with thousands of versions costs what a young one does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from conversations.models import Session
from mirix.tenants.querysets import OwnedQuerySet
from skills.models import RevisionAction, RevisionState, Skill, SkillExperience, SkillRevision
from skills.selectors.days import MOST, Amount

REVISIONS = 6
EXPERIENCES = 10
MAX_LINKS = 500
"""From revisions to experiences are read, the newest; a run gives a revision at most fifty."""
STANDING = (RevisionState.PUBLISHED, RevisionState.PROPOSED)
TEXTS = (
    RevisionAction.CREATE,
    RevisionAction.EDIT,
    RevisionAction.IMPORT,
    RevisionAction.MIGRATE,
    RevisionAction.ROLLBACK,
)
"""What gives a skill a text; the rest takes it out of use and into it again."""
HEAVY = ("instructions", "triggers", "examples", "source")


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """What a drawing of a skill's origin shows, and how much more there is."""

    skill: Skill
    revisions: list[SkillRevision]
    """The newest that are published or wait, at most `REVISIONS`, the latest first."""
    experiences: list[SkillExperience]
    """Some behind these, of each revision its newest, at most `EXPERIENCES` in all, with their sessions."""
    support: frozenset[tuple[str, str]]
    """Which experience (its id) stands behind which of the revisions (its id)."""
    experience_count: Amount
    """Of all experiences behind what is published or waits."""
    quarantined_count: Amount
    """Of those of them that are in quarantine."""
    session_count: Amount
    """Of the sessions that these came from."""

    @property
    def sessions(self) -> list[Session]:
        """The sessions of the experiences, each once."""
        return list({each.session_id: each.session for each in self.experiences}.values())


def experiences_behind(*, skill: Skill) -> OwnedQuerySet:
    """Return the experiences that anything published of a skill rests on, or what waits for it; each once."""
    own = SkillExperience.objects.with_owner_of(skill)
    return own.filter(pk__in=own.filter(revisions__skill=skill, revisions__state__in=STANDING).values("pk"))


def sessions_behind(*, skill: Skill) -> OwnedQuerySet:
    """Return the sessions that these experiences came from."""
    rows: OwnedQuerySet = Session.objects.with_owner_of(skill)
    return rows.filter(pk__in=experiences_behind(skill=skill).values("session"))


def lineage_of(*, skill: Skill) -> Lineage:
    """Return where a skill comes from; six queries."""
    own = SkillRevision.objects.with_owner_of(skill)
    texts = own.filter(skill=skill, state__in=STANDING, action__in=TEXTS).defer(*HEAVY)
    revisions = list(texts.order_by("-created_at", "-pk")[:REVISIONS])
    links = own.filter(pk__in=[each.pk for each in revisions], experiences__isnull=False)
    newest = links.order_by("-experiences__created_at", "-experiences__pk")
    behind: dict[str, list[str]] = {each.pk: [] for each in revisions}
    for revision, experience in newest.values_list("pk", "experiences")[:MAX_LINKS]:
        behind[revision].append(experience)
    chosen = _in_turn(list(behind.values()), EXPERIENCES)
    rows = SkillExperience.objects.with_owner_of(skill).filter(pk__in=chosen).select_related("session")
    return Lineage(
        skill=skill,
        revisions=revisions,
        experiences=list(rows.defer("content", "details", "quote").order_by("-created_at", "-pk")),
        support=frozenset(
            (experience, revision)
            for revision, found in behind.items()
            for experience in found
            if experience in chosen
        ),
        experience_count=_counted(experiences_behind(skill=skill)),
        quarantined_count=_counted(experiences_behind(skill=skill).filter(quarantined=True)),
        session_count=_counted(sessions_behind(skill=skill)),
    )


def _in_turn(columns: list[list[str]], limit: int) -> set[str]:
    """Return the first of each column, then the second of each, and so on, `limit` in all."""
    found: dict[str, None] = {}
    for row in zip_longest(*columns):
        found |= {each: None for each in row if each is not None}
    return set(list(found)[:limit])


def _counted(rows: OwnedQuerySet) -> Amount:
    count = rows.order_by().values("pk")[: MOST + 1].count()
    return Amount(number=min(count, MOST), is_least=count > MOST)
