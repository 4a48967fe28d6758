"""What one organization stores another never reads, also where all their names and ids are the same.

Rows come to be as in production: sent over the API, closed, dreamed about, approved, searched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib import admin
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from conversations.models import Session
from mirix.caches import caches
from mirix.tenants.models import Organization
from skills import tasks
from skills.models import Skill, SkillExperience, SkillRevision
from tests.access.admin_table import MODELS
from tests.access.test_api import IDS, ROWS
from tests.factories import make_client, make_key, make_member, make_token
from tests.redis import redis

pytestmark = pytest.mark.django_db
USER = "desk-7"
SESSIONS = ("order-1", "order-2")
OURS = ("conversations.", "skills.", "tenants.")
GET = [row.route for row in ROWS if "GET" in row.methods]
COUNTS = {"v1/usage"}
"""What tells numbers of an organization and lists no rows."""


in_both_caches = pytest.mark.parametrize("_cache", ["memory", "Redis"], indirect=True)


class Tenant:
    """An organization with a client, its key and an administrator; all that it says holds its canary."""

    def __init__(self, name: str) -> None:
        self.canary = f"canary-{name}-7d41"
        self.organization = Organization.objects.create(name=name)
        self.api = Client(headers={"X-API-Key": make_key(make_client(self.organization, "helpdesk"))})
        person = make_member(self.organization, "administrator", f"admin of {name}")
        self.member = Client(headers={"Authorization": f"Bearer {make_token(person, self.organization)}"})
        self.browser = Client()
        self.browser.force_login(person)

    def post(
        self, path: str, body: dict[str, Any], by: Client | None = None, **headers: str
    ) -> dict[str, Any]:
        answer = (by or self.api).post(path, body, "application/json", headers=headers)
        assert answer.status_code in (200, 201, 202), answer.content
        return answer.json()

    def get(self, path: str) -> dict[str, Any]:
        answer = self.api.get(path)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def works(self, session_id: str, tool: str = "refund_order") -> None:
        """Send one session: a call that fails, the same call in another way that works."""
        messages = [
            {"id": "m-1", "role": "user", "content": f"Refund order {session_id}, says {self.canary}."},
            _call(tool, "c1", method="voucher"),
            _result(tool, "c1", f"Error: orders of {self.canary} paid by card are refunded to the card"),
            _call(tool, "c2", method="card"),
            _result(tool, "c2", '{"done": true}'),
        ]
        body = {"user_id": USER, "session_id": session_id, "messages": messages}
        said = self.post("/memory/add_sync", body, **{"Idempotency-Key": f"the-same-{session_id}"})
        assert said["turns"]["stored"] == 5
        self.post(f"/v1/sessions/{session_id}/close?user_id={USER}", {})

    def dreams(self) -> dict[str, Any]:
        said = self.post(f"/memory/auto_dream?user_id={USER}&wait=0", {})
        context: Any = SimpleNamespace(should_abort=lambda: False)
        tasks.run_dream(context, run_id=said["run_id"])
        return self.get(f"/v1/runs/{said['run_id']}")

    def approves(self) -> str:
        """Approve the one proposal; return the name of its skill."""
        (proposal,) = self.get("/v1/proposals")["results"]
        return self.post(f"/v1/proposals/{proposal['id']}/approve", {}, by=self.member)["name"]


def _call(tool: str, call_id: str, **arguments: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps({"order": "4711"} | arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def _result(tool: str, call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": tool, "content": content}


@pytest.fixture
def _cache(request, settings) -> Iterator[None]:
    if getattr(request, "param", "memory") == "memory":
        settings.CACHES = caches("")
        cache.clear()
        yield
    else:
        with redis() as url:
            settings.CACHES = caches(url)
            cache.clear()
            yield


@pytest.fixture
def acme(_cache) -> Tenant:
    """An organization that has learned something and published a skill."""
    tenant = Tenant("acme")
    for session_id in SESSIONS:
        tenant.works(session_id)
    assert tenant.dreams()["state"] == "finished"
    tenant.approves()
    # And a proposal that waits.
    tenant.works("order-3", "cancel_order")
    assert tenant.dreams()["state"] == "finished"
    return tenant


@pytest.fixture
def newcomer(acme) -> Tenant:
    """Another organization, with an end user of the same id and nothing else."""
    tenant = Tenant("newcomer")
    tenant.post("/users/create_or_get", {"user_id": USER})
    return tenant


def everything_read(tenant: Tenant) -> dict[str, str]:
    """Return the answers to all that the tenant's key can list and search, by path."""
    lists = [route for route in GET if "<" not in route and route not in COUNTS]
    paths = [f"/{route}?user_id={USER}&limit=100" for route in lists]
    paths += [f"/{route}?limit=100" for route in lists if "v1/" in route]
    paths += [
        f"/memory/{which}?user_id={USER}&query={query}&search_method={method}&limit=100&explain=1"
        for which in ("search", "search_all_users")
        for query in ("", "order", "canary")
        for method in ("hybrid", "bm25", "embedding", "string_match")
    ]
    return {path: tenant.api.get(path).content.decode() for path in paths}


def rows_in(answer: str) -> int:
    return len(json.loads(answer)["results"])


@in_both_caches
def test_what_one_has_learned_the_other_does_not_read(acme, newcomer):
    """By every list and every search; the cache cold, and warm of the other's questions."""
    finds = everything_read(acme)
    assert [path for path, answer in finds.items() if not rows_in(answer)] == []
    warm = everything_read(newcomer)
    cache.clear()
    cold = everything_read(newcomer)
    everything_read(acme)
    again = everything_read(newcomer)

    for answers in (warm, cold, again):
        assert {path: rows_in(answer) for path, answer in answers.items() if rows_in(answer)} == {}
        assert not [path for path, answer in answers.items() if acme.canary in answer]


