"""The claims of Figure 1 say what the figure shows: losses made up to agree, and to disagree, are judged so."""

import numpy as np
import pytest

from ranktron.papers import predtron
from ranktron.papers.harness.verdicts import DIFFERS, REPRODUCED


def judged(experiment, losses):
    """Each claim of an experiment, on losses (name -> points) that three seeds share but for a little noise."""
    rng = np.random.default_rng(0)
    rows = [[{name: np.array(row) + 1e-4 * rng.random(len(row)) for name, row in losses.items()}] for _ in range(3)]
    return {claim.item: claim.rule(claim.values({"losses": rows})).verdict for claim in experiment.claims}


@pytest.mark.parametrize("place", [1, 2])
def test_longer_lists_lose_more_and_the_first_representation_most(place):
    experiment = predtron.PAPER.experiments[place]
    assert "Figure 1 (b)" in experiment.title
    rising = {predtron.F1: [0.1, 0.2, 0.3, 0.4, 0.5], predtron.F2: [0.05, 0.1, 0.15, 0.2, 0.25]}
    rising[predtron.F3] = rising[predtron.F2]
    assert set(judged(experiment, rising).values()) == {REPRODUCED}
    falling = {name: row[::-1] for name, row in rising.items()}
    growth = {item: verdict for item, verdict in judged(experiment, falling).items() if "f =" in item}
    assert len(growth) == 3
    assert set(growth.values()) == {DIFFERS}
    exchanged = {**rising, predtron.F1: rising[predtron.F2], predtron.F2: rising[predtron.F1]}
    exchanged[predtron.F3] = exchanged[predtron.F2]
    order = {item: verdict for item, verdict in judged(experiment, exchanged).items() if "1/i and" in item}
    assert len(order) == 2
    assert set(order.values()) == {DIFFERS}


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
