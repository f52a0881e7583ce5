"""Commands detect the format of a file once."""

from ranktron.data import io
from ranktron.data.io import formats
from ranktron.data.synthetic import Separable


def test_a_command_detects_the_format_of_each_file_once(tmp_path, monkeypatch, run):
    starts, read_start = [], formats._read_start
    for name in ("train.txt", "vali.txt"):
        io.write(Separable(features=5).rounds(8), tmp_path / name)
    monkeypatch.setattr(formats, "_read_start", lambda path, size: starts.append(path.name) or read_start(path, size))
    run("train", tmp_path / "train.txt", "--valid", tmp_path / "vali.txt", "--algo", "hinge", "--model", "m")
    assert sorted(starts) == ["train.txt", "vali.txt"]
