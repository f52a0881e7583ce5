"""Many machines, one ranker

A Dask cluster trains on shards of the data that stay where they are; ten times a pass the weights of all are
averaged. No query is cut in two, wherever the partitions end. This example starts its own small cluster; with
`Client(address)` of yours, nothing else changes. What changes the model is the number of shards, not the number of
workers: how much?
"""

from pathlib import Path

import dask.dataframe
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from distributed import Client

import ranktron
from ranktron.dask import DaskRanker

data = ranktron.synthetic.WebSearch(features=10, documents=15, seed=1)
lists, test = data.rounds(400), data.rounds(300, skip=400)
query = np.repeat(np.arange(400), np.diff(lists.offsets))
frame = pd.DataFrame(lists.X).add_prefix("f").assign(label=lists.labels, qid=query)
ranker = ranktron.HingePerceptron(n_epochs=3, random_state=0)


def judge(model):
    """Mean NDCG@10 on other queries, and how far its 95 % interval reaches down and up."""
    found = ranktron.evaluate(test, model.predict(test.X), "ndcg@10")
    mean, (low, high) = found.means["ndcg@10"], found.interval("ndcg@10")
    return mean, mean - low, high - mean


alone = judge(ranker.fit(lists.X, lists.labels, qid=query).model_)
print(f"one machine: NDCG@10 {alone[0]:.3f}")
shards, found = (1, 2, 4, 8, 16), []
with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as client:
    for number in shards:
        parts = dask.dataframe.from_pandas(frame, npartitions=number)
        mixed = DaskRanker(ranker, client=client, shards=number).fit(parts, "label")
        found.append(judge(mixed.to_local().model_))
        joined = mixed.joined_queries_
        print(f"shards: {number:2}  NDCG@10 {found[-1][0]:.3f}  queries cut by partitions, and joined: {joined}")

mean, down, up = np.transpose(found)
apart = np.ceil(1000 * np.abs(mean - alone[0]).max()) / 1000
plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
plt.axhline(alone[0], color="C1", linestyle="--", label="one machine")
plt.errorbar(
    range(5), mean, yerr=[down, up], fmt="o", capsize=5, label="mixed shards, with 95 % intervals over queries"
)
plt.xticks(range(5), shards)
plt.grid(visible=False, axis="x")
plt.suptitle(f"Mixing up to 16 shards changes NDCG@10 by less than {apart:.3f}", x=0.01, ha="left")
plt.xlabel("number of shards that learn at the same time")
plt.ylabel("NDCG@10 on 300 other queries")
plt.ylim(0.7, 0.9)
plt.legend(loc="lower left")
plt.savefig("many-machines.svg")
