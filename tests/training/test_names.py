"""The names of the package are found when they are asked for, and no others."""

import pytest

from ranktron import training
from ranktron.training import fit


def test_the_names_are_those_of_the_fit():
    assert [training.__getattr__(name) for name in training.__all__] == [
        getattr(fit, name) for name in training.__all__
    ]


@pytest.mark.parametrize("name", ["nothing", "Fit", "np"])
def test_nothing_else_is_found(name):
    with pytest.raises(AttributeError, match=f"'ranktron.training' has no attribute {name!r}"):
        training.__getattr__(name)
