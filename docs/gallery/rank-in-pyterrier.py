"""A ranker in a pipeline of PyTerrier

Rankers are learners for `pt.ltr.apply_learned_model` as they are. Here a pipeline ranks twenty documents by one
feature, then again by all twenty features; `pt.Experiment` compares learners and tests the differences. The first
stage is simulated; with an index and Java it would be `bm25 >> (tf_idf ** pl2)`.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas
import pyterrier as pt
from sklearn.linear_model import LinearRegression

import ranktron

lists = ranktron.synthetic.WebSearch(features=20, documents=20, seed=3).rounds(600)
found = pandas.DataFrame({"features": list(lists.X), "label": lists.labels.astype(int)})
found["qid"] = np.repeat(np.arange(600), np.diff(lists.offsets)).astype(str)
found["query"] = "the words of query " + found["qid"]
found["docno"] = np.arange(len(found)).astype(str)

# one feature alone, the best of the first hundred queries, stands for BM25
known = found["qid"].astype(int) < 100
features = np.vstack(found["features"])
best = max(range(20), key=lambda each: np.corrcoef(features[known, each], found["label"][known])[0, 1])
found["score"] = features[:, best]
ranked = pt.model.add_ranks(found.drop(columns="label"))

topics = found[["qid", "query"]].drop_duplicates()
qrels = found[["qid", "docno", "label"]]
train, valid, test = topics[:300], topics[300:400], topics[400:]
systems = {"one feature": pt.Transformer.from_df(ranked)}
for name, learner, form in [
    ("least squares", LinearRegression(), "regression"),
    ("RankSVM", ranktron.RankSVM(), "ltr"),
    ("OnlineListNet", ranktron.OnlineListNet(random_state=0), "ltr"),
]:
    systems[name] = pt.Transformer.from_df(ranked) >> pt.ltr.apply_learned_model(learner, form=form)
    systems[name].fit(train, qrels, valid, qrels)  # with form="ltr" the validation topics choose the best pass

names = list(systems)
measures = ["ndcg_cut_10", "map"]
table = pt.Experiment(list(systems.values()), test, qrels, measures, names=names, baseline=0, correction="holm")
print(table[["name", "ndcg_cut_10", "map"]].round(2).to_string(index=False))
print("significantly better than one feature:", ", ".join(table["name"][table["ndcg_cut_10 reject"]]))

plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
values = table["ndcg_cut_10"]
bars = plt.barh(names, values, color=["0.6", "0.6", "C0", "C0"])
plt.gca().invert_yaxis()
plt.bar_label(bars, fmt="%.2f", padding=5)
plt.grid(visible=False, axis="y")
plt.xlim(0, 1)
title = f"PyTerrier: {values[0]:.2f} by one feature, {values[2]:.2f} by all twenty"
plt.suptitle(title, x=0.01, ha="left")
plt.xlabel("NDCG@10 on 200 other queries, from pt.Experiment")
plt.savefig("rank-in-pyterrier.svg")
