"""The secret key of an installation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mirix.secret import load_or_create_secret


def test_it_is_long_and_readable_by_its_owner_alone(tmp_path: Path):
    secret = load_or_create_secret(tmp_path / "var" / "secret_key")
    assert len(secret) == 64
    assert (tmp_path / "var" / "secret_key").stat().st_mode & 0o777 == 0o600


def test_it_stays_as_it_is(tmp_path: Path):
    (tmp_path / "secret_key").write_text("mine\n")
    assert load_or_create_secret(tmp_path / "secret_key") == "mine"


def test_two_installations_have_different_ones(tmp_path: Path):
    assert load_or_create_secret(tmp_path / "a") != load_or_create_secret(tmp_path / "b")


def test_many_at_once_agree_on_one_and_leave_nothing_else(tmp_path: Path):
    path = tmp_path / "secret_key"
    with ThreadPoolExecutor(16) as pool:
        secrets = set(pool.map(load_or_create_secret, [path] * 64))
    assert secrets == {path.read_text()}
    assert list(tmp_path.iterdir()) == [path]
