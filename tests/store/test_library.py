"""The service is the library: the same users, seeds and rounds give the same rankings, weights and quality, exactly."""

import numpy as np
import pytest

from ranktron import metric, play
from ranktron.data.synthetic import WebSearch
from ranktron.learners.feedback import full, top
from ranktron.training.algorithms import ALGORITHMS

NDCG = metric("ndcg@10")
ROUNDS = WebSearch(features=8).rounds(400)


def serve_to_users(talk, k, rounds=ROUNDS):
    """Users who label the first k documents that they are shown; the NDCG@10 of each ranking."""
    values = []
    for round in rounds:
        shown = talk.rank(round.X)
        order = [int(ranked["id"][1:]) for ranked in shown["ranking"]]
        values.append(NDCG(round.labels[np.array(order)]))
        talk.tell(shown["round"], {f"d{item}": float(round.labels[item]) for item in order[:k]})
    return values


@pytest.mark.parametrize(
    ("surrogate", "k", "setting"),
    [
        ("ranksvm", 2, "recommended"),
        ("squared", 1, "recommended"),
        ("kl", 1, "paper"),
        ("smooth-dcg", 1, "paper"),
    ],
)
def test_users_at_the_top_teach_the_service_what_they_teach_the_library(talk, surrogate, k, setting):
    parameters = {"surrogate": surrogate, "k": k, "preset": setting, "seed": 7}
    talk.make(features=8, parameters=parameters)
    learner = ALGORITHMS["topk"].learner(8, parameters)
    expected = [turn.values[0] for turn in play(learner, ROUNDS, top(k), [NDCG])]
    assert serve_to_users(talk, k) == expected
    assert (talk.weights() == learner.w).all()
    assert (talk.service.model("shop").coef == learner.coef).all()
    if surrogate == "ranksvm":  # and they do teach it something
        assert np.mean(expected[-100:]) > np.mean(expected[:100])


@pytest.mark.parametrize("name", ["hinge", "slam", "listnet", "minimax", "predtron", "pairwise", "committee"])
def test_full_feedback_is_that_of_the_library(talk, name):
    talk.make(features=8, algorithm=name)
    learner = ALGORITHMS[name].learner(8, {})
    for turn, round in zip(play(learner, ROUNDS[:60], full), ROUNDS[:60], strict=True):
        documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(round.X.tolist())]
        labels = {f"d{i}": label for i, label in enumerate(round.labels.tolist())}
        answer = talk.ask("POST", "/v1/rankers/shop/full", {"documents": documents, "labels": labels})
        assert answer["loss"] == turn.loss
    assert talk.service.live("shop").model.to_bytes() == _model(talk, learner)


@pytest.mark.parametrize("name", ["hinge", "listnet", "predtron", "committee"])
def test_partial_labels_teach_a_full_feedback_learner_what_they_do_in_the_library(talk, name):
    talk.make(features=8, algorithm=name)
    learner = ALGORITHMS[name].learner(8, {})
    for _ in play(learner, ROUNDS[:60], top(4)):
        pass
    serve_to_users(talk, 4, ROUNDS[:60])
    assert talk.service.live("shop").model.to_bytes() == _model(talk, learner)


def test_clicks_teach_the_service_what_they_teach_the_library(talk):
    """Rankings are drawn, and learnt from when most of the list is forgotten: the same weights to the bit."""
    talk.make(features=8, algorithm="pdgd", parameters={"k": 4, "eta": 0.5, "seed": 3})
    learner = ALGORITHMS["pdgd"].learner(8, {"k": 4, "eta": 0.5, "seed": 3})
    expected = [turn.values[0] for turn in play(learner, ROUNDS[:80], top(4), [NDCG])]
    assert serve_to_users(talk, 4, ROUNDS[:80]) == expected
    assert talk.weights().any()
    assert talk.service.live("shop").model.to_bytes() == _model(talk, learner)


def _model(talk, learner):
    from dataclasses import replace

    return replace(talk.service.model("shop"), state=learner.state()).to_bytes()