def test_nothing_is_there_by_its_id(acme, newcomer):
    ids = {label: admin_of(label).model.objects.order_by("pk").first() for label in IDS.values()}
    for route in (route for route in GET if "<" in route):
        label = next(label for start, label in IDS.items() if route.startswith(start))
        name = SESSIONS[0] if label == "conversations.session" else ids[label].pk
        start, _, rest = route.partition("<")
        path = f"/{start}{name}{rest.partition('>')[2]}?user_id={USER}"
        assert acme.api.get(path).status_code == 200, path
        answer = newcomer.api.get(path)
        assert (answer.status_code, answer.content) == (404, b'{"detail":"Not found."}'), path


def admin_of(label: str) -> admin.ModelAdmin:
    return next(page for model, page in admin.site._registry.items() if model._meta.label_lower == label)


@pytest.mark.parametrize("label", [label for label in MODELS if label.startswith(OURS)])
def test_no_search_and_no_filter_of_the_admin_shows_it(acme, newcomer, label):
    page = admin_of(label)
    url = reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_changelist")
    row = page.model.objects.order_by("pk").first()
    queries = [
        {},
        {"q": "canary"},
        {"q": "order"},
        {"q": str(row.pk) if row else "x"},
        {"organization": acme.organization.pk},
        {"organization__id__exact": acme.organization.pk},
        {"id": str(row.pk) if row else "x"},
        {"end_user__user_id": USER},
        {"state": "all", "o": "1"},
        {"p": "2"},
    ]
    for query in queries:
        answer = newcomer.browser.get(url, query, follow=True)
        text = answer.content.decode()
        assert answer.status_code in (200, 400), query  # 400: no such filter
        assert acme.canary not in text, query
        assert f">{acme.organization.name}<" not in text, query
        if row and "q" not in query and "id" not in query:
            assert f"{row.pk}" not in text, query
    assert newcomer.browser.get("/admin/").content.decode().count(acme.canary) == 0


@pytest.mark.parametrize(
    "command",
    [
        ("search", "refund an order", "--user", USER),
        ("search", "refund an order"),
        ("review", "list"),
    ],
    ids=" ".join,
)
def test_no_command_for_the_other_shows_it(acme, newcomer, capsys, command):
    names = ("refund-order", "cancel-order")
    call_command(*command, "--organization", acme.organization.name)
    out = capsys.readouterr().out
    assert any(name in out for name in names)
    call_command(*command, "--organization", newcomer.organization.name)
    out = capsys.readouterr().out
    assert not any(name in out for name in names)


class TestEqualNames:
    """Two organizations with equal user ids, session ids, message ids, idempotency keys and skill names."""

    @pytest.fixture
    def both(self, _cache) -> tuple[Tenant, Tenant]:
        pair = (Tenant("east"), Tenant("west"))
        for session_id in SESSIONS:  # turn and turn about
            for tenant in pair:
                tenant.works(session_id)
        for tenant in pair:
            assert tenant.dreams()["counts"]["sessions"]["distilled"] == 2
        return pair

    def test_each_learns_from_its_own_words_alone(self, both):
        for tenant in both:
            theirs = SkillExperience.objects.for_organization(tenant.organization)
            assert len(theirs) >= 2
            for experience in theirs:
                assert tenant.canary in experience.turn.content
                assert tenant.canary in experience.quote
                assert experience.session.organization == tenant.organization
                assert experience.client.organization == tenant.organization
        assert Session.objects.filter(session_id=SESSIONS[0]).count() == 2

    @in_both_caches
    def test_each_reviews_and_finds_its_own(self, both):
        names = {tenant.approves() for tenant in both}
        assert len(names) == 1, "the skills have one name"
        assert Skill.objects.filter(name=names.pop()).count() == 2
        for mine, other in (both, both[::-1]):
            texts = everything_read(mine)
            assert not [path for path, text in texts.items() if other.canary in text]
            found = json.loads(texts[search_for("canary")])["results"]
            assert len(found) == 1
            assert mine.canary in json.dumps(found)

    def test_the_name_of_one_is_free_for_the_other(self, both):
        """A namesake, a rejected revision and an open proposal count within one organization."""
        east, west = both
        east.approves()
        (waiting,) = west.get("/v1/proposals")["results"]
        assert (waiting["action"], waiting["skill_id"]) == ("create", None)
        west.post(f"/v1/proposals/{waiting['id']}/reject", {"reason": "No."}, by=west.member)
        assert west.get(f"/memory/search?user_id={USER}&query=refund")["results"] == []
        assert len(east.get(f"/memory/search?user_id={USER}&query=refund")["results"]) == 1

    def test_what_one_adds_later_changes_nothing_of_the_other(self, both):
        east, west = both
        before = everything_read(west)
        east.works("order-3", "cancel_order")
        east.dreams()
        assert everything_read(west) == before

    def test_rows_name_the_organization_of_what_they_hang_on(self, both):
        for tenant in both:
            tenant.approves()
        for revision in SkillRevision.objects.prefetch_related("experiences", "decisions"):
            assert {row.organization_id for row in revision.experiences.all()} == {revision.organization_id}
            assert {row.organization_id for row in revision.decisions.all()} == {revision.organization_id}


def search_for(query: str) -> str:
    return f"/memory/search?user_id={USER}&query={query}&search_method=string_match&limit=100&explain=1"
