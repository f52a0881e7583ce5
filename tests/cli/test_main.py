import subprocess
import sys
from pathlib import Path


def test_warnings_are_one_line_each_on_standard_error(run):
    Path("alone.txt").write_text("".join(f"{i % 3} qid:{min(i, 28)} 1:{i % 5} 2:{i % 7}\n" for i in range(1, 30)))
    said = "ranktron: warning: nothing can be learnt from 27 of 28 queries: 27 have a single document\n"
    code, out, err = run("train", "alone.txt", "--model", "m", "--json")
    assert (code, err) == (0, said)
    assert out.startswith("{")
    code, _, err = run("sweep", "alone.txt", "--set", "eta=0.1,1")
    assert (code, err) == (0, said)
    code, _, err = run("evaluate", "m", "alone.txt")
    wanted = "there is nothing to rank, and so nothing to measure, in 27 of 28 queries: 27 have a single document"
    assert (code, err) == (0, f"ranktron: warning: {wanted}\n")


def test_cross_validation_warns_of_each_fold_once(run):
    Path("folds").mkdir()
    for part in ("train", "vali", "test"):
        Path(f"folds/{part}.txt").write_text("".join(f"{i % 2} qid:{i // 2} 1:{i}\n" for i in range(20)))
    Path("folds/train.txt").write_text("".join(f"1 qid:{i // 2} 1:{i}\n" for i in range(20)))
    code, _, err = run("cv", "folds", "--algo", "hinge", "--seeds", "3")
    said = "nothing can be learnt from 10 of 10 queries: 10 have the same label everywhere"
    assert (code, err) == (0, f"ranktron: warning: {said}\n")


def test_ids_that_come_back_are_named(run):
    rows = "".join(f"{i % 2} qid:{i // 4} 1:{i}\n" for i in range(40))
    Path("twice.txt").write_text(rows + rows)
    code, _, err = run("train", "twice.txt", "--model", "m")
    assert code == 0
    assert err.startswith("ranktron: warning: 10 of 10 query ids come back after other queries, first")


def test_a_column_that_equals_the_labels_is_warned_of_wherever_it_is_learnt_from(run):
    rows = [f"{i // 4},{i % 3 / 10},{i % 3 / 10},{i % 7}" for i in range(40)]
    Path("leak.csv").write_text("\n".join(["qid,label,signal,price", *rows]))
    what = "the feature 'signal' equals the labels in all 40 rows: drop it, the model would learn nothing else"
    said = f"ranktron: warning: {what}\n"
    columns = "leak.csv: label 'label', query 'qid', document none, {} features\n"
    assert run("train", "leak.csv", "--model", "m")[2] == columns.format(2) + said
    assert said in run("tune", "leak.csv", "--algo", "hinge", "--model", "m")[2]
    assert said in run("cv", "leak.csv", "--folds", 5)[2]
    assert run("train", "leak.csv", "--drop", "signal", "--model", "m")[2] == columns.replace("s\n", "\n").format(1)
    assert run("train", "leak.csv", "--features", "signal,price", "--model", "m")[2] == columns.format(2)
    Path("leak.txt").write_text("".join(f"{i % 3} qid:{i // 4} 1:{i % 7} 2:{i % 3}\n" for i in range(40)))
    assert "the feature 2 equals the labels in all 40 rows" in run("train", "leak.txt", "--model", "m")[2]


def test_a_command_that_does_not_exist_leads_to_the_one_that_was_meant(run):
    every = "`ranktron --help` lists all"
    for given, meant in {"trian": "did you mean train? ", "predict": "did you mean rank? ", "xyz": ""}.items():
        assert run(given, "x.txt") == (2, "", f"ranktron: there is no command {given!r}: {meant}{every}\n")
    assert run("--nonsense")[0] == 2


def test_a_single_query_has_no_interval(run):
    assert run("simulate", "separable", "one.txt", "--queries", 1)[0] == 0
    assert run("train", "one.txt", "--model", "m")[0] == 0
    assert "1 query: no interval" in run("evaluate", "m", "one.txt")[1]


def test_a_command_seldom_looks_for_garbage_and_not_at_its_end():
    program = """
import atexit, gc
atexit.register(lambda: print(gc.get_threshold()[0], gc.get_freeze_count() > 1000))
from ranktron.cli import main
print(gc.get_threshold()[0], gc.get_freeze_count())
main(["--version"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    before, *_, after = done.stdout.splitlines()
    assert (int(before.split()[0]) < 10_000, before.split()[1], after) == (True, "0", "10000 True")
