"""The running scaling: its estimate, what it does to the weights, and going on from a file."""

import numpy as np
import pytest

import ranktron
from ranktron import DataError
from ranktron.data.rounds import Rounds
from ranktron.data.scaling import Running, fit_scaler, scaler_from_dict, scaler_to_dict
from ranktron.kernels.csr_rows import Sparse
from ranktron.training.fit import play_rescaled
from ranktron.training.model import Model

LEARNERS = [ranktron.HingePerceptron, ranktron.SLAMPerceptron, ranktron.MinimaxPerceptron, ranktron.OnlineListNet]


def stream(count=40, seed=0, drift=True):
    """Lists whose features grow: the first of them say little about the scale of the last."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, count)
    growth = np.repeat(np.linspace(1.0, 20.0, count) if drift else np.ones(count), sizes)[:, None]
    X = (rng.normal(size=(sizes.sum(), 4)) * growth * [1.0, 10.0, 100.0, 0.0] + [5.0, 0.0, -3.0, 2.0]).astype(
        np.float32
    )
    y = np.floor(np.clip(X[:, 0] / growth[:, 0] - X[:, 1] / 10.0 / growth[:, 0] + 1.0, 0.0, 3.0))
    return X, y, np.repeat(np.arange(count), sizes)


def test_the_estimate_is_that_of_all_rows_so_far():
    X, y, qid = stream()
    for kind in (lambda rows: rows, Sparse.from_matrix):
        scaler = Running.blank(4, shifts=True)
        for q in range(40):
            scaler = scaler.after(kind(X[qid == q]))
            seen = X[qid <= q].astype(float)
            np.testing.assert_allclose(scaler.mean, seen.mean(axis=0), rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(scaler.divisor[:3], seen.std(axis=0)[:3], rtol=1e-8)
            assert scaler.divisor[3] == 1.0  # it never varied
    whole = fit_scaler("running-standard", Rounds.from_arrays(X, y, qid))
    plain = fit_scaler("standard", Rounds.from_arrays(X, y, qid))
    np.testing.assert_allclose(whole.divisor, plain.divisor, rtol=1e-12)
    np.testing.assert_array_equal(whole.shift, plain.shift)


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("average", [False, True])
def test_batches_and_interruptions_make_no_difference(cls, average, tmp_path):
    X, y, qid = stream()
    whole = cls(scale="running-standard", average=average).partial_fit(X, y, qid=qid)
    parts = cls(scale="running-standard", average=average)
    for a, b in [(0, 1), (1, 17), (17, 40)]:
        chosen = (qid >= a) & (qid < b)
        parts.partial_fit(X[chosen], y[chosen], qid=qid[chosen])
    assert parts.model_.to_bytes() == whole.model_.to_bytes()

    begun = cls(scale="running-standard", average=average).partial_fit(X[qid < 17], y[qid < 17], qid=qid[qid < 17])
    begun.save(tmp_path / "m")
    model = ranktron.load(tmp_path / "m")
    learner = model.learner()
    after = play_rescaled(learner, model, model.scaler, Rounds.from_arrays(X[qid >= 17], y[qid >= 17], qid[qid >= 17]))
    assert after.after(learner).to_bytes() == whole.model_.to_bytes()


@pytest.mark.parametrize("average", [False, True])
def test_scores_do_not_jump_when_the_estimate_moves(average):
    X, y, qid = stream()
    ranker = ranktron.HingePerceptron(scale="running-standard", average=average).partial_fit(X, y, qid=qid)
    model, learner = ranker.model_, ranker.learner_
    before = model.predict(X)
    assert before.std() > 0.1
    far = model.scaler.after(100.0 * X[:8])
    factors = far.divisor / model.scaler.divisor
    assert factors[:3].min() > 1.5
    learner.rescale(factors)
    after = Model(model.kind, model.parameters, learner.state(), 4, scaler=far).predict(X)
    difference = after - before
    np.testing.assert_allclose(difference, difference[0], atol=1e-5 * np.abs(before).max())


@pytest.mark.parametrize("cls", LEARNERS)
def test_units_make_no_difference(cls):
    X, y, qid = stream()
    units = np.array([2.0**-9, 2.0**7, 4.0, 1.0], np.float32)  # powers of two: not even a rounding differs
    ours = cls(scale="running-standard").partial_fit(X, y, qid=qid)
    theirs = cls(scale="running-standard").partial_fit(X * units, y, qid=qid)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    assert np.abs(ours.coef_).max() > 0.0
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X * units))


def test_a_first_batch_that_says_little_does_no_harm():
    X, y, qid = stream(300)
    first = qid < 1
    fixed, running = (ranktron.OnlineListNet(scale=scale) for scale in ("standard", "running-standard"))
    for ranker in (fixed, running):
        ranker.partial_fit(X[first], y[first], qid=qid[first]).partial_fit(X[~first], y[~first], qid=qid[~first])
    late = qid >= 250
    spread = {name: np.std(r.model_.scaler(X[late], np.array([0, late.sum()])), axis=0)[:3].max()
              for name, r in (("fixed", fixed), ("running", running))}  # fmt: skip
    assert spread["fixed"] > 5.0
    assert spread["running"] < 2.5


def test_fit_starts_from_all_rows_and_partial_fit_goes_on():
    X, y, qid = stream()
    ranker = ranktron.HingePerceptron(scale="running-standard", random_state=0).fit(X, y, qid=qid)
    plain = ranktron.HingePerceptron(scale="standard", random_state=0).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, plain.coef_, rtol=1e-9)
    assert ranker.model_.scaler.count == len(X)
    ranker.partial_fit(X[qid < 5], y[qid < 5], qid=qid[qid < 5])
    assert ranker.model_.scaler.count == len(X) + (qid < 5).sum()
    assert ranker.model_.export("json").check.swapped == 0


def test_a_query_that_is_refused_changes_nothing():
    X, y, qid = stream()
    ranker = ranktron.HingePerceptron(scale="running-standard").partial_fit(X[qid < 9], y[qid < 9], qid=qid[qid < 9])
    before = ranker.model_.to_bytes()
    heard = ranker.learner_.simulated_feedback
    ranker.learner_.simulated_feedback = lambda round, ranking: heard(round, ranking) if len(round.X) > 2 else None
    with pytest.raises(DataError, match="answers with Feedback"):
        ranker.partial_fit(X[qid > 8], y[qid > 8], qid=qid[qid > 8])
    assert ranker.model_.to_bytes() == before


def test_learners_that_keep_more_than_weights_refuse():
    X, y, qid = stream()
    for cls in (ranktron.TopKRanker, ranktron.PairwisePerceptron, ranktron.KernelPerceptron, ranktron.RankSVM):
        with pytest.raises(DataError, match="running-standard rescales the weights of a linear learner"):
            cls(scale="running-standard").fit(X, y, qid=qid)
    with pytest.raises(DataError, match="a feature map is fitted to one scale"):
        ranktron.HingePerceptron(scale="running-standard", map="bins:4").partial_fit(X, y, qid=qid)


def test_a_forged_estimate_is_refused():
    X, y, qid = stream()
    kept = scaler_to_dict(fit_scaler("running-standard", Rounds.from_arrays(X, y, qid)))
    assert scaler_from_dict(kept, 4).count == len(X)
    for key, value in [("count", 0.0), ("count", np.nan), ("divisor", np.zeros(4)), ("squares", -np.ones(4)),
                       ("mean", np.zeros(3)), ("low", np.full(4, np.nan))]:  # fmt: skip
        with pytest.raises(DataError, match="running estimate of the scaling of 4 features"):
            scaler_from_dict({**kept, key: value}, 4)
