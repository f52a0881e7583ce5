"""A model with a running scaling is served with the estimate that it came with."""

import numpy as np
import pytest

import ranktron
from ranktron.store.rankers.models import warm
from ranktron.training.model import Model


@pytest.mark.filterwarnings("ignore:the feature 0 tells the label:ranktron.RankingWarning")
def test_the_estimate_stays_while_the_weights_learn(talk, lists):
    seen = list(lists(20))
    X, labels = (np.concatenate(each) for each in zip(*seen, strict=True))
    sizes = [len(each) for each, _ in seen]
    ranker = ranktron.HingePerceptron(scale="running-standard").partial_fit(X * 50.0 + 7.0, labels, group=sizes)
    warm(ranker.model_, 2)
    talk.make(algorithm="hinge")
    content = ranker.model_.to_bytes()
    talk.ask("POST", "/v1/rankers/shop/model", content=content, content_type="application/octet-stream")
    shown = talk.rank(X[:6] * 50.0 + 7.0)
    assert [int(ranked["id"][1:]) for ranked in shown["ranking"]] == ranker.rank(X[:6] * 50.0 + 7.0).tolist()
    worst = shown["ranking"][-1]["id"]
    talk.tell(shown["round"], {ranked["id"]: float(ranked["id"] == worst) for ranked in shown["ranking"]})
    after = Model.from_bytes(talk.ask("GET", "/v1/rankers/shop/model"))
    assert not np.array_equal(after.coef, ranker.coef_)
    assert after.scaler.count == len(X)
    np.testing.assert_array_equal(after.scaler.divisor, ranker.model_.scaler.divisor)
