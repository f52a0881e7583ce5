import numpy as np
import pytest

from ranktron import Model
from ranktron.data.scaling import Global

NAMES = ("bm25(title)", "age", "clicks")


@pytest.fixture
def linear():
    """Makes a fixed linear model of three features, with the scaling (name, shift, divisor) that is asked for."""

    def make(weights=(0.3, 0.5, -0.1), scaling=None, constant=0.0, names=NAMES):
        state = {"coef": np.array(weights, float), "constant": constant}
        scaler = None if scaling is None else Global(scaling[0], *(np.array(each, float) for each in scaling[1:]))
        return Model("linear", {}, state, len(weights), feature_names=names, scaler=scaler)

    return make
