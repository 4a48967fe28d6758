"""Inside a request, rows of tenants are read for the organizations that it may see, or not at all."""

from __future__ import annotations

from time import perf_counter

import pytest
from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import Count, Exists, F, OuterRef, Prefetch, Subquery
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from rest_framework import serializers

from conversations.models import ConversationMessage, Session
from mirix.tenants.models import ApiKey, Client, EndUser, Membership, Organization, TenantModel
from mirix.tenants.principal import Principal
from mirix.tenants.querysets import TenantQuerySet
from mirix.tenants.requests import RequestScopeMiddleware, visible_organizations
from mirix.tenants.scope import UnscopedQuery, covers, is_in_request, request_scope, require
from skills.models import ReviewDecision, Skill, SkillExperience, SkillRevision
from tests.factories import (
    make_client,
    make_experience,
    make_key,
    make_member,
    make_organization,
    make_owner,
    make_proposal,
    make_session,
    make_skill,
    make_superuser,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def seen(owner):
    """Inside a request that sees the owner's organization."""
    with request_scope(lambda: frozenset((owner.organization.pk,))):
        yield owner


@pytest.fixture
def all_seen(owner):
    """Inside a request of a superuser."""
    with request_scope(lambda: None):
        yield owner


EVALUATIONS = {
    "list": list,
    "len": len,
    "bool": bool,
    "slice": lambda rows: list(rows[:1]),
    "index": lambda rows: rows[0],
    "iterator": lambda rows: list(rows.iterator()),
    "get": lambda rows: rows.get(),
    "first": lambda rows: rows.first(),
    "last": lambda rows: rows.last(),
    "earliest": lambda rows: rows.earliest("created_at"),
    "latest": lambda rows: rows.latest("created_at"),
    "values": lambda rows: list(rows.values("pk")),
    "values_list": lambda rows: list(rows.values_list("pk")),
    "values_list flat": lambda rows: list(rows.values_list("pk", flat=True)),
    "values_list named": lambda rows: list(rows.values_list("pk", named=True)),
    "dates": lambda rows: list(rows.dates("created_at", "day")),
    "datetimes": lambda rows: list(rows.datetimes("created_at", "day")),
    "count": lambda rows: rows.count(),
    "count of distinct": lambda rows: rows.distinct().count(),
    "exists": lambda rows: rows.exists(),
    "contains": lambda rows: rows.contains(Session(pk="session-1")),
    "aggregate": lambda rows: rows.aggregate(Count("pk")),
    "aggregate of annotated": lambda rows: rows.annotate(n=Count("turns")).aggregate(Count("n")),
    "in_bulk": lambda rows: rows.in_bulk(["session-1"]),
    "explain": lambda rows: rows.explain(),
    "sql": lambda rows: str(rows.query),
    "union": lambda rows: list(rows.union(rows)),
    "or": lambda rows: list(rows | rows),
    "and": lambda rows: list(rows & rows),
    "update": lambda rows: rows.update(attempts=1),
    "delete": lambda rows: rows.delete(),
    "get_or_create": lambda rows: rows.get_or_create(session_id="s"),
    "update_or_create": lambda rows: rows.update_or_create(session_id="s"),
    "bulk_update": lambda rows: rows.bulk_update([Session(pk="session-1")], ["attempts"]),
    "select_for_update": lambda rows: list(rows.select_for_update()),
    "get_object_or_404": lambda rows: get_object_or_404(rows),
    "raw": lambda rows: list(rows.raw("SELECT * FROM conversations_session")),
    "subquery": lambda rows: list(Client.objects.unscoped("a test").filter(pk__in=rows.values("pk"))),
    "exists subquery": lambda rows: list(Client.objects.unscoped("a test").filter(Exists(rows))),
    "annotation": lambda rows: list(
        Client.objects.unscoped("a test").annotate(x=Subquery(rows.values("pk")[:1]))
    ),
    "form": lambda rows: str(forms.ModelChoiceField(rows).widget.render("x", None)),
    "serializer": lambda rows: serializers.PrimaryKeyRelatedField(queryset=rows).run_validation("x"),
}


@pytest.mark.parametrize("evaluate", EVALUATIONS.values(), ids=EVALUATIONS)
@pytest.mark.parametrize(
    "rows",
    [
        lambda: Session.objects.all(),
        lambda: Session.objects.filter(state="open"),
        lambda: Session.objects.for_organizations(None),
        lambda: Session.objects.for_organizations(["org-of-a-stranger"]),
    ],
    ids=["all", "filtered", "of all organizations", "of a stranger"],
)
def test_a_query_that_is_not_of_the_organization_is_refused(seen, rows, evaluate):
    with CaptureQueriesContext(connection) as queries, pytest.raises(UnscopedQuery):
        evaluate(rows())

    assert not [query for query in queries if "conversations_session" in query["sql"]]


def test_no_way_to_evaluate_a_queryset_is_missing_above():
    """Of Django's methods that end in a query, each is above; the rest build querysets or only insert."""
    building = (
        "all alias annotate as_manager complex_filter defer difference distinct exclude extra filter "
        "intersection none only order_by prefetch_related resolve_expression reverse select_related using "
        "for_organization for_organizations with_organization_of unscoped"
    )
    inserting = "create bulk_create"
    tested = {name.split()[0] for name in EVALUATIONS} | set(building.split()) | set(inserting.split())
    methods = {
        name
        for name in dir(TenantQuerySet)
        if not name.startswith(("_", "a")) or name in ("all", "alias", "annotate", "aggregate", "as_manager")
        if callable(getattr(TenantQuerySet, name))
    }
    assert methods - tested == set()


def test_the_message_says_what_to_do(seen):
    with pytest.raises(UnscopedQuery) as refused:
        Session.objects.count()
    assert str(refused.value) == (
        "A query of conversations.Session inside a request is not bound. Start it with for_organization() or "
        "for_owner() of what the request may see, or with unscoped(reason)."
    )


class TestAllowed:
    def test_rows_of_the_organization_and_of_the_owner(self, seen, stranger):
        make_session(seen)
        make_session(stranger)

        assert Session.objects.for_organization(seen.organization).count() == 1
        assert Session.objects.for_owner(seen).count() == 1
        assert Session.objects.for_organizations([seen.organization.pk]).count() == 1
        assert Session.objects.filter(state="sealed").for_owner(seen).exclude(pk="x").count() == 1
        assert Session.objects.with_owner_of(make_skill(seen)).count() == 1

    def test_no_organization_is_no_row(self, seen, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert list(Session.objects.for_organizations([])) == []
            assert list(Session.objects.none()) == []

    def test_what_is_released_says_why(self, seen, stranger):
        make_session(stranger)

        assert Session.objects.unscoped("a test").count() == 1
        with pytest.raises(ValueError, match="Say why"):
            Session.objects.unscoped(" ")

    def test_all_organizations_for_a_superuser_who_asks_for_them(self, all_seen, stranger):
        make_session(stranger)

        assert Session.objects.for_organizations(None).count() == 1
        assert Session.objects.for_organization(stranger.organization).count() == 1
        with pytest.raises(UnscopedQuery):
            Session.objects.count()

    def test_everything_outside_of_requests(self, owner, stranger):
        make_session(owner)
        make_session(stranger)

        assert Session.objects.count() == 2
        assert Session.objects.raw("SELECT * FROM conversations_session")[0]

    def test_or_holds_where_both_sides_are_bound(self, seen):
        bound, loose = Session.objects.for_owner(seen), Session.objects.filter(state="open")

        assert list(bound | bound) == []
        assert list(bound & loose) == list(loose & bound) == []
        for mixed in (bound | loose, loose | bound, bound ^ loose, bound.union(loose), loose.union(bound)):
            with pytest.raises(UnscopedQuery):
                list(mixed)
        for sliced in (lambda: loose[:5] | loose, lambda: loose | loose[:5], lambda: loose[:5] ^ bound):
            with pytest.raises(TypeError, match="before they are sliced"):
                sliced()


class TestRowsThatAreHeld:
    """Django's own work on rows that were read within the scope goes on as ever."""

    def test_related_rows_both_ways(self, owner):
        session = make_session(owner, [{"role": "user", "content": "Hello."}])
        with request_scope(lambda: frozenset((owner.organization.pk,))):
            session = Session.objects.for_owner(owner).get(pk=session.pk)
            turn = session.turns.get()

            assert session.turns.count() == 1
            assert session.turns.filter(role="tool").exists() is False
            assert turn.session == session
            assert turn.client.organization == owner.organization
            assert list(owner.organization.clients.values_list("pk", flat=True)) == [turn.client_id]

    def test_rows_of_a_stranger_are_no_way_to_theirs(self, seen, stranger):
        session = make_session(stranger, [{"role": "user", "content": "Hello."}])

        with pytest.raises(UnscopedQuery):
            session.turns.count()
        with pytest.raises(UnscopedQuery):
            list(stranger.organization.clients.all())

    def test_many_to_many(self, seen):
        revision, experience = make_proposal(seen), make_experience(seen)
        revision.experiences.set([experience])

        assert list(revision.experiences.all()) == [experience]
        assert list(experience.revisions.all()) == [revision]
        revision.experiences.remove(experience)
        revision.experiences.add(experience)
        revision.experiences.clear()

    def test_prefetches(self, seen, django_assert_num_queries):
        session = make_session(seen, [{"role": "user", "content": "Hello."}])
        revision = make_proposal(seen)
        revision.experiences.set([make_experience(seen, session)])
        found = Session.objects.for_owner(seen)

        with django_assert_num_queries(2):
            assert [len(row.turns.all()) for row in found.prefetch_related("turns")] == [1]
        only = Prefetch("turns", queryset=ConversationMessage.objects.order_by("seq"))
        assert [len(row.turns.all()) for row in found.prefetch_related(only)] == [1]
        assert (
            len(SkillExperience.objects.for_owner(seen).prefetch_related("revisions", "session__turns")) == 1
        )

    def test_writing(self, seen):
        session = make_session(seen, [{"role": "user", "content": "Hello."}])
        session.state = "open"
        session.save()
        session.refresh_from_db()
        session.refresh_from_db(fields=["state"])
        client = Client(organization=seen.organization, name="new")
        client.full_clean()
        client.save()
        Client.objects.for_organization(seen.organization).filter(pk=client.pk).update(name="newer")
        Client.objects.bulk_create([Client(organization=seen.organization, name="another")])
        users = EndUser.objects.for_organization(seen.organization)
        assert users.get_or_create(organization=seen.organization, user_id="bob")[1] is True
        assert users.get_or_create(organization=seen.organization, user_id="bob")[1] is False

    def test_uniqueness_is_looked_for_in_the_whole_table(self, seen, stranger):
        with pytest.raises(ValidationError, match="already exists"):
            Organization(name=stranger.organization.name).full_clean()

    def test_deleting_with_what_depends_on_it(self, seen):
        session = make_session(seen, [{"role": "user", "content": "Hello."}])
        make_experience(seen, session)
        make_skill(seen)
        session.delete()
        Skill.objects.for_owner(seen).update(current_revision=None)
        Skill.objects.for_owner(seen).delete()
        seen.organization.delete()

        assert ConversationMessage.objects.unscoped("a test").count() == 0

    def test_a_subquery_that_follows_the_outer_row_by_a_key(self, seen):
        session = make_session(seen, [{"role": "user", "content": "Hello."}])
        make_experience(seen, session)
        sessions = Session.objects.for_owner(seen)
        theirs = SkillExperience.objects.filter(session=OuterRef("pk"))
        count = theirs.order_by().values("session").annotate(n=Count("pk")).values("n")

        assert sessions.filter(Exists(theirs)).count() == 1
        assert sessions.annotate(n=Subquery(count)).get().n == 1
        assert sessions.exclude(experiences__title="x").count() == 1
        same_day = SkillExperience.objects.filter(created_at=OuterRef("created_at"))
        with pytest.raises(UnscopedQuery):
            sessions.filter(Exists(same_day)).count()


class TestModelsAndDoors:
    def test_every_model_that_names_an_organization_is_guarded(self):
        ours = [
            model
            for app in ("tenants", "conversations", "skills")
            for model in apps.get_app_config(app).get_models()
        ]
        loose = {
            model._meta.label
            for model in ours
            if model is Organization or any(field.name == "organization" for field in model._meta.fields)
            if not issubclass(model, TenantModel)
            or not isinstance(model._default_manager.get_queryset(), TenantQuerySet)
        }
        assert loose == set()
        assert len(ours) > 10

    def test_a_caller_of_the_api_sees_its_organization(self, owner):
        request = RequestFactory().get("/v1/skills")
        request.user = make_superuser()
        assert visible_organizations(request) == frozenset()  # a session opens nothing there
        request.auth = Principal.of_client(make_client(owner.organization))
        assert visible_organizations(request) == {owner.organization.pk}

    def test_a_user_of_the_admin_sees_the_memberships(self, owner, stranger, django_assert_num_queries):
        request = RequestFactory().get("/admin/")
        request.user = make_member(owner.organization)
        Membership.objects.create(organization=make_organization(), user=request.user)
        with django_assert_num_queries(1):
            assert len(visible_organizations(request)) == 2
            assert owner.organization.pk in visible_organizations(request)
            assert stranger.organization.pk not in visible_organizations(request)
        for user, sees in ((make_superuser(), None), (AnonymousUser(), set()), (User(pk=0), set())):
            request = RequestFactory().get("/admin/")
            request.user = user
            assert visible_organizations(request) == sees

    def test_the_scope_ends_with_the_request(self, owner):
        def serve(request: HttpRequest) -> None:
            assert is_in_request()
            raise ZeroDivisionError

        request = RequestFactory().get("/v1/skills")
        with pytest.raises(ZeroDivisionError):
            RequestScopeMiddleware(serve)(request)
        assert not is_in_request()

    def test_a_view_that_forgets_is_a_500_and_not_a_leak(self, api, owner, monkeypatch, caplog):
        make_skill(owner)
        monkeypatch.setattr("skills.api.skills.skills_of", lambda **_: Skill.objects.all())

        answer = api.get("/v1/skills")

        assert answer.status_code == 500
        assert answer.json() == {"detail": "Internal error; it has been logged."}
        assert "A query of skills.Skill inside a request is not bound" in caplog.text
        caplog.clear()

    def test_a_selector_a_filter_an_autocomplete_an_inline_and_an_action_that_forget(self, owner, rf):
        class Turns(admin.TabularInline):
            model = ConversationMessage
            fk_name = "session"

        class ByClient(admin.RelatedFieldListFilter):
            pass

        class Careless(admin.ModelAdmin):
            inlines = [Turns]
            search_fields = ["session_id"]
            list_filter = ["end_user"]

        page = Careless(Session, admin.AdminSite())
        session = make_session(owner)
        request = rf.get("/admin/")
        request.user = make_superuser()
        with request_scope(lambda: frozenset((owner.organization.pk,))):
            refused = {
                "selector": lambda: list(page.get_queryset(request)),
                "object": lambda: page.get_object(request, session.pk),
                "filter": lambda: page.get_changelist_instance(request),
                "autocomplete": lambda: list(
                    page.get_search_results(request, page.get_queryset(request), "s")[0]
                ),
                "inline": lambda: [
                    formset(instance=session, queryset=inline.get_queryset(request)).forms
                    for formset, inline in page.get_formsets_with_inlines(request, session)
                ],
                "form": lambda: str(page.get_form(request, fields=["end_user"])()),
                "action": lambda: page.get_queryset(request).update(state="open"),
                "delete": lambda: page.delete_queryset(request, page.get_queryset(request)),
            }
            for act in refused.values():
                with pytest.raises(UnscopedQuery):
                    act()


class TestCost:
    def test_it_costs_no_query(self, seen, django_assert_num_queries):
        with django_assert_num_queries(1):
            list(Session.objects.for_owner(seen))

    def test_it_costs_next_to_nothing(self, seen):
        bound = frozenset((seen.organization.pk,))
        best = min(_seconds(lambda: covers(bound)) for _ in range(50))
        assert best < 5e-6

    def test_sql_by_hand_asks(self, seen, stranger):
        require(seen.organization.pk)
        with pytest.raises(UnscopedQuery):
            require(stranger.organization.pk)


def _seconds(act, times: int = 1_000) -> float:
    began = perf_counter()
    for _ in range(times):
        act()
    return (perf_counter() - began) / times


def test_a_key_is_found_before_its_organization_is_known(owner, client):
    key = make_key(make_client(owner.organization))
    assert client.get("/v1/skills", headers={"X-API-Key": key}).status_code == 200
    assert ApiKey.objects.get().last_used_at is not None


def test_decisions_and_revisions_are_bound_as_well(seen):
    revision = make_proposal(seen)
    assert revision.decisions.count() == 0
    for model in (ReviewDecision, SkillRevision, EndUser, Membership, ApiKey, Organization):
        with pytest.raises(UnscopedQuery):
            model.objects.exists()
    assert make_owner(seen.organization, "carol").end_user.organization == seen.organization
    assert SkillRevision.objects.for_owner(seen).annotate(x=F("skill__name")).get().x is None
