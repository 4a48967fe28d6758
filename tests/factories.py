"""Rows for tests, made through the models alone, so that a fault of a service shows in its own tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import count
from typing import Any

from django.contrib.auth.models import User

from conversations.models import ConversationMessage, IntakeRecord, Session
from mirix.tenants.models import ApiKey, Client, EndUser, Membership, Organization, Permission, Role
from mirix.tenants.owners import Owner
from mirix.tenants.tokens import find_member, issue
from skills.content import Content
from skills.models import (
    AutoDreamRun,
    DistillationAttempt,
    ProposerCall,
    SearchEvent,
    Skill,
    SkillExperience,
    SkillRevision,
)

_number = count(1)


def make_organization(name: str | None = None) -> Organization:
    return Organization.objects.create(name=name or f"organization {next(_number)}")


def make_client(organization: Organization | None = None, name: str | None = None) -> Client:
    organization = organization or make_organization()
    return Client.objects.create(organization=organization, name=name or f"client {next(_number)}")


def make_key(client: Client, permission: str = Permission.WRITE, **fields: Any) -> str:
    """Store a key and return what its holder sends as `X-API-Key`."""
    key = f"mx_test{next(_number)}_secret"
    ApiKey.objects.create(
        organization=client.organization,
        client=client,
        prefix=key[:12],
        secret_hash=hashlib.sha256(key.encode()).hexdigest(),
        permission=permission,
        **fields,
    )
    return key


def make_owner(organization: Organization | None = None, user_id: str | None = None) -> Owner:
    organization = organization or make_organization()
    end_user = EndUser.objects.create(organization=organization, user_id=user_id or f"user {next(_number)}")
    return Owner(organization=organization, end_user=end_user)


def owner_fields(owner: Owner) -> dict[str, Any]:
    return {"organization": owner.organization, "end_user": owner.end_user}


def make_session(
    owner: Owner, turns: list[dict[str, Any]] | None = None, client: Client | None = None, **fields: Any
) -> Session:
    """A session with turns given as dicts (`role`, `content`, …); sealed unless told otherwise."""
    client = client or make_client(owner.organization)
    turns = turns or []
    fields = {"session_id": f"s-{next(_number)}", "state": "sealed"} | fields
    session = Session.objects.create(
        **owner_fields(owner), turn_count=len(turns), last_seq=len(turns), **fields
    )
    ConversationMessage.objects.bulk_create(
        ConversationMessage(
            **owner_fields(owner),
            session=session,
            client=client,
            seq=seq,
            **({"content_hash": hashlib.sha256(turn["content"].encode()).hexdigest()} | turn),
        )
        for seq, turn in enumerate(turns, start=1)
    )
    return session


def make_run(owner: Owner, **fields: Any) -> AutoDreamRun:
    """A run that has ended, unless told otherwise."""
    return AutoDreamRun.objects.create(
        **owner_fields(owner), **({"trigger": "command", "state": "finished"} | fields)
    )


def make_attempt(run: AutoDreamRun, session: Session, **fields: Any) -> DistillationAttempt:
    defaults: dict[str, Any] = {
        "distiller": "offline",
        "input_hash": "0" * 64,
        "first_seq": 1,
        "last_seq": session.last_seq,
        "verdict": "ok",
    }
    return DistillationAttempt.objects.create(
        organization=session.organization,
        end_user=session.end_user,
        run=run,
        session=session,
        **(defaults | fields),
    )


def make_proposer_call(run: AutoDreamRun, **fields: Any) -> ProposerCall:
    defaults: dict[str, Any] = {
        "topic": "tool:cancel_order",
        "model": "scripted",
        "prompt_version": "evolve-1",
        "input_hash": "0" * 64,
        "verdict": "ok",
    }
    return ProposerCall.objects.create(
        organization=run.organization, end_user=run.end_user, run=run, **(defaults | fields)
    )


def make_experience(owner: Owner, session: Session | None = None, **fields: Any) -> SkillExperience:
    session = session or make_session(owner, [{"role": "user", "content": "No, use the other card."}])
    turn = session.turns.first()
    defaults: dict[str, Any] = {
        "client": turn.client if turn else make_client(owner.organization),
        "experience_type": "worth_learning",
        "title": f"lesson {next(_number)}",
        "content": "Use the other card.",
        "topic": "tool:pay",
        "importance": 0.8,
        "credibility": 0.9,
        "signal_type": "user_critique",
        "quote": "use the other card",
        "turn": turn,
        "turn_seq": 1,
        "verified": True,
        "filter_tags": session.filter_tags,
    }
    return SkillExperience.objects.create(session=session, **owner_fields(owner), **(defaults | fields))


def make_content(**fields: Any) -> Content:
    defaults: dict[str, Any] = {
        "name": f"pay-an-order-{next(_number)}",
        "description": "Use when an order must be paid with a stored card.",
        "instructions": "1. Ask which card to use.\n2. Charge it.",
        "triggers": ["pay an order"],
    }
    return Content(**(defaults | fields))


def make_skill(owner: Owner, content: Content | None = None, **fields: Any) -> Skill:
    """A published skill with its first revision; not indexed for search."""
    content = content or make_content()
    skill = Skill.objects.create(**owner_fields(owner), **content.as_fields(), **fields)
    revision = SkillRevision.objects.create(
        **owner_fields(owner),
        **content.as_fields(),
        skill=skill,
        action="create",
        author_kind="human",
        content_hash=content.hash,
        state="published",
        version=skill.version,
    )
    skill.current_revision = revision
    skill.save(update_fields=["current_revision"])
    return skill


def make_proposal(
    owner: Owner, content: Content | None = None, skill: Skill | None = None, **fields: Any
) -> SkillRevision:
    content = content or make_content()
    defaults: dict[str, Any] = {
        "skill": skill,
        "base": skill.current_revision if skill else None,
        "action": "edit" if skill else "create",
        "author_kind": "offline",
        "content_hash": content.hash,
    }
    return SkillRevision.objects.create(**owner_fields(owner), **content.as_fields(), **(defaults | fields))


def make_member(
    organization: Organization,
    role: str = Role.REVIEWER,
    username: str | None = None,
    password: str | None = None,
) -> User:
    """A person of the admin of one organization; without a password (hashing is slow) no login by form."""
    user = User.objects.create_user(username or f"member {next(_number)}", password=password, is_staff=True)
    Membership.objects.create(organization=organization, user=user, role=role)
    return user


def make_superuser(username: str | None = None, password: str | None = None) -> User:
    return User.objects.create_superuser(username or f"root {next(_number)}", password=password)


def make_token(user: User, organization: Organization) -> str:
    """The access token of a person in one organization, to send as `Authorization: Bearer …`."""
    principal = find_member(user=user, organization=organization.pk)
    assert principal is not None
    return issue(principal=principal).access


def make_intake(owner: Owner, client: Client | None = None, **fields: Any) -> IntakeRecord:
    defaults = {"body_hash": "0" * 64, "message_count": 1, "state": "stored"}
    return IntakeRecord.objects.create(
        **owner_fields(owner), client=client or make_client(owner.organization), **(defaults | fields)
    )


def make_search(owner: Owner, skills: Iterable[Skill] = (), **fields: Any) -> SearchEvent:
    """A search of a client in the owner's skills that returned these; `end_user=None`: across all users."""
    skills = list(skills)
    defaults: dict[str, Any] = {
        "source": "api",
        "query": "how is an order paid?",
        "method": "hybrid",
        "limit": 10,
        "skill_ids": [skill.pk for skill in skills],
        "revision_ids": [skill.current_revision_id or "" for skill in skills],
        "scores": [1 / rank for rank in range(1, len(skills) + 1)],
        "total_count": len(skills),
        "duration_ms": 4.2,
    }
    if "client" not in fields and "user" not in fields:
        defaults["client"] = make_client(owner.organization)
    return SearchEvent.objects.create(**(owner_fields(owner) | defaults | fields))
