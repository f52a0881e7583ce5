"""The simulated sets: what a fold holds, and that the parts are different lists of one stream."""

import numpy as np
import pytest

from reproduction.datasets.simulations import SIMULATIONS, simulated_fold


@pytest.mark.parametrize("name", SIMULATIONS)
def test_a_fold_divides_the_first_queries(name):
    fold = simulated_fold(name, 12)
    assert [len(part) for part in fold[1:]] == [6, 2, 4]
    qids = [qid for part in fold[1:] for qid in part.qids.tolist()]
    assert qids == [str(number) for number in range(12)]
    stream = SIMULATIONS[name]
    assert np.array_equal(fold.test.X, stream.rounds(4, skip=8).X)
    assert np.array_equal(simulated_fold(name, 12).train.X, fold.train.X)
    assert fold.train.n_features == 136
    assert set(np.unique(fold.train.labels)) <= {0.0, 1.0, 2.0, 3.0, 4.0}


def lead_of_the_strongest(name):
    """How much more the labels follow the six strongest features, or their sizes, than those in the middle."""
    lists = SIMULATIONS[name].rounds(30)
    Z = np.log(lists.X.astype(float)) if name == "decisive" else lists.X.astype(float)
    strength = np.abs([np.corrcoef(column, lists.labels)[0, 1] for column in np.column_stack([Z, np.abs(Z)]).T])
    return np.sort(strength)[-6:].mean() / np.median(strength)


def test_few_features_decide_the_decisive_lists():
    assert lead_of_the_strongest("decisive") > 1.5 * lead_of_the_strongest("web")
