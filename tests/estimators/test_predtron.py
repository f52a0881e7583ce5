"""The estimators over examples: scikit-learn's own checks, and that they run the loop and nothing else."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from ranktron import (
    DataError,
    PredtronClassifier,
    PredtronLabelRanker,
    PredtronMultilabel,
    PredtronOrdinal,
    PredtronRanker,
)
from ranktron.learners.predtron import (
    LossDriven,
    Permutations,
    Places,
    Predtron,
    Standard,
    Subsets,
    binary,
    multiclass,
    ordinal,
    walk,
    with_costs,
    with_reject,
)
from ranktron.learners.steps import Constant

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 9))
W = RNG.normal(size=(9, 4))
CLASSES = np.argmax(X @ W, axis=1)
SIDES = (X @ W[:, 0] > 0).astype(int)
GRADES = np.digitize(X @ W[:, 0], [-2.0, 0.0, 2.0])
TABLE = (X @ W > 0.5).astype(int)
RELEVANCE = np.floor(np.clip(X @ W, 0, 3))
EXAMPLES = [
    (PredtronClassifier, CLASSES),
    (PredtronOrdinal, GRADES),
    (PredtronMultilabel, TABLE),
    (PredtronLabelRanker, RELEVANCE),
]


@pytest.fixture(params=EXAMPLES, ids=lambda case: case[0].__name__)
def case(request):
    return request.param


def test_scikit_learns_own_checks(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks themselves provoke deprecations
        for estimator, check in estimator_checks_generator(case[0](), mark=None):
            name = getattr(check, "func", check).__name__
            if name == "check_array_api_input":
                continue  # needs SCIPY_ARRAY_API set before scipy is imported
            if name == "check_classifiers_multilabel_output_format_predict_proba":
                continue  # a perceptron has no probabilities
            check(estimator)


OWN = {
    PredtronClassifier: {"loss": "zero-one", "reject": None, "reject_label": None},
    PredtronOrdinal: {},
    PredtronMultilabel: {"loss": "hamming", "class_cost": 0.1},
    PredtronLabelRanker: {"representation": "-i^1.1", "loss": "ndcg"},
}
SHARED = {
    "variant": "standard",
    "norm": "l2",
    "eta": 0.1,
    "radius": None,
    "average": True,
    "scale": "auto",
    "fit_intercept": True,
    "n_epochs": 10,
    "shuffle": True,
    "random_state": None,
    "preset": "recommended",
}


@pytest.mark.parametrize("cls", OWN, ids=lambda cls: cls.__name__)
def test_parameters_are_named_in_signature_and_help(cls):
    signature = inspect.signature(cls)
    defaults = [(p.name, p.default, type(p.default)) for p in signature.parameters.values()]
    assert defaults == [(name, value, type(value)) for name, value in (OWN[cls] | SHARED).items()]
    assert {p.kind for p in signature.parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert (cls.__init__.__module__, cls.__init__.__qualname__) == (cls.__module__, f"{cls.__name__}.__init__")
    described = inspect.getdoc(cls).partition("\nParameters\n----------\n")[2].partition("\n\nExamples\n")[0]
    assert [line.split(" : ")[0] for line in described.splitlines() if line[0] != " "] == list(signature.parameters)
    with pytest.raises(TypeError, match=f"{cls.__name__} has no parameter 'alpha'"):
        cls(alpha=1)
    with pytest.raises(TypeError, match="keyword-only"):
        cls("standard")


def with_one(X):
    return np.hstack([X, np.ones((len(X), 1))])


@pytest.mark.parametrize(
    ("estimator", "y", "problem", "d"),
    [
        (PredtronClassifier(eta=0.3), SIDES, binary(), 1),
        (PredtronClassifier(eta=0.3), CLASSES, multiclass(4), 4),
        (PredtronClassifier(eta=0.3, loss=[[0, 5], [1, 0]]), SIDES, binary((1.0, 5.0)), 1),
        (PredtronClassifier(eta=0.3, loss=1.0 - np.eye(4)), CLASSES, with_costs(1.0 - np.eye(4)), 4),
        (PredtronClassifier(eta=0.3, reject=0.4), CLASSES, with_reject(4, 0.4), 4),
        (PredtronOrdinal(eta=0.3), GRADES, ordinal(4), 4),
        (PredtronMultilabel(eta=0.3), TABLE, Subsets(4), 4),
        (PredtronLabelRanker(eta=0.3, representation="-i"), RELEVANCE, Permutations(representation=Places("-i")), 4),
    ],
)
@pytest.mark.parametrize("variant", ["standard", "loss-driven"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("preset", ["recommended", "paper"])
def test_fit_is_the_loop(estimator, y, problem, d, variant, fit_intercept, preset):
    given = {"variant": variant, "fit_intercept": fit_intercept, "preset": preset, "shuffle": False, "n_epochs": 2}
    estimator = clone(estimator).set_params(**given).fit(X, y)
    inputs = X if preset == "paper" else (X - fit_intercept * X.mean(axis=0)) / X.std(axis=0)
    inputs = with_one(inputs) if fit_intercept else inputs
    how = Standard() if variant == "standard" else LossDriven()
    learner = Predtron(problem, (d, inputs.shape[1]), Constant(0.3), how, average=preset == "recommended")
    for epoch in range(2):
        losses = [0.0 if mistake is None else mistake.loss for mistake in walk(learner, zip(inputs, y, strict=True))]
        assert estimator.online_losses_[epoch] == pytest.approx(np.mean(losses))
    assert estimator.learner_.W.tolist() == learner.W.tolist()
    assert estimator.coef_.shape == (d, 9)
    scores = X @ estimator.coef_.T + estimator.intercept_
    assert scores == pytest.approx(inputs @ learner.coef.T)
    assert estimator.intercept_.any() == fit_intercept


def test_partial_fit_goes_on(case):
    cls, y = case
    whole = cls(n_epochs=1, shuffle=False, scale=None).fit(X, y)
    parts = cls(scale=None)
    first = {"classes": np.unique(y)} if y.ndim == 1 else {}
    parts.partial_fit(X[:50], y[:50], **first).partial_fit(X[50:], y[50:])
    assert parts.coef_.tolist() == whole.coef_.tolist()
    assert len(parts.online_losses_) == 2


def test_units_do_not_matter(case):
    cls, y = case
    units = np.exp(np.random.default_rng(0).uniform(-8.0, 8.0, X.shape[1]))
    plain, scaled = (cls(random_state=0).fit(rows, y) for rows in (X, X * units + 100.0 * units))
    assert scaled.coef_ * units == pytest.approx(plain.coef_, rel=1e-6, abs=1e-9)
    first = {"classes": np.unique(y)} if y.ndim == 1 else {}
    stream = cls().partial_fit(X[:50], y[:50], **first).partial_fit(X[50:], y[50:])  # the first call fits the scaling
    assert stream._scaling[0].tolist() == X[:50].mean(axis=0).tolist()
    with pytest.raises(DataError, match="there is no scaling 'minmax' here"):
        cls(scale="minmax").fit(X, y)


def test_a_constant_input_is_left_alone(case):
    cls, y = case
    for value in (0.0, 7.0):
        estimator = cls(random_state=0).fit(np.hstack([X, np.full((len(X), 1), value)]), y)
        assert not estimator.coef_[:, -1].any()
        assert np.isfinite(estimator.intercept_).all()


@pytest.mark.parametrize("norm", ["l2", "l1", "group", "trace"])
def test_norms_and_the_step_of_theory(case, norm):
    cls, y = case
    if norm == "trace":
        labels = np.argmax(X @ RNG.normal(size=(9, 9)), axis=1)
        y = np.eye(9)[labels] if y.ndim == 2 else labels
        y = y if y.ndim == 1 or cls is not PredtronMultilabel else y.astype(int)
    estimator = cls(norm=norm, eta="theory", n_epochs=2, scale=None).fit(X, y)
    link = estimator.learner_.link
    radius = max(link.radius(x) for x in with_one(X))
    expected = Standard().eta(estimator.learner_.problem, link.alpha, radius)
    assert estimator.learner_.step.eta == pytest.approx(expected)
    given = cls(norm=norm, eta="theory", radius=3.0, n_epochs=1, scale=None).fit(X, y)
    assert given.learner_.step.eta == pytest.approx(expected * radius**2 / 9.0)


def test_same_seed_same_weights_and_pickles(case):
    cls, y = case
    one, two = (cls(random_state=3, average=True).fit(X, y) for _ in range(2))
    assert one.coef_.tolist() == two.coef_.tolist()
    assert one.coef_.tolist() != cls(random_state=4, average=True).fit(X, y).coef_.tolist()
    assert np.array_equal(pickle.loads(pickle.dumps(one)).predict(X), one.predict(X))


def test_they_learn():
    assert PredtronClassifier(n_epochs=50, random_state=0).fit(X, CLASSES).score(X, CLASSES) > 0.95
    assert np.abs(PredtronOrdinal(n_epochs=50, random_state=0).fit(X, GRADES).predict(X) - GRADES).mean() < 0.2
    assert (PredtronMultilabel(n_epochs=50, random_state=0).fit(X, TABLE).predict(X) == TABLE).mean() > 0.95
    assert PredtronLabelRanker(n_epochs=50, random_state=0).fit(X, RELEVANCE).score(X, RELEVANCE) > 0.95


def test_pairs_alone_leave_open_how_many_classes_there_are():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 8))
    scores = rows @ rng.normal(size=(8, 6)) + rng.normal(size=(1500, 6))
    table = (scores == scores.max(axis=1, keepdims=True)).astype(int)  # one class each
    fitted = [
        PredtronMultilabel(loss="error-set", random_state=0, **given).fit(rows[:1000], table[:1000])
        for given in ({}, {"class_cost": 0.0}, {"preset": "paper"})
    ]
    assert [each.learner_.problem.counts.class_cost for each in fitted] == [0.1, 0.0, 0.0]
    ours, pairs, _ = (each.predict(rows[1000:]) for each in fitted)
    wrong = [np.abs(found - table[1000:]).sum(axis=1).mean() for found in (ours, pairs)]
    assert abs(ours.sum(axis=1).mean() - 1.0) < 0.5 < abs(pairs.sum(axis=1).mean() - 1.0)
    assert wrong[0] < 0.8 * wrong[1]


def test_the_classifier_is_scikit_learns_perceptron():
    ours = PredtronClassifier(eta=0.5, n_epochs=1, shuffle=False, preset="paper").fit(X, SIDES)
    theirs = Perceptron(max_iter=1, tol=None, shuffle=False).fit(X, SIDES)
    assert ours.coef_ == pytest.approx(theirs.coef_)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)
    assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X))


def test_rejections():
    names = np.array(["a", "b", "c", "d"])[CLASSES]
    for y, mark in ((names, "REJECT"), (CLASSES, -1)):
        cautious = PredtronClassifier(reject=0.3, random_state=0, preset="paper").fit(X, y)
        assert set(cautious.predict(X)) <= {*y.tolist(), mark}
        cautious.learner_.W = np.ones((4, 10))  # all scores equal: their mean direction wins where they are positive
        assert (cautious.predict(X) == mark).tolist() == (X.sum(axis=1) + 1.0 > 0.0).tolist()
    two = PredtronClassifier(reject=[0.1, 0.2]).fit(X, SIDES)
    assert two.decision_function(X).shape == (120,)
    with pytest.raises(DataError, match="reject_label"):
        PredtronClassifier(reject=0.1).fit(X, SIDES * 2 - 1)
    marked = PredtronClassifier(reject=0.1, reject_label=7).fit(X, SIDES * 2 - 1)
    assert set(marked.predict(X)) <= {-1, 1, 7}


def test_they_search_and_pipe(case):
    cls, y = case
    search = GridSearchCV(
        make_pipeline(StandardScaler(), cls(random_state=0)), {f"{cls.__name__.lower()}__n_epochs": [1, 5]}
    )
    assert search.fit(X, y).best_score_ > 0.2


def test_the_label_ranker_ranks():
    ranker = PredtronLabelRanker(random_state=0).fit(X, RELEVANCE)
    assert ranker.rank(X).tolist() == np.argsort(-ranker.predict(X), axis=1, kind="stable").tolist()
    weights = np.zeros(120)
    weights[3] = 1.0
    problem = Permutations()
    one = 1.0 - problem.loss(problem.pred(ranker.predict(X)[3], RELEVANCE[3]), RELEVANCE[3])
    assert ranker.score(X, RELEVANCE, sample_weight=weights) == pytest.approx(one)


@pytest.mark.parametrize(
    ("estimator", "y", "why"),
    [
        (PredtronClassifier(loss="hinge"), CLASSES, "no loss"),
        (PredtronClassifier(loss=1.0 - np.eye(3)), CLASSES, "costs for 3"),
        (PredtronClassifier(loss=1.0 - np.eye(4), reject=0.2), CLASSES, "table of costs"),
        (PredtronClassifier(reject=2.0), CLASSES, "between 0 and 1"),
        (PredtronClassifier(variant="link"), CLASSES, "no variant"),
        (PredtronClassifier(norm="l3"), CLASSES, "no norm"),
        (PredtronClassifier(eta="paper"), CLASSES, "eta"),
        (PredtronClassifier(eta=-1.0), CLASSES, "eta"),
        (PredtronClassifier(n_epochs=0), CLASSES, "n_epochs"),
        (PredtronClassifier(norm="trace"), CLASSES, "at least 8"),
        (PredtronOrdinal(), np.zeros(120, int), "2 classes"),
        (PredtronMultilabel(loss="f1"), TABLE, "no loss"),
        (PredtronMultilabel(), 2 * TABLE, "zeros and ones"),
        (PredtronMultilabel(loss="error-set"), SIDES, "at least 2"),
        (PredtronMultilabel(loss="error-set", class_cost=-1.0), TABLE, "cost of a wrong class"),
        (PredtronLabelRanker(), -1.0 - RELEVANCE, ">= 0"),
        (PredtronLabelRanker(), CLASSES, "table"),
        (PredtronLabelRanker(representation="i"), RELEVANCE, "representation"),
        (PredtronLabelRanker(loss="map"), RELEVANCE, "no loss"),
        (PredtronLabelRanker(eta="theory"), RELEVANCE + 0.5, "grades were declared"),
    ],
)
def test_bad_input_is_named(estimator, y, why):
    with pytest.raises(DataError, match=why):
        estimator.fit(X, y)


def test_later_data_must_fit_the_first():
    classifier = PredtronClassifier().partial_fit(X, CLASSES, classes=range(4))
    with pytest.raises(DataError, match="4 is not one of the classes"):
        classifier.partial_fit(X, CLASSES + 1)
    with pytest.raises(DataError, match="4 labels were learnt"):
        PredtronMultilabel().partial_fit(X, TABLE).partial_fit(X, TABLE[:, :3])
    with pytest.raises(DataError, match="cannot follow"):
        PredtronMultilabel().partial_fit(X, TABLE).partial_fit(X, CLASSES)
    with pytest.raises(ValueError, match="NaN"):
        PredtronOrdinal().fit(np.full((4, 2), np.nan), [0, 1, 0, 1])


def test_single_classes_through_the_multilabel_estimator():
    rest = PredtronMultilabel(n_epochs=30, random_state=0).fit(X, CLASSES)
    assert rest.score(X, CLASSES) > 0.8
    two = PredtronMultilabel(n_epochs=30, random_state=0).fit(X, np.array(["no", "yes"])[SIDES])
    assert set(two.predict(X)) == {"no", "yes"}
    assert two.decision_function(X).shape == (120,)


def test_the_ranker_of_long_sparse_data():
    """Few of many features matter: the l1 margin ranks better than the l2 one."""
    from reproduction.theory.predtron_games import SparseLists

    data = SparseLists(features=300)
    train, held = data.draw(200, 0), data.draw(100, 1)
    Xs, ys = (np.concatenate(parts) for parts in zip(*train, strict=True))
    held_X, held_y = (np.concatenate(parts) for parts in zip(*held, strict=True))
    scores = {}
    for norm in ("l1", "l2"):
        ranker = PredtronRanker(norm=norm, eta=1.0, n_epochs=1, shuffle=False).fit(Xs, ys, group=[10] * 200)
        scores[norm] = ranker.score(held_X, held_y, qid=np.repeat(np.arange(100), 10))
    assert scores["l1"] > scores["l2"]


@pytest.mark.parametrize(
    ("estimator", "y", "wrong"),
    [
        (PredtronClassifier(loss=1.0 - np.eye(4)), CLASSES, CLASSES % 3),
        (PredtronOrdinal(), GRADES, np.zeros(120, int)),
        (PredtronMultilabel(), TABLE, TABLE[:, :3] + 1),
        (PredtronLabelRanker(), TABLE, -TABLE[:, :3]),
    ],
    ids=lambda case: type(case).__name__,
)
def test_a_refused_fit_changes_nothing(estimator, y, wrong):
    fitted = clone(estimator).fit(X, y)
    before = fitted.predict(X)
    with pytest.raises(DataError):
        fitted.fit(X[:, :5], wrong)
    assert np.array_equal(fitted.predict(X), before)
    assert (fitted.n_features_in_, len(getattr(fitted, "classes_", range(4)))) == (9, 4)


def test_the_label_ranker_is_scored_on_tables_like_those_it_learnt():
    ranker = PredtronLabelRanker(random_state=0).fit(X, TABLE)
    assert ranker.score(X, TABLE, sample_weight=np.ones(120)) == ranker.score(X, TABLE)
    for wrong, words in (
        ({"y": TABLE[:, :3]}, "4 labels were learnt"),
        ({"y": TABLE * np.nan}, "NaN"),
        ({"y": TABLE[:50]}, "inconsistent numbers"),
        ({"y": -TABLE}, "must be >= 0"),
        ({"sample_weight": np.zeros(120)}, "sample_weight must hold"),
        ({"sample_weight": np.ones(3)}, "sample_weight must hold"),
    ):
        with pytest.raises(ValueError, match=words):
            ranker.score(X, **({"y": TABLE} | wrong))


def test_classes_of_two_kinds_and_radii_below_nothing_are_refused():
    for estimator in (PredtronClassifier(), PredtronMultilabel()):
        with pytest.raises(DataError, match="of one kind"):
            estimator.fit(X, np.array(["a", 1] * 60, object))
    for radius in (-1, 0.0, np.nan, "long"):
        with pytest.raises(DataError, match="radius must be a number above 0"):
            PredtronClassifier(radius=radius).fit(X, CLASSES)
