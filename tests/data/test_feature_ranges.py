"""The ranges of features that a model keeps, and what of other data leaves them."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

import ranktron
from ranktron.data.feature_ranges import (
    ABOVE,
    BELOW,
    BINS,
    DOCUMENTS,
    ENOUGH,
    MAX_FEATURES,
    MISSING,
    QUANTILES,
    QUERIES,
    FeatureRanges,
    Means,
    bin_numbers,
    bin_shares,
    sampled_queries,
    thin,
)
from ranktron.data.rounds import Rounds
from ranktron.data.serialization import deserialize, serialize
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.errors import DataError, RankingWarning
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.model import Model

LEARNERS = ("hinge", "ranksvm", "rankboost")


def changed(rounds, change, labelled=True):
    """The queries after a change of their features, in place."""
    X = rounds.X.copy()
    change(X)
    labels = rounds.labels if labelled else np.full(len(rounds.labels), np.nan)
    return replace(rounds, X=X, labels=labels, missing=bool(np.isnan(X).any()))


def faults(rounds, j, other):
    """What may go wrong with feature j of a test file, by name."""
    rng, own = np.random.default_rng(0), rounds.X.copy()
    half = rng.random(len(own)) < 0.5
    typical = np.median(own[:, j])

    def set_all(X, value):
        X[:, j] = value

    def set_half(X, value):
        X[half, j] = value

    def swap(X):
        X[:, [j, other]] = own[:, [other, j]]

    def shift(X):
        X[:] = np.roll(own, 1, axis=1)

    return {
        "constant": lambda X: set_all(X, typical),
        "half constant": lambda X: set_half(X, typical),
        "half zero": lambda X: set_half(X, 0.0),
        "times 1000": lambda X: set_all(X, 1000.0 * own[:, j]),
        "sign flipped": lambda X: set_all(X, -own[:, j]),
        "missing": lambda X: set_all(X, np.nan),
        "half missing": lambda X: set_half(X, np.nan),
        "swapped": swap,
        "shifted": shift,
    }


def read_set(name, data_dir):
    """Training and test data, and a feature that decides the ranking with another one."""
    if name == "separable":
        lists = Separable(features=10).rounds(300)
        weights = np.abs(Separable(features=10).ranker)
        return lists[:200], lists[200:], int(weights.argmax()), int(weights.argmin())
    if name == "web search":
        lists = WebSearch(features=10).rounds(300)
        return lists[:200], lists[200:], 9, 6
    folder = data_dir / name / "Fold1"
    best, other = {"mq2008": (37, 45), "ohsumed-letor3": (10, 17)}[name]
    return ranktron.read(folder / "train.txt.gz"), ranktron.read(folder / "test.txt.gz"), best, other


SIMULATED, REAL = ("separable", "web search"), ("mq2008", "ohsumed-letor3")


def trained(learner, rounds):
    return train(TrainingPlan(learner, schedule=Schedule(1), scaling="auto-lists"), rounds).model


def check_noticed(models, rounds, j, other, labelled):
    assert all(model.drifts(rounds) == [] for model in models)
    for fault, change in faults(rounds, j, other).items():
        wrong = changed(rounds, change, labelled)
        for model in models:
            drifts = model.drifts(wrong)
            names = {drift.feature for drift in drifts}
            if fault == "shifted":
                assert 4 * len(names) >= len(model.names)
            else:
                assert names - {model.names[other]} == {model.names[j]}, fault


@pytest.mark.parametrize("name", SIMULATED)
def test_every_fault_of_a_simulated_test_file_is_noticed(name):
    training, test, j, other = read_set(name, None)
    check_noticed([trained(learner, training) for learner in LEARNERS], test, j, other, labelled=True)


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("name", REAL)
def test_every_fault_of_a_real_test_file_is_noticed(name, labelled, data_dir):
    training, test, j, other = read_set(name, data_dir)
    check_noticed([trained(learner, training) for learner in LEARNERS], test, j, other, labelled)


def clean_warnings(rounds, size, splits):
    """How many random splits of the same data warn."""
    warned = 0
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(rounds))
        training, test = rounds[order[size : size + 2 * QUERIES]], rounds[order[:size]]
        warned += bool(FeatureRanges.from_rounds(training).drifts(test))
    return warned


def query_features():
    """Queries whose documents have nearly the same features: whole numbers, heavy tails, ties."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(5, 30, 400)
    X = np.repeat(rng.normal(size=(400, 12)), sizes, axis=0) + 0.1 * rng.normal(size=(sizes.sum(), 12))
    X[:, :4] = np.repeat(rng.geometric(0.3, (400, 4)), sizes, axis=0)
    X[:, 4:8] = np.exp(2.0 * X[:, 4:8])
    return Rounds.from_arrays(X, X[:, 9] + rng.normal(size=len(X)) > 0.0, group=sizes)


