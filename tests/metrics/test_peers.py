"""Agreement with other programs, each under its own convention, query by query where the program says so much."""

import warnings

import numpy as np
import pytest

from ranktron.metrics import evaluate

CLOSE = {"rtol": 0.0, "atol": 1e-6}


def as_dictionaries(scores, rounds):
    """Qrels and run as the TREC tools take them."""
    qrels, run = {}, {}
    for q, (a, b) in enumerate(zip(rounds.offsets[:-1], rounds.offsets[1:], strict=True)):
        ids = rounds.docids[a:b].tolist()
        qrels[f"q{q}"] = dict(zip(ids, rounds.labels[a:b].astype(int).tolist(), strict=True))
        run[f"q{q}"] = dict(zip(ids, scores[a:b].tolist(), strict=True))
    return qrels, run


@pytest.mark.parametrize("lists", ["tied_lists", "distinct_lists", "binary_lists"])
def test_trec_eval(lists, request):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    scores, rounds = request.getfixturevalue(lists)
    qrels, run = as_dictionaries(scores, rounds)
    theirs = {
        "ndcg:trec": "ndcg",
        "ndcg@3:trec": "ndcg_cut_3",
        "ndcg@10:trec": "ndcg_cut_10",
        "map:trec": "map",
        "mrr:trec": "recip_rank",
        "p@5:trec": "P_5",
        "p@10:trec": "P_10",
        "recall@5:trec": "recall_5",
        "rprec:trec": "Rprec",
        "bpref:trec": "bpref",
    }
    asked = {"ndcg", "ndcg_cut.3,10", "map", "recip_rank", "P.5,10", "recall.5", "Rprec", "bpref"}
    results = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    ours = evaluate(rounds, scores, list(theirs))
    assert ours.empty_queries > 0
    for name, measure in theirs.items():
        expected = [results[f"q{q}"][measure] for q in range(len(rounds))]
        np.testing.assert_allclose(ours.per_query[name], expected, **CLOSE, err_msg=name)


def lightgbm_means(scores, rounds, depths):
    """LightGBM's own C++ metrics of given scores: a booster that has not been trained has the initial scores."""
    lightgbm = pytest.importorskip("lightgbm")
    parameters = {"objective": "none", "metric": ["ndcg", "map"], "eval_at": depths, "verbosity": -1}
    data = lightgbm.Dataset(
        np.arange(len(scores), dtype=float)[:, None],
        rounds.labels,
        group=np.diff(rounds.offsets),
        init_score=scores,
        params={"verbosity": -1, "min_data_in_bin": 1},
        free_raw_data=False,
    )
    return {name: value for _, name, value, _ in lightgbm.Booster(parameters, data).eval_train()}


@pytest.mark.parametrize("lists", ["tied_lists", "distinct_lists", "binary_lists"])
def test_lightgbm(lists, request):
    scores, rounds = request.getfixturevalue(lists)
    whole = 1000
    theirs = lightgbm_means(scores, rounds, [3, 10, whole])
    ours = evaluate(rounds, scores, ["ndcg@3:lightgbm", "ndcg@10:lightgbm", "ndcg:lightgbm", "map:lightgbm"])
    expected = [theirs["ndcg@3"], theirs["ndcg@10"], theirs[f"ndcg@{whole}"], theirs[f"map@{whole}"]]
    np.testing.assert_allclose(list(ours.means.values()), expected, **CLOSE)


def test_lightgbm_list_by_list(tied_lists):
    scores, rounds = tied_lists
    ours = evaluate(rounds, scores, ["ndcg@3:lightgbm", "map:lightgbm"])
    for q in range(12):
        theirs = lightgbm_means(scores[rounds.offsets[q] : rounds.offsets[q + 1]], rounds[q : q + 1], [3, 1000])
        assert ours.per_query["ndcg@3:lightgbm"][q] == pytest.approx(theirs["ndcg@3"], abs=1e-6)
        assert ours.per_query["map:lightgbm"][q] == pytest.approx(theirs["map@1000"], abs=1e-6)


