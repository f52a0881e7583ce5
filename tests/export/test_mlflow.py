"""Against mlflow-skinny itself, with a store in a folder."""

import numpy as np
import pandas
import pytest

import ranktron
from ranktron import DataError

mlflow = pytest.importorskip("mlflow")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.set_registry_uri((tmp_path / "runs").as_uri())
    yield tmp_path
    mlflow.set_tracking_uri(None)
    mlflow.set_registry_uri(None)


def lists():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"price": rng.normal(size=60), "age": rng.normal(size=60)})
    frame["colour"] = pandas.Categorical(rng.choice(["red", "blue"], 60))
    y = (frame["price"] > 0.3).astype(float) + (frame["colour"] == "red")
    frame.loc[::7, "price"] = np.nan
    return frame, y.to_numpy(), np.repeat(np.arange(12), 5)


def test_a_run_holds_the_model_and_its_metrics(store):
    frame, y, qid = lists()
    ranker = ranktron.HingePerceptron(nan="indicator", scale="standard", random_state=0).fit(frame, y, qid=qid)
    with mlflow.start_run() as run:
        info = ranktron.mlflow.log_model(ranker, "ranker")
        logged = ranktron.mlflow.log_evaluation(
            ranker, frame, y, qid=qid, metrics=["ndcg@10", "map:letor"], prefix="train_"
        )
    assert logged["train_ndcg_at_10"] == pytest.approx(ranker.score(frame, y, qid=qid))
    kept = mlflow.get_run(run.info.run_id).data.metrics
    assert kept == pytest.approx(logged)
    assert set(kept) == {"train_ndcg_at_10", "train_map.letor"}

    model = ranktron.mlflow.load_model(info.model_uri)
    assert model.to_bytes() == ranker.model_.to_bytes()
    served = mlflow.pyfunc.load_model(info.model_uri)
    np.testing.assert_array_equal(served.predict(frame), ranker.predict(frame))
    np.testing.assert_array_equal(served.predict(frame.assign(qid=qid)), ranker.predict(frame))


def test_a_folder_holds_one_file_and_no_pickle(store):
    X = np.random.default_rng(0).normal(size=(20, 3))
    ranker = ranktron.RankSVM(scale="minmax-query").fit(X, np.arange(20) % 3, group=[10, 10])
    ranktron.mlflow.save_model(ranker.model_, store / "mine", metadata={"team": "search"})
    files = {path.name for path in (store / "mine").rglob("*") if path.is_file()}
    assert "ranktron.model" in files
    assert not [name for name in files if name.endswith((".pkl", ".pickle"))]
    assert (store / "mine" / "requirements.txt").read_text().split()[1:] == [f"ranktron=={ranktron.__version__}"]
    model = ranktron.mlflow.load_model(store / "mine")
    np.testing.assert_array_equal(model.rank(X[:10]), ranker.rank(X[:10]))
    served = mlflow.pyfunc.load_model(str(store / "mine"))
    with pytest.raises(DataError, match="give predict the query ids"):
        served.predict(X)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(qid=np.repeat([0, 1], 10))
    np.testing.assert_array_equal(served.predict(frame), ranker.predict(X, qid=np.repeat([0, 1], 10)))
    with pytest.raises(DataError, match="expected a model or a fitted ranker, not a list"):
        ranktron.mlflow.save_model([], store / "other")
