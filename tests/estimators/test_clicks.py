import numpy as np
import pandas
import pytest
from scipy.optimize import minimize

from ranktron import DataError, HingePerceptron, Impressions, RankingWarning, RankMM, RankSVM, load
from ranktron.learners.clicks import harvested_examination, power_law

THETA = power_law(1.0, 4).values


def log(seed, sessions=60, m=4, d=3):
    """Sessions whose lists were sorted by a feature that says nothing, and clicked by position-based users."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sessions, m, d)).astype(np.float32)
    relevance = 1.0 / (1.0 + np.exp(-2.0 * (X @ np.array([0.0, 1.0, -0.5])[:d])))
    place = np.argsort(np.argsort(-(X[..., 0] + 0.3 * rng.normal(size=(sessions, m))), axis=1), axis=1) + 1
    clicks = (rng.random((sessions, m)) < relevance / place).astype(float)
    return X.reshape(-1, d), clicks.ravel(), np.repeat(np.arange(sessions), m), place.ravel()


def defining_problem(X, clicks, qid, place, C, power):
    """½ |w|² + C / Σ u Σ_clicks u / (m − 1) Σ_{j ≠ i} max(0, 1 − w (x_i − x_j))^power, pair by pair (slow)."""
    u = clicks / THETA[place - 1]
    terms = [
        (u[i] / (np.count_nonzero(qid == qid[i]) - 1), X[i] - X[j])
        for i in np.flatnonzero(clicks)
        for j in np.flatnonzero(qid == qid[i])
        if i != j
    ]
    weights, apart = np.array([t[0] for t in terms]) / u.sum(), np.array([t[1] for t in terms], float)
    return lambda w: 0.5 * w @ w + C * weights @ np.maximum(0.0, 1.0 - apart @ w) ** power


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_rank_svm_solves_the_propensity_weighted_problem(C):
    X, clicks, qid, place = log(0)
    objective = defining_problem(X, clicks, qid, place, C, 2)
    slow = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    given = {"qid": qid, "position": place}
    ranker = RankSVM(C=C, tol=1e-9, scale=None).fit(X, clicks, **given, examination=THETA)
    assert ranker.coef_ == pytest.approx(slow, abs=1e-4)
    same = RankSVM(C=C, tol=1e-9, scale=None).fit(X, clicks, **given, propensity=THETA[place - 1])
    assert np.array_equal(same.coef_, ranker.coef_)
    naive = RankSVM(C=C, tol=1e-9, scale=None).fit(X, clicks, **given, examination=np.ones(4))
    assert np.abs(naive.coef_ - slow).max() > 0.05


def test_rank_mm_1_and_the_plain_hinge_solve_the_same_problem():
    X, clicks, qid, place = log(1)
    objective = defining_problem(X, clicks, qid, place, 5.0, 1)
    slow = min(
        (minimize(objective, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-9}).fun)
        for start in (np.zeros(3), np.array([0.0, 1.0, -0.5]))
    )
    given = {"qid": qid, "position": place, "examination": THETA}
    for ranker in (RankMM(C=5.0, tol=1e-6, scale=None), RankSVM(C=5.0, loss="hinge", tol=1e-8, scale=None)):
        assert objective(ranker.fit(X, clicks, **given).coef_) == pytest.approx(slow, rel=1e-3)


@pytest.mark.parametrize("ranker", [RankSVM(C=10.0), RankMM(C=10.0), HingePerceptron(average=True, random_state=0)])
def test_a_feature_that_only_decided_where_documents_stood_is_not_learnt(ranker):
    X, clicks, qid, place = log(2, sessions=1500)
    with pytest.warns(RankingWarning, match="rests on a model of relevance alone"):
        ranker.fit(X, clicks, qid=qid, position=place)
    assert ranker.examination_.method == "em"
    assert ranker.examination_.values == pytest.approx(THETA, rel=0.2)
    assert abs(ranker.coef_[0] / ranker.coef_[1]) < 0.15
    ranker.fit(X, clicks, qid=qid)
    assert ranker.coef_[0] / ranker.coef_[1] > 0.5
    assert ranker.examination_ is None


@pytest.mark.parametrize("logged_by_text", [0.0, 1.0])
def test_pages_that_show_five_of_twelve_candidates_teach_what_true_relevance_on_them_teaches(logged_by_text):
    """A small version of `python -m benchmarks.click_logs truncated`."""
    apart = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 12, 3)).astype(np.float32)  # popularity, text, freshness
        query = rng.integers(60, size=2000)
        noisy = (X[..., 0] + logged_by_text * X[..., 1])[query] + 0.5 * rng.normal(size=(2000, 12))
        item = np.argsort(-noisy, axis=1)[:, :5]
        wanted = 1.0 / (1.0 + np.exp(X[..., 2] - 2.0 * X[..., 1]))[query[:, None], item]
        clicks = (rng.random(item.shape) < wanted / np.arange(1, 6)).ravel()
        rows, qid = X[query[:, None], item].reshape(-1, 3), np.repeat(np.arange(2000), 5)
        shown = {"qid": qid, "position": np.tile(np.arange(1, 6), 2000), "query": query[qid], "item": item.ravel()}
        learnt = RankSVM(tol=1e-3).fit(rows, clicks, **shown, examination=power_law(1.0, 5)).coef_
        best = RankSVM(tol=1e-3).fit(rows, wanted.ravel(), **shown, propensity=np.ones(len(qid))).coef_
        apart.append(learnt[0] / learnt[1] - best[0] / best[1])
    assert np.mean(apart) == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("ranker", [RankSVM(C=10.0), RankMM(C=10.0), HingePerceptron(average=True, random_state=0)])
def test_single_documents_with_known_propensities_teach_what_users_want(ranker):
    """One document a page, drawn in favour of popularity, which users do not want."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)).astype(np.float32)  # popularity, text
    policy = np.exp(1.5 * X[:, 0]) + 0.1
    policy /= policy.sum()
    item, place = rng.choice(40, size=6000, p=policy), rng.integers(1, 3, size=6000)
    clicks = rng.random(6000) < 1.0 / (1.0 + np.exp(-2.0 * X[item, 1])) / place
    shown = {"qid": np.arange(6000), "position": place, "exploration": policy[item]}
    ranker.fit(X[item], clicks, **shown)
    assert ranker.examination_.values == pytest.approx([1.0, 0.5], rel=0.2)
    assert abs(ranker.coef_[0] / ranker.coef_[1]) < 0.2


