"""Where a skill comes from, drawn: sessions, experiences, revisions and the skill in four columns. Pure.

The drawing is made on the server, in a box of its own units; each node is a link. The same stands below it as
a list, which also says what became of what is not there any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.timezone import localtime

from conversations.models import Session
from skills.models import AuthorKind, ExperienceStatus, RevisionState, Skill, SkillExperience, SkillRevision
from skills.selectors.days import Amount
from skills.selectors.lineage import Lineage

WIDTHS = (166, 326, 172, 196)
"""Of the nodes of each column, in units of the box."""
GAP = 58
LEFT = tuple(sum(WIDTHS[:number]) + number * GAP for number in range(len(WIDTHS)))
NODE_HEIGHT, DOWN = 46, 58
"""How high a node is, and how far below it the next one stands."""
TOP = 26
"""Room for what a column is called."""
LEARNED = (AuthorKind.LLM, AuthorKind.OFFLINE, AuthorKind.DEMO)
COLUMNS = ("Sessions", "Experiences", "Revisions", "Skill")


@dataclass(frozen=True, kw_only=True)
class Node:
    """One row of the database: what it is called, what is to be known of it, and its page."""

    pk: str
    kind: str
    """`session`, `experience`, `revision` or `skill`."""
    title: str
    detail: str
    url: str
    tone: str = ""
    """`good`, `bad`, `waits`, `aside` for what is in quarantine, `lost` for what nothing supports now."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A node in the drawing: its upper left corner."""

    node: Node
    x: int
    y: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Line:
    """From what taught to what was learned from it: the path of an SVG."""

    path: str
    tone: str


@dataclass(frozen=True, kw_only=True)
class More:
    """What a column does not show."""

    text: str
    url: str
    x: int
    y: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Branch:
    """The same as text: a revision, the experiences behind it, each with its session."""

    node: Node
    leaves: list[tuple[Node, Node]]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """The whole, ready for the page."""

    places: list[Place]
    lines: list[Line]
    more: list[More]
    heads: list[tuple[int, str]]
    """Where each column stands, and what it is called."""
    width: int
    height: int
    branches: list[Branch]
    aside: Amount
    """How many of all experiences are in quarantine, drawn or not."""
    aside_url: str
    lost: int
    """How many of the revisions that are drawn stand on nothing any more."""

    node_height = NODE_HEIGHT


def drawing_of(lineage: Lineage, *, revisions_in_all: Amount) -> Drawing:
    """Return the drawing of where a skill comes from, which has so many revisions of any state."""
    revisions = {each.pk: _revision(each) for each in lineage.revisions}
    # Neighbours stand at one height, so that few lines cross.
    rank = {pk: number for number, pk in enumerate(revisions)}
    behind: dict[str, int] = {}
    for experience, revision in lineage.support:
        behind[experience] = min(rank[revision], behind.get(experience, len(rank)))
    ordered = sorted(lineage.experiences, key=lambda each: behind.get(each.pk, len(rank)))
    experiences = {each.pk: _experience(each) for each in ordered}
    sessions = {each.session_id: _session(each.session) for each in ordered}
    skill = _skill(lineage.skill)

    columns = [list(sessions.values()), list(experiences.values()), list(revisions.values()), [skill]]
    more = _more(lineage, len(sessions), len(experiences), revisions_in_all)
    sizes = [len(column) + (number in more) for number, column in enumerate(columns)]
    rows = max(sizes)
    places = {
        node.pk: Place(node=node, x=LEFT[number], y=_top(row, rows, sizes[number]), width=WIDTHS[number])
        for number, column in enumerate(columns)
        for row, node in enumerate(column)
    }
    pairs = [
        *((each.session_id, each.pk) for each in ordered),
        *sorted(lineage.support),
        *((pk, skill.pk) for pk in revisions),
    ]
    return Drawing(
        places=list(places.values()),
        lines=[_line(places[left], places[right]) for left, right in pairs],
        more=[
            More(
                text=text,
                url=url,
                x=LEFT[number],
                y=_top(sizes[number] - 1, rows, sizes[number]),
                width=WIDTHS[number],
            )
            for number, (text, url) in more.items()
        ],
        heads=list(zip(LEFT, COLUMNS, strict=True)),
        width=LEFT[-1] + WIDTHS[-1],
        height=TOP + rows * DOWN,
        branches=[
            Branch(
                node=node,
                leaves=[
                    (experiences[each.pk], sessions[each.session_id])
                    for each in ordered
                    if (each.pk, pk) in lineage.support
                ],
            )
            for pk, node in revisions.items()
        ],
        aside=lineage.quarantined_count,
        aside_url=list_of("skills_skillexperience", skill=skill.pk, quarantined__exact="1"),
        lost=sum(node.tone == "lost" for node in revisions.values()),
    )


