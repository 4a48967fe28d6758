"""Two organizations with a row of every kind, and everybody who might call.

Everything that people wrote at one side holds the side's canary; an answer that holds the other side's is a
leak.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.db.models import Model
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations.models import ConversationMessage
from mirix.queue import defer
from mirix.tenants.models import (
    ApiKey,
    AuditEvent,
    EndUser,
    ErasureReceipt,
    Membership,
    Notification,
    Organization,
    OrganizationSettings,
    TenantModel,
)
from mirix.tenants.owners import Owner
from mirix.tenants.tokens import LOGIN, ORGANIZATION, USER, Access
from skills.models import ReviewDecision, SkillDocument, SkillEmbedding, SkillPosting
from skills.search.index import index_skill
from tests.factories import (
    make_attempt,
    make_client,
    make_content,
    make_experience,
    make_intake,
    make_key,
    make_member,
    make_proposal,
    make_proposer_call,
    make_run,
    make_search,
    make_session,
    make_skill,
    make_superuser,
    make_token,
)

OTHER_MODELS = (
    "auth.User",
    "admin.LogEntry",
    "token_blacklist.OutstandingToken",
    "procrastinate.ProcrastinateJob",
)
PASSWORD = "a password of the tests"
ROLES = ("reviewer", "operator", "administrator")


@dataclass
class Side:
    """One organization: its rows by model label, and the word that all its texts hold."""

    canary: str
    owner: Owner
    rows: dict[str, Model] = field(default_factory=dict)

    @property
    def organization(self) -> Organization:
        return self.owner.organization

    def add(self, *rows: Model) -> None:
        """Remember the first row of each kind."""
        for row in rows:
            self.rows.setdefault(row._meta.label_lower, row)


@dataclass
class World:
    """Both sides, and the callers by name: what they send to the API, what their browser holds."""

    home: Side
    away: Side
    headers: dict[str, dict[str, str]]
    """Of the API's callers."""
    cookies: dict[str, str]
    """The session ids of the admin's visitors."""
    superuser: User


def make_world() -> World:
    home, away = make_side("home"), make_side("away")
    root = make_superuser("root-of-all", PASSWORD)
    members = {role: make_member(home.organization, role, f"{role}-of-home", PASSWORD) for role in ROLES}
    stranger = make_member(away.organization, "administrator", "administrator-of-away")
    headers = {
        **_nobody(home, members["operator"]),
        **{f"{may} key": _key(home, may) for may in ("read", "write", "admin")},
        **{role: _bearer(make_token(user, home.organization)) for role, user in members.items()},
        "superuser": _bearer(make_token(root, home.organization)),
        "stranger's admin key": _key(away, "admin"),
        "stranger's token": _bearer(make_token(stranger, away.organization)),
        "superuser elsewhere": _bearer(make_token(root, away.organization)),
    }
    outsider = User.objects.create_user("outsider", is_staff=True)
    plain = User.objects.create_user("plain")
    gone = User.objects.create_user("gone", is_staff=True, is_active=False)
    for user in (plain, gone):
        Membership.objects.create(organization=home.organization, user=user, role="administrator")
    people = members | {
        "superuser": root,
        "stranger": stranger,
        "outsider": outsider,
        "not staff": plain,
        "inactive": gone,
    }
    cookies = {name: _session(user) for name, user in people.items()}
    defer("skills.run_dream", queue="dreams", run_id=home.rows["skills.autodreamrun"].pk)
    home.rows["auth.user"] = members["reviewer"]
    home.rows["procrastinate.procrastinatejob"] = ProcrastinateJob.objects.get()
    # What is used now is noted at most once a minute: not within the tests.
    ApiKey.objects.update(last_used_at=timezone.now() + timedelta(hours=1))
    return World(home=home, away=away, headers=headers, cookies=cookies, superuser=root)


def make_side(name: str) -> Side:
    """Make an organization with a row of every kind."""
    canary = f"canary-{name}-4f2a91"
    organization = Organization.objects.create(name=f"{canary} organization")
    end_user = EndUser.objects.create(organization=organization, user_id=f"user-of-{name}", name=canary)
    side = Side(canary=canary, owner=Owner(organization=organization, end_user=end_user))
    client = make_client(organization, f"{canary} client")
    make_key(client, name=canary)
    side.add(organization, end_user, client, ApiKey.objects.get(client=client))
    _add_administration(side)
    _add_work(side, client)
    return side


def _add_administration(side: Side) -> None:
    organization = side.organization
    member = make_member(organization, "reviewer", f"{side.canary}-member")
    side.add(
        Membership.objects.get(user=member),
        OrganizationSettings.objects.create(
            organization=organization,
            webhook_url=f"https://{side.canary}.example/hook",
            webhook_secret=side.canary,
        ),
        Notification.objects.create(organization=organization, channel="email", recipient=side.canary),
        AuditEvent.objects.create(
            organization=organization,
            actor_kind="user",
            actor_name=side.canary,
            action="client.renamed",
            target_type="client",
            target_id="client-1",
            details={"name": side.canary},
        ),
        ErasureReceipt.objects.create(
            organization=organization, kind="end_user", actor_kind="user", actor_name=side.canary
        ),
    )


