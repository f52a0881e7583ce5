"""`train --exportable`: only what search engines compute, and what that costs."""

import json
from pathlib import Path

import pytest

from ranktron import load
from ranktron.cli.export import export
from ranktron.export import TARGETS


@pytest.fixture
def data(run):
    for name, queries, skip in (("train.txt", 30, 0), ("vali.txt", 20, 30)):
        assert run("simulate", "separable", name, "--queries", queries, "--skip", skip)[0] == 0
    return run


def test_an_exportable_model_is_exported_and_its_cost_is_one_line(data):
    code, out, _ = data("train", "train.txt", "--valid", "vali.txt", "--exportable", "--model", "m")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("ndcg@10 on vali.txt: "))
    for scaling in ("standard", "standard-query"):
        assert data("train", "train.txt", "--valid", "vali.txt", "--scale", scaling, "--model", scaling)[0] == 0
        value = json.loads(data("evaluate", scaling, "vali.txt", "--json")[1])["metrics"]["ndcg@10"]["mean"]
        assert f"{value:.4f} with {scaling}" in line
    assert load("m").to_bytes() == load("standard").to_bytes()
    for to in TARGETS:
        assert data("export", "m", "--to", to, "-o", "file")[0] == 0


def test_the_default_model_says_that_no_engine_has_its_scaling_and_what_to_do(data):
    code, out, _ = data("train", "train.txt", "--algo", "slam", "--model", "m")
    assert code == 0
    assert "none has this scaling: see --exportable" in out
    assert json.loads(data("train", "train.txt", "--model", "m", "--json")[1])["exports"] == []
    code, _, err = data("export", "m", "--to", "solr")
    assert code == 1
    command = err.split("`")[1].replace("DATA", "train.txt").replace("FILE", "m").split()
    assert data(*command[1:])[0] == 0
    assert data("export", "m", "--to", "solr")[0] == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--map", "bins:4"),
        ("--scale", "standard-query"),
        ("--algo", "kernel"),
        ("--from", "m"),
        ("--set", "combine=borda", "--algo", "committee"),
    ],
)
def test_what_no_engine_computes_is_refused_before_training(data, options):
    Path("m").write_text("")
    code, _, err = data("train", "train.txt", "--exportable", *options, "--model", "n")
    assert (code, "--exportable" in err) == (2, True)
    assert not Path("n").exists()


def test_there_is_one_list_of_targets():
    options = {option.name: option for option in export.params}
    assert list(options["to"].type.choices) == list(TARGETS)
