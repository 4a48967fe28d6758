"""Where exported skills go: a tree of folders, a ZIP with the same bytes for the same skills. Pure."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from mirix.text import slugify

FIRST_DAY = (1980, 1, 1, 0, 0, 0)
REGULAR_FILE = 0o100644 << 16
UNIX = 3


class Refused(ValueError):
    """The place must not be written to; the message says why in one line."""


def safe_name(text: str) -> str:
    """Return a folder's name for any text: itself where it is a slug, else one that no other text gets."""
    slug = slugify(text)
    return slug if slug and slug == text else f"{slug or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def write_zip(stream: IO[bytes], files: Iterable[tuple[str, bytes]], top: str = "") -> None:
    """Write (path, bytes) pairs as a ZIP, below one folder; nothing in it depends on when or where."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for path, data in files:
            info = zipfile.ZipInfo(f"{top}/{path}" if top else path, FIRST_DAY)
            info.create_system = UNIX
            info.external_attr = REGULAR_FILE
            archive.writestr(info, data)


def write_tree(root: Path, files: Iterable[tuple[str, bytes]]) -> tuple[int, int]:
    """Write (path, bytes) pairs below a folder, made when missing; return how many changed and stayed.

    Each file is replaced as a whole. Raises `Refused` where a link stands in the way, `OSError` otherwise.
    """
    changed = unchanged = 0
    root.mkdir(parents=True, exist_ok=True)
    for path, data in files:
        target = root / path
        for part in (target, *target.parents):
            if part == root:
                break
            if part.is_symlink():
                raise Refused(f"{part} is a link, which is not followed.")
        if target.is_file() and target.read_bytes() == data:
            unchanged += 1
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, data)
        changed += 1
    return changed, unchanged


def write_file(path: Path, data: bytes) -> None:
    """Put a file in its place as a whole, or not at all."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
