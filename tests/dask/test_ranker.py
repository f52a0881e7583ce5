import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import ranktron
from ranktron import DataError
from ranktron.dask.training import inspect_parts, train_parts
from ranktron.data.synthetic import WebSearch
from ranktron.learners.checks import same
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan
from ranktron.training.workers import LocalWorkers

dask_frames = pytest.importorskip("dask.dataframe")

import dask.array  # noqa: E402
import dask.bag  # noqa: E402
import pandas  # noqa: E402

from ranktron.dask import DaskRanker  # noqa: E402

LISTS = WebSearch(features=6, documents=12).rounds(40)
QID = np.repeat([f"q{i}" for i in range(40)], np.diff(LISTS.offsets))
FRAME = pandas.DataFrame(LISTS.X, columns=list("abcdef")).assign(label=LISTS.labels, qid=QID)
LOCAL = {"shuffle": False, "scale": "standard", "average": True, "n_epochs": 2}


def cut(partitions=7):
    """A frame in partitions that cut queries."""
    return dask_frames.from_pandas(FRAME, npartitions=partitions, sort=False)


def local(**parameters):
    ranker = ranktron.HingePerceptron(**(LOCAL | parameters))
    return ranker.fit(FRAME.drop(columns=["label"]), FRAME.label)


def test_cut_queries_are_joined_and_sequential_is_one_machine_to_the_bit(client):
    ranker = DaskRanker(ranktron.HingePerceptron(**LOCAL), mode="sequential", client=client).fit(cut(), "label")
    assert ranker.joined_queries_ >= 5
    assert same(ranker.model_.state, local().model_.state)
    assert ranker.history_.rounds == 80
    score = local().score(FRAME.drop(columns=["label"]), FRAME.label)
    assert ranker.score(cut(), "label") == score
    back = ranker.to_local()
    assert isinstance(back, ranktron.HingePerceptron)
    assert np.array_equal(back.coef_, local().coef_)
    assert back.score(FRAME.drop(columns=["label"]), FRAME.label) == score


def test_predictions_are_lazy_and_those_of_one_machine(client):
    ranker = DaskRanker(ranktron.HingePerceptron(**LOCAL), mode="sequential", client=client).fit(cut(), "label")
    scores = ranker.predict(cut().drop(columns=["label"]))
    assert hasattr(scores, "compute")
    expected = local().predict(FRAME.drop(columns=["label"]))
    assert np.array_equal(scores.compute().to_numpy(), expected)
    rows = dask.array.from_array(LISTS.X, chunks=(100, 4))
    with_rows = DaskRanker(ranktron.HingePerceptron(**LOCAL), mode="sequential", client=client)
    y, qid = dask.array.from_array(LISTS.labels, chunks=90), dask.array.from_array(QID, chunks=100)
    with_rows.fit(rows, y, qid)
    assert np.array_equal(with_rows.predict(rows).compute(), expected)


def test_mixing_depends_on_shards_and_not_on_workers(client):
    """Two processes, and threads of this one: the same bytes."""

    def fitted(**options):
        ranker = DaskRanker(ranktron.HingePerceptron(n_epochs=2, random_state=3, scale="standard"), client=client)
        return ranker.set_params(**options).fit(cut(), "label").model_

    found = fitted()
    division = found.record["division"]
    assert (division["shards"], division["sequential"]) == (7, 1)
    offsets = np.cumsum([0, *division["parts"]]).tolist()
    parts = [replace(LISTS[a:b], feature_names=tuple("abcdef")) for a, b in itertools.pairwise(offsets)]
    with ThreadPoolExecutor(3) as executor:
        data = inspect_parts(parts, LocalWorkers(executor))
        mine = train_parts(TrainingPlan("hinge", schedule=Schedule(2, 3), scaling="standard"), data, shards=7).model
    assert mine.to_bytes() == found.to_bytes()
    assert not same(fitted(shards=2).state, found.state)


def test_scattered_queries_are_shuffled_with_a_warning(client):
    rng = np.random.default_rng(0)
    mixed = dask_frames.from_pandas(FRAME.iloc[rng.permutation(len(FRAME))].reset_index(drop=True), npartitions=4)
    with pytest.warns(ranktron.errors.RankingWarning, match="all rows are shuffled by query id"):
        ranker = DaskRanker(ranktron.HingePerceptron(n_epochs=2), client=client).fit(mixed, "label")
    assert ranker.history_.rounds == 80  # forty whole queries, twice
    with pytest.warns(ranktron.errors.RankingWarning):
        values = ranker.evaluate(mixed, "label")
    expected = ranktron.evaluate(LISTS, ranker.model_.score_rounds(LISTS), "ndcg@10").per_query["ndcg@10"]
    assert np.sort(values) == pytest.approx(np.sort(expected))


