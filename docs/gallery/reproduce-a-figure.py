"""Reproduce a figure

Figure 1 (a) of *Predtron* (Jain, Natarajan and Tewari, NIPS 2015): how fast a learner of rankings learns depends on
how the place of a document is written as a number. The paper says that 1/i is slow, and that −i^1.1 and −i² come to
almost no loss with 60 lists. This is the experiment with three seeds; `python -m reproduction predtron` runs it with
thirty, and all other figures and tables of five papers, with a verdict for each.
"""

from pathlib import Path

import matplotlib.pyplot as plt

from reproduction.theory.predtron_games import varying_lists

# for each way of writing places, and each seed: learn from more and more lists, look at 100 others
curves = varying_lists(counts=(5, 10, 20, 40, 60), seeds=3)
for name in curves.losses:
    print(f"place i as {name}: NDCG loss after 5, 10, 20, 40, 60 lists", curves.mean(name).round(3).tolist())

plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
for name, label in {"1/i": "1 / i", "-i^1.1": "−i$^{1.1}$", "-i^2": "−i$^2$"}.items():
    plt.errorbar(curves.x, curves.mean(name), yerr=curves.error(name), fmt="o-", capsize=4, label=label)
slowest = max(curves.losses, key=lambda name: curves.mean(name)[2])
plt.suptitle(f"As the paper says: the targets {slowest} are learnt slowest", x=0.01, ha="left")
plt.xlabel("lists learnt from")
plt.ylabel("NDCG loss on 100 other lists")
plt.ylim(bottom=0)
plt.legend(title="target of the document at place i")
plt.savefig("reproduce-a-figure.svg")
