"""The validation set of a fit: the metric that chooses, and when there is no point in going on."""

import numpy as np
import pytest

import ranktron
from ranktron import DataError
from ranktron.data.synthetic import WebSearch
from ranktron.learners.checks import same
from ranktron.learners.schedule import PATIENCE
from ranktron.training.algorithms import ALGORITHMS

LISTS = WebSearch(features=5, documents=8).rounds(60)
QID = np.repeat(np.arange(60), np.diff(LISTS.offsets))
X, Y = LISTS.X, LISTS.labels
TRAIN, VALID = QID < 40, QID >= 40
PARTS = {"qid": QID[TRAIN], "eval_set": (X[VALID], Y[VALID]), "eval_qid": QID[VALID]}

IN_PASSES = [getattr(ranktron, a.estimator) for a in ALGORITHMS.values() if a.name not in ("ranksvm", "smoothrank")]


def fitted(ranker, **more):
    return ranker.fit(X[TRAIN], Y[TRAIN], **PARTS, **more)


def values(ranker, name="ndcg@10"):
    return [each[name] for each in ranker.history_.valid]


@pytest.mark.parametrize("cls", IN_PASSES, ids=lambda cls: cls.__name__)
def test_passes_in_a_row_that_are_no_better_are_the_last_ones(cls):
    """What is kept is what all passes would have kept, had they ended there."""
    made = {"random_state": 0, "n_epochs": 30}
    counts = "n_rounds" if cls in (ranktron.RankBoost, ranktron.LambdaMART) else "n_epochs"
    if counts == "n_rounds":
        made = {"n_rounds": 60}
    if cls is ranktron.RankMM:
        made |= {"step": "paper"}
    whole, patient = fitted(cls(**made)), fitted(cls(**made), patience=3)
    seen = values(patient)
    assert seen == values(whole)[: len(seen)]
    best = int(np.argmax(seen))
    ends = next((n + 1 for n in range(len(values(whole))) if n - int(np.argmax(values(whole)[: n + 1])) == 3), 60)
    assert len(seen) == min(ends, len(values(whole)))
    if len(seen) < len(values(whole)):
        assert patient.history_.remarks[PATIENCE] == 3
        assert len(seen) - 1 - best == 3
    assert patient.history_.epoch == best + 1
    assert not patient.history_.interrupted
    kept = fitted(cls(**made | {counts: best + 1}))
    assert same(patient.learner_.state(), kept.learner_.state())


def test_patience_of_the_exact_solver_keeps_the_best_pass_on_the_validation_set():
    ranker = fitted(ranktron.RankMM(C=1e4, tol=1e-12), patience=2)
    assert len(values(ranker)) < 1000
    assert ranker.score(X[VALID], Y[VALID], qid=QID[VALID]) == pytest.approx(max(values(ranker)))
    assert ranker.history_.epoch == int(np.argmax(values(ranker))) + 1


@pytest.mark.parametrize("name", ["map", "ndcg@1:letor", "inversions"])
def test_any_metric_chooses_the_pass(name):
    ranker = fitted(ranktron.SLAMPerceptron(n_epochs=12, random_state=1), eval_metric=name)
    found = values(ranker, name)
    best = np.argmin(found) if name == "inversions" else np.argmax(found)
    assert ranker.history_.epoch == best + 1
    assert len(set(found)) > 1
    assert ranker.score(X[VALID], Y[VALID], qid=QID[VALID], metric=name) == pytest.approx(found[best])
    assert ranker.history_.best_values == {name: found[best]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"patience": 3}, "patience= is about a validation set"),
        ({"eval_metric": "map"}, "eval_metric= is about a validation set"),
        (PARTS | {"patience": 0}, "patience must be a whole number of at least 1"),
        (PARTS | {"patience": 2.5}, "patience must be a whole number of at least 1"),
        (PARTS | {"eval_metric": "mapp"}, "did you mean"),
    ],
)
def test_what_means_nothing_is_refused(given, said):
    ranker = ranktron.HingePerceptron()
    with pytest.raises(DataError, match=said):
        ranker.fit(X[TRAIN], Y[TRAIN], **{"qid": QID[TRAIN], **given})
    assert not hasattr(ranker, "learner_")
