"""Databases as the original MIRIX leaves them behind, one for each generation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
from django.db import connection
from psycopg import sql

MOMENT = "2025-11-20T09:12:44.018231+00:00"
ORG, USER, CLIENT = "org-3f9a1c07", "user-9b1deb4d", "client-5e2d90aa"
COMMON = (
    "id varchar PRIMARY KEY, created_at timestamptz DEFAULT now(), updated_at timestamptz DEFAULT now(), "
    "is_deleted boolean NOT NULL DEFAULT false, _created_by_id varchar, _last_updated_by_id varchar"
)
ORG_KEY = "organization_id varchar REFERENCES organizations"
USER_KEY = "user_id varchar NOT NULL REFERENCES users"
AGENT = "agent_id varchar REFERENCES agents ON DELETE CASCADE"
OF_CLIENT = "client_id varchar REFERENCES clients ON DELETE CASCADE"
FLAT = "entry_type varchar NOT NULL, summary varchar NOT NULL, steps json NOT NULL, last_modify json NOT NULL"
TREE = "tree_path json NOT NULL, metadata_ json"
SKILL = (
    "name varchar NOT NULL, entry_type varchar NOT NULL, description varchar NOT NULL, "
    "instructions varchar NOT NULL, triggers json NOT NULL, examples json NOT NULL, "
    "version varchar NOT NULL, filter_tags json, last_modify json NOT NULL, embedding_config json"
)
MEMORIES = {
    "G1": "organization_id varchar NOT NULL REFERENCES organizations, entry_type varchar NOT NULL, "
    "description varchar, steps varchar, metadata_ json, embedding_config json NOT NULL",
    "G2": f"{ORG_KEY}, {FLAT}, {TREE}, embedding_config json",
    "G3": f"{ORG_KEY}, {USER_KEY}, {FLAT}, {TREE}, embedding_config json",
    "G4a": f"{ORG_KEY}, {USER_KEY}, {AGENT}, {FLAT}, embedding_config json",
    "G4b": f"{ORG_KEY}, {USER_KEY}, {AGENT}, {FLAT}, filter_tags json, embedding_config json",
}
for _name in ("G4c", "G4d", "G4e"):
    MEMORIES[_name] = (
        f"{ORG_KEY}, {USER_KEY}, {AGENT}, {OF_CLIENT}, {FLAT}, filter_tags json, embedding_config json"
    )
MEMORIES["G5"] = f"{ORG_KEY}, {USER_KEY}, {AGENT}, {OF_CLIENT}, {SKILL}"
CLIENTS = {
    "G4c": "scope varchar NOT NULL, api_key_hash varchar",
    "G4d": "scope varchar NOT NULL, email varchar UNIQUE, password_hash varchar, last_login timestamp",
    "G4e": "write_scope varchar, read_scopes json NOT NULL, email varchar UNIQUE, password_hash varchar, "
    "last_login timestamp",
}
CLIENTS["G5"] = CLIENTS["G4e"]
GENERATIONS = list(MEMORIES)
TURNS = f"""
    CREATE TABLE conversation_message ({COMMON}, {ORG_KEY}, {USER_KEY}, session_id varchar(64) NOT NULL
        CHECK (session_id ~ '^[A-Za-z0-9_-]{{1,64}}$'), role varchar NOT NULL, content text NOT NULL,
        distilled_at timestamptz);
    CREATE TABLE skill_experience ({COMMON}, {ORG_KEY}, {USER_KEY}, {AGENT}, session_id varchar NOT NULL,
        experience_type varchar NOT NULL, title varchar NOT NULL, content text NOT NULL,
        importance double precision NOT NULL, credibility double precision NOT NULL, evidence text NOT NULL,
        status varchar NOT NULL, consumed_by varchar, influenced_skill_ids json);
    CREATE TABLE messages ({COMMON}, {ORG_KEY}, {USER_KEY}, role varchar NOT NULL, session_id varchar(64));
