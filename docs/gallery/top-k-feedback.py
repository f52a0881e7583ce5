"""Learn from the first two documents only

Of every list that is shown, the labels of the first two documents come back; of the other eighteen nothing, ever.
`TopKRanker` now and then shows another order, knows how likely it was to show what it showed, and so learns to rank
the whole list. It needs more lists than a learner that receives all labels, and gets there on two.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ranktron

data = ranktron.synthetic.WebSearch(features=10, documents=20, seed=4)
lists, test = data.rounds(400), data.rounds(300, skip=400)
rankers = {
    "labels of all 20": (ranktron.OnlineListNet(), ranktron.feedback.full),
    "labels of the first 2": (ranktron.TopKRanker(k=2), ranktron.feedback.top(2)),
}


def mean_ndcg(scores):
    return ranktron.evaluate(test, scores, "ndcg@10").means["ndcg@10"]


plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
reached = {}
for name, (ranker, told) in rankers.items():
    learner = ranker.make_learner(lists.n_features)
    seen, quality = [0], [mean_ndcg(np.random.default_rng(0).random(len(test.X)))]
    # one list after the other: rank, receive, learn; every 20 lists we look at 300 others
    for number, _ in enumerate(ranktron.play(learner, lists, told), start=1):
        if number % 20 == 0:
            seen.append(number)
            quality.append(mean_ndcg(learner.predict(test.X)))
    reached[name] = quality[-1]
    print(f"{name}: NDCG@10 {quality[-1]:.2f}, where a random order has {quality[0]:.2f}")
    plt.plot(seen, quality, "o-", label=name)
both = list(reached.values())
plt.suptitle(f"Two labels of twenty: NDCG@10 {both[1]:.2f}, with all of them {both[0]:.2f}", x=0.01, ha="left")
plt.xlabel("lists learnt from")
plt.ylabel("NDCG@10 on 300 other lists")
plt.ylim(0.3, 0.9)
plt.legend(loc="lower right")
plt.savefig("top-k-feedback.svg")
