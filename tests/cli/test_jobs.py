"""Jobs of a first day, by commands and blocks copied from the pages, on a shop's data: text for ids, gaps, categories.

Every command stands on the page that is named beside it; only the data are others.
"""

import csv
import doctest
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from ranktron import load

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

DOCS = Path(__file__).parents[2] / "docs"
CATEGORIES = ("shoes", "hats", "bags")


def shop(seed, queries=40, documents=6):
    """Rows of a shop, those of a query not adjacent; cheap shoes with many stars are best."""
    rng = np.random.default_rng(seed)
    rows = [
        {"query": f"blue thing {seed} {q}", "product_id": f"P{seed}-{q}-{d}", "price": float(rng.normal(20.0, 5.0)),
         "stars": float(rng.integers(1, 6)), "category": CATEGORIES[rng.integers(3)], "title": f"No. {seed} {q} {d}"}
        for q in range(queries) for d in range(documents)
    ]  # fmt: skip
    for row in rows:
        worth = 1.5 * (row["category"] == "shoes") + 0.3 * row["stars"] - 0.1 * (row["price"] - 20.0)
        row["relevance"] = int(np.clip(round(worth + rng.normal(0.0, 0.3)), 0, 3))
        row["price"] = None if rng.random() < 0.05 else row["price"]
    return [rows[i] for i in rng.permutation(len(rows))]


@pytest.fixture
def job(run):
    """Runs the commands of a job, each of which has to stand on the page; returns what they printed."""
    for seed, name in enumerate(("train", "valid", "test", "today")):
        pandas.DataFrame(shop(seed)).to_csv(f"{name}.csv", index=False)

    def play(page, *commands):
        text, printed = " ".join((DOCS / page).read_text(encoding="utf-8").split()), []
        for command in commands:
            assert command in text, f"{page} has no command {command!r}"
            code, out, err = run(*shlex.split(command)[1:])
            assert code == 0, err
            printed.append(out)
        return printed

    play.run = run
    return play


def value(run, model, data="test.csv", *options):
    return json.loads(run("evaluate", model, data, "--json", *options)[1])["metrics"]["ndcg@10"]["mean"]


def test_a_file_with_categories_and_gaps_to_a_model_with_a_report(job):
    described, _, _, _, _ = job(
        "recipes.md",
        "ranktron info train.csv",
        "ranktron train train.csv --categorical auto --nan mean --model shoes.model",
        "ranktron evaluate shoes.model test.csv",
        "ranktron explain shoes.model test.csv --out report.html",
        "ranktron rank shoes.model test.csv -o shoes.txt --format trec",
    )
    assert "category" in described
    assert "title" in described
    assert value(job.run, "shoes.model") > 0.9
    assert f"{value(job.run, 'shoes.model'):.4f}" in Path("report.html").read_text()
    first = Path("shoes.txt").read_text().split()[0]
    assert re.fullmatch(r"blue%20thing%202%20\d+", first)


def test_two_models_are_compared_although_one_ignores_a_column(job):
    job("recipes.md", "ranktron train train.csv --categorical auto --nan mean --model shoes.model")
    assert job.run("train", "train.csv", "--drop", "category,title", "--nan", "mean", "--model", "plain.model")[0] == 0
    (table,) = job("recipes.md", "ranktron compare shoes.model plain.model --data test.csv")
    assert re.search(r"shoes\.model +0\.\d{4} b", table), table


def test_early_stopping(job):
    for name in ("train", "valid"):  # the recipe is about numbers
        frame = pandas.read_csv(f"{name}.csv").drop(columns=["category", "title"])
        frame.fillna(20.0).to_csv(f"{name}.csv", index=False)
    (printed,) = job(
        "recipes.md", "ranktron train train.csv --valid valid.csv --epochs 100 --patience 3 --model best.model"
    )
    passes = float(re.search(r"40, ([\d.]+) passes", printed)[1])
    assert passes < 100
    assert float(re.search(r"best epoch +([\d]+)", printed)[1]) == passes - 3


