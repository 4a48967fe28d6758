"""What an installation has stored after years: 100,000 skills, a million turns, 50,000 waiting proposals.

All of it is made up by the database itself. The rows of a kind are numbered from 0; `i % owners` is whose a
row is, so that rows which belong together have the same owner. Half of the owners are in the first of ten
organizations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations.models import ConversationMessage, IntakeRecord, Session
from mirix.tenants.models import (
    ApiKey,
    AuditEvent,
    Client,
    EndUser,
    ErasureReceipt,
    Membership,
    Notification,
    Organization,
    TokenUsage,
)
from skills.models import (
    AutoDreamRun,
    DistillationAttempt,
    ProposerCall,
    ReviewDecision,
    SearchEvent,
    Skill,
    SkillDocument,
    SkillExperience,
    SkillPosting,
    SkillRevision,
)
from tests.benchmarks import Tell
from tests.filling import fill, unchecked

ORGANIZATIONS = 10
OWNERS = 2_000
SKILLS, SESSIONS, TURNS, WAITING = 50, 10, 50, 25
"""Of an owner; the turns of a session. Every owner counts those of its own."""
LONG_SESSION = 20_000
"""Turns of the first session beyond those that all have."""
TERMS = 12
"""Postings of a skill; a search is measured by `./run bench search`."""
TEXTS = 500

SAID = (
    "refund order card gift store credit cancel reservation passenger flight baggage voucher confirm "
    "policy agent user ask before tool error update exchange return item address payment balance airport "
    "cabin upgrade insurance membership silver gold regular delay compensate transfer human explain retry "
    "argument missing list details booking seat price total currency split method original account zip"
)
WORDS = SAID.split()
"""Each once."""
STEP = "{}. {} the {} with the {} that the {} has, then {} it and say which {} is {}."


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much there is."""

    owners: int

    @property
    def skills(self) -> int:
        """How many skills."""
        return self.owners * SKILLS

    @property
    def sessions(self) -> int:
        """How many sessions."""
        return self.owners * SESSIONS

    @property
    def turns(self) -> int:
        """How many turns."""
        return self.sessions * TURNS + self.long_session

    @property
    def long_session(self) -> int:
        """How many turns the first session has beyond those that all have."""
        return min(LONG_SESSION, self.sessions * TURNS)

    @property
    def waiting(self) -> int:
        """How many proposals wait."""
        return self.owners * WAITING


def size_of(scale: float) -> Size:
    """Return the full size times `scale`, at least ten owners; an even number, so that halves are halves."""
    return Size(owners=max(10, round(OWNERS * scale / 2) * 2))


def stock(tell: Tell, size: Size) -> None:
    """Store everything, and have the database look at it as it does by itself in time."""
    with unchecked():
        _texts()
        tell(f"admin: {size.owners:,} owners in {ORGANIZATIONS} organizations")
        _callers(size)
        _people(size)
        tell(f"admin: {size.sessions:,} sessions with {size.turns:,} turns")
        _sessions(size)
        _turns(size)
        tell("admin: runs, attempts, experiences")
        _learning(size)
        tell(f"admin: {size.skills:,} skills, {size.waiting:,} waiting proposals")
        _skills(size)
        _proposals(size)
        tell("admin: searches, trail, jobs")
        _log(size)
        _trail(size)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.get_autocommit() else "ANALYZE")


def _texts() -> None:
    """Make sample texts that rows choose from: `say` of a line, `does` of a dozen."""
    lines = []
    for number in range(TEXTS):
        words = [WORDS[(number * 7 + place * place * 3 + place) % len(WORDS)] for place in range(96)]
        steps = [STEP.format(step + 1, *words[step * 7 : step * 7 + 7]) for step in range(12)]
        lines.append((number, " ".join(words[:24]), "\n".join(steps)))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE bench_text (n int PRIMARY KEY, say text, does text)")
        cursor.executemany("INSERT INTO bench_text VALUES (%s, %s, %s)", lines)