def test_rows_and_columns_may_come_in_any_order_and_by_name():
    X, clicks, qid, place = log(3)
    expected = RankSVM().fit(X, clicks, qid=qid, position=place, examination=THETA).coef_
    frame = (
        pandas.DataFrame(X, columns=list("abc")).assign(qid=qid, at=place, click=clicks).sample(frac=1, random_state=0)
    )
    y = frame.pop("click")
    ranker = RankSVM().fit(frame, y, position="at", examination=THETA)
    assert ranker.coef_ == pytest.approx(expected, abs=1e-5)
    assert ranker.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(DataError, match="no column 'where' to take position from"):
        RankSVM().fit(frame, y, position="where")


def test_the_columns_of_a_log_choose_the_estimator():
    X, clicks, qid, place = log(4, sessions=400)
    rng = np.random.default_rng(0)
    moved = {"query": np.zeros(len(qid), int), "item": np.concatenate([rng.permutation(4) for _ in range(400)])}
    ranker = RankSVM().fit(X, clicks, qid=qid, position=place, **moved)
    expected = harvested_examination(Impressions.from_arrays(clicks, qid, place, **moved), 0).values
    assert np.array_equal(ranker.examination_.values, expected)
    drawn = RankSVM().fit(X, clicks, qid=qid, position=place, exploration=np.full(len(qid), 0.25))
    assert drawn.examination_.method == "randomised"


