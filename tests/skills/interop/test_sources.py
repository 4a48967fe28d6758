"""What is found in files, folders and archives, and what is refused before it does harm."""

from __future__ import annotations

import io
import os
import stat
import zipfile

import pytest

from skills.interop import sources
from skills.interop.sources import Found, find, find_in_upload, find_in_zip
from skills.interop.targets import Refused, safe_name, write_tree, write_zip

TEXT = b"---\nname: a\ndescription: d\n---\nDo.\n"


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes], kind: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, data in members:
            archive.writestr(name, data, kind)
    stream.seek(0)
    return stream


def in_zip(*members: tuple[str | zipfile.ZipInfo, bytes], **kind: int) -> list[Found]:
    return list(find_in_zip(zipped(*members, **kind), "x.zip"))


def problems(found: list[Found]) -> list[str]:
    return [item.problem for item in found]


class TestFolders:
    def test_everything_below_is_found_in_order(self, tmp_path):
        for path in ("b/SKILL.md", "a/skill.md", ".claude/skills/c/Skill.MD", ".git/d/SKILL.md"):
            (tmp_path / path).parent.mkdir(parents=True)
            (tmp_path / path).write_bytes(TEXT)
        (tmp_path / "a" / "scripts").mkdir()
        (tmp_path / "a" / "LICENSE").write_text("x")
        (tmp_path / "readme.md").write_text("x")

        found = list(find(tmp_path))

        assert [(item.folder, item.others, item.problem) for item in found] == [
            ("c", 0, ""),
            ("a", 2, ""),
            ("b", 0, ""),
        ]
        assert {item.data for item in found} == {TEXT}

    def test_a_file_by_any_name(self, tmp_path):
        path = tmp_path / "notes.txt"
        path.write_bytes(TEXT)

        assert list(find(path)) == [Found(place=str(path), data=TEXT)]

    def test_links_below_a_folder_are_not_followed(self, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "SKILL.md").write_bytes(TEXT)
        inside = tmp_path / "inside"
        (inside / "x").mkdir(parents=True)
        (inside / "x" / "SKILL.md").symlink_to(outside / "SKILL.md")
        (inside / "y").symlink_to(outside)
        (inside / "circle").symlink_to(inside)

        assert [(os.path.basename(item.place), item.problem) for item in find(inside)] == [
            ("SKILL.md", sources.NOT_FOLLOWED),
            ("y", sources.NOT_FOLLOWED),
        ]

    @pytest.mark.parametrize("below", ["a/SKILL.md", "a/b/skill.md", "on/SKILL.md"])
    def test_a_link_to_a_folder_with_skills_somewhere_below_is_reported(self, tmp_path, below):
        inside, outside, further = (tmp_path / name for name in ("inside", "outside", "further"))
        for folder in (inside, outside, further):
            folder.mkdir()
        (outside / "on").symlink_to(further)
        (outside / "back").symlink_to(outside)
        (outside / below).parent.mkdir(parents=True, exist_ok=True)
        (outside / below).write_bytes(TEXT)
        (inside / "pack").symlink_to(outside)

        assert list(find(inside)) == [Found(place=str(inside / "pack"), problem=sources.NOT_FOLLOWED)]

    def test_a_link_that_leaves_no_skill_out_is_not_reported(self, tmp_path):
        inside, outside = tmp_path / "inside", tmp_path / "outside"
        (inside / "skills" / "a").mkdir(parents=True)
        (inside / "skills" / "a" / "SKILL.md").write_bytes(TEXT)
        (inside / ".agents").mkdir()
        (inside / ".agents" / "skills").symlink_to(inside / "skills")
        (outside / "node_modules" / "b").mkdir(parents=True)
        (outside / "node_modules" / "b" / "SKILL.md").write_bytes(TEXT)
        (outside / "circle").symlink_to(outside / "circle")
        for name, target in (("data", outside), ("self", inside / "self"), ("no", tmp_path / "no")):
            (inside / name).symlink_to(target)
        (inside / "node_modules").symlink_to(outside / "node_modules")

        assert [(item.folder, item.problem) for item in find(inside)] == [("a", "")]

    def test_a_link_into_what_a_walk_leaves_out_is_reported(self, tmp_path):
        packed = tmp_path / "node_modules" / "pack"
        (packed / "a").mkdir(parents=True)
        (packed / "a" / "SKILL.md").write_bytes(TEXT)
        (tmp_path / "pack").symlink_to(packed)

        assert list(find(tmp_path)) == [Found(place=str(tmp_path / "pack"), problem=sources.NOT_FOLLOWED)]

    def test_a_link_to_more_than_is_looked_through_is_reported(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sources, "MAX_BEHIND_LINKS", 3)
        inside, outside = tmp_path / "inside", tmp_path / "outside"
        inside.mkdir()
        outside.mkdir()
        for number in range(4):
            (outside / f"{number}").write_bytes(b"")
        (inside / "data").symlink_to(outside)

        assert problems(list(find(inside))) == [sources.NOT_FOLLOWED]

    def test_a_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "SKILL.md")

        assert problems(list(find(tmp_path))) == ["It cannot be read: not a regular file."]
        assert problems(list(find(tmp_path / "SKILL.md"))) == ["It cannot be read: not a regular file."]

    def test_a_huge_file_is_not_read(self, tmp_path):
        with (tmp_path / "SKILL.md").open("wb") as stream:
            stream.truncate(50_000_000_000)

        assert problems(list(find(tmp_path))) == [sources.TOO_LARGE]

    def test_an_empty_folder_and_a_missing_path(self, tmp_path):
        assert problems(list(find(tmp_path))) == ["There is no SKILL.md in it."]
        assert problems(list(find(tmp_path / "no"))) == ["It cannot be read: No such file or directory."]

    def test_a_folder_without_a_bottom(self, tmp_path):
        deep = tmp_path.joinpath(*["d"] * 40)
        deep.mkdir(parents=True)
        (deep / "SKILL.md").write_bytes(TEXT)

        assert problems(list(find(tmp_path))) == ["The folder is too deep or too large; name its parts."]


