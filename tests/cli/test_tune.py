import json

import pytest

from ranktron import load


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
    for words in ("The best of 20 settings", "95 % interval", "on 6 queries that chose nothing"):
        assert words in out


def test_bad_options_are_faults_of_the_command_line(lists):
    assert lists("tune", "lists.txt", "--minutes", 0, "--model", "m")[0] == 2
    assert lists("tune", "lists.txt", "--metric", "best", "--model", "m")[0] == 2
    code, _, said = lists("tune", "lists.txt", "--algo", "trees", "--model", "m")
    assert code == 1
    assert "tuning chooses among" in said
    assert lists("tune", "lists.txt", "--model", "lists.txt")[0] == 2
