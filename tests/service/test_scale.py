"""Rankers scale features within each list unless told otherwise: units do not matter, and the library agrees."""

import numpy as np
import pytest

from ranktron import play
from ranktron.data.scaling import PerQuery, scale
from ranktron.data.synthetic import WebSearch
from ranktron.export import TARGETS
from ranktron.learners.feedback import top
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.model import Model

ROUNDS = WebSearch(features=8, documents=12).rounds(40)
UNITS = 2.0 ** np.array([-20, 13, 0, 7, -3, 20, 1, -11])  # powers of two: no bit of a quotient changes


def teach(talk, name="shop", units=1.0):
    for round in ROUNDS:
        shown = talk.rank(round.X * units, name)
        seen = [ranked["id"] for ranked in shown["ranking"][:5]]
        talk.tell(shown["round"], {item: float(round.labels[int(item[1:])]) for item in seen}, name)
    return Model.from_bytes(talk.ask("GET", f"/v1/rankers/{name}/model"))


@pytest.mark.parametrize(("algorithm", "scaling"), [("hinge", "standard-query"), ("listnet", "standard-query")])
def test_by_default_a_ranker_learns_what_the_library_learns_from_scaled_lists(talk, algorithm, scaling):
    told = talk.make(features=8, algorithm=algorithm, scale=None)
    learner = ALGORITHMS[algorithm].learner(8, {})
    for _ in play(learner, scale(ROUNDS, PerQuery(8, scaling)), top(5)):
        pass
    model = teach(talk)
    assert (model.coef == learner.coef).all()
    assert told["scale"] == model.scaler.name == scaling


def test_the_units_of_features_do_not_matter(talk):
    talk.make("meters", features=8, algorithm="hinge", scale=None)
    talk.make("miles", features=8, algorithm="hinge", scale=None)
    assert (teach(talk, "meters").coef == teach(talk, "miles", UNITS).coef).all()


def test_algorithms_whose_steps_are_for_features_between_0_and_1_get_these(talk):
    assert talk.make(features=2, algorithm="topk", scale=None)["scale"] == "minmax-query"


def test_without_scaling_a_ranker_sees_features_as_they_come(talk):
    assert "scale" not in talk.make(features=8, algorithm="hinge", scale="none")
    learner = ALGORITHMS["hinge"].learner(8, {})
    for _ in play(learner, ROUNDS, top(5)):
        pass
    assert (teach(talk).coef == learner.coef).all()


def test_the_same_request_finds_its_ranker_and_another_scaling_does_not(talk):
    first = talk.make(features=2, algorithm="hinge", scale=None)
    assert talk.make(features=2, algorithm="hinge", scale="standard-query") == first
    request = {"features": ["f0", "f1"], "algorithm": "hinge", "scale": "none"}
    assert talk.ask("PUT", "/v1/rankers/shop", request, 409) == "exists"
    assert talk.ask("PUT", "/v1/rankers/x", {**request, "scale": "standard"}, 422) == "invalid"


def test_a_restart_keeps_the_scaling(serving, tmp_path):
    with serving(tmp_path) as talk:
        talk.make("shop", features=8, algorithm="hinge", scale=None)
        talk.make("plain", features=8, algorithm="hinge", scale="none")
        before = {name: teach(talk, name).to_bytes() for name in ("shop", "plain")}
        talk.crash()
    with serving(tmp_path) as talk:
        assert talk.make("shop", features=8, algorithm="hinge", scale=None)["scale"] == "standard-query"
        assert "scale" not in talk.make("plain", features=8, algorithm="hinge", scale="none")
        assert {name: talk.ask("GET", f"/v1/rankers/{name}/model") for name in before} == before


def test_the_answer_says_which_engines_can_compute_a_ranker(talk):
    targets = {"none": list(TARGETS), "minmax-query": ["vespa"], "standard-query": []}
    for algorithm in ("topk", "pdgd", "hinge"):
        for scale_name, exports in targets.items():
            name = f"{algorithm}-{scale_name}"
            assert talk.make(name, scale=scale_name, algorithm=algorithm)["exports"] == exports
            assert talk.ask("GET", f"/v1/rankers/{name}")["exports"] == exports
    assert talk.make("kernel", algorithm="kernel")["exports"] == []
