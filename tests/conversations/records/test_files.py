"""Which files of a folder are read."""

from __future__ import annotations

import pytest

from conversations.records import files_in


@pytest.fixture
def folder(tmp_path):
    for name in (
        "b.jsonl",
        "a.json",
        "c.JSONL.GZ",
        "sub/d.ndjson",
        "sub/e.traj",
        "notes.txt",
        "x.gz",
        ".hidden.json",
        ".git/f.json",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    return tmp_path


def names(folder):
    return [str(path.relative_to(folder)) for path in files_in(folder)]


def test_known_names_are_yielded_sorted_and_hidden_ones_are_not(folder):
    assert names(folder) == ["a.json", "b.jsonl", "c.JSONL.GZ", "sub/d.ndjson", "sub/e.traj"]


def test_links_in_a_circle_end(folder):
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "sub" / "self").symlink_to("self")
    assert names(folder) == ["a.json", "b.jsonl", "c.JSONL.GZ", "sub/d.ndjson", "sub/e.traj"]


def test_what_two_ways_lead_to_is_read_once(folder):
    (folder / "again").symlink_to(folder / "sub")
    (folder / "z.json").symlink_to(folder / "a.json")
    assert names(folder) == ["a.json", "again/d.ndjson", "again/e.traj", "b.jsonl", "c.JSONL.GZ"]


def test_a_link_to_nowhere_is_yielded_to_be_reported(folder):
    (folder / "lost.json").symlink_to(folder / "nowhere.json")
    assert "lost.json" in names(folder)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(files_in(tmp_path / "nowhere"))
