"""The published results of single features on OHSUMED (LETOR 2.0): MAP, NDCG@1..10 and P@1..10 of 25 features."""

import csv

import numpy as np
import pytest

from ranktron.data.io import read
from ranktron.metrics import evaluate


@pytest.mark.data
def test_all_published_single_feature_results(data_dir):
    folder = data_dir / "ohsumed-letor2"
    rounds = read(sorted(folder.glob("Fold*/test.txt.gz")))
    assert len(rounds) == 106
    with open(folder / "single_features.csv") as file:
        published = [(int(row["feature"]), row["metric"].lower(), float(row["value"])) for row in csv.DictReader(file)]
    assert len(published) == 525
    names = sorted({name for _, name, _ in published})
    ours = {
        (feature, name): value
        for feature in range(1, 26)
        for name, value in zip(
            names, evaluate(rounds, rounds.X[:, feature - 1], [f"{n}:letor" for n in names]).means.values(), strict=True
        )
    }
    wrong = [(f, n, v, ours[f, n]) for f, n, v in published if abs(round(ours[f, n], 6) - v) > 1e-9]
    assert not wrong


@pytest.mark.data
def test_the_convention_matters(data_dir):
    rounds = read(data_dir / "ohsumed-letor2" / "Fold1" / "test.txt.gz")
    names = ["ndcg@10:letor", "ndcg@10:ranklib", "ndcg@10:trec", "ndcg@10:sklearn", "ndcg@10"]
    assert len(set(np.round(list(evaluate(rounds, rounds.X[:, 0], names).means.values()), 6))) == len(names)
