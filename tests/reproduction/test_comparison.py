"""The comparison of all learners: who takes part, that the test part decides nothing, and what the table says."""

import numpy as np
import pytest

from ranktron import Rounds, metric
from ranktron.data import io
from ranktron.data.synthetic import WebSearch
from ranktron.metrics import compare
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.cross_validation import Fold
from reproduction import comparison
from reproduction.datasets.simulations import SIMULATIONS
from reproduction.harness import comparison_cells
from reproduction.harness.experiment import Plan

NAMES = comparison_cells.names()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two folds of small noisy lists, raw."""
    root = tmp_path_factory.mktemp("data") / "ohsumed-letor2"
    lists = WebSearch(features=5, documents=16).rounds(40)
    lists = Rounds.from_arrays(5.0 * lists.X, np.minimum(lists.labels, 2), group=np.diff(lists.offsets))
    for number, start in (1, 0), (2, 20):
        for part, (a, b) in {"train": (0, 10), "vali": (10, 15), "test": (15, 20)}.items():
            path = root / f"Fold{number}" / f"{part}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            io.write(lists[start + a : start + b], path)
    return root


def measured(name, **source):
    if name in comparison_cells.BOOSTERS:
        return comparison_cells.measure_boosting(name, 20, (0.05, 0.1), 1, **source)
    return comparison_cells.measure_system(name, 1, **source)


def test_every_algorithm_of_the_table_takes_part_in_every_table():
    assert {system.algorithm for system in comparison_cells.SYSTEMS.values()} == set(ALGORITHMS)
    for one in comparison.PAPER.experiments:
        assert [series.name for series in one.series] == NAMES
    real = [*comparison_cells.LETOR_SETS, "mslr-sample", "yandex-imat2009-sample"]
    assert [one.data for one in comparison.PAPER.experiments] == [*real, None, None]
    assert set(comparison.SETS) == set(comparison_cells.SCALING) == {*real, *SIMULATIONS}
    for name, system in comparison_cells.SYSTEMS.items():
        known = {parameter.name for parameter in ALGORITHMS[system.algorithm].parameters}
        assert {*system.parameters, *system.grid} <= known, name


def test_a_library_that_is_not_installed_drops_its_row(monkeypatch):
    monkeypatch.setattr(comparison_cells, "find_spec", lambda package: None if package == "xgboost" else package)
    assert comparison_cells.names() == [*comparison_cells.SYSTEMS, "LightGBM", "CatBoost"]
    one = comparison.compare_systems("web")
    assert [series.name for series in one.series] == comparison_cells.names()


def test_development_sets_are_marked():
    for one in comparison.PAPER.experiments:
        assert ("development set" in one.about) == (one.data in comparison_cells.LETOR_SETS), one.name


@pytest.mark.parametrize("name", NAMES)
def test_the_test_part_has_no_say(name, folder, monkeypatch):
    fold = comparison_cells.scaled_fold(folder=str(folder))
    assert (fold.train.X.min(), fold.train.X.max()) == (0.0, 1.0)
    found = measured(name, folder=str(folder))
    assert set(found["queries"]) == set(comparison_cells.METRICS)
    assert all(len(values) == 5 for values in found["queries"].values())
    assert found["seconds"] > 0.0
    turned = Rounds.from_arrays(fold.test.X, 2.0 - fold.test.labels, group=np.diff(fold.test.offsets))
    monkeypatch.setattr(comparison_cells, "scaled_fold", lambda **_: fold._replace(test=turned))
    again = measured(name, folder=str(folder))
    assert again["chosen"] == found["chosen"]
    assert again["queries"] != found["queries"]


def test_every_variant_is_counted(folder):
    pytest.importorskip("lightgbm")
    tried = {name: measured(name, folder=str(folder))["tried"] for name in ("ListNet", "RankSVM", "LightGBM")}
    assert tried == {"ListNet": 3 * 30, "RankSVM": 6, "LightGBM": 2 * 2 * 2}  # steps × passes; costs; 10 and 20 trees


def test_validation_chooses_the_trees(folder, monkeypatch):
    """Scores that are right with the small trees at the second rate only, and after 20 trees only."""
    grown = []

    def grow(part, setting, trees, seed):
        grown.append((setting["max_depth"], setting["learning_rate"], trees))
        right = (setting["max_depth"], setting["learning_rate"]) == (3, 0.1)
        return lambda lists, kept: lists.labels * (1.0 if right and kept == 20 else -1.0)

    fake = comparison_cells.Booster("none", ({"max_depth": 3}, {"max_depth": 5}), grow)
    monkeypatch.setattr(comparison_cells, "BOOSTERS", {"XGBoost": fake})
    found = comparison_cells.measure_boosting("XGBoost", 30, (0.05, 0.1), 0, folder=str(folder))
    assert grown == [(3, 0.05, 30), (3, 0.1, 30), (5, 0.05, 30), (5, 0.1, 30)]
    assert found["chosen"] == {"max_depth": 3, "learning_rate": 0.1, "trees": 20}
    assert found["tried"] == 4 * 3


@pytest.mark.parametrize("name", NAMES)
def test_everyone_learns_from_labels_with_decimals(name, monkeypatch):
    """As Yandex has them; its lists are short, which LETOR's metrics punish and ours do not."""
    lists = WebSearch(features=5, documents=6).rounds(30)
    lists = Rounds.from_arrays(lists.X, lists.labels + 0.07 * (lists.labels > 0), group=np.diff(lists.offsets))
    fold = Fold("one", lists[:16], lists[16:23], lists[23:])
    monkeypatch.setattr(comparison_cells, "cached_folds", lambda _: [fold])
    found = measured(name, folder=f"{name}/yandex-imat2009-sample")
    assert min(found["queries"]["NDCG@10"]) > 0.0


