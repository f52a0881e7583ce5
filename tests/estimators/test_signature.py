import inspect
import pydoc
from typing import Literal

import pytest

import ranktron
from ranktron.training.algorithms import ALGORITHMS

CLASSES = [getattr(ranktron, each.estimator) for each in ALGORITHMS.values()]
every_ranker = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def test_an_unknown_parameter_is_answered_with_the_nearest_and_with_all():
    with pytest.raises(TypeError, match="HingePerceptron has no parameter 'ata': did you mean 'eta'") as refused:
        ranktron.HingePerceptron(ata=0.1)
    assert "It has eta, margin, average, n_epochs" in str(refused.value)
    with pytest.raises(TypeError, match="RankSVM has no parameter 'zzz'; it has C, loss"):
        ranktron.RankSVM(zzz=1)


@every_ranker
def test_parameters_are_keyword_only(cls):
    first = next(iter(inspect.signature(cls).parameters))
    with pytest.raises(TypeError) as refused:
        cls(0.1)
    assert str(refused.value) == (
        f"the parameters of {cls.__name__} are keyword-only: write {cls.__name__}({first}=0.1)"
    )


@every_ranker
def test_help_shows_the_real_parameters(cls):
    told = pydoc.plain(pydoc.render_doc(cls))
    # Python 3.13 tells of inherited methods where they come from, which for some of scikit-learn is a function's inside
    assert not [line for line in told.splitlines() if "<locals>" in line and "from sklearn." not in line]
    assert "**given" not in told
    for parameter in inspect.signature(cls).parameters.values():
        assert f"{parameter.name}: " in told
        assert parameter.annotation is not inspect.Parameter.empty
    assert inspect.signature(cls).parameters["ungrouped"].default == "error"


def test_types_are_choices_declarations_or_those_of_defaults():
    parameters = inspect.signature(ranktron.RankSVM).parameters
    scalings = Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"]
    expected = {"C": float, "n_epochs": int, "loss": Literal["squared", "hinge"], "scale": scalings | None}
    assert {name: parameters[name].annotation for name in expected} == expected
