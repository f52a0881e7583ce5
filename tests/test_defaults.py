import inspect

import pytest

import ranktron
from ranktron.learners.parameters import PRESETS
from ranktron.training.algorithms import ALGORITHMS, DEFAULT_ALGORITHM, algorithm, common_parameters, find_preset

LISTS = ranktron.synthetic.Separable(documents=6, features=4).rounds(12)
GROUP = [6] * 12
ESTIMATORS = [getattr(ranktron, each.estimator) for each in ALGORITHMS.values()]


@pytest.mark.parametrize("each", ALGORITHMS.values(), ids=lambda each: each.name)
def test_a_default_is_written_once(each):
    names = [p.name for p in each.parameters]
    assert len(set(names)) == len(names)
    assert {p.name: p.default for p in each.parameters} == each.preset(PRESETS[0]) == each.complete({})
    function = getattr(ranktron.learners.algorithms, each.build.__name__)
    width, *keywords = inspect.signature(function).parameters.values()
    assert width.name == "n_features"
    assert {p.name: p.default for p in keywords} == each.preset("paper")
    for p in each.parameters:
        for value in (p.paper, p.default):
            assert repr(p.check(value)) == repr(value)  # of its type and within its limits
        assert p.paper != p.recommended, f"{p.name} is written twice"


def test_only_what_differs_is_recommended():
    for each in ALGORITHMS.values():
        common = {p.name: p for p in common_parameters(ALGORITHMS["hinge"])}
        assert all(common[name].default != value for name, value in each.recommended.items())
    assert DEFAULT_ALGORITHM in ALGORITHMS
    assert find_preset("topk", "paper")["scale"] is None
    assert algorithm("topk").preset("paper")["preset"] == "paper"


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: each.__name__)
def test_estimators_take_the_preset_and_what_is_given_beside_it(estimator):
    name = estimator()._algorithm.name
    for word in PRESETS:
        ranker = estimator(preset=word)
        found = {key: getattr(ranker, key) for key in ("n_epochs", "shuffle", "scale")} | dict(ranker._own_parameters())
        assert found == find_preset(name, word)
    assert estimator(preset="paper", n_epochs=3, scale="minmax").get_params()["n_epochs"] == 3
    assert estimator(preset="paper", scale="minmax").scale == "minmax"
    both = [estimator().set_params(preset="paper"), estimator(preset="paper").set_params(preset=PRESETS[0])]
    assert [each.get_params() for each in both] == [estimator(preset="paper").get_params(), estimator().get_params()]
    kept = estimator(scale="minmax-query").set_params(preset="paper")
    assert kept.scale == "minmax-query"
    with pytest.raises(ranktron.DataError, match="preset must be recommended or paper, not 'best'"):
        estimator(preset="best").fit(LISTS.X, LISTS.labels, group=GROUP)
