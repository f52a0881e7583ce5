import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, check_sample_weight_equivalence_on_dense_data

import ranktron
from ranktron import DataError, evaluate, load, play
from ranktron.data.frames import UNGROUPED
from ranktron.data.scaling import fit_scaler, scale
from ranktron.data.synthetic import WebSearch
from ranktron.estimators.base import OnlineRanker
from ranktron.learners import feedback
from ranktron.learners.checks import same
from ranktron.learners.schedule import UNEVEN, Schedule
from ranktron.training.algorithms import ALGORITHMS

LISTS = WebSearch(features=6, documents=8).rounds(60)
QID = np.repeat(LISTS.qids, np.diff(LISTS.offsets))
X, Y = LISTS.X.astype(float), LISTS.labels
RANKERS = [getattr(ranktron, algorithm.estimator) for algorithm in ALGORITHMS.values()]


ONLINE = [cls for cls in RANKERS if issubclass(cls, OnlineRanker)]


def learnt(ranker):
    """The weights of a ranker, or all the numbers of its state where it is not linear."""
    if getattr(ranker.learner_, "coef", None) is not None:
        return ranker.coef_
    return np.concatenate([np.ravel(value) for value in ranker.learner_.state().values()])


@pytest.fixture(params=RANKERS, ids=lambda cls: cls.__name__)
def Ranker(request):
    return request.param


@pytest.fixture(params=ONLINE, ids=lambda cls: cls.__name__)
def Online(request):
    return request.param


@pytest.fixture(params=[cls for cls in ONLINE if not cls._algorithm.solution], ids=lambda cls: cls.__name__)
def Player(request):
    """A ranker whose `fit` plays; others mix the pairs of all lists, or solve."""
    return request.param


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def checked(estimator):
    """What scikit-learn's own checks find; one needs SCIPY_ARRAY_API set before scipy is imported, and is skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks themselves provoke deprecations
        return check_estimator(estimator, on_skip=None, on_fail=None)


# Checks that weigh the documents of their one list differently, which rankers that learn in passes refuse.
WEIGH_DOCUMENTS = {
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def causes(error):
    """An error and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def test_scikit_learns_own_checks_pass_where_rows_without_ids_are_one_list(Ranker):
    found = checked(Ranker(ungrouped="one-list"))
    failed = {row["check_name"]: str(row["exception"]) for row in found if row["status"] == "failed"}
    assert failed.keys() <= WEIGH_DOCUMENTS
    if issubclass(Ranker, OnlineRanker) or Ranker in (ranktron.SmoothRank, ranktron.LambdaMART):
        assert all(UNEVEN in message for message in failed.values())
    else:  # compared to 1e-7, where RankMM stops at a gap and RankBoost may choose between equally good thresholds
        assert all("is not equivalent" in message for message in failed.values())
        assert bool(failed) == (Ranker is not ranktron.RankSVM)
    assert len(found) - len(failed) > 40
    assert [row["check_name"] for row in found if row["status"] == "skipped"] == ["check_array_api_input"]


def test_weights_of_documents_are_repetitions_to_scikit_learn():
    check_sample_weight_equivalence_on_dense_data("RankMM", ranktron.RankMM(ungrouped="one-list", tol=1e-12))
    check_sample_weight_equivalence_on_dense_data("RankBoost", ranktron.RankBoost(ungrouped="one-list", n_rounds=2))


