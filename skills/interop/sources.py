"""Where SKILL.md files are found: a file, a folder with everything below it, a ZIP. Pure.

Nothing here trusts what it reads. Links below a folder are not followed, but reported where skills lie behind
them. Only regular files are opened, no more of a file is read than a skill may have, and an archive is judged
by its table of contents before a byte of it is unpacked. Nothing is ever written. What cannot be taken is a
`Found` with a problem.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from mirix.text import shorten
from skills.interop.skill_md import FILE_NAME

MAX_FILE_BYTES = 2_000_000
MAX_ARCHIVE_BYTES = 50_000_000
MAX_ENTRIES = 20_000
MAX_DIRECTORY_BYTES = 4_000_000
MAX_UNPACKED_BYTES = 100_000_000
MAX_PATH_CHARS = 1_024
MAX_DEPTH = 32
MAX_FILES = 200_000
MAX_BEHIND_LINKS = 50_000
LEFT_OUT = {".git", "node_modules", "__MACOSX"}
ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
END_OF_ZIP = b"PK\x05\x06"
END_OF_ZIP_BYTES = 22
ZIP64_LOCATOR = b"PK\x06\x07"
ZIP64_LOCATOR_BYTES = 20
NOT_FOLLOWED = "It is a link, which is not followed."
TOO_LARGE = f"It is larger than {MAX_FILE_BYTES:,} bytes."


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file that should hold a skill; `problem` says why it cannot be taken."""

    place: str
    """What a report calls it."""
    data: bytes = b""
    folder: str = ""
    """The name of the folder that holds a SKILL.md; "" where there is none."""
    others: int = 0
    """How many more files its folder holds: scripts, references; they are not imported."""
    problem: str = ""


def find(path: Path) -> Iterator[Found]:
    """Yield the skills that a path leads to; a link that is the path itself is meant and followed.

    Raises `OSError` where the path cannot be looked at.
    """
    if path.is_dir():
        found = False
        for item in _walk(path, 0, _Walk(Path(os.path.realpath(path)))):
            found = True
            yield item
        if not found:
            yield Found(place=str(path), problem=f"There is no {FILE_NAME} in it.")
        return
    try:
        with _opened(path, follow=True) as stream:
            start = stream.read(4)
            stream.seek(0)
            if start in ZIP_STARTS:
                yield from find_in_zip(stream, str(path))
                return
            yield _taken(stream.read(MAX_FILE_BYTES + 1), str(path), _folder_of(path))
    except OSError as error:
        yield Found(place=str(path), problem=f"It cannot be read: {error.strerror or error}.")


def find_in_upload(stream: IO[bytes], name: str) -> Iterator[Found]:
    """Yield the skills of an uploaded file: a SKILL.md or a ZIP; its name is what its sender says."""
    name = shorten(PurePosixPath(name.replace("\\", "/")).name, 200) or FILE_NAME
    start = stream.read(4)
    stream.seek(0)
    if start in ZIP_STARTS:
        yield from find_in_zip(stream, name)
    else:
        yield _taken(stream.read(MAX_FILE_BYTES + 1), name, "")


def _taken(data: bytes, place: str, folder: str, others: int = 0) -> Found:
    if len(data) > MAX_FILE_BYTES:
        return Found(place=place, problem=TOO_LARGE)
    return Found(place=place, data=data, folder=folder, others=others)


def _is_skill(name: str) -> bool:
    return name.lower() == FILE_NAME.lower()


# ---- Folders ---------------------------------------------------------------------------------------


def _folder_of(path: Path) -> str:
    return Path(os.path.abspath(path)).parent.name if _is_skill(path.name) else ""


@contextmanager
def _opened(path: Path, *, follow: bool = False) -> Iterator[IO[bytes]]:
    """Open a regular file; never wait for a pipe, and follow no link unless told. Raises `OSError`."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    with os.fdopen(os.open(path, flags), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(0, "not a regular file")
        yield stream


class _Walk:
    """What a walk through a folder goes by: where it began, and how many entries may still be seen."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.left = MAX_FILES
        self.left_behind_links = MAX_BEHIND_LINKS

    def comes_to(self, folder: Path) -> bool:
        """Return whether a folder, named by its real path, is walked through without any link."""
        return folder.is_relative_to(self.root) and LEFT_OUT.isdisjoint(folder.relative_to(self.root).parts)

    def misses_skills(self, link: Path) -> bool:
        """Return whether skills lie somewhere behind a link that the walk does not come to.

        What cannot be looked through may hold some.
        """
        seen: set[str] = set()
        folders = [os.path.realpath(link)]
        while folders:
            folder = folders.pop()
            if folder in seen or not os.path.isdir(folder) or self.comes_to(Path(folder)):
                continue
            seen.add(folder)
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        self.left_behind_links -= 1
                        is_folder = os.path.isdir(entry.path)  # of a link in a circle `entry` raises
                        if self.left_behind_links < 0 or (_is_skill(entry.name) and not is_folder):
                            return True
                        if is_folder and entry.name not in LEFT_OUT:
                            folders.append(os.path.realpath(entry.path))
            except OSError:
                return True
        return False


