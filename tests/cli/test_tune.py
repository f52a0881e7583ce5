import json
from dataclasses import replace

import pytest

from ranktron import load, read
from ranktron.training import tune as tuning
from ranktron.training.tune import tune_rounds


@pytest.fixture
def lists(run):
    assert run("simulate", "separable", "lists.txt", "--queries", 30)[0] == 0
    return run


def test_one_command_gives_a_model_and_an_honest_number(lists):
    command = ("tune", "lists.txt", "--algo", "hinge", "--minutes", 60, "--model", "m", "--exportable")
    code, out, _ = lists(*command, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["chosen"]["learner"] == "hinge" == load("m").kind
    assert found["chosen"] == {key: found["table"][0][key] for key in found["chosen"]}
    assert found["test"]["queries"] == 6
    assert found["tried"] == len(found["table"]) == 20
    assert found["stopped"] is None
    assert json.loads(lists("evaluate", "m", "lists.txt", "--json")[1])["metrics"]["ndcg@10"]["mean"] > 0.9
    code, out, _ = lists(*command)
    assert code == 0
    for words in ("The best of 20 candidates", "95 % interval", "on 6 held-out queries"):
        assert words in out


def test_a_narrow_terminal_gets_fewer_columns_and_whole_numbers(lists, monkeypatch):
    command = ("tune", "lists.txt", "--algo", "hinge", "--minutes", 60, "--model", "m", "--exportable")
    for width, columns in {120: 8, 80: 7, 66: 6}.items():
        monkeypatch.setenv("COLUMNS", str(width))
        rows = [line.replace(" – ", "-").split() for line in lists(*command)[1].splitlines() if "eta=" in line]
        rows = [row for row in rows if row[0] == "hinge"]
        assert len(rows) == 12
        assert {len(row) for row in rows} == {columns}


def test_bad_options_are_faults_of_the_command_line(lists):
    assert lists("tune", "lists.txt", "--minutes", 0, "--model", "m")[0] == 2
    assert lists("tune", "lists.txt", "--metric", "best", "--model", "m")[0] == 2
    code, _, said = lists("tune", "lists.txt", "--algo", "trees", "--model", "m")
    assert code == 1
    assert "tuning chooses among" in said
    assert lists("tune", "lists.txt", "--model", "lists.txt")[0] == 2


def test_what_every_engine_can_compute_is_named_beside_the_best(lists, monkeypatch):
    found = tune_rounds(read("lists.txt"), learners=["hinge"], exportable=True, minutes=60.0)
    row = {**found.table[0], "folds": 3}
    table = [
        {**row, "scale": "standard-query", "mean": 0.9},
        {**row, "mean": 0.88, "folds": 1},
        {**row, "map": "bins-linear:2", "mean": 0.87},
        {**row, "parameters": {"eta": 0.3, "average": True}, "mean": 0.85},
    ]
    monkeypatch.setattr("ranktron.training.tune.tune_rounds", lambda *_, **__: replace(found, table=table))
    code, out, _ = lists("tune", "lists.txt", "--model", "m")
    assert code == 0
    assert "Search engines cannot compute it; the best candidate that they can (--exportable): hinge (eta=0.3)" in out
    assert "ndcg@10 0.8500 instead of 0.9000 on validation queries." in out
    assert json.loads(lists("tune", "lists.txt", "--model", "m", "--json")[1])["exportable"] == table[3]


def test_kernels_are_compiled_before_the_time_of_the_search(lists, monkeypatch):
    happened, compile_families = [], tuning.compile_families
    monkeypatch.setattr(tuning, "compile_families", lambda *given: happened.append(compile_families(*given)))
    monkeypatch.setattr(tuning, "tune_rounds", lambda *_, **__: happened.append("search") or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lists("tune", "lists.txt", "--algo", "hinge", "--model", "m")
    assert happened == [None, "search"]


def test_one_candidate_is_not_several(lists, monkeypatch):
    found = tune_rounds(read("lists.txt"), learners=["hinge"], exportable=True, minutes=60.0)
    monkeypatch.setattr("ranktron.training.tune.tune_rounds", lambda *_, **__: replace(found, table=found.table[:1]))
    assert "The best of 1 candidate on validation queries" in lists("tune", "lists.txt", "--model", "m")[1]
