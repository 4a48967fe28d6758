"""What retention has to know of what was learned: evidence waits for its proposal, and outlives its turn.

And what goes after its time here: what distillers answered, and the log of searches.

Registered with `conversations.retention`, which knows nothing of skills.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import Exists, OuterRef, Subquery

from conversations.models import ConversationMessage, Session
from conversations.pruning import error_without_details
from conversations.retention import Interest, Scope, register_interest, register_step, row_step
from mirix.tenants.querysets import OwnedQuerySet
from skills.models import (
    DistillationAttempt,
    ProposerCall,
    RevisionState,
    SearchEvent,
    SkillExperience,
    Verdict,
)

DROPPED = "the details were dropped after their time"


def cited_by_an_open_proposal() -> Exists:
    """Return what is true of a turn that an open proposal rests on: who decides has to see it."""
    experiences = SkillExperience.objects.filter(revisions__state=RevisionState.PROPOSED)
    return Exists(experiences.filter(turn=OuterRef("pk")))


def claim_turns(pks: Collection[int]) -> set[int]:
    """Lock the experiences that quote these turns; return the turns of those that a proposal just takes.

    Proposing begins with the same lock, so that of the two one comes first.
    """
    citing = SkillExperience.objects.filter(turn__in=pks)
    locked = citing.select_for_update(skip_locked=True, no_key=True, of=("self",)).order_by("pk")
    own = set(locked.values_list("pk", flat=True))
    return {turn for pk, turn in citing.values_list("pk", "turn") if pk not in own and turn is not None}


def release_turns(pks: Collection[int], now: datetime) -> None:
    """Let experiences stand without their turn: quote and hash stay, and who spoke."""
    spoken = ConversationMessage.objects.filter(pk=OuterRef("turn"))
    SkillExperience.objects.filter(turn__in=pks).update(
        turn_role=Subquery(spoken.values("role")), turn_pruned_at=now, turn=None
    )


def taught_something() -> Exists:
    """Return what is true of a session that experiences came from."""
    return Exists(SkillExperience.objects.filter(session=OuterRef("pk")))


def distilled_before(moment: datetime) -> Subquery:
    """Return the number of the last turn of a session that a distiller had read before that moment."""
    attempts = DistillationAttempt.objects.filter(
        session=OuterRef("pk"), verdict__in=(Verdict.OK, Verdict.EMPTY), created_at__lt=moment
    )
    return Subquery(attempts.order_by("-last_seq").values("last_seq")[:1])


def _kept_texts(scope: Scope, before: datetime) -> OwnedQuerySet:
    attempts = scope.of(DistillationAttempt.objects.all())
    return attempts.filter(pruned_at__isnull=True, created_at__lt=before).exclude(
        raw_reply="", error="", dropped=[]
    )


def _drop_texts(pks: list[str], scope: Scope, before: datetime) -> None:
    """Drop what distillers answered, and the details of what went wrong, which may repeat it."""
    attempts = DistillationAttempt.objects.filter(pk__in=pks)
    attempts.filter(error__contains=": ").update(error=error_without_details("error", DROPPED))
    _forget_last_errors(set(attempts.values_list("session", flat=True)), before)
    attempts.update(raw_reply="", dropped=[], pruned_at=scope.now)


def _forget_last_errors(sessions: Collection[str], before: datetime) -> None:
    """Do the same with what sessions repeat of their last attempt."""
    later = DistillationAttempt.objects.filter(session=OuterRef("pk"), created_at__gte=before)
    repeating = Session.objects.filter(~Exists(later), pk__in=sessions, last_error__contains=": ")
    # In the order of the key: prunes at once may meet at a session.
    locked = repeating.select_for_update(no_key=True, of=("self",)).order_by("pk")
    pks = list(locked.values_list("pk", flat=True))
    Session.objects.filter(pk__in=pks).update(last_error=error_without_details("last_error", DROPPED))


def _kept_answers(scope: Scope, before: datetime) -> OwnedQuerySet:
    calls = scope.of(ProposerCall.objects.all())
    return calls.filter(pruned_at__isnull=True, created_at__lt=before).exclude(raw_reply="", refused=[])


def _drop_answers(pks: list[str], scope: Scope, _before: datetime) -> None:
    """Drop what proposers answered."""
    ProposerCall.objects.filter(pk__in=pks).update(raw_reply="", refused=[], pruned_at=scope.now)


def _searches(scope: Scope, before: datetime) -> OwnedQuerySet:
    return scope.of(SearchEvent.objects.all()).filter(created_at__lt=before)


def _drop_searches(pks: list[str], _scope: Scope, _before: datetime) -> None:
    SearchEvent.objects.filter(pk__in=pks).delete()


def register() -> None:
    """Have all of this respected by every prune."""
    register_interest(
        Interest(
            turn_waits=cited_by_an_open_proposal,
            claim_turns=claim_turns,
            release_turns=release_turns,
            session_is_needed=taught_something,
            distilled_before=distilled_before,
        )
    )
    register_step(
        row_step(
            kind="raw_replies",
            what="raw replies of distillers",
            limit="raw_retention_days",
            rows=_kept_texts,
            drop=_drop_texts,
            no_key=True,
        )
    )
    register_step(
        row_step(
            kind="proposer_replies",
            what="raw replies of proposers",
            limit="raw_retention_days",
            rows=_kept_answers,
            drop=_drop_answers,
            no_key=True,
        )
    )
    register_step(
        row_step(
            kind="searches",
            what="searches in the log",
            limit="search_log_retention_days",
            rows=_searches,
            drop=_drop_searches,
        )
    )
