"""What is wrong with a library: skills that are one too many, and those that could serve better.

Nothing is written; a person decides what to do. Near-duplicates are looked for in what is said today: a skill
that took another one in is not compared by what that one said. Archived skills are in nobody's way and are
left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.db.models import Count, Q, Value
from django.db.models.functions import Coalesce, NullIf

from mirix.llm.embeddings import get_endpoint
from mirix.tenants.owners import Owner
from mirix.tenants.scope import require
from skills.content import Content
from skills.evolution.library import Entry, entries_of
from skills.evolution.merging import merge
from skills.evolution.near import Fingerprint, Nearness, pairs_by_text
from skills.evolution.types import SkillView
from skills.evolution.words import content_words
from skills.models import SkillEmbedding, SkillExperience, SkillRevision, SkillStatus
from skills.review.risks import RISK_LABELS, risk_flags
from skills.review.validation import content_errors
from skills.search.embedding import space_of

MIN_DESCRIBING_WORDS = 3
TELLING_RISKS = (
    "hidden_characters",
    "lookalike_letters",
    "credential",
    "near_size_limit",
    "disables_safeguards",
    "sends_data_away",
)
"""Those that a text carries by itself, whatever was before it and behind it."""

TABLE = SkillEmbedding._meta.db_table
# The name comes from the model; every value is a parameter.
ALIKE = f"""
SELECT one.skill_id, other.skill_id, 1 - (one.vector <=> other.vector) AS cosine
FROM {TABLE} AS one JOIN {TABLE} AS other USING (organization_id, end_user_id, space, dimensions)
WHERE one.organization_id = %s AND one.end_user_id = %s AND space = %s AND one.skill_id < other.skill_id
  AND one.text_hash <> '' AND other.text_hash <> '' AND 1 - (one.vector <=> other.vector) >= %s
"""  # noqa: S608


@dataclass(frozen=True, kw_only=True)
class Twins:
    """Two texts of which one is too many: which to keep, and what it would say of the other's."""

    keep: SkillView
    drop: SkillView
    near: Nearness
    merged: Content
    """The text to keep, with what the other says and it does not."""

    @property
    def undecided(self) -> list[str]:
        """The open proposals for either, which must be decided before the two can be merged."""
        return [view.revision_id for view in (self.keep, self.drop) if view.revision_id]

    @property
    def adds(self) -> list[str]:
        """The lines, triggers and examples that the merged text has and the one to keep has not."""
        old, new = self.keep.content, self.merged
        lines = [line for line in new.instructions.splitlines() if line not in old.instructions.splitlines()]
        fresh = [f"trigger: {item}" for item in new.triggers[len(old.triggers) :]]
        return [*lines, *fresh, *(f"example: {item}" for item in new.examples[len(old.examples) :])]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing about one text."""

    view: SkillView
    rule: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found about one owner's library."""

    looked_at: int
    """How many skills in use or set aside, and pending new ones."""
    twins: list[Twins]
    findings: list[Finding]
    without_vector: int
    """How many active skills could not be compared by meaning, though a model is configured."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.twins and not self.findings


def lint(*, owner: Owner) -> Report:
    """Return what is wrong with the owner's library. No endpoint is asked: vectors are those in store."""
    entries = [entry for entry in entries_of(owner) if entry.view.status != SkillStatus.ARCHIVED]
    active = sum(entry.view.status == SkillStatus.ACTIVE for entry in entries)
    endpoint = get_endpoint()
    alike, embedded = _by_meaning(owner, space_of(endpoint)) if endpoint else ({}, active)
    unproven = _unproven(owner)
    return Report(
        looked_at=len(entries),
        twins=list(_twins(owner, entries, alike)),
        findings=[finding for entry in entries for finding in _findings(entry, unproven)],
        without_vector=active - embedded,
    )


def _by_meaning(owner: Owner, space: str) -> tuple[dict[tuple[str, str], float], int]:
    """Return the cosines of the pairs of skills that mean the same, and how many were compared."""
    require(owner.organization.pk)
    whose = (owner.organization.pk, owner.end_user.pk)
    with connection.cursor() as cursor:
        cursor.execute(ALIKE, (*whose, space, settings.MIRIX_SKILL_NEAR_COSINE))
        pairs = {(one, other): cosine for one, other, cosine in cursor.fetchall()}
    embedded = SkillEmbedding.objects.for_owner(owner).filter(space=space).exclude(text_hash="").count()
    return pairs, embedded


