"""The lanes of a search side by side, for people who ask why a skill stands where it does."""

from __future__ import annotations

from dataclasses import dataclass

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from skills.models import Skill
from skills.search.service import SEMANTIC, SearchResult, findable

LABELS = {"all": "All fields", "name_description": "Name and description", SEMANTIC: "Semantic"}
HEAVY = ("instructions", "triggers", "examples")
WITH_MEANING = ("hybrid", "embedding")


@dataclass(frozen=True, kw_only=True)
class LaneRow:
    """A skill in a lane: its rank and score there, and its place in the answer, None where it has none."""

    rank: int
    score: float
    skill: Skill
    place: int | None


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One of the lists that an answer was made of, as far as it is shown.

    `total` is how many skills the lane ranked. `is_missing` says that it could not answer at all.
    """

    name: str
    label: str
    rows: list[LaneRow]
    total: int
    is_missing: bool = False


def label_of(lane: str) -> str:
    """Return what a lane is called; the lane of a single field is called as the field."""
    return LABELS.get(lane, f"{lane.capitalize()} alone")


def lanes_of(
    *, organization: Organization, owner: Owner | None, result: SearchResult, depth: int
) -> list[Lane]:
    """Return the lanes of an explained search, each to its `depth` best.

    A method that goes by meaning has its semantic lane among them also where that could not answer. Nothing
    where nothing was ranked. One query.
    """
    if not result.lanes:
        return []
    places = {hit.skill.pk: number for number, hit in enumerate(result.hits, start=1)}
    first = {skill_id for ranked in result.lanes.values() for skill_id, _ in ranked[:depth]}
    rows = findable(organization, owner).select_related("end_user").defer(*HEAVY)
    skills = rows.in_bulk(sorted(first))
    lanes = [
        Lane(
            name=name,
            label=label_of(name),
            total=len(ranked),
            rows=[
                LaneRow(rank=rank, score=score, skill=skills[skill_id], place=places.get(skill_id))
                for rank, (skill_id, score) in enumerate(ranked[:depth], start=1)
                if skill_id in skills
            ],
        )
        for name, ranked in result.lanes.items()
    ]
    if result.method in WITH_MEANING and SEMANTIC not in result.lanes:
        lanes.append(Lane(name=SEMANTIC, label=LABELS[SEMANTIC], rows=[], total=0, is_missing=True))
    return lanes
