"""Curves instead of straight lines

A linear ranker gives each feature one weight: more is better, or less is. Often the truth is a curve: too cheap is
suspicious, too expensive is not bought. With `map="bins-linear:8"` the same learner finds a curve for each feature,
and it stays a ranker that can be explained.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ranktron

# Users want a price around 40 €, and stars: the first ones matter more than the last.
rng = np.random.default_rng(2)
X = np.column_stack([rng.uniform(0, 100, 8000), rng.uniform(1, 5, 8000)])


def liking(X):
    return 3 * np.exp(-(((X[:, 0] - 40) / 20) ** 2)) + np.sqrt(X[:, 1])


grades = np.searchsorted([2.5, 3.5, 4.5], liking(X) + 0.3 * rng.normal(size=8000))
query = np.repeat(np.arange(400), 20)
train, test = query < 300, query >= 300
rankers = {
    "straight lines": ranktron.OnlineListNet(random_state=0),
    "curves": ranktron.OnlineListNet(map="bins-linear:8", random_state=0),
}
ndcg = {}
for name, ranker in rankers.items():
    ranker.fit(X[train], grades[train], qid=query[train])
    ndcg[name] = ranker.score(X[test], grades[test], qid=query[test])
    print(f"{name}: NDCG@10 {ndcg[name]:.2f} on 100 queries that were not learnt from")

# What a ranker thinks of a price: scores of rows that differ in nothing else. Only differences between scores matter:
# all are moved to the mean 0, and what users think is drawn on the scale of the curve.
price = np.linspace(0, 100, 200)
rows = np.column_stack([price, np.full(200, 3.0)])
line, curve, truth = (s - s.mean() for s in (*(r.predict(rows) for r in rankers.values()), liking(rows)))
plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
plt.plot(price, truth * curve.std() / truth.std(), color="C5", linestyle="--", label="what users think")
plt.plot(price, curve, label="learnt: curves")
plt.plot(price, line, label="learnt: straight lines")
plt.suptitle(
    f"A curve for the price takes NDCG@10 from {ndcg['straight lines']:.2f} to {ndcg['curves']:.2f}", x=0.01, ha="left"
)
plt.xlabel("price (€)")
plt.ylabel("what the price adds to the score")
plt.legend()
plt.savefig("nonlinear-curves.svg")
