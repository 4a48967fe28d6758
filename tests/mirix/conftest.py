"""State directories with an embedded database: new, with an empty cluster, with every migration applied."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.mirix.served import Served
from tests.mirix.states import LAST_TWO, State, opened


@pytest.fixture
def place() -> Iterator[Path]:
    """A short, plain folder; pytest's own may be too long for a socket, and closed to the server's user."""
    folder = Path(tempfile.mkdtemp(prefix="mirix-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def new_state(place: Path) -> Iterator[State]:
    """A state directory that does not exist yet."""
    with opened(place / "var") as state:
        yield state


@pytest.fixture
def new_state_beside() -> Iterator[State]:
    """A second state directory that does not exist yet, as on another machine."""
    folder = Path(tempfile.mkdtemp(prefix="mirix-"))
    folder.chmod(0o755)
    with opened(folder / "var") as state:
        yield state
    folder.rmdir()


@pytest.fixture
def state(place: Path, empty_cluster: State) -> Iterator[State]:
    """A cluster with an empty database, stopped."""
    empty_cluster.copy_to(place / "var")
    with opened(place / "var") as state:
        yield state


@pytest.fixture
def migrated_state(place: Path, migrated_cluster: State) -> Iterator[State]:
    """A cluster with every migration applied, stopped."""
    migrated_cluster.copy_to(place / "var")
    with opened(place / "var") as state:
        yield state


@pytest.fixture(scope="module")
def served(migrated_cluster: State) -> Iterator[Served]:
    """A running `serve`, worker included, for the tests of one module."""
    folder = Path(tempfile.mkdtemp(prefix="mirix-"))
    folder.chmod(0o755)
    migrated_cluster.copy_to(folder / "var")
    with opened(folder / "var") as state:
        yield Served(state, MIRIX_MAX_REQUEST_BYTES="2000000")
    folder.rmdir()


@pytest.fixture
def state_behind(place: Path, cluster_behind: State) -> Iterator[State]:
    """A cluster that was migrated and then went back by the last migration of the skills app, stopped."""
    cluster_behind.copy_to(place / "var")
    with opened(place / "var") as state:
        yield state


@pytest.fixture(scope="session")
def empty_cluster(tmp_path_factory: pytest.TempPathFactory) -> State:
    return _made_once(tmp_path_factory, "empty", lambda state: state.ask())


@pytest.fixture(scope="session")
def migrated_cluster(tmp_path_factory: pytest.TempPathFactory) -> State:
    def migrate(state: State) -> None:
        done = state.manage("migrate", "-v0")
        assert done.returncode == 0, done.stderr

    return _made_once(tmp_path_factory, "migrated", migrate)


@pytest.fixture(scope="session")
def filled_cluster(tmp_path_factory: pytest.TempPathFactory, migrated_cluster: State) -> State:
    def fill(state: State) -> None:
        migrated_cluster.copy_to(state.var_dir)
        done = state.manage("quickstart", "--no-serve")
        assert done.returncode == 0, done.stderr

    return _made_once(tmp_path_factory, "filled", fill)


@pytest.fixture(scope="session")
def cluster_behind(tmp_path_factory: pytest.TempPathFactory, migrated_cluster: State) -> State:
    def go_back(state: State) -> None:
        migrated_cluster.copy_to(state.var_dir)
        done = state.manage("migrate", "skills", LAST_TWO[0])
        assert (done.returncode, f"Unapplying skills.{LAST_TWO[1]}... OK" in done.stdout) == (0, True), done

    return _made_once(tmp_path_factory, "behind", go_back)


def _made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[State], object]) -> State:
    """Make a cluster to copy from, once for all workers of a run."""
    base = factory.getbasetemp()
    base = base.parent if base.name.startswith("popen-") else base
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = base / f"{name}-cluster"
        if not kept.exists():
            folder = Path(tempfile.mkdtemp(prefix="mirix-"))
            folder.chmod(0o755)
            with opened(folder / "var") as state:
                make(state)
                state.copy_to(kept)
            folder.rmdir()
    return State(kept)
