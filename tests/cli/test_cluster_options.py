import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from ranktron import DataError, load
from ranktron.cli.main import cli
from ranktron.data.io import write
from ranktron.data.synthetic import WebSearch
from ranktron.learners.checks import same

LISTS = WebSearch(features=8, documents=10).rounds(60)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k in range(3):
        write(LISTS[20 * k : 20 * k + 20], tmp_path / f"part-{k}.txt")
    write(LISTS, tmp_path / "all.rounds")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["train", *arguments, "--algo", "hinge", "--epochs", "2", "--scale", "standard"])


def test_a_stream_of_parts_is_the_model_of_one_machine(folder):
    for out, *options in (("one", "all.rounds"), ("parts", "part-*.txt", "--stream")):
        done = run(*options, "--no-shuffle", "--model", out, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["rounds"] == 120
    assert same(load("one").state, load("parts").state)
    assert np.array_equal(load("one").scaler.divisor, load("parts").scaler.divisor)


def test_a_stream_needs_no_dask(folder):
    script = (
        "import sys; sys.modules['dask'] = sys.modules['distributed'] = None\n"
        "from ranktron.cli.main import main\n"
        "main(['train', 'part-*.txt', '--stream', '--algo', sys.argv[1], '--model', 'out'])"
    )
    for name in ("hinge", "ranksvm"):
        done = subprocess.run([sys.executable, "-c", script, name], capture_output=True, text=True)
        assert (done.returncode, load("out").kind) == (0, name), done.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["part-*.txt", "--mode", "mix"], 2, "--mode and --shards belong to --dask"),
        (
            ["part-*.txt", "--stream", "--feedback", "perfect"],
            2,
            "--feedback cannot be combined with --dask or --stream",
        ),
        (["part-*.txt", "--stream", "--shards", "2"], 2, "leave --mode and --shards out"),
        (["part-*.txt", "--stream", "--dask", "local"], 2, "--stream trains in this process"),
        (["none-*.txt", "--stream"], 2, "does not exist"),
    ],
)
def test_what_has_no_meaning_is_refused(folder, options, code, message):
    done = run(*options, "--model", "out")
    assert done.exit_code == code
    assert message in done.output + str(done.exception)
    assert not (folder / "out").exists()


def test_an_error_after_a_pass_says_where_to_continue(folder, monkeypatch):
    def fail(*arguments, save, **options):
        save(load("first"))
        raise DataError("the connection is lost")

    assert run("part-*.txt", "--stream", "--model", "first").exit_code == 0
    monkeypatch.setattr("ranktron.dask.training.train_parts", fail)
    done = run("part-*.txt", "--stream", "--model", "out")
    assert str(done.exception) == (
        "the connection is lost; the model after pass 2 is saved in out: continue with --from out"
    )
    assert done.exit_code == 1
