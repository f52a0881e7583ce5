import numpy as np
import pytest

import ranktron
from ranktron.data.io import write_qrels, write_run
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.metrics import evaluate

TREC = {
    "ndcg:trec": "ndcg",
    "ndcg@5:trec": "ndcg_cut_5",
    "map:trec": "map",
    "mrr:trec": "recip_rank",
    "p@5:trec": "P_5",
    "recall@5:trec": "recall_5",
    "rprec:trec": "Rprec",
    "bpref:trec": "bpref",
}


def made_up(seed, queries=40):
    """A run and judgments that share some queries and some documents, with ties, negative grades and no answers."""
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for q in range(queries):
        documents = [f"d{i}" for i in range(int(rng.integers(1, 25)))]
        returned = [d for d in documents if rng.random() < 0.6]
        judged = [d for d in documents if rng.random() < 0.6]
        if judged and rng.random() < 0.95:
            qrels[f"q{q}"] = {d: int(rng.integers(-1, 4)) for d in judged}
        if returned and rng.random() < 0.9:
            run[f"q{q}"] = {d: float(rng.integers(0, 8)) / 4 for d in returned}
    return run, qrels


@pytest.mark.parametrize("seed", range(5))
def test_runs_are_measured_as_trec_eval_measures_them(seed):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run, qrels = made_up(seed)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg", "ndcg_cut.5", "map", "recip_rank", "P.5", "recall.5",
                                                    "Rprec", "bpref"}).evaluate(run)  # fmt: skip
    ours = evaluate(qrels, run, list(TREC))
    assert ours.qids.tolist() == list(qrels)
    assert set(qrels) - set(run)
    assert set(run) - set(qrels)
    for metric, measure in TREC.items():
        expected = [theirs[qid][measure] if qid in theirs else 0.0 for qid in qrels]
        assert ours.per_query[metric].tolist() == pytest.approx(expected, abs=1e-12), metric
        assert ours.means[metric] == pytest.approx(np.mean(expected))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # its compiler's, not ours
@pytest.mark.parametrize("seed", range(3))
def test_objects_of_ranx_have_the_numbers_of_ranx(seed):
    ranx = pytest.importorskip("ranx")
    run, qrels = made_up(seed)
    rng = np.random.default_rng(seed)
    run = {
        q: {d: float(s) for d, s in zip(found, rng.permutation(len(found)), strict=True)} for q, found in run.items()
    }
    qrels = {q: {d: max(g, 0) for d, g in grades.items()} for q, grades in qrels.items()}
    qrels = {q: grades for q, grades in qrels.items() if any(grades.values())}
    judged, made = ranx.Qrels(qrels), ranx.Run(run)
    names = {"ndcg@5:trec": "ndcg@5", "ndcg@5": "ndcg_burges@5", "map": "map", "mrr": "mrr", "p@5": "precision@5",
             "recall@5": "recall@5"}  # fmt: skip
    theirs = ranx.evaluate(judged, made, list(names.values()), make_comparable=True)
    ours = evaluate(judged, made, list(names)).means
    for our_name, their_name in names.items():
        assert ours[our_name] == pytest.approx(theirs[their_name], abs=1e-12), our_name


def test_what_was_missed_by_hand():
    run, qrels = {"1": {"a": 3.0, "x": 2.0, "b": 1.0}}, {"1": {"a": 0, "b": 2, "c": 1, "d": 0}}
    values = evaluate(qrels, run, ["ndcg:trec", "map", "mrr", "recall@3", "rprec", "inversions", "dcg:trec"]).means
    assert values["dcg:trec"] == pytest.approx(2 / np.log2(4))
    assert values["ndcg:trec"] == pytest.approx((2 / np.log2(4)) / (2 + 1 / np.log2(3)))
    assert values["map"] == pytest.approx((1 / 3) / 2)
    assert values["mrr"] == pytest.approx(1 / 3)
    assert values["recall@3"] == 0.5
    assert values["rprec"] == 0.0
    # a, x, b, then d and c, which were not returned: (a, b), (x, b), (a, c), (x, c), (d, c) are wrong
    assert values["inversions"] == 5


