"""Models with a feature map: what clients send and see are the original features, what learns are the mapped ones."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ranktron.data.maps import as_map
from ranktron.data.maps.bins import FittedBins
from ranktron.data.maps.protocols import Additive
from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler
from ranktron.store.rankers.models import warm
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.model import Model
from ranktron.types import Feedback

NAMES = ("f0", "f1", "f2")
MAPS = ["bins:6", "bins-linear:3", "leaves:4"]
KINDS = [name for name, each in ALGORITHMS.items() if each.learner(3, {}).learns_online]


def rounds_of(lists):
    return Rounds.from_arrays(
        np.concatenate([X for X, _ in lists]),
        np.concatenate([labels for _, labels in lists]),
        group=[len(X) for X, _ in lists],
    )


def mapped_model(lists, kind="slam", how="bins:6", scaling="standard", **given):
    rounds = rounds_of(lists)
    scaler = fit_scaler(scaling, rounds)
    rounds = replace(rounds, X=scaler(rounds.X, rounds.offsets))
    fitted = as_map(how).fit(rounds)
    algorithm = ALGORITHMS[kind]
    learner = algorithm.learner(fitted.n_outputs, given)
    return Model(kind, algorithm.complete(given), learner.state(), 3, scaler=scaler, map=fitted)


def start(talk, model, status=200):
    if status == 200:
        warm(model, 2)  # to compile kernels may take longer than a request
    return talk.ask(
        "POST",
        "/v1/rankers/shop/model",
        content=model.to_bytes(),
        content_type="application/octet-stream",
        status=status,
    )


def told(shown, labels):
    return {ranked["id"]: float(labels[int(ranked["id"][1:])]) for ranked in shown["ranking"][:2]}


def learn_beside(model, learner, X, shown, number, labels):
    """What the library learns from the labels of what the service showed."""
    features = model.prepare(Rounds.from_arrays(X, np.zeros(len(X)))).X
    ranking = learner.rank(features, number)
    assert [f"d{item}" for item in ranking.order] == [ranked["id"] for ranked in shown["ranking"]]
    received = Feedback(np.arange(2), np.array([labels[f"d{item}"] for item in ranking.order[:2]]))
    learner.learn_pending(learner.pending(features, ranking, 10), received)


@pytest.mark.parametrize(("kind", "how"), [*product(KINDS, MAPS[:2]), *product(["slam", "topk", "predtron"], MAPS[2:])])
def test_it_learns_what_the_library_learns_and_finds_it_again(serving, tmp_path, lists, kind, how):
    some = list(lists(25))
    model = mapped_model(some, kind, how)
    learner = model.learner()
    talk = serving(tmp_path, snapshot_every=4).__enter__()
    talk.make()
    assert start(talk, model)["map"] == how
    for number, (X, labels) in enumerate(some):
        shown = talk.rank(X)
        assert shown["round"] == number
        given = told(shown, labels)
        talk.tell(number, given)
        learn_beside(model, learner, X, shown, number, given)
    waiting = talk.rank(some[0][0])
    assert talk.service.model("shop").to_bytes() == with_state(talk, learner)
    left = talk.ask("GET", "/v1/rankers/shop/model")
    talk.crash()
    with serving(tmp_path) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == left
        given = told(waiting, some[0][1])
        talk.tell(waiting["round"], given)
        learn_beside(model, learner, some[0][0], waiting, waiting["round"], given)
        assert talk.service.model("shop").to_bytes() == with_state(talk, learner)


def with_state(talk, learner):
    return replace(talk.service.model("shop"), state=learner.state()).to_bytes()


@pytest.mark.parametrize("how", MAPS)
def test_full_lists_and_a_rollback(talk, lists, how):
    some = list(lists(8))
    model = mapped_model(some, "listnet", how)
    learner = model.learner()
    talk.make()
    start(talk, model)
    for number, (X, labels) in enumerate(some):
        documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(X.tolist())]
        grades = {f"d{i}": float(label) for i, label in enumerate(labels)}
        talk.ask("POST", "/v1/rankers/shop/full", {"documents": documents, "labels": grades})
        features = model.prepare(Rounds.from_arrays(X, labels)).X
        learner.learn(features, learner.rank(features, number), Feedback(np.arange(len(X)), labels))
    assert talk.service.model("shop").to_bytes() == with_state(talk, learner)
    before = talk.rank(some[0][0])
    kept = talk.ask("POST", "/v1/rankers/shop/versions")["version"]
    talk.play(3)
    talk.ask("POST", "/v1/rankers/shop/rollback", {"version": kept})
    assert talk.service.model("shop").to_bytes() == with_state(talk, learner)
    assert talk.answer(before)["learned"]  # of the same kind and map: its rounds stay open


@pytest.mark.parametrize("how", MAPS)
def test_people_see_the_original_features(talk, lists, how):
    some = list(lists(30))
    talk.make()
    start(talk, mapped_model(some, "slam", how, average=False))  # the model then has the weights that rank
    talk.play(30)
    X = some[0][0]
    shown = talk.rank(X)
    explained = talk.ask("GET", f"/v1/rankers/shop/explain/{shown['round']}")
    model = talk.service.model("shop")
    parts = model.explain(X).contributions
    for document in explained["documents"]:
        assert tuple(document["contributions"]) == NAMES
        assert sum(document["contributions"].values()) == pytest.approx(document["score"])
        assert list(document["contributions"].values()) == parts[int(document["id"][1:])].tolist()
    board = talk.ask("GET", "/v1/rankers/shop/dashboard")
    assert (board["map"], board["updates"]["window"]) == (how, 30)
    heights = model.explainable.spans(talk.weights()).tolist()
    if isinstance(model.map, Additive):
        assert heights == [np.ptp(model.additive.shape(j, talk.weights()).values) for j in range(3)]
    assert [each["weight"] for each in board["weights"]] == heights == [each["drift"] for each in board["weights"]]
    assert [each["feature"] for each in board["weights"]] == list(NAMES)


def test_a_solved_model_with_a_map_ranks(talk, lists):
    some = list(lists(30))
    model = mapped_model(some, "ranksvm")
    coef = np.random.default_rng(0).normal(size=model.map.n_outputs)
    model = replace(model, state={**model.state, "coef": coef})
    talk.make()
    assert start(talk, model)["learns"] == "nothing"
    shown = talk.rank(some[0][0])
    assert [int(ranked["id"][1:]) for ranked in shown["ranking"]] == model.rank(some[0][0]).tolist()
    explained = talk.ask("GET", f"/v1/rankers/shop/explain/{shown['round']}")["documents"][0]
    assert sum(explained["contributions"].values()) == pytest.approx(explained["score"])
    assert talk.tell(shown["round"], {shown["ranking"][0]["id"]: 1.0}, status=409) == "does_not_learn"


def test_what_is_not_served(talk, lists, serving, tmp_path):
    some = list(lists(30))
    talk.make()

    def refused(model):
        kind = "application/octet-stream"
        answer = talk.request("POST", "/v1/rankers/shop/model", model.to_bytes(), content_type=kind)
        assert answer.status == 422
        return answer.content.decode()

    assert "the map rff:5 are not served, only those with bins:N" in refused(mapped_model(some, "slam", "rff:5"))
    model = mapped_model(some)
    with serving(tmp_path / "small", max_weights=model.map.n_outputs - 1) as small:
        small.make()
        assert start(small, model, status=422) == "bad_model"
    assert talk.ask("GET", "/v1/rankers/shop")["version"] == 0


def test_edges_that_lead_nowhere_are_refused(talk, lists):
    model = mapped_model(list(lists(30)))
    talk.make()
    falling, endless = model.map.edges.copy(), model.map.edges.copy()
    falling[0] = falling[0][::-1]
    endless[1, 0] = -np.inf
    for edges in (falling, endless, np.full_like(falling, np.nan)):
        learner = ALGORITHMS["slam"].learner(FittedBins(6, edges).n_outputs, {})
        broken = replace(model, map=FittedBins(6, edges), state=learner.state())
        assert start(talk, broken, status=422) == "bad_model"


def test_a_map_that_comes_or_goes_closes_the_rounds_of_before(talk, lists):
    some = list(lists(30))
    plain = replace(mapped_model(some), map=None, state=ALGORITHMS["slam"].learner(3, {}).state())
    talk.make()
    for model in (plain, mapped_model(some), mapped_model(some, how="bins:3"), plain):
        before = talk.rank(np.eye(3))
        start(talk, model)
        assert talk.tell(before["round"], {"d0": 1}, status=410) == "round_gone"
        assert talk.answer(talk.rank(np.eye(3)))["learned"]