"""


class Original:
    """A database of the original, to which rows are added."""

    def __init__(self, url: str, generation: str) -> None:
        self.url, self.generation = url, generation
        self.memories = "procedural_memory_items" if generation == "G1" else "procedural_memory"

    def execute(self, query: Any, values: Any = None) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as link:
            cursor = link.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    def add(self, table: str, **columns: Any) -> None:
        """Insert a row; lists and dicts are JSON."""
        columns = {"created_at": MOMENT, "updated_at": MOMENT} | columns
        values = [
            json.dumps(value) if isinstance(value, list | dict) else value for value in columns.values()
        ]
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        marks = sql.SQL(", ").join([sql.Placeholder()] * len(columns))
        query = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(table), names, marks)
        self.execute(query, values)

    def people(self) -> None:
        """Add an organization with a user, and a client and an agent where there are some."""
        self.add("organizations", id=ORG, name="acme")
        status = {} if self.generation in ("G1", "G2") else {"status": "active"}
        self.add("users", id=USER, organization_id=ORG, name="Ann", timezone="UTC", **status)
        self.add(
            "users",
            id="user-00000000-0000-4000-8000-000000000000",
            organization_id=ORG,
            name="default_user",
            timezone="UTC",
            **status,
        )
        if self.generation in CLIENTS:
            self.client(CLIENT, "app", "read_write")
        self.add("agents", id="agent-1", organization_id=ORG, name="meta", _created_by_id=CLIENT)

    def client(self, pk: str, name: str, scope: str | None, reads: list[str] | None = None) -> None:
        scopes: dict[str, Any] = (
            {"write_scope": scope, "read_scopes": [scope] if reads is None else reads}
            if self.generation in ("G4e", "G5")
            else {"scope": scope}
        )
        self.add("clients", id=pk, organization_id=ORG, name=name, status="active", **scopes)

    def memory(self, pk: str, **columns: Any) -> None:
        """Add a memory of this generation."""
        common: dict[str, Any] = {"organization_id": ORG, "entry_type": "process"}
        match self.generation:
            case "G1":
                common |= {"description": "", "steps": "", "embedding_config": {}}
            case "G5":
                common |= {
                    "name": pk,
                    "entry_type": "workflow",
                    "description": "",
                    "instructions": "",
                    "triggers": [],
                    "examples": [],
                    "version": "0.1.0",
                    "last_modify": {},
                }
            case _:
                common |= {"summary": "", "steps": [], "last_modify": {}}
        if self.generation in ("G2", "G3"):
            common["tree_path"] = []
        if self.generation not in ("G1", "G2"):
            common["user_id"] = USER
        if self.generation in CLIENTS:
            common["client_id"] = CLIENT
        self.add(self.memories, id=pk, **(common | columns))

    def turn(self, pk: str, session_id: str, role: str, content: str, **columns: Any) -> None:
        common = {"organization_id": ORG, "user_id": USER, "_created_by_id": CLIENT}
        row = common | {"session_id": session_id, "role": role, "content": content}
        self.add("conversation_message", id=pk, **(row | columns))

    def experience(self, pk: str, session_id: str, **columns: Any) -> None:
        row = {
            "organization_id": ORG,
            "user_id": USER,
            "agent_id": "agent-1",
            "session_id": session_id,
            "experience_type": "worth_learning",
            "title": "Ask first",
            "content": "Ask before you pay.",
            "importance": 0.8,
            "credibility": 0.9,
            "status": "pending",
            "evidence": '{"quote": "use the other card", "signal_type": "user_critique"}',
        }
        self.add("skill_experience", id=pk, **(row | columns))


@contextmanager
def original(generation: str) -> Iterator[Original]:
    """Make a database of a generation beside the test's own; it goes at the end."""
    name = f"original_{uuid4().hex[:12]}"
    info = connection.get_connection_params()
    info = {key: info[key] for key in ("host", "port", "user", "password") if info.get(key)}
    with psycopg.connect(**info, dbname="postgres", autocommit=True) as link:
        link.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            keys = "&".join(f"{key}={value}" for key, value in info.items())
            made = Original(f"postgresql:///{name}?{keys}", generation)
            made.execute(_schema(generation))
            yield made
        finally:
            link.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _schema(generation: str) -> str:
    status = "" if generation in ("G1", "G2") else ", status varchar NOT NULL"
    clients = (
        f"CREATE TABLE clients ({COMMON}, {ORG_KEY}, name varchar NOT NULL, status varchar NOT NULL, "
        f"{CLIENTS[generation]});"
        if generation in CLIENTS
        else ""
    )
    table = "procedural_memory_items" if generation == "G1" else "procedural_memory"
    return f"""
        CREATE TABLE organizations ({COMMON}, name varchar NOT NULL); {clients}
        CREATE TABLE users ({COMMON}, {ORG_KEY}, name varchar NOT NULL, timezone varchar NOT NULL{status});
        CREATE TABLE agents ({COMMON}, {ORG_KEY}, name varchar);
        CREATE TABLE {table} ({COMMON}, {MEMORIES[generation]});
        {TURNS if generation == "G5" else ""}
    """