def _top(row: int, rows: int, of: int) -> int:
    """Return where a row of a column begins: a column of few stands at the middle of the highest."""
    return TOP + row * DOWN + (rows - of) * DOWN // 2


def _line(left: Place, right: Place) -> Line:
    x, y = left.x + left.width, left.y + NODE_HEIGHT // 2
    to_x, to_y = right.x, right.y + NODE_HEIGHT // 2
    middle = (x + to_x) // 2
    tone = next((node.tone for node in (left.node, right.node) if node.tone in ("aside", "waits")), "")
    return Line(path=f"M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}", tone=tone)


def _more(
    lineage: Lineage, sessions: int, experiences: int, revisions_in_all: Amount
) -> dict[int, tuple[str, str]]:
    """Return by column what is said below it of what it does not show, and where all of it is."""
    skill = lineage.skill.pk
    found = {}
    for number, count, shown, model in (
        (0, lineage.session_count, sessions, "conversations_session"),
        (1, lineage.experience_count, experiences, "skills_skillexperience"),
    ):
        if count.number > shown:
            found[number] = (f"and {count.without(Amount(number=shown))} more", list_of(model, skill=skill))
    if revisions_in_all.number > len(lineage.revisions):
        url = list_of("skills_skillrevision", skill=skill, state="all")
        found[2] = (f"all {revisions_in_all} revisions", url)
    return found


def list_of(model: str, **filters: str) -> str:
    """Return the address of a model's list (`skills_skillrevision`), filtered."""
    return f"{reverse(f'admin:{model}_changelist')}?{urlencode(filters)}"


# ---- What each says of itself ----------------------------------------------------------------------------


def _session(session: Session) -> Node:
    turns = f"{session.turn_count} turn{'' if session.turn_count == 1 else 's'}"
    if session.pruned_at is not None:
        turns = f"{turns} left" if session.turn_count else "its turns were pruned"
    return Node(
        pk=session.pk,
        kind="session",
        title=session.session_id,
        detail=f"{localtime(session.created_at):%-d %b %Y}, {turns}",
        url=reverse("admin:conversations_session_change", args=[session.pk]),
    )


def _experience(experience: SkillExperience) -> Node:
    says = [
        str(experience.get_experience_type_display()),
        f"{round(experience.credibility * 100)} % credible",
    ]
    if experience.quarantined:
        says.insert(0, "In quarantine")
    if experience.status == ExperienceStatus.SUPERSEDED:
        says.append("superseded")
    kind = "good" if experience.experience_type == "worth_learning" else "bad"
    return Node(
        pk=experience.pk,
        kind="experience",
        title=experience.title,
        detail=", ".join(says),
        url=reverse("admin:skills_skillexperience_change", args=[experience.pk]),
        tone="aside" if experience.quarantined else kind,
    )


def _revision(revision: SkillRevision) -> Node:
    waits = revision.state == RevisionState.PROPOSED
    is_lost = not revision.evidence_count and revision.author_kind in LEARNED
    action = str(revision.get_action_display())
    count = revision.evidence_count
    behind = f"{count} experience{'' if count == 1 else 's'}" if count else "no experience"
    says = f"{'Waits' if waits else action}, {behind}"
    return Node(
        pk=revision.pk,
        kind="revision",
        title=revision.version or action,
        detail="What taught it was erased" if is_lost else says,
        url=reverse("admin:skills_skillrevision_change", args=[revision.pk]),
        tone="lost" if is_lost else "waits" if waits else "",
    )


def _skill(skill: Skill) -> Node:
    return Node(
        pk=skill.pk,
        kind="skill",
        title=skill.name,
        detail=f"{skill.version}, {skill.get_status_display().lower()}",
        url=reverse("admin:skills_skill_change", args=[skill.pk]),
    )