def test_bags_of_queries(client):
    items = [(round.X, round.labels, round.qid) for round in LISTS]
    bag = dask.bag.from_sequence(items, npartitions=3)
    ranker = DaskRanker(ranktron.HingePerceptron(**LOCAL), mode="sequential", client=client).fit(bag)
    assert np.array_equal(ranker.coef_, local().coef_)


def test_partial_fit_goes_on_in_order(client):
    ranker = DaskRanker(ranktron.HingePerceptron(scale="standard"), client=client)
    ranker.partial_fit(cut(), "label").partial_fit(cut(3), "label")
    one = ranktron.HingePerceptron(scale="standard")
    for _ in range(2):
        one.partial_fit(FRAME.drop(columns=["label"]), FRAME.label)
    assert same(ranker.model_.state, one.model_.state)


def test_a_validation_set_of_this_process_chooses_the_pass(client):
    valid = WebSearch(features=6, documents=12).rounds(80)[40:]
    ids = np.repeat(np.arange(40), np.diff(valid.offsets))
    table = pandas.DataFrame(valid.X, columns=list("abcdef"))
    ranker = DaskRanker(ranktron.HingePerceptron(n_epochs=3), client=client, shards=2)
    ranker.fit(cut(), "label", eval_set=(table, valid.labels), eval_qid=ids)
    assert len(ranker.history_.valid) == 3


@pytest.mark.parametrize(
    ("X", "y", "qid", "message"),
    [
        (FRAME.drop(columns=["qid"]), "label", None, "queries have no ids"),
        (FRAME, None, None, "labels are missing"),
        (FRAME, "grade", None, "there is no column 'grade'"),
        (FRAME.assign(a=np.nan), "label", None, "partition 0: features contain NaN"),
        (FRAME.assign(label=-1.0), "label", None, "partition 0: labels must be"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(client, X, y, qid, message):
    frame = dask_frames.from_pandas(X, npartitions=2)
    with pytest.raises(DataError, match=message):
        DaskRanker(ranktron.HingePerceptron(), client=client).fit(frame, y, qid)


def test_scores_within_queries_and_missing_clients_are_refused(client):
    ranker = DaskRanker(ranktron.HingePerceptron(scale="minmax-query"), client=client, shards=2).fit(cut(), "label")
    with pytest.raises(DataError, match="not computed lazily"):
        ranker.predict(cut())
    with pytest.raises(DataError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        DaskRanker(ranktron.HingePerceptron(), client="tcp://127.0.0.1:9").fit(cut(), "label")
    with pytest.raises(DataError, match="RankSVM does not learn online"):
        DaskRanker(ranktron.RankSVM(), client=client).partial_fit(cut(), "label")


@pytest.mark.parametrize(
    ("ranker", "parameters"),
    [("RankBoost", {"n_rounds": 12}), ("RankMM", {"C": 2.0, "scale": None, "random_state": 0})],
)
def test_solvers_on_a_cluster_are_those_of_threads(client, ranker, parameters):
    parts, estimator = [LISTS[:7], LISTS[7:20], LISTS[20:]], getattr(ranktron, ranker)(**parameters)
    given = {name: value for name, value in parameters.items() if name in ("n_rounds", "C")}
    with ThreadPoolExecutor(1) as executor:
        here = train_parts(
            TrainingPlan(ranker.lower(), given, estimator._schedule()), inspect_parts(parts, LocalWorkers(executor))
        )
    frames = [FRAME[FRAME.qid.isin([f"q{i}" for i in range(a, b)])] for a, b in ((0, 7), (7, 20), (20, 40))]
    divided = dask_frames.from_delayed([dask.delayed(frame) for frame in frames], meta=frames[0])
    found = DaskRanker(estimator, client=client).fit(divided, "label")
    assert same(found.model_.state, here.model.state)
    assert type(found.to_local()) is type(estimator)


def test_sample_weights_are_refused(client):
    with pytest.raises(DataError, match="partitions have no sample weights"):
        DaskRanker(ranktron.HingePerceptron(), client=client).fit(cut(), "label", sample_weight=np.ones(40))
