"""RankBoost's features in a committee, and a size that validation chooses, on small lists of our own."""

import numpy as np
import pytest

from ranktron.data.rounds import Rounds
from ranktron.data.synthetic import WebSearch
from ranktron.learners.pairwise.outputs import Committee
from ranktron.learners.pairwise.passes import train_outputs
from ranktron.learners.schedule import Schedule
from ranktron.metrics import evaluate
from ranktron.training.cross_validation import Fold
from reproduction.harness import committee_future_cells as cells

LISTS = WebSearch(features=6, documents=10).rounds(60)
DATA = Fold("one", LISTS[:30], LISTS[30:45], LISTS[45:])
NDCG = "ndcg@10:letor"


@pytest.fixture
def one_fold(monkeypatch):
    monkeypatch.setattr(cells, "scale_fold", lambda folder, fold: DATA)


def test_thresholds_become_columns():
    boosted = {"features": np.array([2, 0, 2]), "thresholds": np.array([0.5, 1.0, 0.5]), "alphas": np.ones(3)}
    rounds = Rounds.from_arrays([[0.0, 7.0, 1.0], [2.0, 8.0, 0.0]], [1, 0])
    columns = [[0.0, 1.0], [1.0, 0.0]]  # of feature 0, then of feature 2
    assert cells.with_features(rounds, "its thresholds", boosted).X.tolist() == columns
    assert cells.with_features(rounds, "its features", boosted).X.tolist() == [[0.0, 1.0], [2.0, 0.0]]
    assert cells.with_features(rounds, "both", boosted).X.tolist() == [[0, 7, 1, 0, 1], [2, 8, 0, 1, 0]]
    plain = cells.with_features(rounds, "plain", boosted)
    assert (plain.X.tolist(), plain.labels.tolist()) == (rounds.X.tolist(), [1.0, 0.0])


def test_the_plain_committee_is_the_papers(one_fold):
    found = cells.measure_boosted_features(0, n_rounds=20, epochs=3, folder="", seed=4)
    options = {"alpha_bound": 0.85, "valid": DATA.valid, "select": NDCG, "weigh": NDCG}
    plain = train_outputs(DATA.train, {"com": Committee(30)}, Schedule(3, 4), **options)["com"]
    means = evaluate(DATA.test, plain.learner.ensemble.of_rounds(DATA.test), [NDCG]).means
    assert found["plain"][NDCG] == pytest.approx(means[NDCG], abs=1e-6)
    assert len({str(found[kind]) for kind in cells.FEATURES}) > 1
    assert 1 <= found["columns"] <= 20


def test_validation_chooses_the_size_and_never_the_test_part(one_fold):
    sizes, bounds = (1, 5, 30), (0.6, 0.85)
    found = cells.measure_chosen_size(0, sizes, bounds, epochs=4, folder="", seed=1)
    judged = {}
    for bound in bounds:
        options = {"alpha_bound": bound, "valid": DATA.valid, "select": NDCG, "weigh": NDCG}
        outputs = train_outputs(DATA.train, {n: Committee(n) for n in sizes}, Schedule(4, 1), **options)
        for n in sizes:
            judged[bound, n] = max(means[NDCG] for means in outputs[n].valid)
    assert judged[found["bound"], found["size"]] == max(judged.values())
    assert found["chosen"].keys() == found["fixed"].keys()
