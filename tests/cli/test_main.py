from pathlib import Path


def test_warnings_are_one_line_each_on_standard_error(run):
    Path("alone.txt").write_text("".join(f"{i % 3} qid:{i} 1:{i % 5} 2:{i % 7}\n" for i in range(1, 30)))
    said = "ranktron: warning: nothing can be learnt from 29 of 29 queries: 29 have a single document\n"
    code, out, err = run("train", "alone.txt", "--model", "m", "--json")
    assert (code, err) == (0, said)
    assert out.startswith("{")
    code, _, err = run("sweep", "alone.txt", "--set", "eta=0.1,1")
    assert (code, err) == (0, said)
    code, _, err = run("evaluate", "m", "alone.txt")
    wanted = "there is nothing to rank, and so nothing to measure, in 29 of 29 queries: 29 have a single document"
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
