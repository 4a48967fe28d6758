"""Reads settings from the environment, and refuses what means nothing, in one line.

Every reader takes the name of a variable and the default, for which an empty variable stands as well. What
it refuses raises `BadSetting`, which `manage.py` and `mirix.wsgi` print: name, value and what is expected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo

from mirix.text import shorten, whole_number

SWITCH = dict.fromkeys(("true", "on", "yes", "y", "ok", "1"), True) | dict.fromkeys(
    ("false", "off", "no", "n", "0"), False
)
POSTGRESQL = ("postgres", "postgresql", "psql", "pgsql")
PREPARE_THRESHOLD = 5
"""The number of times that psycopg would choose; Django prepares nothing."""
NOT_OF_LIBPQ = {"assume_role", "isolation_level", "pool", "prepare_threshold", "server_side_binding"}
MAX_SHOWN = 60


class BadSetting(ImproperlyConfigured):
    """A setting that the operator must put right; the message is one line."""


def refuse(name: str, expected: str, *, shown: str | None = None) -> BadSetting:
    """Return the error for a variable; `shown` is its value, left out where it may hold a password."""
    value = "" if shown is None else f"={shorten(shown, MAX_SHOWN)}"
    return BadSetting(f"{name}{value}: expected {expected}. Correct it, or unset it for the default.")


def text(name: str, default: str = "") -> str:
    """Return a text of one line."""
    value = os.environ.get(name, "").strip()
    if not value.isprintable():  # nor is what was no UTF-8
        raise refuse(name, "one line of UTF-8 text")
    return value or default


def verbatim(name: str, default: str = "") -> str:
    """Return a text of one line with the blanks at its ends, which mean something."""
    return os.environ[name] if text(name) else default


def choice(name: str, default: str, choices: Iterable[str]) -> str:
    """Return one of `choices`, in whichever case it was written."""
    known = {choice.casefold(): choice for choice in choices}
    value = text(name, default)
    if value.casefold() not in known:
        raise refuse(name, f"one of {', '.join(known.values())}", shown=value)
    return known[value.casefold()]


def switch(name: str, default: bool) -> bool:
    """Return true or false."""
    value = text(name)
    if value and value.casefold() not in SWITCH:
        raise refuse(name, "true or false", shown=value)
    return SWITCH[value.casefold()] if value else default


def whole(name: str, default: int, *, low: int, high: int) -> int:
    """Return a whole number from `low` to `high`."""
    if not (value := text(name)):
        return default
    found = whole_number(value, low=low, high=high)
    if found is None:
        raise refuse(name, f"a whole number from {low} to {high}", shown=value)
    return found


def number(name: str, default: float, *, low: float, high: float) -> float:
    """Return a number from `low` to `high`."""
    if not (value := text(name)):
        return default
    try:
        found = float(value)
    except ValueError:
        found = float("nan")
    if low <= found <= high:  # nan is not
        return found
    raise refuse(name, f"a number from {low:g} to {high:g}", shown=value)


def numbers(name: str, default: list[float], *, low: float, high: float) -> list[float]:
    """Return as many numbers from `low` to `high` as the default has, from between the commas."""
    if not (value := text(name)):
        return default
    try:
        found = [float(part) for part in value.split(",")]
    except ValueError:
        found = []
    if len(found) == len(default) and all(low <= part <= high for part in found):
        return found
    raise refuse(name, f"{len(default)} numbers from {low:g} to {high:g}, separated by commas", shown=value)


def words(name: str, default: list[str]) -> list[str]:
    """Return what stands between the commas."""
    return [word for part in text(name).split(",") if (word := part.strip())] or default


def folder(name: str, default: Path) -> Path:
    """Return an absolute path; it need not exist."""
    try:
        return Path(text(name) or default).resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise refuse(name, f"the path of a folder ({error})") from error


def url(name: str, default: str, schemes: tuple[str, ...]) -> str:
    """Return a URL of one of `schemes`."""
    value = text(name, default)
    if value and not _is_url(value, schemes):
        raise refuse(name, f"a URL that begins with {', '.join(f'{scheme}://' for scheme in schemes)}")
    return value


def database(name: str) -> dict[str, Any] | None:
    """Return Django's parameters of a PostgreSQL server, None where none is named."""
    if not (value := text(name)):
        return None
    if value.partition("://")[0] not in POSTGRESQL:
        raise refuse(
            name, "postgres://user:password@host:5432/name, for PostgreSQL is the only database engine"
        )
    try:
        config = environ.Env.db_url_config(value)
        options = config.setdefault("OPTIONS", {})
        options["prepare_threshold"] = _threshold(name, options.get("prepare_threshold", PREPARE_THRESHOLD))
        make_conninfo(**{key: options[key] for key in options.keys() - NOT_OF_LIBPQ})
    except ProgrammingError as error:
        raise refuse(name, f"options that PostgreSQL knows ({str(error).strip()})") from error
    except (ValueError, LookupError) as error:  # these may quote the password
        raise refuse(
            name, "postgres://user:password@host:5432/name, with %XX for special characters of the password"
        ) from error
    if not config["NAME"] and "service" not in options:
        raise refuse(name, "the name of the database at its end, as in postgres://host/name")
    return config


def _threshold(name: str, value: Any) -> int | None:
    """Return after how many times a connection prepares a statement; None for never."""
    if value == "None":
        return None
    if type(value) is not int or value < 0:
        raise refuse(name, "prepare_threshold=5, or another whole number, or None where nothing is prepared")
    return value


def mail(name: str, default: str) -> dict[str, Any]:
    """Return Django's settings of a mail server."""
    value = url(name, default, tuple(environ.Env.EMAIL_SCHEMES))
    return environ.Env.email_url_config(value)


def _is_url(value: str, schemes: tuple[str, ...]) -> bool:
    """Return whether it begins with one of the schemes and `://`, and its port, if any, is one."""
    with suppress(ValueError):
        parts = urlsplit(value)
        return parts.scheme in schemes and "://" in value and parts.port != 0
    return False