class TestArchives:
    def test_what_it_holds(self, tmp_path):
        path = tmp_path / "x.skill"
        path.write_bytes(
            zipped(("a/SKILL.md", TEXT), ("a/run.sh", b""), ("a/refs/x.md", b""), ("b/SKILL.md", TEXT)).read()
        )

        assert list(find(path)) == [
            Found(place=f"{path}:a/SKILL.md", data=TEXT, folder="a", others=2),
            Found(place=f"{path}:b/SKILL.md", data=TEXT, folder="b"),
        ]

    @pytest.mark.parametrize(
        "name",
        [
            "../SKILL.md",
            "a/../../SKILL.md",
            "/etc/SKILL.md",
            "..\\..\\SKILL.md",
            "C:\\SKILL.md",
            "C:/x/SKILL.md",
            "\\\\host\\share\\SKILL.md",
        ],
    )
    def test_a_path_that_leads_out(self, name):
        assert problems(in_zip((name, TEXT))) == ["Its path leads out of the archive."]

    def test_links_and_devices(self):
        found = []
        for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR):
            info = zipfile.ZipInfo(f"{kind}/SKILL.md")
            info.external_attr = (kind | 0o777) << 16
            found += in_zip((info, b"/etc/passwd"))

        assert problems(found) == [sources.NOT_FOLLOWED, "It is no regular file.", "It is no regular file."]

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_a_name_that_stands_twice(self):
        assert problems(in_zip(("SKILL.md", TEXT), ("SKILL.md", b"other"))) == [
            "",
            "It stands twice in the archive.",
        ]

    def test_a_bomb_is_judged_by_its_table(self):
        assert problems(in_zip(("SKILL.md", b"0" * 30_000_000))) == [sources.TOO_LARGE]

    def test_a_bomb_that_lies_about_its_size(self):
        data = bytearray(zipped(("SKILL.md", b"0" * 30_000_000)).getvalue())
        for signature, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
            start = data.index(signature) + at
            data[start : start + 4] = (100).to_bytes(4, "little")
        [found] = find_in_zip(io.BytesIO(bytes(data)), "x.zip")

        assert found.problem.startswith("It cannot be unpacked")
        assert found.data == b""

    def test_many_files_that_are_too_much_together(self, monkeypatch):
        monkeypatch.setattr(sources, "MAX_UNPACKED_BYTES", 10)

        assert problems(in_zip(("a/SKILL.md", TEXT), ("b/SKILL.md", TEXT))) == [
            "",
            "The archive unpacks to too much.",
        ]

    def test_too_many_entries_are_not_even_listed(self):
        found = in_zip(*((f"{number}", b"") for number in range(sources.MAX_ENTRIES + 1)))

        assert problems(found) == ["The archive has more than 20,000 entries."]

    def test_an_archive_inside_is_not_opened(self):
        assert problems(in_zip(("inner.zip", zipped(("SKILL.md", TEXT)).read()))) == [
            "There is no SKILL.md in it."
        ]

    def test_other_ways_of_packing(self):
        assert problems(in_zip(("SKILL.md", TEXT), kind=zipfile.ZIP_LZMA)) == [
            "It is compressed in a way that is not read here."
        ]

    def test_an_encrypted_file(self):
        data = bytearray(zipped(("SKILL.md", TEXT)).getvalue())
        data[data.index(b"PK\x01\x02") + 8] |= 1
        [found] = find_in_zip(io.BytesIO(bytes(data)), "x.zip")

        assert found.problem == "It is encrypted."

    @pytest.mark.parametrize("cut", [4, 30, 60, -1, -10, -22])
    def test_a_broken_archive(self, cut):
        data = zipped(("SKILL.md", TEXT)).getvalue()
        [found] = find_in_zip(io.BytesIO(data[:cut]), "x.zip")

        assert found.problem.startswith("It is no ZIP that can be read")

    def test_a_wrong_checksum(self):
        data = zipped(("SKILL.md", TEXT), kind=zipfile.ZIP_STORED).getvalue().replace(b"Do.", b"No.")
        [found] = find_in_zip(io.BytesIO(data), "x.zip")

        assert found.problem.startswith("It cannot be unpacked")

    def test_uploads_are_told_apart_by_content(self):
        [alone] = find_in_upload(io.BytesIO(TEXT), "../../x.zip")
        [packed] = find_in_upload(zipped(("a/SKILL.md", TEXT)), "C:\\temp\\x.md")

        assert (alone.place, alone.data) == ("x.zip", TEXT)
        assert (packed.place, packed.folder) == ("x.md:a/SKILL.md", "a")


