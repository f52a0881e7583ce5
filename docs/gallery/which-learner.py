"""Which learner? Let `tune` find out

Nobody knows in advance which learner, feature map and parameters suit a data set. `ranktron.tune` tries many on
folds of the training queries, drops the weaker half after each fold, and reports the winner on queries that chose
nothing. Here are three learners; each name shows the best that it came to.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ranktron

lists = ranktron.synthetic.WebSearch(features=6, documents=15).rounds(100)
learners = ["listnet", "ranksvm", "rankboost"]
ranker = ranktron.tune(lists.X, lists.labels, group=np.diff(lists.offsets), learners=learners, minutes=5.0)

# the best row of each pair of learner and map; the table has the best first
best = {}
for row in ranker.table_:
    shape = {"bins-linear": "curves", "leaves": "trees"}.get(row["map"].partition(":")[0]) if row["map"] else None
    best.setdefault(row["learner"] + (f" with {shape} ({row['map']})" if shape else ""), row)
for name, row in best.items():
    print(f"{row['mean']:.2f}  {name}, {row['folds']} fold{'s' * (row['folds'] > 1)}")
winner = next(iter(best)).partition(" (")[0]
test = ranker.test_
print(f"{len(best)} kinds, {len(ranker.table_)} settings; on {test['queries']} other queries: {test['mean']:.2f}")

plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
for place, row in enumerate(best.values()):
    colour = "C5" if place else "C0"
    plt.plot([row["low"], row["high"]], [place, place], color=colour)
    plt.plot(row["mean"], place, "o", color=colour)
plt.yticks(range(len(best)), [name.replace(" (", "\n(") for name in best])
plt.gca().invert_yaxis()
plt.suptitle(f"Of {len(ranker.table_)} settings tried, {winner} is first", x=0.01, ha="left")
plt.xlabel("NDCG@10 on validation queries, with its 95 % interval")
plt.savefig("which-learner.svg")