def _add_work(side: Side, client: Any) -> None:
    owner, canary = side.owner, side.canary
    said = [{"role": "user", "content": f"No, use the other card, {canary}."}]
    name = f"session-of-{owner.end_user.user_id}"
    session = make_session(owner, said, client, session_id=name, filter_tags={"tag": canary})
    side.add(session, ConversationMessage.objects.get(session=session))
    side.add(
        make_intake(
            owner,
            client,
            session_id=session.session_id,
            state="failed",
            error=canary,
            body={"messages": [{"role": "user", "content": canary}]},
        )
    )
    run = make_run(owner, parameters={"note": canary})
    attempt = make_attempt(run, session, raw_reply=canary)
    call = make_proposer_call(run, topic=canary, raw_reply=canary)
    learned = {"title": canary, "content": canary, "attempt": attempt}
    held = make_experience(owner, session, **learned, quarantined=True, quarantine_reason=canary)
    experience = make_experience(owner, session, **learned)
    published = make_content(name=f"{canary}-skill", description=canary, instructions=f"1. Say {canary}.")
    skill = make_skill(owner, published)
    index_skill(skill)
    revision = skill.current_revision
    assert revision is not None
    edited = make_content(name=f"{canary}-skill", description=canary, instructions=f"2. Say {canary}.")
    proposal = make_proposal(owner, edited, skill)
    proposal.experiences.set([experience])
    revision.experiences.set([experience])
    decision = ReviewDecision.objects.create(
        organization=side.organization, revision=revision, decision="approve", reason=canary
    )
    document = SkillDocument.objects.get(skill=skill)
    posting = SkillPosting.objects.filter(document=document).first()
    assert posting is not None
    embedding = SkillEmbedding.objects.create(
        skill=skill,
        organization_id=skill.organization_id,
        end_user_id=skill.end_user_id,
        space=canary,
        dimensions=2,
        vector=[0.6, 0.8],
    )
    asked = make_search(owner, [skill], client=client, query=canary, degraded=canary)
    side.add(
        run, attempt, call, held, experience, skill, proposal, decision, document, posting, embedding, asked
    )


def _nobody(home: Side, member: User) -> dict[str, dict[str, str]]:
    """Return whatever opens nothing."""
    client = make_client(home.organization)
    past = timezone.now() - timedelta(seconds=1)
    expired = Access()
    expired[USER], expired[ORGANIZATION] = str(member.pk), home.organization.pk
    expired[LOGIN] = member.get_session_auth_hash()
    expired.set_exp(lifetime=-timedelta(hours=1))
    return {
        "nobody": {},
        "unknown key": {"X-API-Key": "mx_unknown_secret"},
        "revoked key": {"X-API-Key": make_key(client, "admin", revoked_at=past)},
        "expired key": {"X-API-Key": make_key(client, "admin", expires_at=past)},
        "id alone": {"X-Client-ID": client.pk},
        "no token": _bearer("a.b.c"),
        "expired token": _bearer(str(expired)),
    }


def _key(side: Side, permission: str) -> dict[str, str]:
    return {"X-API-Key": make_key(make_client(side.organization), permission)}


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _session(user: User) -> str:
    store = SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.create()
    key = store.session_key
    assert key is not None
    return key


# ---- What is stored, as one value that differs when anything does ---------------------------------


def tenant_models() -> list[type[Model]]:
    """Return every model of ours, the tables between two of them included."""
    return [
        model
        for app in ("tenants", "conversations", "skills")
        for model in apps.get_app_config(app).get_models(include_auto_created=True)
    ]


def everything() -> dict[str, str]:
    """Return per table the number of its rows and a hash of all of them."""
    models = [*tenant_models(), *map(apps.get_model, OTHER_MODELS)]
    return _hashes({model._meta.db_table: "" for model in models})


def everything_of(side: Side) -> dict[str, str]:
    """Return the same of the rows of one side."""
    return _hashes(
        {
            model._meta.db_table: f"WHERE {model.organization_key} = '{side.organization.pk}'"
            for model in tenant_models()
            if issubclass(model, TenantModel)
        }
    )


def _hashes(tables: dict[str, str]) -> dict[str, str]:
    parts = [
        f"SELECT '{table}', count(*) || ' ' || coalesce(md5(string_agg(t::text, ' ' ORDER BY t::text)), '')"
        f" FROM {table} t {where}"
        for table, where in tables.items()
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        return dict(cursor.fetchall())


@dataclass(frozen=True)
class Stored:
    """What is stored: all of it, and that of each side."""

    all: dict[str, str]
    home: dict[str, str]
    away: dict[str, str]

    @classmethod
    def now(cls, world: World) -> Stored:
        return cls(everything(), everything_of(world.home), everything_of(world.away))
