import json

import numpy as np
import pytest

from ranktron.data import io
from ranktron.errors import DataError, RankingWarning


def hit(docid, values, **more):
    """A search hit with a feature log, as the plugins write it; a feature that does not match has no value."""
    entries = [{"name": name} if value is None else {"name": name, "value": value} for name, value in values.items()]
    source = {"title": "Rambo", "_ltrlog": "not here"}
    return {
        "_index": "tmdb",
        "_id": docid,
        "_score": 0.0,
        "_source": source,
        "fields": {"_ltrlog": [{"log_entry1": entries}]},
        "matched_queries": ["logged_featureset"],
        **more,
    }


def answer(*hits, **more):
    return {"took": 5, "timed_out": False, "hits": {"total": {"value": len(hits)}, "hits": list(hits)}, **more}


A = hit("7555", {"title_bm25": 12.3, "body_bm25": 9.8})
B = hit("1370", {"title_bm25": None, "body_bm25": 4.5})
C = hit("1369", {"title_bm25": 1.0, "body_bm25": 2.0, "popularity": 3})
JUDGMENTS = "# qid:1: rambo\n4 qid:1 # 7555 Rambo\n0 qid:1 # 1370\tRambo III\n# qid:2: first blood\n3 qid:2 # 1369\n"


@pytest.fixture
def file(tmp_path):
    def write(content, name="log.json"):
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path / name

    return write


def check(rounds):
    assert rounds.feature_names == ("title_bm25", "body_bm25", "popularity")
    assert rounds.X.tolist() == np.array([[12.3, 9.8, 0], [0, 4.5, 0], [1, 2, 3]], np.float32).tolist()
    assert rounds.qids.tolist() == ["1", "2"]
    assert np.diff(rounds.offsets).tolist() == [2, 1]
    assert rounds.docids.tolist() == ["7555", "1370", "1369"]


def lines(*values):
    return "\n".join(map(json.dumps, values)) + "\n"


@pytest.mark.parametrize(
    "content",
    [
        lines(answer(A, B, qid=1), answer(C, qid=2)),
        [answer(A, B, qid="1"), answer(C, query_id="2")],
        {"took": 9, "responses": [answer(A, B, qid=1), answer(C, qid=2)]},
        lines({**A, "qid": 1}, {**B, "qid": 1}, {**C, "qid": 2}),
        [{**A, "query": "1"}, {**B, "query": "1"}, {**C, "query": "2"}],
        json.dumps(answer({**A, "qid": 1}, {**B, "qid": 1}, {**C, "qid": 2}), indent=2),
        lines(answer(A, B), answer(C)),  # the judgments tell the query from the document
    ],
)
def test_answers_and_hits_in_every_layout_with_judgments(file, content):
    judged = file(JUDGMENTS, "judgments.txt")
    rounds = io.read(file(content), judgments=judged)
    check(rounds)
    assert rounds.labels.tolist() == [4, 0, 3]


def test_grades_beside_the_hits(file):
    path = file(lines({**A, "qid": 1, "grade": 4}, {**B, "qid": 1, "label": 0}, {**C, "qid": 2, "relevance": 3}))
    rounds = io.read(path)
    check(rounds)
    assert rounds.labels.tolist() == [4, 0, 3]
    assert [(round.qid, round.labels.tolist()) for round in io.stream(path)] == [("1", [4, 0]), ("2", [3])]


def test_scoring_needs_no_grade(file):
    rounds = io.read_documents(file(lines(answer(A, B, qid=1), answer(C, qid=2))))
    check(rounds)
    assert np.isnan(rounds.labels).all()


def test_what_a_log_leaves_out_is_0_unless_the_caller_says_otherwise(file):
    path = file(lines(answer(A, B, qid=1, label=1)))
    judged = file(JUDGMENTS, "judgments.txt")
    with pytest.warns(RankingWarning, match="2 of 3 judgments were used"):
        assert io.read(path, judgments=judged, null="min").X[1, 0] == np.float32(12.3)
    with pytest.warns(RankingWarning):
        assert io.read(path, judgments=judged).X[1, 0] == 0


def test_documents_without_a_judgment_are_left_out_and_counted(file):
    path = file(lines(answer(A, B, hit("99", {"title_bm25": 1.0}), qid=1), answer(C, qid=2)))
    with pytest.warns(RankingWarning, match="1 of 4 documents are not judged and were left out; 3 of 3 judgments"):
        rounds = io.read(path, judgments=file(JUDGMENTS, "judgments.txt"))
    check(rounds)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lines(answer(A, B)), "entry 1, document '7555': the query id is missing; .*--judgments"),
        (lines({**A, "qid": 1}), "a document has no grade: .*--judgments"),
        (answer({"_id": "1", "_source": {}}, qid=1), "document '1': expected features in fields._ltrlog"),
        ({"took": 3, "error": {"reason": "no index"}, "status": 404, "hits_of": '"hits"'}, "answered with an error"),
        (answer(hit("1", {"a": "x"}), qid=1), "expected a number of 32 bits as the value of 'a', found 'x'"),
        (answer(hit("1", {"a": 1e39}), qid=1), "expected a number of 32 bits as the value of 'a'"),
        (answer(qid=1), "there is no hit with a feature log"),
        ('{"took": 1, "hits": {"_ltrlog"', "line 1: not JSON that can be read"),
    ],
)
def test_what_is_wrong_is_said(file, content, message):
    with pytest.raises(DataError, match=f"(?s){message}"):
        io.read(file(content), format="ltrlog")


def test_a_document_that_two_queries_share_needs_its_query(file):
    judged = file(JUDGMENTS + "1 qid:2 # 7555\n", "judgments.txt")
    with pytest.raises(DataError, match=r"document '7555': this document is judged for the queries 1, 2"):
        io.read(file(lines(answer(A, B))), judgments=judged)