@pytest.mark.filterwarnings("ignore:position bias rests")
def test_the_examination_is_part_of_the_saved_model(tmp_path):
    X, clicks, qid, place = log(5, sessions=200)
    ranker = HingePerceptron(random_state=0).fit(X, clicks, qid=qid, position=place)
    ranker.save(tmp_path / "m.model")
    loaded = load(tmp_path / "m.model").estimator()
    assert loaded.examination_.to_dict()["values"].tobytes() == ranker.examination_.values.tobytes()
    for each in (ranker, loaded):
        each.partial_fit(X[:40], clicks[:40], qid=qid[:40], position=place[:40])
    assert loaded.model_.to_bytes() == ranker.model_.to_bytes()
    plain = loaded.partial_fit(X[:40], clicks[:40], qid=qid[:40])
    assert plain.examination_.values.tobytes() == ranker.examination_.values.tobytes()


def test_a_streamed_log_plays_each_click_as_often_as_it_weighs():
    X, clicks, qid, place = log(6, sessions=30)
    curve = np.array([1.0, 0.5, 0.25, 0.125])
    ranker = HingePerceptron()
    for session in range(30):
        mine = qid == session
        if clicks[mine].any():
            ranker.partial_fit(X[mine], clicks[mine], qid=qid[mine], position=place[mine], examination=curve)
    assert ranker.learner_.rounds == (clicks / curve[place - 1]).sum()


def test_a_randomised_estimate_goes_on_learning_and_survives_a_restart_to_the_bit(tmp_path):
    X, clicks, qid, place = log(7, sessions=120)
    more = {"exploration": np.full(len(place), 1.0 / place.max())}
    whole = HingePerceptron().fit(X, clicks, qid=qid, position=place, **more)
    ranker = HingePerceptron()
    for first in range(0, 120, 20):
        mine = (qid >= first) & (qid < first + 20)
        given = {"qid": qid[mine], "position": place[mine], "exploration": more["exploration"][mine]}
        ranker.partial_fit(X[mine], clicks[mine], **given)
        ranker.save(tmp_path / "m.model")
        ranker = load(tmp_path / "m.model").estimator()
    assert ranker.examination_.sums.tobytes() == whole.examination_.sums.tobytes()
    assert ranker.examination_.values == pytest.approx(whole.examination_.values, rel=1e-14)
    assert (ranker.examination_.low[1:] < ranker.examination_.values[1:]).all()


def test_impressions_without_a_click_tell_of_examination_and_of_nothing_else():
    X, clicks, qid, place = log(8, sessions=60)
    chance = np.full(len(place), 1.0 / place.max())
    ranker = HingePerceptron().partial_fit(X, clicks, qid=qid, position=place, exploration=chance)
    before, weights = ranker.examination_.values[1], ranker.coef_.copy()
    here = (qid == qid[0]) & (place < 3)
    ranker.partial_fit(X[here], clicks[here] * 0, qid=qid[here], position=place[here], exploration=chance[here])
    assert ranker.coef_.tobytes() == weights.tobytes()
    assert ranker.examination_.sums[1, 1] == pytest.approx(61 * place.max())
    assert ranker.examination_.values[1] == pytest.approx(before)  # both positions were shown once more, unclicked


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"propensity": 0.5}, "there are no positions: pass position="),
        ({"position": 1}, "two documents stand at position 1"),
        ({"position": [1, 2, 1, 2], "propensity": [0.5, 0, 1, 1]}, "above 0 and at most 1; row 1 has 0"),
        ({"position": [1, 2, 1, 2], "examination": [1.0, 0.0]}, "position 2 has 0"),
        ({"position": [1, 2, 1, 2], "examination": "guess"}, "there is no estimator 'guess'"),
        ({"position": [1, 2, 1, 2], "examination": "harvested"}, "takes query= and item="),
        ({"position": [1, 2, 1, 2], "examination": "randomised"}, "takes exploration="),
        ({"position": [1, 2, 1, 2], "sample_weight": [1, 1, 1, 1]}, "without sample_weight"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence_and_changes_nothing(given, complaint):
    ranker = RankSVM().fit([[1.0], [2.0]], [0, 1], qid=0)
    before = ranker.model_.to_bytes()
    given = {name: np.full(4, value) if isinstance(value, int | float) else value for name, value in given.items()}
    with pytest.raises(DataError, match=complaint):
        ranker.fit([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0], qid=[0, 0, 1, 1], **given)
    assert ranker.model_.to_bytes() == before