def test_scikit_learns_own_checks_fail_for_want_of_query_ids_and_for_nothing_else(Ranker):
    failed = [row for row in checked(Ranker()) if row["status"] == "failed"]
    assert len(failed) > 20
    for row in failed:
        said = [str(error) for error in causes(row["exception"])]
        assert UNGROUPED in said, row["check_name"]
    reasons = {row["check_name"]: UNGROUPED for row in failed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(Ranker(), expected_failed_checks=reasons, on_skip=None)


def test_parameters_are_those_of_the_table(Ranker):
    own = Ranker._algorithm
    parameters = Ranker().get_params()
    assert Ranker()._own_parameters() == {p.name: p.default for p in own.parameters}
    assert {"n_epochs", "shuffle", "scale", "random_state"} <= parameters.keys()
    assert all(p.help in Ranker.__doc__ for p in own.parameters if p.name != "preset")  # which all have
    assert {p.name for p in own.parameters} <= parameters.keys()
    with pytest.raises(TypeError, match="no parameter 'alpha'"):
        Ranker(alpha=1)


def test_query_ids_may_come_in_any_order(Ranker):
    ranker = Ranker(random_state=0, shuffle=False).fit(X, Y, qid=QID)
    # the same lists, with the rows of different queries dealt out in turn
    dealt = np.argsort([i - np.flatnonzero(q == QID)[0] for i, q in enumerate(QID)], kind="stable")
    again = Ranker(random_state=0, shuffle=False).fit(X[dealt], Y[dealt], qid=QID[dealt])
    assert learnt(again) == pytest.approx(learnt(ranker))
    # a kernel's 32-bit products are rounded by their place in the table
    assert again.predict(X[dealt]) == pytest.approx(ranker.predict(X)[dealt], rel=1e-6, abs=1e-6)
    sizes = Ranker(random_state=0, shuffle=False).fit(X, Y, group=np.diff(LISTS.offsets))
    assert learnt(sizes).tolist() == learnt(ranker).tolist()


@pytest.mark.parametrize(("shuffle", "given"), [(True, {"preset": "paper"}), (False, {"scale": None}), (True, {})])
def test_fit_equals_looping_play(Player, shuffle, given):
    ranker = Player(n_epochs=3, shuffle=shuffle, random_state=7, **given).fit(X, Y, qid=QID)
    learner = Player(**given).make_learner(6)
    lists = scale(LISTS, fit_scaler(Player(**given).scale, LISTS))
    for epoch in range(3):
        for _ in play(learner, Schedule(3, 7, shuffle).epoch(lists, epoch), learner.simulated_feedback):
            pass
    assert learner.rounds == ranker.learner_.rounds == 180
    assert same(learner.state(), ranker.learner_.state())


def test_partial_fit_goes_on(Player):
    whole = Player(n_epochs=2, shuffle=False, scale=None).fit(X, Y, qid=QID)
    parts = Player(scale=None)
    for _ in range(2):
        for chunk in (LISTS[:20], LISTS[20:]):
            parts.partial_fit(chunk.X, chunk.labels, group=np.diff(chunk.offsets))
    assert learnt(parts).tolist() == learnt(whole).tolist()
    assert parts.learner_.rounds == 120


UNITS = 2.0 ** np.random.default_rng(0).integers(-11, 12, 6)  # powers of two: nothing is rounded


def test_units_do_not_matter(Ranker):
    plain, other = (Ranker(random_state=0).fit(rows, Y, qid=QID) for rows in (X, X * UNITS))
    assert other.predict(X * UNITS).tolist() == plain.predict(X).tolist()


def test_units_of_a_stream_do_not_matter(Online):
    plain, other = Online(), Online()
    for at, end in zip(LISTS.offsets, LISTS.offsets[1:], strict=False):
        plain.partial_fit(X[at:end], Y[at:end], qid=0)
        other.partial_fit(X[at:end] * UNITS, Y[at:end], qid=0)
    assert other.predict(X * UNITS).tolist() == plain.predict(X).tolist()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_bring_names_and_query_ids(Ranker, frame):
    names = [f"feature {j}" for j in range(6)]
    columns = dict(zip(names, X.T, strict=True)) | {"qid": QID}
    ranker = Ranker(random_state=0).fit(frame(columns), Y)
    plain = Ranker(random_state=0).fit(X, Y, qid=QID)
    assert learnt(ranker).tolist() == learnt(plain).tolist()
    assert ranker.model_.feature_names == tuple(names)
    assert ranker.score(frame(columns), Y) == plain.score(X, Y, qid=QID)
    assert ranker.predict(frame(columns)).tolist() == plain.predict(X).tolist()


def test_score_is_mean_ndcg_and_weights_count(Ranker):
    ranker = Ranker(random_state=0).fit(X, Y, qid=QID)
    values = evaluate(LISTS, ranker.predict(X), "ndcg@10").per_query["ndcg@10"]
    assert ranker.score(X, Y, qid=QID) == pytest.approx(values.mean())
    first = LISTS.qids[0] == QID
    assert ranker.score(X, Y, qid=QID, sample_weight=first.astype(float)) == pytest.approx(values[0])
    with pytest.raises(DataError, match="there are no query ids"):
        ranker.score(X, Y)
    with pytest.raises(DataError, match="fitted with query ids"):
        ranker.set_params(ungrouped="one-list").score(X, Y)
    with pytest.raises(DataError, match="sample_weight"):
        ranker.score(X, Y, qid=QID, sample_weight=[1.0])


def test_held_out_lists_choose_the_epoch(Online):
    train, valid = LISTS[:40], LISTS[40:]
    sizes, valid_sizes = np.diff(train.offsets), np.diff(valid.offsets)
    ranker = Online(random_state=0, n_epochs=6)
    # as PyTerrier calls it
    ranker.fit(train.X, train.labels, group=sizes, eval_set=[(valid.X, valid.labels)], eval_group=[valid_sizes])
    values = [means["ndcg@10"] for means in ranker.history_.valid]
    assert len(values) == 6
    assert ranker.learner_.rounds == 40 * (1 + int(np.argmax(values)))
    qid = np.repeat(valid.qids, valid_sizes)
    pair = Online(random_state=0, n_epochs=6).fit(
        train.X, train.labels, group=sizes, eval_set=(valid.X, valid.labels), eval_qid=qid
    )
    assert learnt(pair).tolist() == learnt(ranker).tolist()
    for wrong, words in (((valid.X, valid.labels), "eval_qid"), ((valid.X, valid.labels, qid), "pair")):
        with pytest.raises(DataError, match=words):
            Online().fit(train.X, train.labels, group=sizes, eval_set=wrong)


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.usefixtures("routing")
def test_grid_search_with_routing_needs_no_requests(Ranker, piped):
    ranker = Ranker(random_state=0, n_epochs=2)
    estimator = make_pipeline(StandardScaler(), ranker) if piped else ranker
    prefix = f"{Ranker.__name__.lower()}__" if piped else ""
    search = GridSearchCV(estimator, {f"{prefix}n_epochs": [1, 3]}, cv=GroupKFold(4), error_score="raise")
    search.fit(X, Y, qid=QID, groups=QID)
    train, test = next(GroupKFold(4).split(X, Y, QID))
    fitted = clone(estimator).set_params(**{f"{prefix}n_epochs": 1}).fit(X[train], Y[train], qid=QID[train])
    expected = fitted.score(X[test], Y[test], qid=QID[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected)


def test_grid_search_without_routing_fails_loudly(Ranker):
    search = GridSearchCV(Ranker(), {"n_epochs": [1]}, cv=GroupKFold(4), error_score="raise")
    with pytest.raises(DataError, match="enable_metadata_routing"):
        search.fit(X, Y, qid=QID, groups=QID)
    search.set_params(error_score=np.nan)
    with pytest.warns(UserWarning, match="Scoring failed"), pytest.warns(UserWarning, match="non-finite"):
        search.fit(X, Y, qid=QID, groups=QID)
    assert np.isnan(search.best_score_)


def test_clone_pickle_save(Ranker, tmp_path):
    ranker = Ranker(random_state=0, scale="standard").fit(X, Y, qid=QID)
    assert learnt(clone(ranker).fit(X, Y, qid=QID)).tolist() == learnt(ranker).tolist()
    assert pickle.loads(pickle.dumps(ranker)).predict(X).tolist() == ranker.predict(X).tolist()
    ranker.save(tmp_path / "m")
    assert load(tmp_path / "m").predict(X).tolist() == ranker.predict(X).tolist()
    assert ranker.rank(LISTS[0].X).tolist() == load(tmp_path / "m").rank(LISTS[0].X).tolist()


def test_per_query_scaling_wants_query_ids(Ranker):
    ranker = Ranker(scale="minmax-query").fit(X, Y, qid=QID)
    with pytest.raises(DataError, match="query ids"):
        ranker.predict(X)
    assert ranker.predict(X, qid=QID).shape == (len(X),)


def test_bad_parameters_are_named(Ranker):
    for name, value in {"n_epochs": 0, "shuffle": "perhaps", "scale": "robust"}.items():
        with pytest.raises(DataError, match=name.removeprefix("n_").replace("scale", "scaling")):
            Ranker(**{name: value}).fit(X, Y, qid=QID)


def test_a_refused_fit_changes_nothing(Ranker):
    ranker = Ranker(random_state=0).fit(X, Y, qid=QID)
    before, model = ranker.predict(X, qid=QID), ranker.model_.to_bytes()
    with pytest.raises(DataError, match="row 0 has -1"):
        ranker.fit(X[:, :2], Y * 0.0 - 1.0, qid=QID)
    with pytest.raises(DataError, match="pass eval_qid"):
        ranker.fit(pd.DataFrame(X[:, :2], columns=["a", "b"]), Y, qid=QID, eval_set=(X[:, :2], Y))
    assert np.array_equal(ranker.predict(X, qid=QID), before)
    assert ranker.model_.to_bytes() == model
    assert not hasattr(ranker, "feature_names_in_")


def test_a_first_part_that_is_refused_changes_nothing():
    ranker = ranktron.HingePerceptron(random_state=0)
    with pytest.raises(DataError, match="row 0 has -1"):
        ranker.partial_fit(X[:, :2], Y * 0.0 - 1.0, qid=QID)
    assert not hasattr(ranker, "n_features_in_")
    assert ranker.partial_fit(X, Y, qid=QID).n_features_in_ == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"eval_set": []}, "eval_set must be a pair"),
        ({"eval_set": [(X, Y)], "eval_qid": []}, "pass eval_qid"),
    ],
)
def test_held_out_lists_that_are_missing_are_named(arguments, words):
    with pytest.raises(DataError, match=words):
        ranktron.HingePerceptron().fit(X, Y, qid=QID, **arguments)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf, "a"])
