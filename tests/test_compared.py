"""The table on the first page: what it says of us leads to what shows it, what it says of others is so, as far as
they are installed."""

import inspect
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "index.md").read_text(encoding="utf-8")
HEAD, *ROWS = re.findall(
    r"^\|(?!---)(.*)\|$", PAGE.partition("## How it compares")[2].partition("\n## ")[0], re.MULTILINE
)
NAMES = [cell.strip() for cell in HEAD.split("|")][1:]
TABLE = {
    name.strip(" *"): dict(zip(NAMES, (cell.strip() for cell in cells), strict=True))
    for name, *cells in (row.split("|") for row in ROWS)
}
X = np.random.default_rng(0).normal(size=(30, 3))
y = np.arange(30) % 3


def test_all_that_we_say_of_ourselves_leads_to_what_shows_it():
    assert NAMES == ["Ranktron", "LightGBM", "XGBoost", "river", "Vowpal Wabbit", "Metarank", "ranx"]
    for what, cells in TABLE.items():
        assert re.fullmatch(r"\[.+\]\(.+\)", cells["Ranktron"]) or cells["Ranktron"] in {"–", "new"}, what


def test_we_say_where_others_are_ahead():
    ahead = [what for what, cells in TABLE.items() if cells["Ranktron"] in {"–", "new"}]
    assert {"GPUs", "fuses runs", "years in production, a community"} <= set(ahead)


def test_boosters_have_no_partial_fit_and_want_queries_in_order():
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    for ranker, name in ((lightgbm.LGBMRanker, "LightGBM"), (xgboost.XGBRanker, "XGBoost")):
        assert TABLE["learns from one query, without retraining"][name] == "–"
        assert not hasattr(ranker, "partial_fit")
        assert TABLE["query ids of any type, in any order"][name] == "–"
    assert "qid" not in inspect.signature(lightgbm.LGBMRanker.fit).parameters
    with pytest.raises(Exception, match="non-decreasing"):
        xgboost.XGBRanker(n_estimators=1, n_jobs=1).fit(X, y, qid=np.arange(30) % 5)


def test_river_has_no_metric_of_rankings_and_explains_a_score():
    metrics, linear_model = pytest.importorskip("river.metrics"), pytest.importorskip("river.linear_model")
    assert TABLE["learns to rank: NDCG, AP"]["river"] == "–"
    assert not [name for name in dir(metrics) if re.search("ndcg|dcg|averageprecision|reciprocal", name.lower())]
    assert TABLE["what each feature adds to a score"]["river"] == "✓"
    assert hasattr(linear_model.LinearRegression, "debug_one")


def test_ranx_fuses_and_has_two_ndcgs():
    """By its files: importing it compiles for a minute."""
    found = find_spec("ranx")
    if found is None:
        pytest.skip("ranx is not installed")
    folder = Path(found.origin).parent
    assert TABLE["fuses runs"]["ranx"] == "✓"
    assert (folder / "fusion").is_dir()
    assert TABLE["NDCG as other tools count it"]["ranx"] == "two ways"
    assert set(re.findall(r"^def (ndcg\w*)", (folder / "metrics" / "ndcg.py").read_text(), re.M)) == {
        "ndcg",
        "ndcg_burges",
    }
