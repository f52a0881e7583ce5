"""Weights that learn: the memory of an agent

A memory orders notes by four features, with weights that somebody set by hand. The agent says which of the five notes
it was handed it used, and a ranker in a store learns on from the hand-set weights. In one simulation the notes that
help are recent ones that were used before, in the other the hand-set weights are right. Means of five runs.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ranktron

HAND_SET = {"bm25": 8.0, "cosine": 8.0, "recency": 2.0, "use": 2.0}
USES, CANDIDATES, SHOWN = 400, 20, 5


def candidates(rng):
    """What a first stage finds for a task: the features of notes, all between 0 and 1."""
    topic = rng.beta(1, 3, size=CANDIDATES)
    bm25, cosine = (np.clip(topic + noise * rng.normal(size=CANDIDATES), 0, 1) for noise in (0.2, 0.1))
    recency = 0.5 ** (rng.exponential(60, size=CANDIDATES) / 30)  # half after thirty days
    use = np.clip(rng.exponential(0.3, size=CANDIDATES), 0, 1)
    return np.column_stack([bm25, cosine, recency, use])


def run(memory, tastes, seed):
    """How many of the three most helpful notes are handed out, by the ranker that learns and by hand-set weights."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(USES):
        X = candidates(rng)
        helps = X @ tastes >= np.sort(X @ tastes)[-3]
        ranking = memory.rank(X, items=[str(i) for i in range(CANDIDATES)])
        first = [int(item) for item in ranking.items[:SHOWN]]
        cited = [str(i) for i in first if (helps[i] and rng.random() < 0.9) or rng.random() < 0.03]
        memory.feedback(ranking.id, clicked=cited)
        by_hand = np.argsort(-(X @ list(HAND_SET.values())))[:SHOWN]
        found.append((helps[first].sum() / 3, helps[by_hand].sum() / 3))
    return found


panels = {"other things matter": [1, 3, 5, 3], "the hand-set weights are right": [8, 8, 2, 2]}
plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
figure, axes = plt.subplots(1, 2, sharey=True)
with ranktron.open(":memory:") as store:
    for plot, (title, tastes) in zip(axes, panels.items(), strict=True):
        runs = []
        for seed in range(5):
            parameters = {"k": SHOWN, "eta": 1.0, "seed": seed}
            memory = store.ranker(f"memory-{len(store.rankers)}", parameters=parameters, start=HAND_SET, trust=12.0)
            runs.append(run(memory, tastes, seed))
        learnt, by_hand = np.array(runs).mean(axis=0).reshape(-1, 25, 2).mean(axis=1).T
        print(
            f"{title}: first 25 uses {learnt[0]:.2f}, last 25 {learnt[-1]:.2f}; hand-set weights {by_hand.mean():.2f}"
        )
        plot.plot(np.arange(13, USES, 25), learnt, "o-", label="learning on")
        plot.axhline(by_hand.mean(), color="C1", linestyle="--", label="hand-set weights")
        plot.set(title=title, xlabel="uses", ylim=(0.4, 1.1))
axes[0].set_ylabel("helpful notes handed out")
axes[0].legend(loc="lower right")
figure.suptitle("Hand-set weights that go on learning", x=0.01, ha="left")
plt.savefig("weights-that-learn.svg")
