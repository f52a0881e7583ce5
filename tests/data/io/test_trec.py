import pytest

from ranktron.data import io
from ranktron.errors import DataError


def test_round_trip(tmp_path):
    qrels = {"q1": {"d1": 2, "d2": 0, "d3": -2}, "q2": {"d1": 1}}
    run = {"q1": {"d1": 0.1, "d2": 1 / 3, "d9": -4.5}, "q2": {"d1": 1e-30}}
    for ending in ("", ".gz"):
        io.write_qrels(qrels, tmp_path / f"qrels{ending}")
        io.write_run(run, tmp_path / f"run{ending}")
        assert io.read_qrels(tmp_path / f"qrels{ending}") == qrels
        assert io.read_run(tmp_path / f"run{ending}") == run


def test_a_run_is_written_best_first_and_ties_as_trec_orders_them(tmp_path):
    io.write_run({"q": {"a": 1.0, "c": 2.0, "b": 1.0}}, tmp_path / "run", tag="me")
    lines = (tmp_path / "run").read_text().splitlines()
    assert lines == ["q Q0 c 1 2.0 me", "q Q0 b 2 1.0 me", "q Q0 a 3 1.0 me"]


def test_tabs_blank_lines_and_carriage_returns(tmp_path):
    (tmp_path / "qrels").write_bytes(b"1\t0\tdoc\t1\r\n\r\n1 0 other 0")
    assert io.read_qrels(tmp_path / "qrels") == {"1": {"doc": 1, "other": 0}}


@pytest.mark.parametrize(
    ("how", "content", "message"),
    [
        ("qrels", b"1 0 d\n", "line 1: expected 'query 0 document grade', found 3 words"),
        ("qrels", b"1 0 d 1\n1 0 e x\n", "line 2: expected a whole number as the grade, found 'x'"),
        ("qrels", b"1 0 d 1\n1 0 d 0\n", "line 2: document 'd' is judged twice for query '1'"),
        ("qrels", b"", "the file is empty"),
        ("run", b"1 Q0 d 1 x tag\n", "line 1: expected a number as the score, found 'x'"),
        ("run", b"1 Q0 d 1 nan tag\n", "line 1: expected a finite score, found 'nan'"),
        ("run", b"1 Q0 d 1 0.5 t\n1 Q0 d 2 0.4 t\n", "line 2: document 'd' is ranked twice for query '1'"),
        ("run", b"1 Q0 d 1 0.5\n", "expected 'query Q0 document rank score tag', found 5 words"),
    ],
)
def test_what_cannot_be_read(tmp_path, how, content, message):
    (tmp_path / how).write_bytes(content)
    with pytest.raises(DataError, match=message):
        getattr(io, f"read_{how}")(tmp_path / how)


def test_blanks_in_ids_are_written_as_percent_20(tmp_path):
    path = tmp_path / "run"
    io.write_run({"red shoes": {"the\tfirst one": 1.0, "50%": 2.0}}, path, tag="my run")
    assert path.read_text() == "red%20shoes Q0 50% 1 2.0 my%20run\nred%20shoes Q0 the%09first%20one 2 1.0 my%20run\n"
    assert io.read_run(path) == {"red%20shoes": {"50%": 2.0, "the%09first%20one": 1.0}}
    io.write_qrels({"red shoes": {"a b": 1}}, path)
    assert io.read_qrels(path) == {"red%20shoes": {"a%20b": 1}}
    for write in (io.write_run, io.write_qrels):
        with pytest.raises(DataError, match="an empty id cannot be written"):
            write({"": {"d": 1}}, path)
        with pytest.raises(DataError, match="the ids 'a b' and 'a%20b' are both 'a%20b' in a TREC file"):
            write({"q": {"a b": 1, "a%20b": 2}}, path)
