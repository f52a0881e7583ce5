"""Explain a ranking

The score of a linear ranker is a sum: weight × feature. So it can always be said why a document stands where it
does, and what it would take to pass the one above it.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ranktron

# Houses to rent: users like short ways and large rooms, and dislike high rents.
names = ["rent (€)", "rooms", "minutes to the centre", "balcony"]
rng = np.random.default_rng(5)
houses = np.column_stack([
    rng.normal(900, 200, 2000), rng.integers(1, 6, 2000), rng.exponential(20, 2000), rng.integers(0, 2, 2000)
])  # fmt: skip
liking = -0.005 * houses[:, 0] + 0.6 * houses[:, 1] - 0.04 * houses[:, 2] + 0.5 * houses[:, 3] + rng.normal(size=2000)
grades = np.searchsorted(np.quantile(liking, [0.5, 0.75, 0.9]), liking)
search = np.repeat(np.arange(200), 10)  # 200 searches with 10 houses
ranker = ranktron.HingePerceptron(random_state=0).fit(houses, grades, qid=search)

found = houses[:10]
explanation = ranker.model_.explain(found)
order = ranker.rank(found)[:5]
parts = explanation.contributions[order] - explanation.contributions.mean(
    axis=0
)  # beside an average house of this search
for place, row in enumerate(parts, start=1):
    words = [f"{name} {value:+.2f}" for name, value in zip(names, row, strict=True)]
    print(f"{place}. {', '.join(words)}")
lead = explanation.lead(0)
print(f"the first is above the second because of: {names[int(np.argmax(lead))]}")

plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
plus, minus, places = np.zeros(5), np.zeros(5), np.arange(5)
for name, part in zip(names, parts.T, strict=True):
    plt.barh(places, part, left=np.where(part > 0, plus, minus), height=0.62, label=name)
    plus, minus = plus + np.maximum(part, 0), minus + np.minimum(part, 0)
plt.plot(parts.sum(axis=1), places, "kD", label="total")
labels = [
    f"{i + 1}: {house[0]:.0f} €, rooms: {house[1]:.0f},\n{house[2]:.0f} minutes" for i, house in enumerate(found[order])
]
plt.yticks(places, labels)
plt.gca().invert_yaxis()
plt.grid(visible=False, axis="y")
plt.axvline(0, color="black", linewidth=1)
plt.suptitle(f"Why house 1 is above house 2: most of all {names[int(np.argmax(lead))]}", x=0.01, ha="left")
plt.xlabel("points above (+) or below (−) the average house of this search")
plt.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.savefig("explain-a-ranking.svg")
