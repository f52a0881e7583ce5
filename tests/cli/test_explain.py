"""Explanations of a model and of a list: numbers that add up, and a page that is safe to open."""

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from ranktron import Model, Rounds, load
from ranktron.data.io import write
from ranktron.data.scaling import Global
from ranktron.data.synthetic import WebSearch
from ranktron.learners.schedule import Schedule
from ranktron.training.figures.explanation import ExplainedList, explanation_page
from ranktron.training.figures.weights import model_weights
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.model import Explanation

EVIL = '<script>alert("x")</script>&\'"</td>'
LISTS = WebSearch(features=8, documents=12).rounds(40)


@pytest.fixture
def files(run):
    """d.txt and the model m.model, trained on it."""
    write(LISTS, "d.txt")
    train(TrainingPlan("slam", {"fraction": 0.7}, Schedule(3), scaling="standard"), LISTS).model.save("m.model")
    return run


class Outline(HTMLParser):
    """Collects tags, text and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.values = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.values += [value for _, value in attributes]

    def handle_data(self, data):
        self.words.append(data)


def evil_page(top=5, count=8):
    names = tuple(f"{EVIL}{j}" for j in range(count))
    coef = np.linspace(-1.0, 1.0, count)
    model = Model("linear", {}, {"coef": coef, "constant": 0.0}, count, feature_names=names)
    X = np.random.default_rng(0).normal(size=(6, count))
    explained = ExplainedList(EVIL, [f"{EVIL}{i}" for i in range(6)], np.zeros(6), model.explain(X))
    return explanation_page(model, model_weights(model), explained, top, [(EVIL, "<p>more</p>")])


class TestDeciding:
    def test_the_fewest_features_without_which_there_is_no_lead(self):
        parts = np.array([[3.0, 2.0, 1.0, -4.0], [0.0, 0.0, 0.0, 0.0]])
        explanation = Explanation(np.array([0, 1]), parts.sum(axis=1), parts, ("a", "b", "c", "d"))
        assert explanation.deciding(0) == [0]
        parts[0, 3] = 0.0
        assert explanation.deciding(0) == [0, 1, 2]
        parts[0, 3] = -1.0
        assert explanation.deciding(0) == [0, 1]
        parts[0] = 0.0
        assert explanation.deciding(0) == []

    def test_without_them_the_order_turns(self):
        model = train(TrainingPlan("slam", {"fraction": 0.7}, Schedule(2), scaling="standard"), LISTS).model
        for round in LISTS:
            explanation = model.explain(round.X)
            for position in range(len(round.labels) - 1):
                lead, chosen = explanation.lead(position), explanation.deciding(position)
                assert lead.sum() - lead[chosen].sum() <= 1e-9
                assert lead.sum() - lead[chosen[:-1]].sum() > 0.0
                assert (lead[chosen] > 0.0).all()


class TestWeights:
    def test_per_unit_is_the_slope_of_the_score(self):
        model = train(TrainingPlan("listnet", schedule=Schedule(2), scaling="standard"), LISTS).model
        X = LISTS[0].X.astype(float)
        slopes = [(model.predict(X + np.eye(8)[j]) - model.predict(X))[0] for j in range(8)]
        assert model_weights(model).raw == pytest.approx(slopes, rel=1e-3)

    def test_scaling_within_lists_has_no_unit(self):
        assert model_weights(train(TrainingPlan("slam", scaling="minmax-query"), LISTS).model).raw is None
        plain = train(TrainingPlan("slam", scaling="none"), LISTS).model
        assert model_weights(plain).raw.tolist() == plain.coef.tolist()

    def test_spread_is_that_of_training(self):
        model = train(TrainingPlan("slam", schedule=Schedule(3)), LISTS).model
        weights = model_weights(model)
        assert weights.spread.tolist() == np.sqrt(model.record["spread"]["variance"]).tolist()
        assert weights.note.endswith("(about the last half of 120 queries)")
        between = model_weights(train(TrainingPlan("slam", schedule=Schedule(5)), LISTS[:30]).model).note
        assert between.endswith("last half of 150 queries; the last snapshot of the weights was taken after 144)")

    def test_rounds_that_came_later_are_told(self):
        from dataclasses import replace

        from ranktron import play
        from ranktron.learners import feedback

        model = train(TrainingPlan("slam"), LISTS).model
        learner = model.learner()
        for _ in play(learner, LISTS, feedback.full):
            pass
        assert "40 more queries since" in model_weights(replace(model, state=learner.state())).note

    @pytest.mark.parametrize(("name", "words"), [("ranksvm", "solved or fixed"), ("pairwise", "solved or fixed")])
    def test_models_without_a_stream_say_so(self, name, words):
        weights = model_weights(train(TrainingPlan(name), LISTS).model)
        assert weights.spread is None
        assert words in weights.note
        short = train(TrainingPlan("slam"), LISTS[:5]).model
        assert "from the 36th round on" in model_weights(short).note


class TestCommand:
    def test_weights_as_a_table(self, files):
        code, out, _ = files("explain", "m.model")
        assert code == 0
        for words in ("slam: 8 weights", "per unit, unscaled", "±", "last half of 120 queries"):
            assert words in out
        code, out, _ = files("explain", "m.model", "--top", 3)
        assert "5 smaller weights are not shown: --top 8 shows all" in out

    def test_weights_as_json(self, files):
        code, out, _ = files("explain", "m.model", "--json")
        content = json.loads(out)
        model = load("m.model")
        assert code == 0
        assert (content["algorithm"], content["scale"], content["features"]) == ("slam", "standard", 8)
        by_name = {row["feature"]: row for row in content["weights"]}
        for j, name in enumerate(model.names):
            assert by_name[name]["weight"] == model.coef[j]
            assert by_name[name]["per_unit"] == model.coef[j] / model.scaler.divisor[j]
            assert by_name[name]["spread"] > 0.0
        sizes = [abs(row["weight"]) for row in content["weights"]]
        assert sizes == sorted(sizes, reverse=True)

    def test_a_list_as_json(self, files):
        qid = str(LISTS.qids[3])
        content = json.loads(files("explain", "m.model", "d.txt", "--qid", qid, "--features", 8, "--json")[1])
        explanation = load("m.model").explain(LISTS[3].X)
        for position, document in enumerate(content["documents"]):
            assert sum(document["contributions"].values()) == pytest.approx(document["score"], abs=1e-5)
            deciding = explanation.deciding(position)
            assert document["decided_by"] == [explanation.feature_names[j] for j in deciding]

    def test_a_page(self, files):
        qid = str(LISTS.qids[3])
        code, out, _ = files("explain", "m.model", "d.txt", "--qid", qid, "--out", "page.html", "--top", 4)
        assert code == 0
        assert "Page written to page.html" in out
        text = Path("page.html").read_text()
        assert text.count('class="document"') == 4
        assert "8 more documents follow" in text or f"{len(LISTS[3].labels) - 4} more documents follow" in text
        assert files("explain", "m.model", "--out", "w.html", "--json")[0] == 0
        assert 'class="document"' not in Path("w.html").read_text()
        assert Path("w.html").read_text().count("<tr><th>") == 1 + 8

    @pytest.mark.parametrize("width", [72, 80, 120, 200])
    def test_a_table_breaks_between_terms_only(self, files, monkeypatch, width):
        write(replace(LISTS, docids=np.array([f"GX{i:03}-48-{i:07}" for i in range(len(LISTS.labels))])), "d.txt")
        monkeypatch.setenv("COLUMNS", str(width))
        qid = str(LISTS.qids[3])
        table = files("explain", "m.model", "d.txt", "--qid", qid)[1]
        for document in json.loads(files("explain", "m.model", "d.txt", "--qid", qid, "--json")[1])["documents"]:
            terms = [*document["contributions"].items(), *document["lead"].items()]
            for words in (document["id"], *(f"{name}: {value:+.3f}" for name, value in terms)):
                assert words in table
        assert max(map(len, table.splitlines())) <= width

    def test_lists_without_labels(self, files):
        columns = {str(j): LISTS[3].X[:, j - 1] for j in range(1, 9)}
        pandas = pytest.importorskip("pandas")
        pandas.DataFrame({"qid": 3, **columns}).to_parquet("new.parquet")
        assert files("rank", "m.model", "new.parquet", "-o", "scores.txt")[0] == 0
        assert np.loadtxt("scores.txt").tolist() == load("m.model").predict(LISTS[3].X).tolist()
        code, out, _ = files("explain", "m.model", "new.parquet", "--qid", 3, "--out", "page.html")
        assert code == 0
        assert "label" not in out
        assert 'class="label"' not in Path("page.html").read_text()
        content = json.loads(files("explain", "m.model", "new.parquet", "--qid", 3, "--json")[1])
        assert {document["label"] for document in content["documents"]} == {None}
        for command in (("train", "new.parquet", "--model", "n"), ("evaluate", "m.model", "new.parquet")):
            code, _, err = files(*command)
            assert code == 1
            assert "found no 'label'" in err

    def test_features_are_explained_under_their_own_names(self, files):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"label": [0, 1] * 4, "qid": [1, 1, 2, 2] * 2, "loud": [0.0, 9.0] * 4, "idle": 1.0})
        frame.to_parquet("train.parquet")
        frame[["idle", "loud", "qid", "label"]].to_parquet("test.parquet")
        assert files("train", "train.parquet", "--model", "n.model")[0] == 0
        for data in ("train.parquet", "test.parquet"):
            content = json.loads(files("explain", "n.model", data, "--qid", 1, "--json")[1])
            assert list(content["documents"][0]["contributions"]) == ["loud"]
            best = json.loads(files("evaluate", "n.model", data, "--json")[1])["baselines"]["best feature"]
            assert best["feature"] == "loud"
        frame.drop(columns="idle").to_parquet("test.parquet")
        code, _, err = files("evaluate", "n.model", "test.parquet")
        assert (code, err.count("\n")) == (1, 1)
        assert "test.parquet: columns of the model or of the training data are missing: idle;" in err

    def test_the_page_says_which_model_ranks_which_data_how_well(self, files):
        for more in ((), ("--qid", "3")):
            assert files("explain", "m.model", "d.txt", *more, "--out", "page.html")[0] == 0
            page = Path("page.html").read_text()
            found = json.loads(files("evaluate", "m.model", "d.txt", "--json")[1])
            for name, value in found["metrics"].items():
                row = f"<th>{name}</th><td>{value['mean']:.4f}</td><td>{value['low']:.4f} – {value['high']:.4f}</td>"
                assert row in page
                assert f"<td>{found['baselines']['random'][name]:.4f}</td>" in page
            assert f"best feature ({found['baselines']['best feature']['feature']})" in page
            assert f"<dd>d.txt: {found['queries']} queries, " in page
            assert "<dd>m.model</dd>" in page
            assert f"<dd>{time.strftime('%Y-%m-%d')}" in page
        code, out, _ = files("explain", "m.model", "d.txt")
        assert code == 0
        assert f"ndcg@10 on d.txt: {found['metrics']['ndcg@10']['mean']:.4f} (95 % interval" in out
        assert files("explain", "m.model", "--out", "page.html")[0] == 0
        assert "Evaluation" not in Path("page.html").read_text()

    def test_columns_keep_their_names_and_features_of_text_their_numbers(self, files):
        assert files("convert", "d.txt", "d.csv")[0] == 0
        for name, best in (("d.csv", "f"), ("d.txt", "")):
            assert files("train", name, "--model", "n.model")[0] == 0
            names = {row["feature"] for row in json.loads(files("explain", "n.model", "--json")[1])["weights"]}
            assert names == {f"{best}{j}" for j in range(1, 9)}
            feature = json.loads(files("evaluate", "n.model", "d.txt", "--json")[1])["baselines"]["best feature"]
            assert feature["feature"].removeprefix("-") in names
        assert files("convert", "d.csv", "d.rounds")[0] == 0
        assert files("train", "d.rounds", "--model", "n.model")[0] == 0
        assert load("n.model").names[0] == "f1"

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (("--qid", "3"), 2, "DATA"),
            (("d.txt", "--qid", "nobody"), 1, "no query 'nobody'"),
            (("d.txt", "--qid", "3", "--out", "d.txt"), 2, "overwritten"),
            (("--out", "m.model"), 2, "overwritten"),
            (("--out", "no/folder/page.html"), 1, "cannot be written"),
        ],
    )
    def test_errors_are_one_line(self, files, arguments, code, words):
        found, out, err = files("explain", "m.model", *arguments)
        assert (found, err.count("\n"), out) == (code, 1, "")
        assert words in err

    def test_a_ranking_of_thresholds_is_explained(self, files):
        train(TrainingPlan("rankboost", {"n_rounds": 9}), LISTS).model.save("b.model")
        code, out, _ = files("explain", "b.model", "d.txt", "--qid", LISTS.qids[0], "--out", "page.html")
        assert code == 0
        assert "strongest" in out
        assert "Weights" not in Path("page.html").read_text()
        assert files("explain", "b.model")[0] == 1

    def test_votes_have_no_weights(self, files):
        train(TrainingPlan("pairwise", {"output": "voted"}), LISTS).model.save("v.model")
        code, _, err = files("explain", "v.model")
        assert (code, err.count("\n")) == (1, 1)
        assert "not linear" in err


class TestPage:
    def test_nothing_is_loaded_and_nothing_runs(self):
        text = evil_page()
        outline = Outline(text)
        assert "script" not in outline.tags
        assert not re.search(r"(https?:)?//", text.replace("<!doctype", ""))
        assert not any((value or "").startswith("on") for value in outline.values)
        assert "default-src 'none'" in text

    def test_names_are_text(self):
        text = evil_page()
        assert EVIL not in text
        shown = "".join(Outline(text).words)
        assert f"{EVIL}0" in shown
        assert f"Query {EVIL}" in shown
        assert "<p>more</p>" in text  # a further section is HTML already; its title is not

    def test_many_weights_are_folded_away(self):
        text = evil_page(count=50)
        assert "20 smaller weights" in text
        assert Outline(text).words.count(f"{EVIL}0") >= 1
        assert "smaller weights" not in evil_page(count=8)

    def test_bars_are_the_parts_of_the_scores(self):
        names, parts = ("a", "b"), np.array([[3.0, -1.0], [1.0, 0.0]])
        explanation = Explanation(np.array([0, 1]), parts.sum(axis=1), parts, names)
        model = Model("linear", {}, {"coef": np.ones(2), "constant": 0.0}, 2, feature_names=names)
        text = explanation_page(
            model, model_weights(model), ExplainedList("q", ["x", "y"], np.zeros(2), explanation), 2
        )
        first = re.findall(r'class="stack".*?</svg>', text)[0]
        boxes = {
            c: (float(x), float(w))
            for c, x, w in re.findall(r'class="(c\d?)" x="([\d.]+)" y="3" width="([\d.]+)"', first)
        }
        assert boxes["c0"] == (250.0, 750.0)  # 3 of the 4 units between -1 and 3
        assert boxes["c1"] == (0.0, 250.0)
        assert "decided by" in text

    def test_ties_and_zeros(self):
        model = Model("linear", {}, {"coef": np.zeros(2), "constant": 0.0}, 2)
        explained = ExplainedList("q", ["x", "y"], np.zeros(2), model.explain(np.ones((2, 2))))
        assert "tied with the next" in explanation_page(model, model_weights(model), explained, 10)

    def test_a_constant_is_told(self):
        model = Model("linear", {}, {"coef": np.ones(2), "constant": 1.5}, 2)
        explained = ExplainedList("q", ["x", "y"], np.zeros(2), model.explain(np.eye(2)))
        assert "Every score has +1.5 on top" in explanation_page(model, model_weights(model), explained, 10)
        assert "on top" not in evil_page()

    def test_scaled_features_say_so(self):
        scaler = Global("standard", np.zeros(2), np.ones(2))
        model = Model("linear", {}, {"coef": np.ones(2), "constant": 0.0}, 2, scaler=scaler)
        assert "scaled (standard)" in explanation_page(model, model_weights(model), None, 10)

    @pytest.mark.browser
    @pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "light"), (360, "dark")])
    def test_in_a_browser(self, browser, tmp_path, width, scheme):
        (tmp_path / "page.html").write_text(evil_page(count=40), encoding="utf-8")
        tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        said = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("dialog", lambda dialog: said.append(dialog.message))
        tab.goto((tmp_path / "page.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.locator("li.document").count() == 5
        assert tab.locator("svg rect").first.bounding_box()["width"] > 0
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        assert said == []
        tab.close()


def test_feature_names_of_data_frames_reach_the_page():
    rounds = Rounds.from_arrays(LISTS.X, LISTS.labels, group=np.diff(LISTS.offsets), feature_names=list("abcdefgh"))
    model = train(TrainingPlan("slam"), rounds).model
    assert "<th>h</th>" in explanation_page(model, model_weights(model), None, 1)
