"""Whatever version 0.1.0 stored is read for ever, and means what it meant: `write.py` made the folder `0.1.0`."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ranktron.training.stored_defaults import STORED_DEFAULTS

import ranktron
from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.training import algorithms
from ranktron.training.model import Model

HERE = Path(__file__).parent / "0.1.0"
MODELS = sorted(path.stem for path in (HERE / "models").glob("*.model"))
DEFAULTS = json.loads((HERE / "defaults.json").read_text())
PREDICTIONS = json.loads((HERE / "models" / "predictions.json").read_text())


def documents():
    """The first two lists of `write.lists(40, 1)`."""
    rng = np.random.default_rng(1)
    return np.concatenate([rng.normal(size=(6, 3)).astype(np.float32) for _ in range(2)])


@pytest.fixture
def other_defaults(monkeypatch):
    """A later version in which every number that is a default is another one."""

    def changed(parameter):
        if isinstance(parameter.default, bool) or parameter.choices or not isinstance(parameter.default, int | float):
            return parameter
        return replace(parameter, default=type(parameter.default)(2 * parameter.default + 1))

    for name, each in algorithms.ALGORITHMS.items():
        other = replace(each, parameters=tuple(map(changed, each.parameters)))
        monkeypatch.setitem(algorithms.ALGORITHMS, name, other)


@pytest.fixture
def state(tmp_path):
    """The folder of a server that has never taken a snapshot: everything is replayed."""
    shutil.copytree(HERE / "state", tmp_path / "state")
    shutil.rmtree(tmp_path / "state" / "snapshots")
    return tmp_path / "state"


def opened(folder):
    service = RankingService(folder, Config())
    service.journal.close()
    return service


def test_the_frozen_defaults_are_those_of_0_1_0():
    assert {name: {**STORED_DEFAULTS[name], **rows} for name, rows in DEFAULTS.items()} == {
        name: dict(rows) for name, rows in STORED_DEFAULTS.items() if name in DEFAULTS
    }


def test_every_parameter_has_a_frozen_default():
    for name, each in algorithms.ALGORITHMS.items():
        assert STORED_DEFAULTS[name].keys() == {parameter.name for parameter in each.parameters}


@pytest.mark.parametrize("name", MODELS)
def test_models_predict_the_same(name, other_defaults):
    scores = ranktron.load(HERE / "models" / f"{name}.model").predict(documents(), np.repeat([0, 1], 6))
    np.testing.assert_allclose(scores, PREDICTIONS[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in MODELS if not name.endswith("left-out")])
def test_models_are_written_again_to_the_same_bytes(name):
    path = HERE / "models" / f"{name}.model"
    assert ranktron.load(path).to_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", [name for name in MODELS if name.endswith("left-out")])
def test_models_get_the_parameters_that_they_left_out(name, other_defaults):
    model = ranktron.load(HERE / "models" / f"{name}.model")
    assert model.parameters == {**STORED_DEFAULTS[model.kind], **DEFAULTS[model.kind]}
    assert Model.from_bytes(model.to_bytes()).parameters == model.parameters


def test_models_made_by_hand_store_every_parameter():
    model = Model("hinge", {"eta": 0.5}, ranktron.learners.hinge_perceptron(2).state(), 2)
    assert model.parameters == {"eta": 0.5, "margin": 1.0, "average": False}


@pytest.mark.parametrize("name", ["lists", "wide"])
def test_stores_open(name):
    stored, text = (ranktron.read(HERE / "stores" / f"{name}.{ending}") for ending in ("rounds", "txt"))
    dense = [rounds.X.dense() if isinstance(rounds.X, ranktron.Sparse) else rounds.X for rounds in (stored, text)]
    np.testing.assert_array_equal(*dense)
    np.testing.assert_array_equal(stored.labels, text.labels)
    np.testing.assert_array_equal(stored.qids, text.qids)


def test_a_state_folder_without_snapshots_replays_to_the_same_bytes(state, other_defaults):
    service = opened(state)
    versions = json.loads((HERE / "versions.json").read_text())
    assert {name: live.version for name, live in service.live_rankers.items()} == versions
    for name, live in service.live_rankers.items():
        served = (HERE / "served" / f"{name}.model").read_bytes()
        # the model that was put in the place of another had left its parameters out: they are complete now
        expected = Model.from_bytes(served).to_bytes() if name == "trained" else served
        assert live.model.to_bytes() == expected, name
        assert len(live.open) == (2 if name == "trained" else 3), name  # its first one, the other model had shown


def test_a_state_folder_with_snapshots_opens_with_the_same_bytes(tmp_path, other_defaults):
    shutil.copytree(HERE / "state", tmp_path / "state")
    for name, live in opened(tmp_path / "state").live_rankers.items():
        assert live.model.to_bytes() == Model.from_bytes((HERE / "served" / f"{name}.model").read_bytes()).to_bytes()


def test_definitions_are_completed_on_disk_and_0_1_0_could_still_read_them(state, other_defaults):
    opened(state)
    with closing(sqlite3.connect(state / "log.sqlite")) as connection, connection:
        rows = connection.execute("SELECT definition, asked FROM rankers WHERE NOT deleted ORDER BY id").fetchall()
    for definition, asked in rows:
        stored, sent = json.loads(definition), json.loads(asked)
        assert stored == {**sent, "parameters": {**DEFAULTS[sent["algorithm"]], **sent["parameters"]}}
        assert stored.keys() == {"features", "algorithm", "parameters", "labels"}


def test_newer_parameters_are_written_where_they_change_something():
    lists = [[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]], [0, 1, 2]
    plain = ranktron.TopKRanker(k=2).fit(*lists, qid=0).model_
    priced = ranktron.TopKRanker(k=2, exploration_price=0.5).fit(*lists, qid=0).model_
    assert b"exploration_price" not in plain.to_bytes()
    assert ranktron.Model.from_bytes(plain.to_bytes()).parameters == plain.parameters
    assert ranktron.Model.from_bytes(priced.to_bytes()).parameters["exploration_price"] == 0.5
