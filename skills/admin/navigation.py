"""The navigation of the admin; the queue says how much waits in it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from conversations.admin.sessions import lists_given_up
from conversations.models import SessionState
from mirix.admin_base import organization_ids
from mirix.admin_forms import administered_ids
from skills.admin.queue import waiting_count

MAX_BADGE = 99
GIVEN_UP = f"?state__exact={SessionState.DEAD.value}"


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of the sidebar; the queue says how much waits in it.

    For whoever is a member nowhere the home page alone: the lists would refuse them.
    """
    home: dict[str, Any] = {"items": [{"title": "Overview", "icon": "home", "link": reverse("admin:index")}]}
    if organization_ids(request) == []:
        return [home]
    proposals = _item("Proposals", "rate_review", "skills_skillrevision")
    if count := waiting_count(request, MAX_BADGE + 1):
        proposals |= {
            "badge": f"{MAX_BADGE}+" if count > MAX_BADGE else str(count),
            "badge_variant": "primary",
        }
    groups: list[dict[str, Any]] = [
        home,
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
