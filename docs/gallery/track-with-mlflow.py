"""Keep track of rankers with MLflow

A run of MLflow holds a ranker as one file, without pickle, and what it is worth under ranking metrics. Here rankers are
trained on more and more queries; MLflow is then asked for what it knows, and gives back the best one, byte for byte.
"""

import os
import tempfile
from pathlib import Path

os.environ |= {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}  # runs in a folder, and only there
import matplotlib.pyplot as plt
import mlflow
import numpy as np

import ranktron

data = ranktron.synthetic.WebSearch(features=20, documents=20, seed=5)
test = data.rounds(200)
query = np.repeat(np.arange(200), np.diff(test.offsets))
rankers = {}
with tempfile.TemporaryDirectory() as folder:
    mlflow.set_tracking_uri(Path(folder, "runs").as_uri())
    for number in (2, 5, 20, 100, 400):
        lists = data.rounds(number, skip=200)
        ranker = ranktron.RankSVM().fit(lists.X, lists.labels, group=np.diff(lists.offsets))
        with mlflow.start_run() as run:
            mlflow.log_param("queries", number)
            model = ranktron.mlflow.log_model(ranker, "ranker")
            mlflow.set_tag("model", model.model_uri)
            ranktron.mlflow.log_evaluation(ranker, test.X, test.labels, qid=query, metrics=["ndcg@10", "map"])
        rankers[run.info.run_id] = ranker

    # what MLflow knows: a table with a row for each run
    runs = mlflow.search_runs(order_by=["attribute.start_time"])
    best = runs.loc[runs["metrics.ndcg_at_10"].idxmax()]
    loaded = ranktron.mlflow.load_model(best["tags.model"])
    mlflow.set_tracking_uri(None)
print(runs[["params.queries", "metrics.ndcg_at_10", "metrics.map"]].round(2).to_string(index=False))
print("the best one is the ranker that was logged:", loaded.to_bytes() == rankers[best["run_id"]].model_.to_bytes())

plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
queries = runs["params.queries"].astype(int)
plt.semilogx(queries, runs["metrics.ndcg_at_10"], "o-", label="NDCG@10")
plt.semilogx(queries, runs["metrics.map"], "s-", label="mean average precision")
plt.xticks(queries, queries)
plt.minorticks_off()
plt.suptitle(f"Five runs in MLflow: the one with {best['params.queries']} queries is the best", x=0.01, ha="left")
plt.xlabel("queries learnt from, as logged")
plt.ylabel("on 200 other queries, as logged")
plt.legend()
plt.savefig("track-with-mlflow.svg")