def _org(owner: str) -> str:
    return f"'org-' || CASE WHEN ({owner}) % 2 = 0 THEN 0 ELSE 1 + (({owner}) / 2) % {ORGANIZATIONS - 1} END"


def _owned(size: Size, number: str = "i") -> dict[str, str]:
    """Return whose a row is, and when it was made: the first of a kind are the newest."""
    owner = f"{number} % {size.owners}"
    return {
        "organization": _org(owner),
        "end_user": f"'enduser-' || ({owner})",
        "created_at": f"now() - {number} * interval '30 seconds' - interval '1 minute'",
    }


def _client(size: Size, number: str = "i") -> str:
    return f"replace({_org(f'{number} % {size.owners}')}, 'org', 'client')"


def _series(count: int, text: bool = False) -> str:
    series = f"generate_series(0, {count - 1}) AS i"
    return f"{series} JOIN bench_text AS t ON t.n = (i * 31) % {TEXTS}" if text else series


def _callers(size: Size) -> None:
    number = f"i % {ORGANIZATIONS}"
    fill(Organization, _series(ORGANIZATIONS), id="'org-' || i", name="'Organization ' || i")
    fill(
        Client,
        _series(ORGANIZATIONS * 20),
        id=f"'client-' || ({number}) || CASE WHEN i < {ORGANIZATIONS} THEN '' ELSE '-' || i END",
        organization=f"'org-' || ({number})",
        name="'agent ' || i",
    )
    fill(
        ApiKey,
        _series(max(ORGANIZATIONS, size.owners // 2)),
        id="'key-' || i",
        organization=f"'org-' || ({number})",
        client=f"'client-' || ({number})",
        name="'key ' || i",
        prefix="'mx_' || i",
        secret_hash="md5(i::text)",
        created_at="now() - i * interval '1 hour'",
    )
    fill(
        EndUser,
        _series(size.owners),
        id="'enduser-' || i",
        organization=_org("i"),
        user_id="'user-' || i",
        name="'User ' || i",
        created_at="now() - i * interval '1 minute'",
    )


def _people(size: Size) -> None:
    count = max(ORGANIZATIONS, size.owners // 5)
    fill(
        User,
        _series(count),
        id="1000000 + i",
        username="'person-' || i",
        email="'person-' || i || '@example.org'",
        password="'!' || i",
        is_staff="true",
    )
    fill(
        Membership,
        _series(count),
        id="'member-' || i",
        organization=f"'org-' || (i % {ORGANIZATIONS})",
        user="1000000 + i",
        role="(ARRAY['reviewer', 'operator', 'administrator'])[1 + i % 3]",
        created_at="now() - i * interval '1 hour'",
    )


def _sessions(size: Size) -> None:
    last = f"{TURNS} + CASE WHEN i = 0 THEN {size.long_session} ELSE 0 END"
    state = """CASE WHEN (i * 7919) % 100 < 5 THEN 'dead' WHEN (i * 7919) % 100 < 10 THEN 'open'
        WHEN (i * 7919) % 100 < 25 THEN 'sealed' ELSE 'distilled' END"""
    fill(
        Session,
        _series(size.sessions),
        id="'session-' || i",
        session_id="'s-' || i",
        state=state,
        turn_count=last,
        last_seq=last,
        first_turn_at="now() - i * interval '30 seconds' - interval '1 hour'",
        last_turn_at="now() - i * interval '30 seconds'",
        distilled_through=f"CASE WHEN {state} = 'distilled' THEN {last} ELSE 0 END",
        attempts=f"CASE WHEN {state} = 'dead' THEN 5 ELSE 0 END",
        last_error=f"CASE WHEN {state} = 'dead' THEN 'The reply was no JSON.' ELSE '' END",
        **_owned(size),
    )
    fill(
        IntakeRecord,
        _series(size.sessions * 2),
        id="'intake-' || i",
        client=_client(size),
        session_id=f"'s-' || (i % {size.sessions})",
        message_count="25",
        state="CASE WHEN i % 97 = 0 THEN 'failed' WHEN i % 101 = 0 THEN 'queued' ELSE 'stored' END",
        body='CASE WHEN i % 97 = 0 THEN \'{"messages": [{"role": "user", "content": "x"}]}\' END::jsonb',
        error="CASE WHEN i % 97 = 0 THEN 'The database was full.' ELSE '' END",
        **_owned(size),
    )


def _turns(size: Size) -> None:
    """Every session has its turns; the first one further ones behind them."""
    usual = size.sessions * TURNS
    for count, first, session, seq in (
        (usual, 1, f"(i / {TURNS})", f"i % {TURNS} + 1"),
        (size.long_session, usual + 1, "0", f"i + {TURNS + 1}"),
    ):
        fill(
            ConversationMessage,
            _series(count, text=True),
            id=f"i + {first}",
            session=f"'session-' || {session}",
            client=_client(size, session),
            intake=f"'intake-' || {session}",
            seq=seq,
            role="(ARRAY['user', 'assistant', 'tool'])[1 + i % 3]",
            content="CASE WHEN i % 3 = 2 THEN t.does ELSE t.say END",
            content_hash="md5(i::text)",
            tool_name="CASE WHEN i % 3 = 2 THEN 'update_order' ELSE '' END",
            is_error="i % 30 = 2",
            **_owned(size, session),
        )


def _learning(size: Size) -> None:
    fill(
        AutoDreamRun,
        _series(size.owners * 5),
        id="'run-' || i",
        trigger="'automatic'",
        state=f"CASE WHEN i < {size.owners} AND i % 50 = 0 THEN 'running' WHEN i % 60 = 7 THEN 'failed' "
        "ELSE 'finished' END",
        counts="""'{"proposals": 2, "experiences": 10}'::jsonb""",
        tokens="i % 5000",
        started_at="now() - i * interval '30 seconds'",
        finished_at=f"CASE WHEN i < {size.owners} AND i % 50 = 0 THEN NULL "
        "ELSE now() - i * interval '30 seconds' + interval '12 seconds' END",
        **_owned(size),
    )
    reply = {
        "raw_reply": "t.does",
        "verdict": "(ARRAY['ok', 'ok', 'ok', 'empty', 'retry', 'dead'])[1 + i % 6]",
        "model": "'a-model'",
        "calls": "1",
        "prompt_tokens": "900",
        "completion_tokens": "300",
        "duration_ms": "i % 9000",
    }
    fill(
        DistillationAttempt,
        _series(size.sessions, text=True),
        id="'attempt-' || i",
        run=f"'run-' || (i % {size.owners * 5})",
        session="'session-' || i",
        distiller="'llm'",
        prompt_version="'distil-1'",
        input_hash="md5(i::text)",
        first_seq="1",
        last_seq=str(TURNS),
        flags="""CASE WHEN i % 40 = 0 THEN '["orders_in_tool_output"]'::jsonb ELSE '[]'::jsonb END""",
        **reply | _owned(size),
    )
    fill(
        ProposerCall,
        _series(size.owners * 5, text=True),
        id="'call-' || i",
        run="'run-' || i",
        topic="'tool:update_order'",
        prompt_version="'evolve-1'",
        input_hash="md5(i::text)",
        experience_ids="jsonb_build_array('sexp-' || i)",
        operations="1",
        **reply | _owned(size),
    )
    fill(
        SkillExperience,
        _series(size.owners * 75, text=True),
        id="'sexp-' || i",
        session=f"'session-' || (i % {size.sessions})",
        client=_client(size),
        attempt=f"'attempt-' || (i % {size.sessions})",
        experience_type="CASE WHEN i % 3 = 0 THEN 'worth_avoiding' ELSE 'worth_learning' END",
        title="left(t.say, 80) || ' ' || i",
        content="t.say",
        topic="'tool:update_order'",
        importance="0.3 + i % 701 / 1000.0",
        credibility="0.3 + i % 677 / 1000.0",
        signal_type="(ARRAY['user_critique', 'tool_error', 'user_confirmation'])[1 + i % 3]",
        quote="left(t.say, 40)",
        turn=f"(i % {size.sessions}) * {TURNS} + 1",
        turn_seq="1",
        turn_role="'user'",
        verified="true",
        quarantined="i % 50 = 0",
        quarantine_reason="CASE WHEN i % 50 = 0 THEN 'Only a tool said so.' ELSE '' END",
        status="CASE WHEN i % 4 = 3 THEN 'pending' ELSE 'consumed' END",
        **_owned(size),
    )


def _content(name: str) -> dict[str, str]:
    return {
        "name": name,
        "description": "'Use when the ' || t.say",
        "instructions": "t.does",
        "entry_type": "(ARRAY['workflow', 'guide', 'script'])[1 + i % 3]",
        "triggers": """jsonb_build_array(left(t.say, 30), 'refund ' || i)""",
        "examples": "'[]'::jsonb",
        "filter_tags": "'{}'::jsonb",
    }


def _skills(size: Size) -> None:
    series = _series(size.skills, text=True)
    content = _content("'update-order-' || i")
    fill(
        Skill,
        series,
        id="'proc-' || i",
        version="'0.1.0'",
        status="CASE WHEN i % 33 = 1 THEN 'archived' WHEN i % 67 = 2 THEN 'quarantined' ELSE 'active' END",
        current_revision="'rev-' || i",
        **content | _owned(size),
    )
    fill(
        SkillRevision,
        series,
        id="'rev-' || i",
        skill="'proc-' || i",
        action="'create'",
        author_kind="'llm'",
        run=f"'run-' || (i % {size.owners * 5})",
        content_hash="md5('published' || i)",
        version="'0.1.0'",
        state="'published'",
        decided_at="now() - i * interval '30 seconds'",
        **content | _owned(size),
    )
    fill(
        ReviewDecision,
        _series(size.skills),
        id="'decision-' || i",
        revision="'rev-' || i",
        decision="'approve'",
        decided_by_name="'person-1'",
        organization=_org(f"i % {size.owners}"),
        created_at="now() - i * interval '30 seconds'",
    )
    _support(size, size.skills, "rev", 2)
    lengths = {"name_length": "3", "triggers_length": "6", "description_length": "26"}
    fill(
        SkillDocument,
        _series(size.skills),
        id="i + 1",
        skill="'proc-' || i",
        instructions_length="180",
        **lengths | _owned(size),
    )
    words = "ARRAY[" + ", ".join(f"'{word}'" for word in WORDS) + "]"
    fill(
        SkillPosting,
        f"generate_series(0, {size.skills - 1}) AS i, generate_series(0, {TERMS - 1}) AS k",
        document="i + 1",
        term=f"({words})[1 + (i * 7 + k) % {len(WORDS)}]",
        organization=_org(f"i % {size.owners}"),
        end_user=f"'enduser-' || (i % {size.owners})",
        name_count="k % 2",
        triggers_count="0",
        description_count="1",
        instructions_count="3",
        instructions_length="180",
        **lengths,
    )


def _proposals(size: Size) -> None:
    """Half of them edit a skill by one line, half propose a new one."""
    edited = f"i < {size.waiting} / 2"
    content = _content(f"CASE WHEN {edited} THEN 'update-order-' || i ELSE 'new-order-' || i END")
    fill(
        SkillRevision,
        _series(size.waiting, text=True),
        id="'prop-' || i",
        skill=f"CASE WHEN {edited} THEN 'proc-' || i END",
        base=f"CASE WHEN {edited} THEN 'rev-' || i END",
        action=f"CASE WHEN {edited} THEN 'edit' ELSE 'create' END",
        author_kind="(ARRAY['llm', 'offline', 'human'])[1 + i % 3]",
        run=f"'run-' || (i % {size.owners * 5})",
        rationale="'Said by two sessions.'",
        risk_flags="""CASE WHEN i % 5 = 0 THEN '["new_address", "single_failure"]'::jsonb
            ELSE '[]'::jsonb END""",
        content_hash="md5('waiting' || i)",
        **content
        | {"instructions": "t.does || E'\\n13. Ask which card to use before anything is charged.'"}
        | _owned(size),
    )
    _support(size, size.waiting, "prop", 3)
    with connection.cursor() as cursor:
        cursor.execute("SELECT skills_weigh(ARRAY (SELECT id FROM skills_skillrevision))")


def _support(size: Size, count: int, prefix: str, each: int) -> None:
    """Have each revision rest on `each` experiences of its owner."""
    through: Any = SkillRevision.experiences.through
    fill(
        through,
        f"generate_series(0, {count - 1}) AS i, generate_series(0, {each - 1}) AS k",
        skillrevision=f"'{prefix}-' || i",
        skillexperience=f"'sexp-' || ((i + k * {size.owners} * (1 + i % 7)) % {size.owners * 75})",
    )


def _log(size: Size) -> None:
    fill(
        SearchEvent,
        _series(size.owners * 50, text=True),
        id="'search-' || i",
        client=_client(size),
        source="'api'",
        query="left(t.say, 60)",
        method="(ARRAY['hybrid', 'bm25'])[1 + i % 2]",
        limit="10",
        skill_ids=f"ARRAY['proc-' || i, 'proc-' || ((i + {size.owners}) % {size.skills})]",
        revision_ids=f"ARRAY['rev-' || i, 'rev-' || ((i + {size.owners}) % {size.skills})]",
        scores="ARRAY[0.5, 0.25]",
        total_count="2",
        degraded="CASE WHEN i % 20 = 0 THEN 'no endpoint' ELSE '' END",
        duration_ms="4.2",
        **_owned(size),
    )


def _trail(size: Size) -> None:
    of_organization = {
        "organization": _org(f"i % {size.owners}"),
        "created_at": "now() - i * interval '30 seconds'",
    }
    fill(
        AuditEvent,
        _series(size.owners * 50),
        id="'audit-' || i",
        actor_kind="'user'",
        actor_name="'person-' || (i % 100)",
        action="(ARRAY['client.created', 'client.renamed', 'session.retried'])[1 + i % 3]",
        target_type="'client'",
        target_id="'client-' || i",
        details="""jsonb_build_object('name', 'agent ' || i)""",
        **of_organization,
    )
    fill(
        Notification,
        _series(size.owners * 2),
        id="'notice-' || i",
        channel="(ARRAY['email', 'webhook'])[1 + i % 2]",
        counts="""'{"proposals": 3}'::jsonb""",
        state="'sent'",
        recipient="'person-1@example.org'",
        **of_organization,
    )
    fill(
        ErasureReceipt,
        _series(size.owners * 2),
        id="'erasure-' || i",
        kind="'end_user'",
        subject_id="'enduser-gone-' || i",
        subject_hash="md5(i::text)",
        counts="""'{"skills.skill": 3}'::jsonb""",
        actor_kind="'user'",
        actor_name="'person-1'",
        **of_organization,
    )
    fill(
        TokenUsage,
        f"generate_series(0, {ORGANIZATIONS * 60 - 1}) AS i",
        id="'usage-' || i",
        organization=f"'org-' || (i % {ORGANIZATIONS})",
        day=f"current_date - i / {ORGANIZATIONS}",
        prompt_tokens="90000",
        completion_tokens="30000",
        calls="100",
    )
    fill(
        ProcrastinateJob,
        _series(size.owners * 10),
        id="i + 1",
        queue_name="(ARRAY['dreams', 'intake'])[1 + i % 2]",
        task_name="'skills.run_dream'",
        priority="0",
        args="jsonb_build_object('run_id', 'run-' || i)",
        status="'succeeded'::procrastinate_job_status",
        attempts="1",
        abort_requested="false",
    )