@pytest.mark.parametrize("size", [ENOUGH, 100])
@pytest.mark.parametrize(
    "rounds", [WebSearch(features=10).rounds(400), query_features()], ids=["web search", "queries"]
)
def test_at_most_one_of_twenty_clean_splits_warns(rounds, size):
    assert clean_warnings(rounds, size, 20) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_at_most_one_of_twenty_clean_splits_of_real_data_warns(name, data_dir):
    parts = [ranktron.read(data_dir / name / "Fold1" / f"{part}.txt.gz") for part in ("train", "vali", "test")]
    rounds = Rounds.concat(parts)
    assert sum(clean_warnings(rounds, size, 20) for size in (ENOUGH, 50)) <= 2


def test_a_small_change_is_no_drift_however_significant():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    X[10_000:, 0] += 0.2
    lists = Rounds.from_arrays(X, rng.integers(0, 2, 20_000), group=[20] * 1000)
    ranges = FeatureRanges.from_rounds(lists[:500])
    assert ranges.drifts(lists[500:]) == []
    X[10_000:, 0] += 0.6
    lists = Rounds.from_arrays(X, lists.labels, group=[20] * 1000)
    assert [drift.feature for drift in ranges.drifts(lists[500:])] == ["1"]


def test_one_page_or_a_few_never_suffice():
    assert ENOUGH == 20  # as the pages say
    lists = Separable(features=3).rounds(200)
    ranges = FeatureRanges.from_rounds(lists)
    broken = changed(lists, lambda X: X.fill(1e6))
    assert ranges.drifts(broken[:1]) == ranges.drifts(broken[: ENOUGH - 1]) == []
    assert len(ranges.drifts(broken[:ENOUGH])) == 3
    whole = Rounds.from_arrays(broken.X, broken.labels)  # one query of 2,000 documents
    assert ranges.drifts(whole) == []
    assert FeatureRanges.from_rounds(lists[: ENOUGH - 1]).drifts(broken) == []


def test_one_strange_query_among_many_is_no_drift():
    lists = Separable(features=3).rounds(100)
    ranges = FeatureRanges.from_rounds(lists[:60])
    rows = slice(lists.offsets[70], lists.offsets[72])

    def break_two(X):
        X[rows] = 1e6

    assert ranges.drifts(changed(lists, break_two)[60:]) == []


def test_without_labels_a_flip_that_leaves_the_distribution_as_it_is_cannot_be_noticed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    lists = Rounds.from_arrays(X, X[:, 0] > 0.0, group=[10] * 300)
    ranges = FeatureRanges.from_rounds(lists[:200])

    def flip(X):
        X[:, 0] *= -1.0

    assert ranges.drifts(changed(lists, flip, labelled=False)[200:]) == []
    (drift,) = ranges.drifts(changed(lists, flip)[200:])
    assert (drift.feature, drift.kind) == ("1", "labels")
    assert drift.data == pytest.approx(-drift.training, abs=0.1)


def test_the_labels_of_weighted_logs_are_no_evidence():
    lists = Separable(features=4).rounds(100)
    ranges = FeatureRanges.from_rounds(lists, labelled=False)
    assert ranges.drifts(replace(lists, labels=lists.labels.max() - lists.labels)) == []
    model = train(TrainingPlan("hinge"), lists).model
    clicks = replace(lists, labels=lists.labels.max() - lists.labels)
    assert model.drifts(clicks, labelled=False) == []
    assert {drift.kind for drift in model.drifts(clicks)} == {"labels"}
    weighted = train(TrainingPlan("hinge"), lists, weights=np.ones(100)).model.ranges
    assert (weighted.correlations[:, 0] == ranges.correlations[:, 0]).all()