class TestTargets:
    def test_an_archive_is_the_same_bytes_whenever(self):
        first, second = io.BytesIO(), io.BytesIO()
        for stream in (first, second):
            write_zip(stream, [("a/SKILL.md", TEXT), ("b/SKILL.md", TEXT)], "skills")

        assert first.getvalue() == second.getvalue()
        with zipfile.ZipFile(first) as archive:
            assert archive.namelist() == ["skills/a/SKILL.md", "skills/b/SKILL.md"]
            assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}

    def test_a_tree_says_what_changed(self, tmp_path):
        files = [("a/SKILL.md", TEXT), ("b/SKILL.md", TEXT)]

        assert write_tree(tmp_path / "x" / "y", files) == (2, 0)
        assert write_tree(tmp_path / "x" / "y", [files[0], ("b/SKILL.md", b"new")]) == (1, 1)
        assert (tmp_path / "x/y/b/SKILL.md").read_bytes() == b"new"
        assert sorted(os.listdir(tmp_path / "x/y/b")) == ["SKILL.md"]

    def test_no_link_is_written_through(self, tmp_path):
        victim = tmp_path / "victim"
        victim.write_text("mine")
        root = tmp_path / "root"
        (root / "a").mkdir(parents=True)
        (root / "a" / "SKILL.md").symlink_to(victim)
        (root / "b").symlink_to(tmp_path)

        for path in ("a/SKILL.md", "b/SKILL.md"):
            with pytest.raises(Refused, match="is a link"):
                write_tree(root, [(path, TEXT)])
        assert victim.read_text() == "mine"
        assert not (tmp_path / "SKILL.md").exists()

    @pytest.mark.parametrize(
        "text", ["../..", "/", ".", "a/b", "Bob", "bob ", "", "CON", "名", "a\x00b", "x" * 300]
    )
    def test_a_name_for_a_folder_is_one_part_and_its_own(self, text):
        name = safe_name(text)

        assert name.replace("-", "").isalnum()
        assert name.isascii()
        assert len(name) <= 70
        assert name != safe_name(text + "!")
