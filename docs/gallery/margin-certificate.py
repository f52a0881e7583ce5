"""A certificate: what a run cannot have lost

If some ranker orders all lists with a margin γ, and no document is longer than R, the minimax perceptron loses at
most 4R²/γ² (in 1 − NDCG, summed over all rounds), however long the stream is. `ranktron certify` replays a run and
checks it against the theorem. Here are streams that are harder and harder: their margins are smaller and smaller.
These data are friendly; [others](../theory.md) reach the bound, so it could not be smaller.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import ranktron
from ranktron.learners.schedule import Schedule
from ranktron.papers.theory.certificates import certify
from ranktron.training.fit import TrainingPlan, train

margins, losses, bounds = [], [], []
for margin in (4.0, 2.0, 1.0, 0.5, 0.25, 0.125):
    # 300 queries, which some ranker orders perfectly with at least this margin
    lists = ranktron.synthetic.Separable(documents=8, features=6, grades=3, margin=margin).rounds(300)
    certificate = certify(train(TrainingPlan("minimax", schedule=Schedule(epochs=1)), lists).model, lists)
    theorem = next(line for line in certificate.lines if line.statement == "Corollary 11")
    print(
        f"margin {certificate.margin:.2f}: lost {theorem.observed:.2f} of {theorem.bound:.0f}; holds: {theorem.holds}"
    )
    margins.append(certificate.margin)
    losses.append(theorem.observed)
    bounds.append(theorem.bound)

plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
plt.loglog(margins, bounds, "s--", color="C1", label="the most that the theorem allows")
plt.loglog(margins, losses, "o-", color="C0", label="what the run lost")
plt.gca().invert_xaxis()
plt.xticks(margins, [f"{margin:.2g}" for margin in margins])
plt.minorticks_off()
share = max(loss / bound for loss, bound in zip(losses, bounds, strict=True))
plt.suptitle(f"Every run kept its promise: it lost at most {share:.1%} of the bound", x=0.01, ha="left")
plt.xlabel("margin of the data (harder to the right)")
plt.ylabel("sum of 1 − NDCG over 300 queries")
plt.legend()
plt.savefig("margin-certificate.svg")