def test_distance_is_the_population_stability_index():
    ranges = FeatureRanges.from_rounds(Rounds.from_arrays(np.arange(400.0)[:, None] % 20, [0.0] * 400, group=[20] * 20))
    shares = ranges.shares.astype(float).copy()
    p, q = float(shares[0, 1]), float(shares[0, 2])
    shares[0, 1], shares[0, 2] = p - 0.04, q + 0.04
    expected = -0.04 * log((p - 0.04) / p) + 0.04 * log((q + 0.04) / q)
    assert ranges.distances(shares)[0] == pytest.approx(expected, rel=1e-5)
    assert ranges.distances(ranges.shares)[0] == 0.0


def test_bins_are_those_between_quantiles():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((500, 3)) < 0.1, np.nan, rng.integers(0, 8, (500, 3))).astype(np.float32)
    ranges = FeatureRanges.from_rounds(Rounds.from_arrays(X, np.zeros(500), group=[10] * 50, missing=True))
    other = np.where(rng.random((200, 3)) < 0.1, np.nan, rng.normal(3.0, 6.0, (200, 3))).astype(np.float32)
    for i, j in np.ndindex(other.shape):
        quantiles, x = ranges.quantiles[j], other[i, j]
        number = bin_numbers(other, ranges.quantiles)[i, j] if i < 1 else None
        if np.isnan(x):
            expected = MISSING
        elif x < quantiles[0]:
            expected = BELOW
        elif x > quantiles[-1]:
            expected = ABOVE
        else:
            expected = max(1, sum(x > limit for limit in quantiles))
        if number is not None:
            assert number == expected
        assert bin_numbers(other[i : i + 1], ranges.quantiles)[0, j] == expected
    shares = bin_shares(X, np.arange(0, 501, 10), ranges.quantiles)
    assert shares.sum(axis=2) == pytest.approx(1.0)
    assert shares.mean(axis=0) == pytest.approx(ranges.shares)
    assert ranges.missing == pytest.approx(np.isnan(X).mean(axis=0))
    assert shares[:, :, [BELOW, ABOVE]].max() == 0.0


def test_quantiles_are_values_that_occur():
    lists = WebSearch(features=5).rounds(40)
    ranges = FeatureRanges.from_rounds(lists)
    X = thin(lists, sampled_queries(40, 5)).X
    assert ranges.quantiles.shape == (5, QUANTILES)
    for j in range(5):
        assert np.isin(ranges.quantiles[j], X[:, j]).all()
        assert ranges.quantiles[j] == pytest.approx(np.quantile(X[:, j], np.linspace(0, 1, 11), method="lower"))


def test_correlations_are_means_of_those_within_queries():
    lists = WebSearch(features=4).rounds(60)
    ranges = FeatureRanges.from_rounds(lists)
    sample = thin(lists, sampled_queries(60, 4))
    for j in range(4):
        for k, other in enumerate([None, *ranges.partners[j].tolist()]):
            values = []
            for round in sample:
                second = round.labels if other is None else round.X[:, other]
                if np.ptp(round.X[:, j]) > 0.0 and np.ptp(second) > 0.0:
                    values.append(np.corrcoef(round.X[:, j], second)[0, 1])
            expected = [np.mean(values), np.std(values, ddof=1), len(values)]
            assert ranges.correlations[j, k] == pytest.approx(expected, abs=1e-4)
    assert (ranges.partners != np.arange(4)[:, None]).all()
    pooled = ranges.correlations[:, 1:, 0]
    assert (np.abs(pooled[:, 0]) >= np.abs(pooled[:, 1]) - 0.05).all()


def test_standard_errors_are_those_of_queries():
    rng = np.random.default_rng(0)
    z = []
    for _ in range(300):
        one, two = Means.over(rng.random((40, 5))), Means.over(rng.random((25, 5)))
        z.extend(one.distances(two).tolist())
    assert np.mean(z) == pytest.approx(0.0, abs=0.1)
    assert 0.8 < np.std(z) < 1.05
    missing = np.full((40, 5), np.nan)
    assert (one.distances(Means.over(missing)) == 0.0).all()


def test_a_sample_is_spread_over_queries_and_documents():
    lists = Rounds.from_arrays(np.arange(60_000.0)[:, None], np.zeros(60_000), group=[100] * 600)
    sample = thin(lists, sampled_queries(600, 1))
    assert (len(sample), len(sample.X)) == (QUERIES, QUERIES * DOCUMENTS)
    assert sample.qids[[0, -1]].tolist() == [0, 598]
    assert (np.diff(sample.X[:DOCUMENTS, 0]) >= 3).all()
    assert sample.X[DOCUMENTS - 1, 0] >= 96
    ranges = FeatureRanges.from_rounds(lists)
    assert (ranges.queries, ranges.documents) == (QUERIES, QUERIES * DOCUMENTS)


