import pytest

import ranktron
from ranktron.data.io import read_judgments
from ranktron.errors import DataError

GRADES = {"q1": {"a": 2.0, "b": 0.0}, "q2": {"a": 1.0}}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("j.txt", "2 qid:q1 # a\n0 qid:q1 # b some title\n\n# a comment\n1 qid:q2 #docid = a inc = 1\n"),
        ("j.txt", "2 qid:q1 1:0.5 2:3 # a\n0 qid:q1 1:1 #b\n1 qid:q2\t#\ta\n"),
        ("qrels", "q1 0 a 2\nq1 0 b 0\nq2 0 a 1\n"),
        ("j.csv", "query_id,doc_id,grade\nq1,a,2\nq1,b,0\nq2,a,1\n"),
        ("j.jsonl", '{"qid": "q1", "docid": "a", "label": 2}\n{"qid": "q1", "docid": "b", "label": 0}\n'
         '{"qid": "q2", "docid": "a", "label": 1}\n'),
    ],
)  # fmt: skip
def test_judgments_in_their_usual_forms(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_judgments(tmp_path / name).grades == GRADES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("2 qid:1 # a\n1 qid:1\n", "line 2: expected 'grade qid:QUERY # document', found '1 qid:1'"),
        ("2 qid:1 # a\n1 qid:1 # a\n", "line 2: document 'a' is judged twice for query '1'"),
        ("# nothing\n", "there is no judgment in it"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, content, message):
    (tmp_path / "j.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        read_judgments(tmp_path / "j.txt")


def test_a_table_without_labels_takes_them_from_judgments(tmp_path):
    (tmp_path / "a.csv").write_text("qid,docid,price\nq1,b,1\nq2,a,2\nq1,a,3\n")
    (tmp_path / "qrels").write_text("q1 0 a 2\nq1 0 b 0\nq2 0 a 1\n")
    rounds = ranktron.read(tmp_path / "a.csv", judgments=tmp_path / "qrels")
    assert (rounds.labels.tolist(), rounds.X[:, 0].tolist()) == ([0, 2, 1], [1, 3, 2])
    (tmp_path / "other").write_text("x 0 y 2\n")
    with pytest.raises(DataError, match="none of its documents is judged"):
        ranktron.read(tmp_path / "a.csv", judgments=tmp_path / "other")
    (tmp_path / "b.csv").write_text("qid,price\nq1,1\n")
    with pytest.raises(DataError, match="these have none: name them"):
        ranktron.read(tmp_path / "b.csv", judgments=tmp_path / "qrels")
