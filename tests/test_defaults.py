import ast
import inspect
import warnings
from importlib import import_module

import pytest

import ranktron
from ranktron.cli.options import parse_settings
from ranktron.defaults import HOW, PAPER, PRESETS, RECOMMENDED, find_preset
from ranktron.training.algorithms import ALGORITHMS, DEFAULT_ALGORITHM, algorithm
from ranktron.training.stored_defaults import STORED_DEFAULTS

LISTS = ranktron.synthetic.Separable(documents=6, features=4).rounds(12)
GROUP = [6] * 12
ESTIMATORS = [getattr(ranktron, each.estimator) for each in ALGORITHMS.values()]


def _builder(each):
    module, name = each.builder.split(":")
    return getattr(import_module(module), name)


def _written_defaults(function):
    """The default expressions of a function, as its source has them."""
    (node,) = ast.parse(inspect.getsource(function)).body
    names = [argument.arg for argument in node.args.args]
    return dict(zip(names[len(names) - len(node.args.defaults) :], node.args.defaults, strict=True))


@pytest.mark.parametrize("each", ALGORITHMS.values(), ids=lambda each: each.name)
def test_a_default_is_written_once(each):
    assert {p.name for p in each.parameters} == set(PAPER[each.name]) == set(each.preset("paper"))
    assert {p.name: p.default for p in each.parameters} == each.preset(PRESETS[0]) == each.complete({})
    builder = _builder(each)
    signature = inspect.signature(builder).parameters
    written = _written_defaults(builder)
    for name in PAPER[each.name].keys() & written.keys() - {"setting"}:
        assert not isinstance(written[name], ast.Constant), f"{builder.__name__} has a default of its own for {name}"
        assert signature[name].default == PAPER[each.name][name]
    if "setting" in signature:
        assert signature["setting"].default == PRESETS[0]
    if written:
        assert set(PAPER[each.name]) <= set(signature)


def test_only_what_differs_stands_in_the_recommended_preset():
    for name, values in RECOMMENDED.items():
        for parameter, value in values.items():
            paper = {**HOW["paper"], **PAPER[name]}
            assert type(paper[parameter]) is type(value) or paper[parameter] is None or value is None
            assert {**HOW[PRESETS[0]], **PAPER[name]}[parameter] != value, (name, parameter)
    assert HOW["paper"].keys() == HOW[PRESETS[0]].keys()
    assert DEFAULT_ALGORITHM in ALGORITHMS


def test_the_papers_preset_is_what_0_1_0_did():
    for name, values in STORED_DEFAULTS.items():
        if name != "linear":
            assert {**values, **({"setting": "paper"} if name == "topk" else {})} == algorithm(name).preset("paper")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: each.__name__)
def test_estimators_take_the_preset_and_what_is_given_beside_it(estimator):
    name = estimator()._algorithm.name
    for word in PRESETS:
        ranker = estimator(preset=word)
        found = {key: getattr(ranker, key) for key in HOW[word]} | ranker._own_parameters()
        assert found == find_preset(name, word)
    assert estimator(preset="paper", n_epochs=3, scale="minmax").get_params()["n_epochs"] == 3
    assert estimator(preset="paper", scale="minmax").scale == "minmax"
    both = [estimator().set_params(preset="paper"), estimator(preset="paper").set_params(preset=PRESETS[0])]
    assert [each.get_params() for each in both] == [estimator(preset="paper").get_params(), estimator().get_params()]
    kept = estimator(scale="minmax-query").set_params(preset="paper")
    assert kept.scale == "minmax-query"
    with pytest.raises(ranktron.DataError, match="preset must be recommended or paper, not 'best'"):
        estimator(preset="best").fit(LISTS.X, LISTS.labels, group=GROUP)


def test_setting_is_the_old_name_of_preset():
    with pytest.warns(DeprecationWarning, match="setting of TopKRanker is now preset"):
        ranker = ranktron.TopKRanker(setting="paper")
    assert ranker.get_params() == ranktron.TopKRanker(preset="paper").get_params()
    with pytest.warns(DeprecationWarning, match="setting"):
        assert ranker.setting == "paper"
    with pytest.warns(DeprecationWarning, match="setting"):
        assert ranktron.TopKRanker().set_params(setting="paper").get_params() == ranker.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for word in ("setting", "preset"):  # files and clients of 0.1.0 know the first one
            assert algorithm("topk").complete({word: "paper"})["setting"] == "paper"
            assert algorithm("topk").complete_stored({word: "paper"})["setting"] == "paper"
            assert parse_settings("topk", (f"{word}=paper",)) == {"setting": "paper"}
        assert algorithm("topk").complete_stored({})["setting"] == "recommended"
        state = {**vars(ranker)}
        state["setting"] = state.pop("preset")
        assert ranktron.TopKRanker.__new__(ranktron.TopKRanker).__setstate__(state) is None