def test_simulations_need_no_folder():
    one = next(one for one in comparison.PAPER.experiments if one.name == "decisive")
    series = next(series for series in one.series if series.name == "RankSVM")
    [[cell]] = series.cells(Plan(quick=True), None)
    found = comparison_cells.measure_system(**cell.arguments, seed=cell.seed)
    assert len(found["queries"]["MAP"]) == cell.arguments["queries"] // 3
    fold = comparison_cells.scaled_fold(simulation="decisive", queries=60)
    assert np.allclose(fold.train.X.mean(axis=0), 0.0, atol=1e-4)  # standardised on the training part alone
    assert not np.allclose(fold.test.X.mean(axis=0), 0.0, atol=1e-4)


def results(**shifts):
    """Three seeds, five folds of eight queries: the same noise for everyone, and a shift for each system."""
    rng = np.random.default_rng(0)
    base = 0.5 + 0.1 * rng.normal(size=(5, 8))

    def part(shift, fold):
        own = base[fold] + shift + 0.02 * rng.normal(size=8)
        return {
            "queries": dict.fromkeys(comparison_cells.METRICS, own.tolist()),
            "chosen": {},
            "tried": 7,
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
    raw = compare({name: whole[name] for name in ("best", "worst")}, "ndcg@10").p_values["ndcg@10"][0, 1]
    assert p["worst"] == pytest.approx(2 * raw)  # Holm: the smaller of two counts twice
    table = comparison.table(made)
    assert [row[0] for row in table.rows][2] == "worst"
    assert {row[0]: "†" in row[1] for row in table.rows}["worst"]
    assert "†" not in {row[0]: row[1] for row in table.rows}["best"]
    values = comparison.by_seed(comparison_cells.SELECT)(made)
    assert table.columns[-2] == "variants"
    assert [row[-2] for row in table.rows] == [7, 7, 7]
    assert "21 variants" in table.title
    assert values["best"].shape == (3,)
    assert values["best"].mean() == pytest.approx(whole["best"].means["ndcg@10"])


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
    for spelled in comparison_cells.LETOR, comparison_cells.OWN:
        assert metric(spelled[comparison_cells.SELECT]).k == 10
    assert comparison_cells.metrics_of(folder="/data/MQ2008", fold=1) == comparison_cells.LETOR
    assert comparison_cells.metrics_of(simulation="web", queries=6) == comparison_cells.OWN
