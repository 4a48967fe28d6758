"""Which files of a folder may hold recorded sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

KNOWN_SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj")
PACKED = ".gz"


def is_known(path: Path) -> bool:
    """Return whether a file's name says that it may hold sessions; gzip or not."""
    return path.name.lower().removesuffix(PACKED).endswith(KNOWN_SUFFIXES)


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder whose names are known, sorted; nothing hidden.

    Links are followed, and what two ways lead to is met once, so that links in a circle end. Raises `OSError`
    for the folder itself; a folder below it that cannot be read is yielded, to be reported as a file is.
    """
    yield from _walk(folder, set())


def _walk(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    if _is_seen(folder, seen):
        return
    for name in sorted(os.listdir(folder)):
        path = folder / name
        if name.startswith("."):
            continue
        try:
            if path.is_dir():
                yield from _walk(path, seen)
            elif is_known(path) and not _is_seen(path, seen):
                yield path
        except OSError:
            yield path


def _is_seen(path: Path, seen: set[tuple[int, int]]) -> bool:
    status = path.stat()
    identity = (status.st_dev, status.st_ino)
    is_seen = identity in seen
    seen.add(identity)
    return is_seen