def _walk(folder: Path, depth: int, walk: _Walk) -> Iterator[Found]:
    """Yield the skills below a folder, sorted by path."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Found(place=str(folder), problem=f"It cannot be read: {error.strerror or error}.")
        return
    walk.left -= len(entries)
    if depth > MAX_DEPTH or walk.left < 0:
        yield Found(place=str(folder), problem="The folder is too deep or too large; name its parts.")
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.is_symlink():
            is_one = _is_skill(entry.name) or (path / FILE_NAME).is_file()
            if is_one or (entry.name not in LEFT_OUT and walk.misses_skills(path)):
                yield Found(place=str(path), problem=NOT_FOLLOWED)
        elif entry.is_dir(follow_symlinks=False):
            if entry.name not in LEFT_OUT:
                yield from _walk(path, depth + 1, walk)
        elif _is_skill(entry.name):
            yield _from_folder(path, len(entries) - 1)


def _from_folder(path: Path, others: int) -> Found:
    try:
        with _opened(path) as stream:
            return _taken(stream.read(MAX_FILE_BYTES + 1), str(path), _folder_of(path), others)
    except OSError as error:
        return Found(place=str(path), problem=f"It cannot be read: {error.strerror or error}.")


# ---- Archives --------------------------------------------------------------------------------------


def find_in_zip(stream: IO[bytes], place: str) -> Iterator[Found]:
    """Yield the skills of a ZIP; `stream` can be sought in."""
    if problem := _zip_problem(stream):
        yield Found(place=place, problem=problem)
        return
    try:
        with zipfile.ZipFile(stream) as archive:
            yield from _members(archive, place)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error) as error:
        yield Found(place=place, problem=f"It is no ZIP that can be read: {shorten(str(error), 200)}.")


def _zip_problem(stream: IO[bytes]) -> str:
    """Return what forbids to read the table of contents, found without reading it."""
    size = stream.seek(0, os.SEEK_END)
    if size > MAX_ARCHIVE_BYTES:
        return f"The archive is larger than {MAX_ARCHIVE_BYTES:,} bytes."
    stream.seek(max(0, size - 65_536 - END_OF_ZIP_BYTES - ZIP64_LOCATOR_BYTES))
    tail = stream.read()
    stream.seek(0)
    if ZIP64_LOCATOR in tail:
        return "The archive is of the kind for huge archives (ZIP64)."
    starts = [at for at in range(len(tail)) if tail.startswith(END_OF_ZIP, at)]
    for at in starts:
        record = tail[at : at + END_OF_ZIP_BYTES]
        if len(record) == END_OF_ZIP_BYTES:
            _, entries, length = struct.unpack("<HHI", record[8:16])
            if entries > MAX_ENTRIES or length > MAX_DIRECTORY_BYTES:
                return f"The archive has more than {MAX_ENTRIES:,} entries."
    return "" if starts else "It is no ZIP that can be read: its table of contents is missing."


def _members(archive: zipfile.ZipFile, place: str) -> Iterator[Found]:
    members = archive.infolist()
    if len(members) > MAX_ENTRIES:
        yield Found(place=place, problem=f"The archive has more than {MAX_ENTRIES:,} entries.")
        return
    wanted = [member for member in members if _is_skill(_path_of(member).name)]
    if not wanted:
        yield Found(place=place, problem=f"There is no {FILE_NAME} in it.")
        return
    others = _count_others(members, {_path_of(member).parent for member in wanted})
    seen: set[str] = set()
    left = MAX_UNPACKED_BYTES
    for member in wanted:
        label = f"{place}:{shorten(member.orig_filename, 200)}"
        problem = _member_problem(member, seen) or ("" if left > 0 else "The archive unpacks to too much.")
        seen.add(member.filename)
        if problem:
            yield Found(place=label, problem=problem)
            continue
        found = _unpacked(archive, member, label, others[_path_of(member).parent])
        left -= len(found.data)
        yield found


def _path_of(member: zipfile.ZipInfo) -> PurePosixPath:
    return PurePosixPath(member.orig_filename.replace("\\", "/"))


def _count_others(members: list[zipfile.ZipInfo], folders: set[PurePosixPath]) -> Counter[PurePosixPath]:
    """Count for each folder with a skill the further files in it and below."""
    counts: Counter[PurePosixPath] = Counter()
    for member in members:
        path = _path_of(member)
        if member.is_dir() or _is_skill(path.name) or len(member.orig_filename) > MAX_PATH_CHARS:
            continue
        holder = next((parent for parent in path.parents if parent in folders), None)
        if holder is not None:
            counts[holder] += 1
    return counts


def _member_problem(member: zipfile.ZipInfo, seen: set[str]) -> str:
    """Return why a member is not to be unpacked."""
    path, name = _path_of(member), member.orig_filename
    mode = member.external_attr >> 16
    checks = {
        "Its path leads out of the archive.": path.is_absolute() or ".." in path.parts or name[1:2] == ":",
        "Its path is no path.": "\x00" in name or len(name) > MAX_PATH_CHARS,
        NOT_FOLLOWED: stat.S_ISLNK(mode),
        "It is no regular file.": bool(stat.S_IFMT(mode)) and not stat.S_ISREG(mode),
        "It stands twice in the archive.": member.filename in seen,
        "It is encrypted.": bool(member.flag_bits & 0x1),
        "It is compressed in a way that is not read here.": member.compress_type
        not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
        TOO_LARGE: member.file_size > MAX_FILE_BYTES,
    }
    return next((problem for problem, holds in checks.items() if holds), "")


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, label: str, others: int) -> Found:
    try:
        with archive.open(member) as stream:
            data = stream.read(MAX_FILE_BYTES + 1)  # what the table says of the size may be a lie
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        RuntimeError,
        struct.error,
    ) as error:
        return Found(place=label, problem=f"It cannot be unpacked: {shorten(str(error), 200) or 'cut off'}.")
    return _taken(data, label, _path_of(member).parent.name, others)