def test_weights_that_weigh_nothing_are_refused(weight):
    ranker = ranktron.HingePerceptron(random_state=0).fit(X, Y, qid=QID)
    with pytest.raises(DataError, match="sample_weight must hold"):
        ranker.score(X, Y, qid=QID, sample_weight=[weight] * len(Y))


@pytest.mark.parametrize("state", [-1, "a", np.random.default_rng(0)])
def test_a_random_state_that_is_none_is_refused(state):
    for Ranker in (ranktron.HingePerceptron, ranktron.PredtronClassifier):
        with pytest.raises(DataError, match=r"the seed must be|random_state must be"):
            Ranker(random_state=state).fit(X, Y, **({} if Ranker is ranktron.PredtronClassifier else {"qid": QID}))


@pytest.mark.parametrize("Ranker", [ranktron.PDGDRanker, ranktron.TopKRanker])
def test_simulated_users_answer_by_name_and_as_functions(Ranker):
    """By name they have the grades of the labels, the page of the learner and the seed of the ranker."""
    k = 10 if Ranker is ranktron.PDGDRanker else 3
    user = feedback.cascade("informational", grades=int(Y.max()) + 1, seed=7, k=k)
    options = {"k": k, "n_epochs": 2, "shuffle": False, "random_state": 7, "scale": None}
    named = Ranker(feedback="informational", **options).fit(X, Y, qid=QID)
    given = Ranker(feedback=user, **options).fit(X, Y, qid=QID)
    learner = named.make_learner(6)
    for _ in range(2):
        for _ in play(learner, LISTS, user):
            pass
    assert same(named.learner_.state(), learner.state())
    assert same(given.learner_.state(), learner.state())
    streamed = Ranker(feedback="informational", **options)
    for _ in range(2):
        streamed.partial_fit(X, Y, qid=QID)
    assert same(streamed.learner_.state(), learner.state())
    assert not same(Ranker(**options).fit(X, Y, qid=QID).learner_.state(), learner.state())
    with pytest.raises(DataError, match="no simulated user 'bot'"):
        Ranker(feedback="bot").fit(X, Y, qid=QID)
    assert clone(named).feedback == "informational"