def wide_lists(seed, queries=60, width=1 << 18):
    """Sparse documents of a few common columns and many rare ones."""
    rng = np.random.default_rng(seed)
    n = queries * 8
    columns = np.concatenate([rng.integers(0, 40, (n, 5)), rng.integers(40, width - 40, (n, 20))], axis=1)
    columns.sort(axis=1)
    keep = np.diff(columns, axis=1, prepend=-1) > 0
    starts = np.concatenate(([0], np.cumsum(keep.sum(axis=1))))
    X = Sparse(starts.astype(np.int64), columns[keep].astype(np.int32), rng.random(keep.sum(), np.float32) + 0.5, width)
    return Rounds.from_arrays(X, rng.integers(0, 2, n), group=[8] * queries)


def test_of_many_sparse_columns_the_most_frequent_are_kept():
    lists, others = wide_lists(0), wide_lists(1)
    ranges = FeatureRanges.from_rounds(lists)
    assert len(ranges.columns) == MAX_FEATURES
    assert ranges.columns[:40].tolist() == list(range(40))
    assert len(serialize(ranges.to_dict())) < 250_000
    assert ranges.drifts(others) == []
    shifted = replace(others, X=replace(others.X, columns=others.X.columns + np.int32(40)))
    assert len(ranges.drifts(shifted)) >= 20
    larger = replace(others, X=replace(others.X, values=others.X.values * np.float32(1000.0)))
    assert {drift.kind for drift in ranges.drifts(larger)} == {"above"}
    # as long as there are few columns, sparse and dense documents have the same ranges
    dense = WebSearch(features=5).rounds(30)
    few = replace(dense, X=Sparse.from_matrix(dense.X))
    assert serialize(FeatureRanges.from_rounds(few).to_dict()) == serialize(FeatureRanges.from_rounds(dense).to_dict())


def test_features_are_found_by_name_and_kept_in_the_model_file(tmp_path):
    lists = replace(Separable(features=3).rounds(60), feature_names=("a", "b", "c"))
    model = trained("hinge", lists)
    again = Model.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    assert serialize(again.ranges.to_dict()) == serialize(FeatureRanges.from_rounds(lists).to_dict())
    reordered = lists.ordered_by(("c", "a", "b"))
    assert again.drifts(reordered) == []
    X = reordered.X.copy()
    X[:, 1] = 5.0
    with pytest.warns(RankingWarning, match="1 of 3 features has left .* of my.model .*'a' is always 5") as caught:
        (drift,) = again.warn_of_drift(replace(reordered, X=X), "my.model")
    assert len(caught) == 1
    assert (drift.feature, drift.kind, drift.data) == ("a", "constant", 5.0)
    misnamed = replace(lists, feature_names=("c", "a", "b"))
    assert again.drifts(misnamed)


def test_estimators_keep_ranges():
    lists = Separable(features=3).rounds(60)
    group = np.diff(lists.offsets)
    ranker = ranktron.HingePerceptron().fit(lists.X, lists.labels, group=group)
    before = ranker.model_.ranges
    assert before.queries == 60
    ranker.partial_fit(lists.X[:10], lists.labels[:10], qid=0)
    assert ranker.model_.ranges is before
    assert ranktron.HingePerceptron().partial_fit(lists.X, lists.labels, group=group).model_.ranges is None  # a stream


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("columns", np.array([0, 0, 1])),
        ("columns", np.array([0, 1, 7])),
        ("queries", -1),
        ("quantiles", np.zeros((3, QUANTILES))),
        ("shares", np.full((3, BINS), np.nan, np.float32)),
        ("spread", np.zeros((2, BINS), np.float32)),
        ("partners", np.full((3, 2), 3, np.int32)),
        ("correlations", np.zeros((3, 2, 3), np.float32)),
    ],
)
def test_forged_ranges_are_refused(name, value):
    content = deserialize(trained("hinge", Separable(features=3).rounds(60)).to_bytes())
    content["ranges"][name] = value
    with pytest.raises(DataError, match="ranges of 3 features"):
        Model.from_bytes(serialize(content))
