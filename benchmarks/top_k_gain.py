"""How much of the gain of all labels RTop-kF keeps after 10,000 rounds: one, two or five labels a list, every loss.

python -m benchmarks.top_k_gain DATA [ROW...]: DATA is a folder as RANKTRON_DATA has it; of ROW... only rows that begin
so. Prints the table of docs/papers/topk.md: served weights, three seeds, the share of the gain of ListNet over random
rankings. Features are scaled as the defaults of the two do it, to [0, 1] and standardised, or within each list.
"""

import sys
from pathlib import Path

import numpy as np

from benchmarks.defaults import SETS, simulated
from benchmarks.maps import Decisive
from ranktron import OnlineListNet
from ranktron.data.scaling import fit_scaler, scale
from ranktron.data.synthetic import WebSearch
from ranktron.learners import top_k_ranker
from ranktron.learners.parameters import PRESETS
from reproduction.theory.top_k_games import random_ndcg, trial

ROUNDS, SEEDS = 10_000, 3
LISTS = {
    "web, seed 5": lambda _: simulated(WebSearch(seed=5)),
    "seed 6": lambda _: simulated(WebSearch(seed=6)),
    "decisive, seed 5": lambda _: simulated(Decisive(seed=5)),
    "seed 6 ": lambda _: simulated(Decisive(seed=6)),
    **{name: SETS[name] for name in ("MQ2008", "Yandex", "MSLR")},
}
OURS = {"residual": True}
VARIANTS = {
    "faster fall, no floor": ("minmax", {"explore": 1.0, "floor": 0.0}),
    "weighted labels": ("minmax", {}),
    "default": ("minmax", OURS),
    "default of the service": ("minmax-query", OURS),
}
ROWS = {
    f"{surrogate}, k = {k}, {name}": (scaling, {"surrogate": surrogate, "k": k, **parameters})
    for surrogate, k in (("ranksvm", 2), ("ranksvm", 5), ("squared", 1), ("kl", 1))
    for name, (scaling, parameters) in VARIANTS.items()
    if not (surrogate == "ranksvm" and name == "weighted labels")  # its pairs have no residuals
}


def served(make, part, test):
    """NDCG@10 of the weights that are served in the end, the mean over the seeds."""
    return np.mean([trial(make(seed), part, test, ROUNDS, seed).served for seed in range(SEEDS)])


def scaled(parts, name):
    """The lists to learn from and to test on, scaled by what the former say."""
    scaler = fit_scaler(name, parts[0])
    return [scale(lists, scaler) for lists in parts]


def shares(data, wanted):
    """{row: the share of the gain on each of LISTS}."""
    found = {row: [] for row in ROWS if row.startswith(wanted)}
    for name, make_lists in LISTS.items():
        parts = make_lists(data)
        chance, d = random_ndcg(parts[1]), parts[0].n_features
        best = served(lambda _, d=d: OnlineListNet().make_learner(d), *scaled(parts, "standard"))
        print(f"{name}: chance {chance:.3f}, all labels {best:.3f}", file=sys.stderr, flush=True)
        for row in found:
            scaling, given = ROWS[row]
            kept = served(
                lambda seed, d=d, given=given: top_k_ranker(d, seed=seed, preset=PRESETS[0], **given),
                *scaled(parts, scaling),
            )
            found[row].append((kept - chance) / (best - chance))
            print(f"  {row}: {found[row][-1]:.3f}", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    print(f"| | {' | '.join(name.strip() for name in LISTS)} |\n|{'---|' * (len(LISTS) + 1)}")
    for row, kept in shares(Path(sys.argv[1]), tuple(sys.argv[2:]) or ("",)).items():
        print(f"| {row} | {' | '.join(f'{100 * share:.0f}%' for share in kept)} |")
