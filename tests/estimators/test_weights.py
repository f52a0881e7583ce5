"""Sample weights: a query of weight w is the same as w queries, a document of weight w the same as w documents."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import ranktron
from ranktron import DataError
from ranktron.data.synthetic import WebSearch
from ranktron.learners.checks import same
from ranktron.learners.schedule import repetitions
from ranktron.training.algorithms import ALGORITHMS

MANY = WebSearch(features=4, documents=6).rounds(40)
# a list of one grade would leave RankBoost free in its choice of a threshold
LISTS = MANY[[q for q, each in enumerate(MANY) if len(set(each.labels)) > 1][:24]]
SIZES = np.diff(LISTS.offsets)
QID = np.repeat(np.arange(24), SIZES)
X, Y = LISTS.X.astype(float), LISTS.labels
WEIGHTS = np.random.default_rng(0).integers(0, 4, 24).astype(float)
REPEATED = LISTS[np.repeat(np.arange(24), WEIGHTS.astype(int))]
EVEN = REPEATED.X, REPEATED.labels
EACH = {"group": np.diff(REPEATED.offsets)}

RANKERS = [getattr(ranktron, each.estimator) for each in ALGORITHMS.values()]
every_ranker = pytest.mark.parametrize("cls", RANKERS, ids=lambda cls: cls.__name__)
SOLVED = [
    (ranktron.RankSVM, {"C": 3.0, "tol": 1e-9}),
    (ranktron.RankSVM, {"C": 3.0, "balance": "pair", "tol": 1e-9}),
    (ranktron.RankSVM, {"loss": "hinge"}),
    (ranktron.RankBoost, {"n_rounds": 30}),
    (ranktron.RankBoost, {"n_rounds": 30, "balance": "query"}),
    *((ranktron.RankMM, {"loss": loss, "C": 3.0, "tol": 1e-7}) for loss in ("average", "max", "max-average")),
]


@pytest.mark.parametrize(("cls", "parameters"), SOLVED)
@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_solvers_multiply_the_loss(cls, parameters, factor):
    """The loss is a mean: only the proportions of weights count."""
    weighted = cls(**parameters).fit(X, Y, qid=QID, sample_weight=factor * WEIGHTS[QID])
    repeated = cls(**parameters).fit(*EVEN, **EACH)
    assert weighted.predict(X) == pytest.approx(repeated.predict(X), rel=2e-3, abs=2e-3)
    plain = cls(**parameters).fit(X, Y, qid=QID)
    assert np.abs(plain.predict(X) - repeated.predict(X)).max() > 0.02


SOLVERS = (ranktron.RankSVM, ranktron.SmoothRank, ranktron.RankBoost, ranktron.LambdaMART, ranktron.RankMM)
PLAYED = [cls for cls in RANKERS if cls not in SOLVERS]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("cls", PLAYED, ids=lambda cls: cls.__name__)
def test_passes_play_a_query_as_often_as_it_weighs(cls, shuffle):
    # means and deviations are sums, which are added up in another order: scaled features are equal but for that
    made = {"random_state": 3, "n_epochs": 3, "shuffle": shuffle, "scale": None}
    weighted = cls(**made).fit(X, Y, qid=QID, sample_weight=WEIGHTS[QID])
    repeated = cls(**made).fit(*EVEN, **EACH)
    assert same(weighted.learner_.state(), repeated.learner_.state())
    assert weighted.learner_.rounds == 3 * WEIGHTS.sum()


@every_ranker
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_what_weighs_nothing_changes_nothing(cls, form):
    """Whole queries, and single documents."""
    weights = np.ones(len(Y))
    weights[np.isin(QID, [3, 4, 11])] = 0.0
    weights[[0, 30]] = 0.0
    left = weights > 0.0
    made = {"random_state": 1, "n_epochs": 2, "scale": "minmax"}
    weighted = cls(**made).fit(form(X), Y, qid=QID, sample_weight=weights)
    without = cls(**made).fit(form(X[left]), Y[left], qid=QID[left])
    assert weighted.model_.to_bytes() == without.model_.to_bytes()


@every_ranker
def test_weights_of_one_are_none(cls):
    one, none = (cls(random_state=1).fit(X, Y, qid=QID, sample_weight=w) for w in (np.ones(len(Y)), None))
    assert one.model_.to_bytes() == none.model_.to_bytes()


def test_fractions_are_played_by_turns():
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.05, 3.0, 200)
    played = np.array([repetitions(weights, epoch) for epoch in range(20)])
    assert np.abs(played.sum(axis=0) - 20 * weights).max() < 1.0
    chance = np.sqrt((weights % 1.0 * (1.0 - weights % 1.0)).sum())  # of as many independent turns
    assert np.abs(played.sum(axis=1) - weights.sum()).max() < 4.0 * chance
    assert (repetitions(np.arange(5.0), 7) == np.arange(5)).all()
    half = ranktron.HingePerceptron(n_epochs=10).fit(X, Y, qid=QID, sample_weight=np.full(len(Y), 0.5))
    assert abs(half.learner_.rounds - 120) <= 12


def test_query_ids_in_any_order_keep_their_weights():
    mixed = np.random.default_rng(2).permutation(len(Y))
    first = ranktron.RankSVM().fit(X, Y, qid=QID, sample_weight=1.0 + QID)
    second = ranktron.RankSVM().fit(X[mixed], Y[mixed], qid=QID[mixed], sample_weight=1.0 + QID[mixed])
    assert first.coef_ == pytest.approx(second.coef_, rel=1e-4)


def test_weights_that_mean_nothing_are_refused():
    with pytest.raises(DataError, match="passes over pairs take whole sample weights"):
        ranktron.PairwisePerceptron().fit(X, Y, qid=QID, sample_weight=0.5 + 0.0 * Y)
    with pytest.raises(DataError, match="one number per row"):
        ranktron.RankSVM().fit(X, Y, qid=QID, sample_weight=[1.0])
    with pytest.raises(DataError, match="no query is used"):
        ranktron.HingePerceptron(n_epochs=1).fit(X, Y, qid=QID, sample_weight=1e-3 + 0.0 * Y)


DOCUMENTS = np.random.default_rng(3).integers(0, 4, len(Y)).astype(float)
TIMES = np.repeat(np.arange(len(Y)), DOCUMENTS.astype(int))
AVERAGES = [(cls, made) for cls, made in SOLVED if made.get("loss") not in ("max", "max-average")]


@pytest.mark.parametrize(("cls", "parameters"), AVERAGES)
def test_a_document_of_weight_two_is_two_documents(cls, parameters):
    """Beside the others of its query, which counts as much as they do on average: Σ w²/Σ w."""
    parameters = {**parameters, "scale": None}  # which counts rows, not pairs
    weighted = cls(**parameters).fit(X, Y, qid=QID, sample_weight=DOCUMENTS)
    mean = np.bincount(QID, DOCUMENTS**2) / np.bincount(QID, DOCUMENTS)
    # a pair counts w_i w_j/mean; where every query counts the same, repeating its documents has no say in how much
    as_much = mean if weighted.get_params().get("balance", "query") == "query" else 1.0 / mean
    repeated = cls(**parameters).fit(X[TIMES], Y[TIMES], qid=QID[TIMES], sample_weight=as_much[QID[TIMES]])
    assert weighted.predict(X) == pytest.approx(repeated.predict(X), rel=2e-3, abs=2e-3)
    plain = cls(**parameters).fit(X[DOCUMENTS > 0], Y[DOCUMENTS > 0], qid=QID[DOCUMENTS > 0])
    assert np.abs(plain.predict(X) - repeated.predict(X)).max() > 0.02


def test_a_document_that_weighs_next_to_nothing_is_as_good_as_absent():
    weights = np.where(DOCUMENTS > 0.0, DOCUMENTS, 1e-9)
    ranker = ranktron.RankSVM(balance="pair")  # else a query has its weight however little its only pair counts
    nearly, absent = (clone(ranker).fit(X, Y, qid=QID, sample_weight=w) for w in (weights, DOCUMENTS))
    assert nearly.coef_ == pytest.approx(absent.coef_, rel=1e-4)


@pytest.mark.parametrize("cls", PLAYED, ids=lambda cls: cls.__name__)
def test_passes_refuse_weights_of_single_documents(cls):
    ranker = cls(random_state=1, n_epochs=1)
    with pytest.raises(DataError, match="must be the same for all rows of a query"):
        ranker.fit(X, Y, qid=QID, sample_weight=DOCUMENTS)
    with pytest.raises(DataError, match="must be the same for all rows of a query"):
        ranker.partial_fit(X, Y, qid=QID, sample_weight=DOCUMENTS)
    assert not hasattr(ranker, "learner_")


@pytest.mark.parametrize("made", [{"loss": "max"}, {"loss": "max-average"}, {"step": "paper"}])
def test_rank_mm_refuses_them_where_they_have_no_meaning(made):
    with pytest.raises(DataError, match="loss=average and step=exact only"):
        ranktron.RankMM(**made).fit(X, Y, qid=QID, sample_weight=DOCUMENTS)


@pytest.mark.parametrize("cls", PLAYED, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("scale", ["minmax", "running-standard"])
def test_going_on_plays_a_query_as_often_as_it_weighs(cls, scale):
    if scale == "running-standard" and not cls().make_learner(4).rescales:
        pytest.skip("it keeps more than weights")
    weighted = cls(scale=scale).partial_fit(X, Y, qid=QID)
    repeated = cls(scale=scale).partial_fit(X, Y, qid=QID)
    weighted.partial_fit(X, Y, qid=QID, sample_weight=WEIGHTS[QID])
    repeated.partial_fit(*EVEN, **EACH)
    assert same(weighted.learner_.state(), repeated.learner_.state())
    assert weighted.learner_.rounds == 24 + WEIGHTS.sum()
    # half a query at a time: every second call plays it
    first = X[QID == 0], Y[QID == 0]
    for _ in range(4):
        weighted.partial_fit(*first, qid=0, sample_weight=0.5 + 0.0 * first[1])
    assert weighted.learner_.rounds == 24 + WEIGHTS.sum() + 2


def test_going_on_with_weights_is_fitting_with_weights():
    made = {"random_state": 5, "shuffle": False, "scale": None}
    weights = np.linspace(0.3, 2.2, 24)[QID]
    once = ranktron.SLAMPerceptron(n_epochs=4, **made).fit(X, Y, qid=QID, sample_weight=weights)
    by_parts = ranktron.SLAMPerceptron(**made)
    for _ in range(4):
        by_parts.partial_fit(X, Y, qid=QID, sample_weight=weights)
    assert same(once.learner_.state(), by_parts.learner_.state())


def test_dual_variables_of_other_weights_are_not_taken_up():
    from ranktron.learners.batch.rank_mm_problem import RankMMProblem

    assert RankMMProblem(LISTS).fingerprint() != RankMMProblem(LISTS, weights=1.0 + WEIGHTS).fingerprint()
    assert RankMMProblem(LISTS, C=2.0, weights=2.0 * np.ones(24)).primal(np.ones(4)) == pytest.approx(
        RankMMProblem(LISTS, C=2.0).primal(np.ones(4))
    )
