"""In the database a row points at rows of its own organization and end user alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection
from django.db.models import ForeignKey, Model

from conversations.models import ConversationMessage
from mirix.tenants.constraints import SameOwner
from mirix.tenants.models import ApiKey, EndUser, Organization, TenantModel
from skills.models import (
    ReviewDecision,
    SearchChange,
    SkillDocument,
    SkillEmbedding,
    SkillExperience,
    SkillRevision,
)
from tests.factories import (
    make_attempt,
    make_client,
    make_experience,
    make_intake,
    make_key,
    make_owner,
    make_proposal,
    make_proposer_call,
    make_run,
    make_search,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db
FREE = {
    "skills.SkillExperience.turn": "turns are many; another index over them costs more than it guards",
    "skills.SkillPosting.document": "a copy of its document's columns, for reading in one index",
    "skills.SkillPosting.end_user": "a copy of its document's columns, for reading in one index",
    "conversations.ConversationMessage.end_user": "its session's, which names the same",
    "skills.DistillationAttempt.end_user": "its session's, which names the same",
    "skills.SkillExperience.end_user": "its session's, which names the same",
    "skills.SkillDocument.end_user": "its skill's, which names the same",
    "skills.SkillEmbedding.end_user": "its skill's, which names the same",
}
"""Links without a constraint of their own, and why."""


def links() -> dict[str, type[Model]]:
    """Return every foreign key from a tenant's row to another one, by name."""
    return {
        f"{model._meta.label}.{field.name}": model
        for app in ("tenants", "conversations", "skills")
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.get_fields()
        if isinstance(field, ForeignKey)
        and issubclass(field.related_model, TenantModel)
        and field.related_model is not Organization
    }


def test_every_link_between_rows_of_a_tenant_is_held():
    held = {
        f"{model._meta.label}.{constraint.field}"
        for model in links().values()
        for constraint in model._meta.constraints
        if isinstance(constraint, SameOwner)
    }
    assert set(links()) - held - set(FREE) == set(), "add SameOwner, or say in FREE why not"
    assert held & set(FREE) == set()
    assert held | set(FREE) == set(links())


@pytest.fixture
def near(owner):
    return make_owner(owner.organization)


@pytest.fixture
def far():
    return make_owner()


def row_of(owner, link: str) -> Model:
    """Return a row with the link, filled with a row of its owner."""
    client = make_client(owner.organization)
    session = make_session(owner, [{"role": "user", "content": "No."}], client)
    run = make_run(owner)
    skill = make_skill(owner)
    attempt = make_attempt(run, session)
    first = skill.current_revision
    proposal = make_proposal(owner, skill=skill, run=run, supersedes=first, merged_from=first)
    turn = session.turns.get()
    turn.intake = make_intake(owner, client)
    make_key(client)
    key = ApiKey.objects.get(client=client)
    make_key(client)
    key.replaced_by = ApiKey.objects.exclude(pk=key.pk).get(client=client)
    rows: list[Model] = [
        EndUser(organization=owner.organization, user_id="made", made_by=client),
        key, session, run, attempt, make_proposer_call(run), skill, proposal, turn, turn.intake,
        make_experience(owner, session, attempt=attempt, client=client, status="superseded",
                        superseded_by=make_experience(owner, session)),
        ReviewDecision(organization=owner.organization, revision=proposal, decision="reject"),
        SkillDocument(organization=owner.organization, end_user=owner.end_user, skill=skill, name_length=1,
                      triggers_length=1, description_length=1, instructions_length=1),
        SkillEmbedding(organization=owner.organization, end_user=owner.end_user, skill=skill, space="m",
                       dimensions=1, vector=[1.0]),
        SearchChange(organization=owner.organization, end_user=owner.end_user, amount=1),
        make_search(owner, [skill], client=client),
    ]  # fmt: skip
    label = link.rpartition(".")[0]
    row = next(row for row in rows if row._meta.label == label)
    row.save()
    return row


def cases() -> list[tuple[str, str]]:
    """Return each link with whose row it must not point at; an end user counts where both name one."""
    held = {link: model for link, model in links().items() if link not in FREE}
    by_owner = [
        link
        for link, model in held.items()
        if all(hasattr(table, "end_user") for table in (model, field_of(link).related_model))
    ]
    return sorted([(link, "far") for link in held] + [(link, "near") for link in by_owner])


def field_of(link: str) -> ForeignKey:
    return links()[link]._meta.get_field(link.rpartition(".")[2])


@pytest.mark.parametrize(("link", "whose"), cases())
def test_a_row_of_another_owner_is_refused(owner, near, far, link, whose):
    model, field = links()[link], field_of(link)
    mine, theirs = row_of(owner, link), row_of(far if whose == "far" else near, link)
    target = getattr(theirs, field.attname)
    if field.unique:
        theirs.delete()
    connection.check_constraints()

    # Out of the way of other rules.
    asides: dict[type[Model], dict[str, Any]] = {
        ConversationMessage: {"seq": 99},
        SkillRevision: {"state": "rejected"},
        SkillEmbedding: {"space": "n"},
        SkillExperience: {"status": "superseded"},
    }
    aside = asides.get(model, {})
    model.objects.filter(pk=mine.pk).update(**{field.attname: target}, **aside)
    with pytest.raises(IntegrityError, match="_same_o"):
        connection.check_constraints()


def test_statements_name_the_shared_columns():
    def columns(model: str, field: str) -> str:
        constraint = next(
            rule
            for rule in apps.get_model(model)._meta.constraints
            if isinstance(rule, SameOwner) and rule.field == field
        )
        with connection.schema_editor(collect_sql=True) as editor:
            return constraint.create_sql(apps.get_model(model), editor).partition("FOREIGN KEY ")[2]

    assert columns("conversations.ConversationMessage", "session") == (
        '("session_id", "organization_id", "end_user_id") REFERENCES "conversations_session" '
        '("id", "organization_id", "end_user_id") DEFERRABLE INITIALLY DEFERRED'
    )
    assert columns("skills.ReviewDecision", "revision") == (
        '("revision_id", "organization_id") REFERENCES "skills_skillrevision" ("id", "organization_id") '
        "DEFERRABLE INITIALLY DEFERRED"
    )
