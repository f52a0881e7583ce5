"""Import paths of 0.1.0 keep working for one version, with a warning that says the new path."""

import importlib
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import ranktron

HERE = Path(__file__).parent / "0.1.0"
NAMES = json.loads((HERE / "modules.json").read_text())
GONE = {
    "ranktron.report.predtron": "drew pictures for one page",
    "ranktron.report.rank_mm": "drew pictures for one page",
}


@pytest.fixture(autouse=True)
def forgotten():
    """Each test imports as if for the first time."""
    yield
    for name in [name for name in sys.modules if ranktron._new_place(name)]:
        del sys.modules[name]


def public(name):
    return name not in GONE and not name.startswith("ranktron.cli.")


@pytest.mark.parametrize("name", sorted(filter(public, NAMES)))
def test_modules_are_found_at_their_new_place(name):
    new = ranktron._new_place(name)
    if new is None:
        importlib.import_module(name)
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = importlib.import_module(name)
    assert f"{name} has moved to {new}" in [str(warning.message) for warning in told]
    assert {warning.category for warning in told} == {DeprecationWarning}
    assert found is importlib.import_module(new)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in sorted(NAMES) if NAMES[name]["documented"]])
def test_what_0_1_0_documented_is_still_there(name):
    module = importlib.import_module(name)
    missing = [each for each in NAMES[name]["documented"] if not hasattr(module, each)]
    assert not missing


def test_the_warning_names_the_line_of_the_import(tmp_path):
    program = tmp_path / "old.py"
    program.write_text("import ranktron\nfrom ranktron.simulate import Separable\nranktron.model.load\n")
    done = subprocess.run([sys.executable, "-W", "always", program], capture_output=True, text=True, check=True)
    assert f"{program}:2: DeprecationWarning: ranktron.simulate has moved to ranktron.data.synthetic" in done.stderr
    assert f"{program}:3: DeprecationWarning: ranktron.model has moved to ranktron.training.model" in done.stderr


def test_a_module_below_a_moved_package_is_not_loaded_twice():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = importlib.import_module("ranktron.io.letor")
    assert old is importlib.import_module("ranktron.data.io.letor")
    assert old.__name__ == "ranktron.data.io.letor"


def test_short_names_of_modules_do_not_warn():
    assert ranktron.feedback.full is importlib.import_module("ranktron.learners.feedback").full
    assert ranktron.synthetic.Separable is importlib.import_module("ranktron.data.synthetic").Separable


def test_the_service_is_found_by_its_old_name():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        office = importlib.import_module("ranktron.service.office").Office
    assert office is importlib.import_module("ranktron.service.service").RankingService
    assert "RankingService" in str(told[-1].message)


def test_the_history_of_a_fit_is_found_by_its_old_name():
    ranker = ranktron.HingePerceptron().fit([[1.0], [2.0]], [0, 1], qid=0)
    with pytest.warns(DeprecationWarning, match="history_"):
        assert ranker.course_ is ranker.history_


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("ranktron.nonsense")
    with pytest.raises(AttributeError, match="nonsense"):
        _ = ranktron.nonsense


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["SLAMPerceptron", "TopKRanker", "RankSVM", "PredtronRanker"])
def test_pickled_estimators_predict_the_same(name):
    ranker = pickle.loads((HERE / "estimators" / f"{name}.pickle").read_bytes())
    X = np.random.default_rng(4).normal(size=(6, 3)).astype(np.float32)
    expected = json.loads((HERE / "estimators" / f"{name}.json").read_text())
    np.testing.assert_allclose(ranker.predict(X), expected, rtol=1e-12)
    # 0.1.0 had neither parameter; it took rows without query ids for one list
    expected = getattr(ranktron, name)(ungrouped="one-list", preset="paper").get_params()
    setting = {"preset": "recommended"} if name == "TopKRanker" else {}
    assert ranker.get_params() == {**expected, **setting}
    assert ranker.course_.rounds > 0  # what is called history_ now
