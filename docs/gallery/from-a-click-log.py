"""From a click log to a ranker

A shop has always sorted by popularity, which says nothing about what its users want; its log has clicks, and users
see what stands first more often than what stands below. Clicks taken for labels repeat the old order's mistakes.
Told the position of each document, the same learner works out how likely each position was to be seen, and corrects
for it.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ranktron

# 60 queries with 8 documents: popularity, match, freshness. Users want a good match, and what is fresh.
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 8, 3)).round(3)
wanted = 1 / (1 + np.exp(-2 * (X @ [0.0, 1.0, -0.5])))

# The log: two old rankers took turns, and position k is seen with the probability 1/k.
rows, position, clicks, query, item = [], [], [], [], []
for _ in range(1500):
    q = rng.integers(60)
    old = X[q, :, 0] if rng.random() < 0.5 else X[q, :, 0] + 0.5 * X[q, :, 1]
    for k, document in enumerate(np.argsort(-old), start=1):
        rows.append(X[q, document])
        position.append(k)
        clicks.append(float(rng.random() < wanted[q, document] / k))
        query.append(q)
        item.append(document)
impression = np.repeat(np.arange(1500), 8)

naive = ranktron.RankSVM().fit(np.array(rows), clicks, qid=impression)
told = ranktron.RankSVM().fit(np.array(rows), clicks, qid=impression, position=position, query=query, item=item)

# Judged by what users really want, on 500 new queries.
new = rng.normal(size=(500, 8, 3))
truth = 1 / (1 + np.exp(-2 * (new @ [0.0, 1.0, -0.5])))
judged = ranktron.Rounds.from_arrays(new.reshape(-1, 3), truth.ravel(), qid=np.repeat(np.arange(500), 8))
rankers = {
    "sorted by popularity": judged.X[:, 0],
    "learnt from clicks,\ntaken for labels": naive.predict(judged.X),
    "learnt from clicks,\nwith their positions": told.predict(judged.X),
}
ndcg = {name: ranktron.evaluate(judged, scores, "ndcg@3").means["ndcg@3"] for name, scores in rankers.items()}
for name, value in ndcg.items():
    print(f"{value:.2f}  {name}".replace("\n", " "))
seen = told.examination_.values
print("how likely positions 2 to 4 were seen, estimated:", ", ".join(f"{value:.2f}" for value in seen[1:4]))

plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
bars = plt.barh(list(ndcg), list(ndcg.values()), color=["C5", "C1", "C0"], height=0.6)
plt.bar_label(bars, fmt="%.2f", padding=5)
before, after = list(ndcg.values())[1:]
plt.suptitle(f"The same clicks: NDCG@3 {before:.2f}, with positions {after:.2f}", x=0.01, ha="left")
plt.xlabel("NDCG@3 on 500 new queries (1 is the best order)")
plt.xlim(0, 1.08)
plt.gca().invert_yaxis()
plt.grid(visible=False, axis="y")
plt.savefig("from-a-click-log.svg")
