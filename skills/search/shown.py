"""What of a result is shown where there is room for so many tokens and no more."""

from __future__ import annotations

from dataclasses import dataclass

from skills.models import AnswerView
from skills.search.budget import estimate_tokens, fitting
from skills.search.service import Hit


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What of a result an answer shows, and what is to be said about the rest."""

    hits: list[Hit]
    message: str = ""
    is_first_brief: bool = False
    """The first is shown as in a catalog."""


def within_budget(hits: list[Hit], *, budget: int | None, view: str = AnswerView.FULL) -> Shown:
    """Return the rows that fit into the budget, from the first on; None is no limit.

    The best row is not left out for being long: where it alone takes more, it is shown as in a catalog.
    """
    if budget is None or not hits:
        return Shown(hits=hits)
    costs = [_cost(hit, view) for hit in hits]
    is_first_brief = costs[0] > budget and view != AnswerView.CATALOG
    brief = [_cost(hits[0], AnswerView.CATALOG) if is_first_brief else costs[0], *costs[1:]]
    count = fitting(brief, budget)
    if not count:
        first = f"the first of {len(hits)} takes about {costs[0]}"
        return Shown(hits=[], message=f"The token_budget of {budget} holds no row; {first}.")
    message = ""
    if count < len(hits) or is_first_brief:
        message = f"The token_budget of {budget} holds {count} of {len(hits)} rows"
        message += f", the first as in a catalog: it takes about {costs[0]}." if is_first_brief else "."
    return Shown(hits=hits[:count], message=message, is_first_brief=is_first_brief)


def _cost(hit: Hit, view: str) -> int:
    texts = (hit.skill.name, hit.skill.description)
    return estimate_tokens(*(texts if view == AnswerView.CATALOG else (*texts, hit.skill.instructions)))
