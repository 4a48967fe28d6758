"""The navigation and the home page: how much waits, what is stuck, what there is."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from conversations.admin.sessions import lists_given_up
from conversations.models import IntakeRecord, IntakeState, Session, SessionState
from mirix.admin_base import organization_ids
from mirix.admin_forms import administered_ids
from mirix.tenants.models import Owned
from skills.admin.queue import waiting, waiting_count
from skills.models import AutoDreamRun, RunState, Skill, SkillExperience, SkillStatus
from skills.selectors.proposals import QUEUE_ORDER, with_priority

MAX_BADGE = 99
MAX_FIGURE = 10_000
QUEUE_ON_HOME = 6
GIVEN_UP = f"?state__exact={SessionState.DEAD.value}"


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of the sidebar; the queue says how much waits in it."""
    proposals = _item("Proposals", "rate_review", "skills_skillrevision")
    if count := waiting_count(request, MAX_BADGE + 1):
        proposals |= {
            "badge": f"{MAX_BADGE}+" if count > MAX_BADGE else str(count),
            "badge_variant": "primary",
        }
    groups: list[dict[str, Any]] = [
        {"items": [{"title": "Overview", "icon": "home", "link": reverse("admin:index")}]},
        {
            "title": "Review",
            "items": [
                proposals,
                _item("Skills", "school", "skills_skill"),
                _item("Experiences", "lightbulb", "skills_skillexperience"),
                _item("Searches", "manage_search", "skills_searchevent") | {"active": _is_log},
                {
                    "title": "Try a search",
                    "icon": "search",
                    "link": reverse("admin:skills_searchevent_try"),
                },
            ],
        },
        {
            "title": "Work",
            "items": [
                _item("Sessions", "forum", "conversations_session") | {"active": _is_of_all_sessions},
                _item("Sessions given up", "heart_broken", "conversations_session", GIVEN_UP)
                | {"active": lists_given_up},
                _item("Intake", "move_to_inbox", "conversations_intakerecord"),
                _item("Runs", "bedtime", "skills_autodreamrun"),
                _item("Attempts", "psychology", "skills_distillationattempt"),
            ],
        },
        {
            "title": "Organization",
            "items": [
                _item("Organizations", "apartment", "tenants_organization"),
                _item("Clients", "deployed_code", "tenants_client"),
                _item("API keys", "key", "tenants_apikey"),
                _item("End users", "person", "tenants_enduser"),
                _item("Members", "group", "tenants_membership"),
            ],
        },
    ]
    if administered_ids(request) != []:
        groups.append(
            {
                "title": "Administration",
                "items": [
                    _item("Audit trail", "history", "tenants_auditevent"),
                    _item("Notifications", "notifications", "tenants_notification"),
                ],
            }
        )
    if getattr(request.user, "is_superuser", False):
        groups.append(
            {
                "title": "Installation",
                "items": [
                    _item("Logins", "manage_accounts", "auth_user"),
                    _item("Jobs", "work_history", "procrastinate_procrastinatejob"),
                ],
            }
        )
    return groups


def _is_log(request: HttpRequest) -> bool:
    """Return whether the page is of the log of searches; the one to try them on has an item of its own."""
    log, tried = reverse("admin:skills_searchevent_changelist"), reverse("admin:skills_searchevent_try")
    return request.path.startswith(log) and request.path != tried


def _is_of_all_sessions(request: HttpRequest) -> bool:
    """Return whether the page is of sessions; those that were given up have an item of their own."""
    return request.path.startswith(reverse("admin:conversations_session_changelist")) and not lists_given_up(
        request
    )


def _item(title: str, icon: str, model: str, query: str = "") -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse(f"admin:{model}_changelist") + query}


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add the figures of the home page; each carries the address of the list it counts."""
    sessions = {state: _count(_seen(request, Session).filter(state=state)) for state in SessionState}
    queue = with_priority(waiting(request).select_related("organization", "end_user")).order_by(*QUEUE_ORDER)
    context |= {
        "figures": [
            _figure("To decide", waiting_count(request, MAX_BADGE + 1), "skills_skillrevision", "", "call"),
            _figure(
                "In quarantine",
                _count(_seen(request, SkillExperience).filter(quarantined=True)),
                "skills_skillexperience",
                "?quarantined__exact=1",
                "call",
            ),
            _figure(
                "Active skills",
                _count(_seen(request, Skill).filter(status=SkillStatus.ACTIVE)),
                "skills_skill",
                "?status__exact=active",
                "",
            ),
            *(
                _figure(
                    f"Sessions {state.label.lower()}",
                    sessions[state],
                    "conversations_session",
                    f"?state__exact={state.value}",
                    "alarm" if state == SessionState.DEAD else "",
                )
                for state in SessionState
            ),
            _figure(
                "Intake failed",
                _count(_seen(request, IntakeRecord).filter(state=IntakeState.FAILED)),
                "conversations_intakerecord",
                f"?state__exact={IntakeState.FAILED.value}",
                "alarm",
            ),
        ],
        "queue": list(queue[:QUEUE_ON_HOME]),
        "running": list(
            _seen(request, AutoDreamRun).filter(state=RunState.RUNNING).select_related("end_user")[:10]
        ),
        "nothing_yet": not any(sessions.values()),
    }
    return context


def _seen(request: HttpRequest, model: type[Owned]) -> QuerySet:
    return model.objects.for_organizations(organization_ids(request))


def _count(rows: QuerySet) -> int:
    """Return how many there are, at most one more than is told: nobody waits for a count of millions."""
    return rows.order_by().values("pk")[: MAX_FIGURE + 1].count()


def _figure(label: str, number: int, model: str, query: str, tone: str) -> dict[str, Any]:
    return {
        "label": label,
        "number": f"{MAX_FIGURE:,}+" if number > MAX_FIGURE else number,
        "url": reverse(f"admin:{model}_changelist") + query,
        "tone": tone if number else "",
    }
