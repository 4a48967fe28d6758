"""Settings that mean nothing end the start in one line: the name, what is expected, and what to do."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from mirix import environment as env
from mirix.environment import PREPARE_THRESHOLD, BadSetting
from mirix.tenants.models import MAX_DAYS, ReviewPolicy
from skills.content import MAX_INSTRUCTIONS_CHARS
from skills.dream import MAX_SESSIONS
from skills.models import DistillationAttempt
from skills.search.service import METHODS

SETTINGS = Path(env.__file__).with_name("settings.py")
READERS = re.compile(r'env\.(\w+)\(\s*(?:_either\()?"(\w+)"')
READ = sorted(found for found in set(READERS.findall(SETTINGS.read_text())) if found[0] != "refuse")
WRONG = {
    "whole": ["x", "1.5", "-1", "9" * 20, "1_0", "²", "0x1", "+1"],
    "number": ["x", "nan", "inf", "-1", "9" * 20],
    "numbers": ["x", "1,1", "1,1,1,1", "1,,1", "1,nan,1", "1,-1,1"],
    "switch": ["maybe", "ture", "2"],
    "choice": ["foo", "*"],
    "url": ["foo", "foo://host", "http:/host", "redis://host:x", "https://host:99999", "http://[::1"],
    "mail": ["foo", "smtp://host:x", "smtp:host"],
    "database": ["foo", "sqlite:///mirix.db", "postgres://host:x/name", "postgres://host", "postgres:name"],
    "text": ["two\nlines", "\udcff"],
    "verbatim": ["two\nlines", "\udcff"],
    "words": ["\udcff"],
    "folder": ["\udcff"],
}
END = ". Correct it, or unset it for the default."


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path: Path):
    for name in os.environ:
        if name.startswith(("MIRIX_", "SKILL_", "DATABASE_URL", "EMAIL_URL", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MIRIX_VAR_DIR", str(tmp_path / "var"))


def settings() -> dict[str, Any]:
    return runpy.run_path(str(SETTINGS))


def refusal() -> str:
    with pytest.raises(BadSetting) as refused:
        settings()
    return str(refused.value)


def test_every_setting_is_read_by_a_reader_and_is_in_the_readme():
    source, readme = SETTINGS.read_text(), SETTINGS.parent.with_name("README.md").read_text()
    assert len(READ) > 40
    assert {kind for kind, _ in READ} == {*WRONG}
    assert len(re.findall(r"\benv\.", source)) == len(READERS.findall(source))
    table = readme.partition("## Settings")[2].partition("## Tests")[0]
    endings = "|".join(re.findall(r"`_(\w+)`", table))
    assert [name for _, name in READ if name not in table and not re.search(f"_({endings})$", name)] == []


@pytest.mark.parametrize(("reader", "name", "value"), [(r, n, v) for r, n in READ for v in WRONG[r]])
def test_a_value_that_means_nothing_is_refused_by_name(monkeypatch, reader, name, value):
    monkeypatch.setenv(name, value)
    told = refusal()
    assert told.startswith(name)
    assert ": expected " in told
    assert told.endswith(END)
    assert "\n" not in told


@pytest.mark.parametrize("name", [name for _, name in READ])
def test_an_empty_one_is_the_default(monkeypatch, name, tmp_path: Path):
    monkeypatch.setenv("MIRIX_SECRET_KEY", "k")
    expected = settings()
    monkeypatch.setenv(name, " ")
    found = settings()
    same = {key for key in expected if key.isupper() and found[key] == expected[key]}
    differing = {key for key in expected if key.isupper()} - same
    assert differing <= {"VAR_DIR", "SECRET_KEY", "SIMPLE_JWT", "UNFOLD"}


@pytest.mark.parametrize(
    ("name", "value", "setting", "holds"),
    [
        ("MIRIX_PORT", "80", "MIRIX_PORT", 80),
        ("SKILL_EDIT_BUDGET_MAX", "0", "MIRIX_SKILL_EDIT_BUDGET_MAX", 0),
        ("MIRIX_SKILL_EDIT_MAJOR_RATIO", "1", "MIRIX_SKILL_EDIT_MAJOR_RATIO", 1.0),
        ("MIRIX_SKILL_NEAR_COSINE", "0.96", "MIRIX_SKILL_NEAR_COSINE", 0.96),
        ("MIRIX_DEBUG", "ON", "DEBUG", True),
        ("MIRIX_REDACT_ON_INTAKE", "no", "MIRIX_REDACT_ON_INTAKE", False),
        ("MIRIX_ALLOWED_HOSTS", "a.example, b.example,", "ALLOWED_HOSTS", ["a.example", "b.example"]),
        ("MIRIX_PUBLIC_URL", "https://a.example/", "MIRIX_PUBLIC_URL", "https://a.example"),
        ("EMAIL_URL", "smtp+tls://u:p@host:587", "EMAIL_PORT", 587),
    ],
)
def test_what_means_something_holds(monkeypatch, name, value, setting, holds):
    monkeypatch.setenv(name, value)
    assert settings()[setting] == holds


def test_words_are_taken_in_any_case(monkeypatch):
    monkeypatch.setenv("MIRIX_LOG_LEVEL", "debug")
    logging = settings()["LOGGING"]
    assert logging["loggers"]["skills"] == {"level": "DEBUG"}
    assert logging["root"]["level"] == "INFO"  # others' details quote what is sent


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgres://u:p%40@h:5433/d?sslmode=require", {"HOST": "h", "PORT": 5433, "PASSWORD": "p@"}),
        (
            "postgres:///d?host=/run&isolation_level=3",
            {"HOST": "", "OPTIONS": {"host": "/run", "isolation_level": 3}},
        ),
    ],
)
def test_urls_of_postgresql(monkeypatch, url, parts):
    monkeypatch.setenv("DATABASE_URL", url)
    assert parts.items() <= settings()["DATABASES"]["default"].items()


@pytest.mark.parametrize(
    ("end", "threshold"),
    [("", PREPARE_THRESHOLD), ("?prepare_threshold=0", 0), ("?prepare_threshold=None", None)],
)
def test_how_often_a_statement_is_sent_before_it_is_prepared(monkeypatch, end, threshold):
    monkeypatch.setenv("DATABASE_URL", f"postgres://h/d{end}")
    assert settings()["MIRIX_PREPARE_THRESHOLD"] == threshold
    assert settings()["DATABASES"]["default"]["OPTIONS"] == {}


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:se/cret@h/d",
        "mysql://u:secret@h/d",
        "postgres://u:secret@h/d?nonsense=1",
        "postgres://u:secret@h/d?prepare_threshold=often",
    ],
)
def test_a_password_is_never_shown(monkeypatch, url):
    monkeypatch.setenv("DATABASE_URL", url)
    assert "cret" not in refusal()
    assert "'se" not in refusal()


def test_a_long_value_is_shown_in_part(monkeypatch):
    monkeypatch.setenv("MIRIX_PORT", "9" * 5_000)
    assert len(refusal()) < 200


def test_the_lowest_number_of_changes_is_not_above_the_highest(monkeypatch):
    monkeypatch.setenv("MIRIX_SKILL_EDIT_BUDGET_MIN", "3")
    monkeypatch.setenv("SKILL_EDIT_BUDGET_MAX", "2")
    assert (
        refusal()
        == f"MIRIX_SKILL_EDIT_BUDGET_MIN=3: expected no more than the 2 of SKILL_EDIT_BUDGET_MAX{END}"
    )


@pytest.mark.parametrize("kind", ["LLM", "EMBEDDING"])
def test_the_key_of_openai_is_shown_to_openai_alone(monkeypatch, kind):
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    assert settings()[f"MIRIX_{kind}_API_KEY"] == "sesame"
    monkeypatch.setenv(f"MIRIX_{kind}_BASE_URL", "http://127.0.0.1:9/v1")
    assert settings()[f"MIRIX_{kind}_API_KEY"] == ""
    monkeypatch.setenv(f"MIRIX_{kind}_API_KEY", "mellon")
    assert settings()[f"MIRIX_{kind}_API_KEY"] == "mellon"


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("MIRIX_LLM_MODEL", DistillationAttempt._meta.get_field("model").max_length),
        ("MIRIX_EMBEDDING_MODEL", 200),
    ],
)
def test_the_name_of_a_model_fits_where_it_is_noted(monkeypatch, name, length):
    monkeypatch.setenv(name, "m" * length)
    assert settings()[name] == "m" * length
    monkeypatch.setenv(name, "m" * (length + 1))
    assert f"expected a name of at most {length} characters" in refusal()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MIRIX_REVIEW_POLICY", f"one of {', '.join(ReviewPolicy.values)}"),
        ("MIRIX_SKILL_SEARCH_METHOD", f"one of {', '.join(METHODS)}"),
        ("MIRIX_RAW_RETENTION_DAYS", f"a whole number from 0 to {MAX_DAYS}"),
        ("SKILL_MAX_INSTRUCTIONS_CHARS", f"a whole number from 1 to {MAX_INSTRUCTIONS_CHARS}"),
        ("SKILL_TRIGGER_SESSION_THRESHOLD", f"a whole number from 0 to {MAX_SESSIONS}"),
    ],
)
def test_the_bounds_are_those_of_what_uses_them(monkeypatch, name, expected):
    monkeypatch.setenv(name, "?")
    assert refusal() == f"{name}=?: expected {expected}{END}"