def xgboost_mean(scores, labels, sizes, measure):
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(np.zeros((len(scores), 1)), label=labels)
    data.set_group(sizes)
    data.set_base_margin(scores)
    untrained = {"objective": "rank:pairwise", "eval_metric": measure, "base_score": 0.0}
    return float(xgboost.train(untrained, data, num_boost_round=0).eval(data).split(":")[-1])


@pytest.mark.parametrize(
    ("ours", "theirs", "lists"),
    [
        ("ndcg@3:xgboost", "ndcg@3", "tied_lists"),
        ("ndcg@10:xgboost", "ndcg@10", "tied_lists"),
        ("ndcg:xgboost", "ndcg", "distinct_lists"),
        ("map:xgboost", "map", "binary_lists"),
        ("p@5:xgboost", "pre@5", "binary_lists"),
    ],
)
def test_xgboost(ours, theirs, lists, request):
    scores, rounds = request.getfixturevalue(lists)
    values = evaluate(rounds, scores, ours)
    mean = xgboost_mean(scores, rounds.labels, np.diff(rounds.offsets), theirs)
    assert next(iter(values.means.values())) == pytest.approx(mean, abs=1e-6)
    for q in range(12):
        a, b = rounds.offsets[q], rounds.offsets[q + 1]
        single = xgboost_mean(scores[a:b], rounds.labels[a:b], [b - a], theirs)
        assert next(iter(values.per_query.values()))[q] == pytest.approx(single, abs=1e-6)


def test_scikit_learn(lists_of_two_or_more):
    from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

    scores, rounds = lists_of_two_or_more
    names = ["ndcg:sklearn", "ndcg@5:sklearn", "dcg@5:sklearn", "map:sklearn", "auc:sklearn"]
    ours = evaluate(rounds, scores, names)
    compared = 0
    for q, (a, b) in enumerate(zip(rounds.offsets[:-1], rounds.offsets[1:], strict=True)):
        labels, given = rounds.labels[a:b], scores[a:b]
        relevant = labels > 0
        expected = [
            ndcg_score([labels], [given]),
            ndcg_score([labels], [given], k=5),
            dcg_score([labels], [given], k=5),
            # Without a relevant document scikit-learn warns and answers 0; with one class only its AUC is undefined.
            average_precision_score(relevant, given) if relevant.any() else 0.0,
            roc_auc_score(relevant, given) if 0 < relevant.sum() < len(labels) else float(relevant.any()),
        ]
        compared += 0 < relevant.sum() < len(labels)
        np.testing.assert_allclose([ours.per_query[name][q] for name in names], expected, **CLOSE)
    assert compared > 30


@pytest.mark.slow
def test_ranx(distinct_lists):
    scores, rounds = distinct_lists
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its compiler's, not ours
        ranx = pytest.importorskip("ranx")
        qrels, run = as_dictionaries(scores, rounds)
        # Queries without relevant documents: ranx divides by zero in some measures; trec_eval, its model, has 0.
        full = [q for q in qrels if any(qrels[q].values())]
        theirs = {
            "ndcg@10:trec": "ndcg@10",
            "ndcg@10:ranklib": "ndcg_burges@10",
            "map:trec": "map",
            "mrr:trec": "mrr",
            "p@5:trec": "precision@5",
            "recall@5:trec": "recall@5",
            "rprec:trec": "r-precision",
            "bpref:trec": "bpref",
        }
        answer = ranx.evaluate(
            ranx.Qrels({q: qrels[q] for q in full}),
            ranx.Run({q: run[q] for q in full}),
            list(theirs.values()),
            return_mean=False,
        )
    kept = [int(q[1:]) for q in sorted(full)]
    ours = evaluate(rounds, scores, list(theirs))
    # Where every document is relevant ranx's bpref is 0/0; trec_eval has 1, and so have we.
    all_relevant = np.array([min(qrels[q].values()) > 0 for q in sorted(full)])
    assert np.isnan(answer["bpref"][all_relevant]).all()
    answer["bpref"][all_relevant] = 1.0
    for name, measure in theirs.items():
        np.testing.assert_allclose(ours.per_query[name][kept], answer[measure], **CLOSE, err_msg=name)
