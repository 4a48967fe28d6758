"""What an operator can put right ends as one line and an exit code, from real processes too."""

from __future__ import annotations

import json
import re

import pytest
from django.core.management import CommandError, call_command

from mirix.secret import BadSetting, load_or_create_secret
from tests.mirix.states import State

TRACEBACK = "Traceback"
NEVER = "9" * 20


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MIRIX_PORT", "abc"),
        ("MIRIX_WORKER_STALLED_SECONDS", "x"),
        ("MIRIX_SESSION_IDLE_MINUTES", NEVER),
        ("MIRIX_LOG_LEVEL", "loud"),
        ("DATABASE_URL", "foo"),
        ("MIRIX_REVIEW_POLICY", "foo"),
        ("MIRIX_DAILY_TOKEN_BUDGET", "-1"),
    ],
)
def test_a_setting_that_means_nothing(new_state: State, name: str, value: str):
    for command in ("auto_dream", "migrate"):  # one of ours, and one of Django's
        done = new_state.manage(command, env={name: value})
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(rf"Setting error: {name}\S*: expected .+\n", done.stderr)
    done = new_state.manage("auto_dream", "--json", env={name: value})
    assert json.loads(done.stdout) == {"error": done.stderr.rstrip("\n")}
    assert done.returncode == 1


@pytest.mark.processes
def test_a_web_server_without_serve_says_the_same(new_state: State):
    done = new_state.run("-c", "import mirix.wsgi", env={"MIRIX_PORT": "abc"})
    assert done.returncode == 4
    assert done.stderr.startswith("mirix does not start: MIRIX_PORT=abc: expected ")
    assert done.stderr.count("\n") == 1


@pytest.mark.processes
def test_a_state_directory_that_is_none(new_state: State):
    new_state.var_dir.parent.mkdir(parents=True, exist_ok=True)
    new_state.var_dir.write_text("")
    done = new_state.manage("organizations")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(
        f"Setting error: MIRIX_VAR_DIR: {new_state.var_dir}/secret_key can be neither"
    )
    done = new_state.manage("organizations", env={"MIRIX_SECRET_KEY": "key"})
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "name another folder in MIRIX_VAR_DIR, or a server in DATABASE_URL." in done.stderr
    new_state.var_dir.unlink()


@pytest.mark.processes
def test_options_out_of_range_and_words_that_are_no_text(new_state: State):
    for command, option, value in (
        ("auto_dream", "--last-n-sessions", NEVER),
        ("serve", "--port", "70000"),
        ("audit", "--limit", "0"),
        ("quickstart", "--port", "x"),
    ):
        owner = ("--organization", "o") if command in ("auto_dream", "audit") else ()
        user = ("--user", "u") if command == "auto_dream" else ()
        done = new_state.manage(command, *owner, *user, option, value)
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 2
        assert f"argument {option}: '{value}' is not a whole number from " in last
        assert TRACEBACK not in done.stderr
    done = new_state.manage("organizations", "\udcff")
    assert (done.returncode, done.stderr) == (1, "Argument '\\udcff': expected UTF-8 text.\n")


@pytest.mark.parametrize("size", ["0", "-1", "nan", "inf", "x", "1e9"])
def test_a_size_out_of_range(size):
    options = ("--organization", "o", "--user", "u", f"--max-megabytes={size}")
    with pytest.raises(CommandError, match=f"'{size}' is not a number above 0, at most 10000"):
        call_command("import_sessions", *options)


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe"])
def test_a_secret_key_that_is_none(tmp_path, content):
    path = tmp_path / "secret_key"
    path.write_bytes(content)
    with pytest.raises(BadSetting) as refused:
        load_or_create_secret(path)
    assert str(refused.value) == (
        f"{path} holds no key. Remove it, and a new one is made, which ends all logins; "
        "or set MIRIX_SECRET_KEY."
    )
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(30, "Read-only file system")]
)
@pytest.mark.parametrize("call", ["os.open", "pathlib.Path.read_text"])
def test_a_state_directory_out_of_reach(tmp_path, monkeypatch, error, call):
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(call, refuse)
    with pytest.raises(BadSetting) as refused:
        load_or_create_secret(tmp_path / "secret_key")
    told = str(refused.value)
    assert told.startswith(
        f"MIRIX_VAR_DIR: {tmp_path}/secret_key can be neither read nor made ({error.strerror})."
    )
    assert f"read and write {tmp_path}, or name another folder" in told
