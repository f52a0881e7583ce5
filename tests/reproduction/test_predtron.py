"""The claims of Figure 1 say what the figure shows: losses made up to agree, and to disagree, are judged so."""

import numpy as np

from reproduction import predtron
from reproduction.harness.verdicts import DIFFERS, REPRODUCED


def judged(experiment, losses):
    """Each claim of an experiment, on losses (name -> points) that three seeds share but for a little noise."""
    rng = np.random.default_rng(0)
    rows = [[{name: np.array(row) + 1e-4 * rng.random(len(row)) for name, row in losses.items()}] for _ in range(3)]
    return {claim.item: claim.rule(claim.values({"losses": rows})).verdict for claim in experiment.claims}


def found(losses):
    """Whether Figure 1 (b) comes out where every setting, tried and run again, has these losses (name -> points)."""
    rng = np.random.default_rng(0)

    def seeds(count, parts):
        noisy = lambda row: np.array(row) + 1e-4 * rng.random(len(row))  # noqa: E731
        return [[{name: noisy(row) for name, row in losses.items()} for _ in range(parts)] for _ in range(count)]

    results = {"tried": seeds(3, len(predtron.SETTINGS)), "fresh": seeds(4, len(predtron.FOUND))}
    return {name for name, value in predtron.growth_and_order(results).items() if value[0]}


def test_longer_lists_lose_more_and_the_first_representation_most():
    again = {predtron.describe_setting(setting) for setting in predtron.FOUND}
    rising = {predtron.F1: [0.1, 0.2, 0.3, 0.4, 0.5], predtron.F2: [0.05, 0.1, 0.15, 0.2, 0.25]}
    rising[predtron.F3] = rising[predtron.F2]
    assert found(rising) == again
    assert found({name: row[::-1] for name, row in rising.items()}) == set()
    assert found({**rising, predtron.F1: [0.1, 0.3, 0.2, 0.4, 0.5]}) == set()  # it falls once
    assert found({**rising, predtron.F1: rising[predtron.F2], predtron.F2: rising[predtron.F1]}) == set()


def test_more_lists_and_more_features():
    n = len(predtron.LISTS)
    good = {predtron.F1: [0.2] * n, predtron.F2: [0.0] * n, predtron.F3: [0.0] * n}
    assert set(judged(predtron.PLOT_A, good).values()) == {REPRODUCED}
    bad = {predtron.F1: [0.0] * n, predtron.F2: [0.2] * n, predtron.F3: [0.2] * n}
    assert set(judged(predtron.PLOT_A, bad).values()) == {DIFFERS}
    n = len(predtron.FEATURES)
    flat, steep = [0.1] * n, np.linspace(0.1, 0.5, n).tolist()
    assert set(judged(predtron.PLOT_C, {"l1": flat, "l2": steep}).values()) == {REPRODUCED}
    assert set(judged(predtron.PLOT_C, {"l1": steep, "l2": flat}).values()) == {DIFFERS}