def test_a_complete_run_has_the_values_of_its_lists():
    rng = np.random.default_rng(0)
    labels, scores, qid = rng.integers(0, 4, 200), rng.integers(0, 20, 200) / 7, np.arange(200) // 10
    docids = [f"d{i:03}" for i in range(200)]
    rounds = Rounds.from_arrays(np.zeros((200, 1)), labels, qid, docids=docids)
    run, qrels = {}, {}
    for q, d, s, g in zip(qid, docids, scores, labels, strict=True):
        run.setdefault(q, {})[d] = s
        qrels.setdefault(q, {})[d] = g
    names = [f"{name}{cut}{convention}" for name, cut in (("ndcg", "@5"), ("map", ""), ("p", "@5"), ("recall", "@5"),
             ("rprec", ""), ("bpref", ""), ("mrr", ""), ("tau", ""), ("inversions", ""), ("rankeff", ""), ("err", "@5"),
             ("dcg", "")) for convention in ("", ":trec", ":letor")
             if name != "err" or convention]  # fmt: skip
    lists, judged = evaluate(rounds, scores, names), evaluate(qrels, run, names)
    for name in lists.per_query:
        assert judged.per_query[name].tolist() == pytest.approx(lists.per_query[name].tolist()), name


def test_files_and_frames(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    run, qrels = made_up(7)
    write_run(run, tmp_path / "run")
    write_qrels(qrels, tmp_path / "qrels")
    expected = evaluate(qrels, run, "ndcg@10").means
    assert ranktron.evaluate(str(tmp_path / "qrels"), tmp_path / "run", "ndcg@10").means == expected
    rows = [(q, d, s) for q, documents in run.items() for d, s in documents.items()]
    grades = [(q, d, g) for q, documents in qrels.items() for d, g in documents.items()]
    for query, doc, grade in (
        ("query_id", "doc_id", "relevance"),
        ("q_id", "doc_id", "score"),
        ("qid", "docno", "label"),
    ):
        scored = pandas.DataFrame(rows, columns=[query, doc, "score"])
        judged = pandas.DataFrame(grades, columns=[query, doc, grade])
        for make in (pandas.DataFrame, polars.from_pandas, arrow.Table.from_pandas):
            assert evaluate(make(judged), make(scored), "ndcg@10").means == expected


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        ({"1": {"a": 1.0}}, {"2": {"a": 1}}, "no query of the run is judged: it has '1', the judgments have '2'"),
        ({"1": {"a": 1.0}}, {}, "there is no query in the judgments"),
        ({"1": {"a": float("nan")}}, {"1": {"a": 1}}, "expected a number for document 'a' of query '1' of the run"),
        ({"1": {"a": 1.0}}, {"1": {"a": "high"}}, "of the qrels, found 'high'"),
        ({"1": [1.0]}, {"1": {"a": 1}}, "expected {document: number} for query '1' of the run"),
        (7, {"1": {"a": 1}}, "expected a run as a path, a dict"),
        ([1.0], {"1": {"a": 1}}, "expected a run as a path, a dict .*, found a list"),
        ({"1": {"a": 1.0}}, [1], "there are no query ids"),
        ({"1": {"a": 1.0}}, 1, "expected a qrels as a path"),
    ],
)
def test_what_cannot_be_measured(run, qrels, message):
    with pytest.raises(DataError, match=message):
        evaluate(qrels, run, "ndcg")


def test_frames_that_lack_a_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"query_id": ["1"], "doc_id": ["a"], "relevance": [1]})
    with pytest.raises(DataError, match="found no 'score' among the columns query_id, doc_id, relevance"):
        evaluate(frame, frame, "ndcg")
    with pytest.raises(DataError, match="found no 'doc_id' or the like"):
        evaluate(frame.drop(columns="doc_id"), {"1": {"a": 1}}, "ndcg")
    twice = pandas.DataFrame({"query_id": ["1", "1"], "doc_id": ["a", "a"], "relevance": [1, 1]})
    with pytest.raises(DataError, match="document 'a' stands twice"):
        evaluate(twice, {"1": {"a": 1}}, "ndcg")