def _twins(owner: Owner, entries: Sequence[Entry], alike: dict[tuple[str, str], float]) -> Iterator[Twins]:
    """Yield the pairs of near-duplicates, the nearest first."""
    texts = [(entry, print_) for entry in entries for print_ in _today(entry)]
    places = {entry.key: place for place, entry in enumerate(entries)}
    by_text = [
        (texts[one][0].key, texts[other][0].key, near)
        for one, other, near in pairs_by_text([print_ for _, print_ in texts])
    ]
    by_meaning = [
        (one, other, Nearness(measure="meaning", score=cosine))
        for (one, other), cosine in alike.items()
        if one in places
        and other in places
        and _may_mean_the_same(entries[places[one]], entries[places[other]])
    ]
    found: dict[tuple[str, str], Nearness] = {}
    for one, other, near in [*by_text, *by_meaning]:
        pair = (min(one, other), max(one, other))
        if one != other and (pair not in found or near.rank > found[pair].rank):
            found[pair] = near
    if not found:
        return
    views = {entry.key: entry.view for entry in entries}
    sessions = _sessions_behind(owner)

    def worth(key: str) -> tuple[bool, bool, int, int]:
        view = views[key]
        return view.status == SkillStatus.ACTIVE, bool(view.skill_id), sessions.get(key, 0), -places[key]

    for pair, near in sorted(found.items(), key=lambda item: (item[1].rank, item[0]), reverse=True):
        keep, drop = sorted(pair, key=worth, reverse=True)
        merged = merge(views[keep].content, views[drop].content)
        yield Twins(keep=views[keep], drop=views[drop], near=near, merged=merged)


def _today(entry: Entry) -> tuple[Fingerprint, ...]:
    """Return the fingerprints of what a text says today; what it took in once may be in it no more."""
    return entry.prints[: len(entry.own)]


def _may_mean_the_same(one: Entry, other: Entry) -> bool:
    return not any(left.is_about_another_tool(right) for left in _today(one) for right in _today(other))


def _sessions_behind(owner: Owner) -> dict[str, int]:
    """Return how many sessions taught each skill and each pending new one, as `sessions_behind` counts."""
    rows = SkillExperience.objects.for_owner(owner).filter(revisions__isnull=False, quarantined=False)
    of_skills = rows.filter(revisions__skill__isnull=False).values_list("revisions__skill")
    of_new = rows.filter(revisions__skill__isnull=True).values_list("revisions")
    counted = Count(Coalesce(NullIf("session__history_hash", Value("")), "session_id"), distinct=True)
    return dict(of_skills.annotate(n=counted).order_by()) | dict(of_new.annotate(n=counted).order_by())


def _unproven(owner: Owner) -> set[str]:
    """Return the revisions that say what they say on nothing verified and trusted, though on something."""
    rows = SkillRevision.objects.for_owner(owner).filter(experiences__isnull=False)
    proven = Q(experiences__verified=True, experiences__quarantined=False)
    counted = rows.values_list("pk").annotate(good=Count("experiences", filter=proven)).order_by()
    return {pk for pk, good in counted if not good}


def _findings(entry: Entry, unproven: set[str]) -> Iterator[Finding]:
    """Yield what is wrong with one text, that of its open proposal where there is one."""
    view, content = entry.view, entry.view.content

    def found(rule: str, message: str) -> Finding:
        return Finding(view=view, rule=rule, message=message)

    for name, messages in content_errors(content).items():
        yield found("invalid", f"The {name}: {' '.join(messages)}")
    if not content.triggers:
        yield found("no_triggers", "It has no triggers: a search by what an agent sees may miss it.")
    if len(content_words(content.description)) < MIN_DESCRIBING_WORDS:
        yield found("bare_description", "The description hardly says when to use it.")
    flags = risk_flags(
        before=None,
        after=content,
        support=[],
        max_instructions_chars=settings.MIRIX_SKILL_MAX_INSTRUCTIONS_CHARS,
    )
    for flag in flags:
        if flag in TELLING_RISKS:
            yield found(flag, f"{RISK_LABELS[flag]}.")
    if entry.revision_id in unproven:
        yield found("unproven", "What it says rests on unverified or quarantined experiences alone.")
