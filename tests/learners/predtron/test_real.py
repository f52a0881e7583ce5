"""Real data: one online pass beside scikit-learn's Perceptron and the best constant."""

import numpy as np
import pytest
from sklearn.linear_model import Perceptron

from ranktron import PredtronMultilabel, PredtronOrdinal, PredtronRanker
from reproduction import datasets

pytestmark = pytest.mark.data


def standardised(X):
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)


def shuffled(X, y):
    order = np.random.default_rng(0).permutation(len(X))
    return np.ascontiguousarray(X[order]), y[order]


@pytest.mark.parametrize("name", ["machine", "stock", "wine-red"])
def test_ordinal(data_dir, name):
    given = datasets.examples(name, data_dir)[0]
    X, y = shuffled(standardised(given.X), given.y.astype(int))
    ours = PredtronOrdinal(eta=0.01).partial_fit(X, y, classes=np.unique(y)).online_losses_[0]
    codes = np.searchsorted(np.unique(y), y)
    assert ours < np.abs(codes - np.median(codes)).mean()


def test_multilabel(data_dir):
    given = datasets.examples("emotions", data_dir)[0]
    X, Y = shuffled(standardised(given.X), given.y)
    ours = PredtronMultilabel(eta=0.01).partial_fit(X, Y).online_losses_[0]
    constant = np.minimum(Y.mean(axis=0), 1.0 - Y.mean(axis=0)).sum()
    assert ours < constant
    # Under the subset loss the loss-driven variant is one perceptron per class, one against the rest.
    driven = PredtronMultilabel(loss="subset", variant="loss-driven", average=False, scale=None).partial_fit(X, Y)
    for j in range(6):
        theirs = Perceptron(eta0=1.0).partial_fit(X[:1], Y[:1, j], classes=[0.0, 1.0])
        for i in range(1, 100):
            theirs.partial_fit(X[i : i + 1], Y[i : i + 1, j])
        part = PredtronMultilabel(loss="subset", variant="loss-driven", average=False, scale=None).partial_fit(
            X[:100], Y[:100]
        )
        cosine = (part.coef_[j] @ theirs.coef_[0]) / np.linalg.norm(part.coef_[j]) / np.linalg.norm(theirs.coef_[0])
        assert cosine == pytest.approx(1.0)
    assert driven.online_losses_[0] < 1.0


@pytest.mark.parametrize("representation", ["-i^1.1", "discount"])
def test_ranking(data_dir, representation):
    train, test = (datasets.read_part("mq2008", part, data_dir) for part in ("train", "test"))
    ranker = PredtronRanker(representation=representation, n_epochs=2, average=True, random_state=0)
    ranker.fit(train.X, train.labels, group=np.diff(train.offsets))
    sizes = np.diff(test.offsets)
    score = ranker.score(test.X, test.labels, qid=np.repeat(np.arange(len(sizes)), sizes))
    blank = PredtronRanker().partial_fit(np.zeros((2, 46)), [0, 0], qid=0)
    chance = blank.score(test.X, test.labels, qid=np.repeat(np.arange(len(sizes)), sizes))
    assert score > chance + 0.1