def test_a_daily_update_goes_on_where_the_model_stopped(job):
    assert job.run("train", "train.csv", "--categorical", "auto", "--nan", "mean", "--model", "daily.model")[0] == 0
    before = load("daily.model").learner().rounds
    job("recipes.md", "ranktron train today.csv --from daily.model --epochs 1 --no-shuffle --model daily.model")
    assert load("daily.model").learner().rounds == before + 40


def test_an_export_is_checked_on_the_data(job):
    for name in ("train", "test"):
        frame = pandas.read_csv(f"{name}.csv").drop(columns=["category", "title"])
        frame.fillna(20.0).to_csv(f"{name}.csv", index=False)
    options = ("--algo", "slam", "--exportable", "--model", "films.model")
    assert job.run("train", "train.csv", *options)[0] == 0
    job(
        "export.md",
        "ranktron export films.model --to elasticsearch -o films.json",
        "ranktron export films.model --to lucene-expression -o films-script.json",
        "ranktron export films.model --to vespa -o films.profile",
        "ranktron push films.model --to elasticsearch --featureset films --dry-run",
    )
    code, out, _ = job.run("export", "films.model", "--to", "solr", "--data", "test.csv", "-o", "films-solr.json")
    assert code == 0
    assert "checked on 40 queries of the data: 0 of" in out


def test_a_click_log_to_a_ranker(job):
    rng = np.random.default_rng(0)
    with open("log.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["impression", "query", "item", "position", "click", "popularity", "text"])
        X = rng.normal(size=(30, 6, 2)).round(3)
        for impression in range(600):
            query = rng.integers(30)
            shown = np.argsort(-X[query, :, 0] + rng.normal(0.0, 1.0, 6))
            for k, item in enumerate(shown, start=1):
                click = int(rng.random() < 1.0 / (1.0 + np.exp(-2.0 * X[query, item, 1])) / k)
                rows.writerow([impression, f"lamp {query}", item, k, click, *X[query, item]])
    job("clicks.md", "ranktron train log.csv --clicks auto --model shop.model")
    popularity, text = load("shop.model").coef
    assert text > 0.0
    assert abs(popularity) < 0.3 * text


def test_a_run_of_a_reranker_is_compared_with_judgments(job):
    assert job.run("train", "train.csv", "--categorical", "auto", "--nan", "mean", "--model", "a.model")[0] == 0
    assert job.run("train", "train.csv", "--features", "stars", "--model", "b.model")[0] == 0
    for name in ("a", "b"):
        assert job.run("rank", f"{name}.model", "test.csv", "-o", f"{name}.run", "--format", "trec")[0] == 0
    judged = pandas.read_csv("test.csv")
    queries = judged["query"].str.replace(" ", "%20")
    lines = [f"{q} 0 {d} {r}\n" for q, d, r in zip(queries, judged["product_id"], judged["relevance"], strict=True)]
    Path("qrels").write_text("".join(lines))
    (table,) = job("metrics.md", "ranktron compare a.run b.run --qrels qrels")
    assert re.search(r"a\.run +0\.\d{4} b", table), table


# what the first block of the page defines, as a shop's data would be
OTHER_DATA = """
import numpy as np
import pandas as pd
import ranktron
lists = ranktron.synthetic.WebSearch(features=6, documents=15, seed=5).rounds(200)
X, y = lists.X, lists.labels
number = np.repeat(np.arange(200), np.diff(lists.offsets))
qid = np.array([f"blue shoes {q:03}" for q in number])
train, valid, test = number < 120, (number >= 120) & (number < 160), number >= 160
"""


def test_the_recipes_in_python_work_on_other_data(run):
    """Comparison with LightGBM, grid search, pipeline, gaps, early stopping, update and export, with text for ids."""
    pytest.importorskip("lightgbm")
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / "recipes.md").read_text(encoding="utf-8"), re.M | re.S)
    names = {}
    exec(OTHER_DATA, names)
    for block in blocks[1:]:
        for example in doctest.DocTestParser().get_examples(block):
            exec(compile(example.source, "recipes.md", "single"), names)
    ours, theirs = (names[name].means["ndcg@10"] for name in ("ours", "theirs"))
    assert 0.5 < ours < 1.0
    assert 0.5 < theirs < 1.0
    assert names["exported"].check.swapped == 0
