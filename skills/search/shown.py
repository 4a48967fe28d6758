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


def within_budget(hits: list[Hit], *, budget: int | None, view: str = AnswerView.FULL) -> Shown:
    """Return the rows that fit into the budget, from the first on; None is no limit."""
    if budget is None or not hits:
        return Shown(hits=hits)
    costs = [estimate_tokens(*_budgeted(hit, view)) for hit in hits]
    if (count := fitting(costs, budget)) == len(hits):
        return Shown(hits=hits)
    if count:
        return Shown(
            hits=hits[:count], message=f"The token_budget of {budget} holds {count} of {len(hits)} rows."
        )
    first = f"the first of {len(hits)} takes about {costs[0]}"
    return Shown(hits=[], message=f"The token_budget of {budget} holds no row; {first}.")


def _budgeted(hit: Hit, view: str) -> tuple[str, ...]:
    texts = (hit.skill.name, hit.skill.description)
    return texts if view == AnswerView.CATALOG else (*texts, hit.skill.instructions)
