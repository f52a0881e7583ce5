"""Is it better? Ask the users

Two rankers, one trained on two queries and one on two hundred. Every page mixes both of their lists (team draft
interleaving); a click is a point for the ranker whose document it was. The interval around the mean may be looked
at after every page, and the first time that it leaves 0 behind the question is decided.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ranktron
from ranktron.metrics import ConfidenceSequence

data = ranktron.synthetic.WebSearch(features=30, documents=20, seed=1)
few, many, asked = data.rounds(2), data.rounds(200, skip=2), data.rounds(600, skip=202)


def fit(lists):
    return ranktron.RankSVM().fit(lists.X, lists.labels, group=np.diff(lists.offsets))


old, new = fit(few), fit(many)
rng = np.random.default_rng(0)
method = ranktron.interleaving.TeamDraft(k=5)
user = ranktron.feedback.cascade("navigational", grades=5, seed=1)
sequence, middle, low, high = ConfidenceSequence(level=0.05), [], [], []
points = []
for page in asked:
    shown = method.combine([new.rank(page.X), old.rank(page.X)], rng)
    # this user reads from the top, clicks what looks good, and leaves when satisfied
    clicks = rng.random(5) < user.click_probabilities(page.labels[shown.items])
    points.append(np.sign(np.subtract(*method.credit(shown, clicks))))
    sequence.update(points[-1:])
    middle.append(np.mean(points))
    low.append(sequence.interval[0])
    high.append(sequence.interval[1])
better = "new" if sequence.decision > 0 else "old"
print(f"decided after {sequence.decided_after} pages: the {better} ranker is better")
for name, ranker in {"new": new, "old": old}.items():
    print(f"{name}: NDCG@10 {ranktron.evaluate(asked, ranker.predict(asked.X), 'ndcg@10').means['ndcg@10']:.2f}")

plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
x = np.arange(1, len(points) + 1)
plt.fill_between(x[::5], low[::5], high[::5], alpha=0.25, label="95 % confidence, at all times")
plt.plot(x[::5], middle[::5], label="mean so far")
plt.axhline(0, color="black", linewidth=1)
plt.axvline(sequence.decided_after, color="C1", linestyle="--")
plt.text(sequence.decided_after + 8, -0.42, f"decided after\n{sequence.decided_after} pages", color="C1")
plt.suptitle(f"Interleaving finds the better ranker after {sequence.decided_after} pages", x=0.01, ha="left")
plt.xlabel("pages shown")
plt.ylabel("wins of the new ranker less\nthose of the old, of a page")
plt.ylim(-0.5, 1)
plt.legend(loc="upper right")
plt.savefig("is-it-better.svg")
