import os

import pytest

from ranktron import DataError
from ranktron.data.files import atomically


def test_a_file_takes_its_place_only_when_complete(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomically(target) as file:
        file.write(b"half" * (1 // 0))
    assert target.read_bytes() == b"old"
    with atomically(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    os.symlink(tmp_path / "real", tmp_path / "link")
    with atomically(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with atomically(tmp_path / "pipe") as file:
        file.write(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("name", [".", "..", "", "folder", "no/such/folder", "a" * 250, "a" * 300, "a\0b"])
def test_what_is_no_file_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="cannot be written"), atomically(name) as file:
        file.write(b"x")
