"""The comparison of all learners: who takes part, that the test part decides nothing, and what the table says."""

import numpy as np
import pytest

from ranktron import Rounds, metric
from ranktron.data import io
from ranktron.data.synthetic import WebSearch
from ranktron.metrics import compare
from ranktron.papers import comparison
from ranktron.papers.harness import comparison_cells, data
from ranktron.training.algorithms import ALGORITHMS

NAMES = comparison_cells.names()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two folds of small noisy lists, raw."""
    root = tmp_path_factory.mktemp("data") / "ohsumed-letor2"
    lists = WebSearch(features=5, documents=6).rounds(40)
    lists = Rounds.from_arrays(5.0 * lists.X, np.minimum(lists.labels, 2), group=np.diff(lists.offsets))
    for number, start in (1, 0), (2, 20):
        for part, (a, b) in {"train": (0, 10), "vali": (10, 15), "test": (15, 20)}.items():
            path = root / f"Fold{number}" / f"{part}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            io.write(lists[start + a : start + b], path)
    return root


def measured(name, folder):
    if name == comparison_cells.BOOSTER:
        return comparison_cells.measure_boosting(0, 20, folder, 1)
    return comparison_cells.measure_system(name, 0, folder, 1)


def test_every_algorithm_of_the_table_takes_part():
    assert {system.algorithm for system in comparison_cells.SYSTEMS.values()} == set(ALGORITHMS)
    assert {series.name for one in comparison.PAPER.experiments for series in one.series} == set(NAMES)
    assert [one.data for one in comparison.PAPER.experiments] == ["ohsumed-letor3", "ohsumed-letor2", "mq2008"]
    for name, system in comparison_cells.SYSTEMS.items():
        known = {parameter.name for parameter in ALGORITHMS[system.algorithm].parameters}
        assert {*system.parameters, *system.grid} <= known, name


@pytest.mark.parametrize("name", NAMES)
def test_the_test_part_has_no_say(name, folder, monkeypatch):
    fold = comparison_cells.scale_raw_fold(str(folder), 0)
    assert (fold.train.X.min(), fold.train.X.max()) == (0.0, 1.0)
    found = measured(name, str(folder))
    assert set(found["queries"]) == set(comparison_cells.METRICS)
    assert all(len(values) == 5 for values in found["queries"].values())
    assert found["seconds"] > 0.0
    turned = Rounds.from_arrays(fold.test.X, 2.0 - fold.test.labels, group=np.diff(fold.test.offsets))
    monkeypatch.setattr(comparison_cells, "scale_raw_fold", lambda *_: fold._replace(test=turned))
    again = measured(name, str(folder))
    assert again["chosen"] == found["chosen"]
    assert again["queries"] != found["queries"]


def results(**shifts):
    """Three seeds, five folds of eight queries: the same noise for everyone, and a shift for each system."""
    rng = np.random.default_rng(0)
    base = 0.5 + 0.1 * rng.normal(size=(5, 8))

    def part(shift, fold):
        own = base[fold] + shift + 0.02 * rng.normal(size=8)
        return {
            "queries": dict.fromkeys(comparison_cells.METRICS, own.tolist()),
            "chosen": {},
            "seconds": 1.0 + 10.0 * shift,
        }

    return {name: [[part(shift, fold) for fold in range(5)] for _ in range(3)] for name, shift in shifts.items()}


def test_the_table_marks_what_is_significantly_worse():
    made = results(middle=0.095, best=0.1, worst=0.0)
    best, p = comparison.against_the_best(made, comparison_cells.SELECT)
    assert best == "best"
    assert p["worst"] < 1e-6
    assert p["middle"] > 0.01
    whole = comparison.evaluations(made)
    raw = compare({name: whole[name] for name in ("best", "worst")}, comparison_cells.SELECT).p_values[
        comparison_cells.SELECT
    ][0, 1]
    assert p["worst"] == pytest.approx(2 * raw)  # Holm: the smaller of two counts twice
    table = comparison.table(made)
    assert [row[0] for row in table.rows][2] == "worst"
    assert {row[0]: "†" in row[1] for row in table.rows}["worst"]
    assert "†" not in {row[0]: row[1] for row in table.rows}["best"]
    values = comparison.by_seed(comparison_cells.SELECT)(made)
    assert values["best"].shape == (3,)
    assert values["best"].mean() == pytest.approx(whole["best"].means[comparison_cells.SELECT])


def test_published_numbers_are_judged_by_the_common_rule():
    claims = [claim for one in comparison.PAPER.experiments for claim in one.claims]
    assert len(claims) == 2 * (3 + 3)
    made = results(**dict.fromkeys(("RankSVM", "ListNet", "RankBoost", "committee"), 0.0))
    assert {claim.rule(claim.values(made)).verdict for claim in claims} <= {
        "reproduced",
        "same ordering, other level",
        "differs",
    }


def test_pictures_show_every_system():
    made = results(**dict.fromkeys(NAMES, 0.0))
    figure = comparison.picture("ohsumed-letor3")(made)
    for panel in figure.panels:
        assert {dot.name for dot in panel.dots} == set(NAMES)
        assert sum(dot.mark is not None for dot in panel.dots) == 3
    assert metric(comparison_cells.SELECT).k == 10
    assert set(comparison.SETS) <= set(data.SOURCES)
