"""Wide sparse data: the default of `ranktron train` on crosses of users and items, beside ridge regression.

python -m benchmarks.crosses [SEEDS]: one-hot features and their crosses are hashed into 2^18 columns. Prints NDCG@10 of
each scaling and of ridge regression on the labels, with the best of four penalties, chosen on the test queries, and the
mean difference from it with its 95 % interval over seeds.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ranktron.data.rounds import Rounds
from ranktron.learners.schedule import Schedule
from ranktron.metrics import evaluate
from ranktron.training.fit import TrainingPlan, train

COLUMNS = 1 << 18
_PRIMES = np.array([2654435761, 40503, 2246822519], np.uint64)


@dataclass(frozen=True)
class UserItemCrosses:
    """Queries of users who see some items: one-hot users, items and kinds, and the crosses of users with both.

    The relevance of item i to user u is q_i + t_u,kind(i) + noise, with quality and tastes from the standard normal
    distribution, in grades 0 to 3.
    """

    users: int = 300
    items: int = 1000
    kinds: int = 20
    documents: int = 12
    noise: float = 0.7
    seed: int = 0

    def rounds(self, queries: int, skip: int = 0) -> Rounds:
        """The first queries of the stream after `skip` others."""
        rng = np.random.default_rng((self.seed, 0))
        quality, tastes = rng.normal(size=self.items), rng.normal(size=(self.users, self.kinds))
        kind = rng.integers(self.kinds, size=self.items)
        rows, labels = [], []
        for number in range(skip, skip + queries):
            rng = np.random.default_rng((self.seed, 1, number))
            user, items = rng.integers(self.users), rng.choice(self.items, self.documents, replace=False)
            relevance = quality[items] + tastes[user, kind[items]] + self.noise * rng.normal(size=self.documents)
            labels.append(np.searchsorted([0.0, 1.0, 2.0], relevance / 1.2))
            who = np.full(self.documents, user)
            kinds = kind[items]
            fields = ((who, who), (items, items), (kinds, kinds), (who, items), (who, kinds))
            rows.append(np.stack([_hash(field, *values) for field, values in enumerate(fields)], axis=1))
        columns = np.concatenate(rows)
        ones = np.ones(columns.size, np.float32)
        starts = np.arange(0, columns.size + 1, columns.shape[1])
        X = sparse.csr_matrix((ones, columns.ravel(), starts), (len(columns), COLUMNS))
        X.sum_duplicates()
        return Rounds.from_arrays(X, np.concatenate(labels), group=[self.documents] * queries)


def _hash(field: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The column of a value of a field."""
    mixed = np.uint64(field + 1) * _PRIMES[0] ^ (first.astype(np.uint64) + np.uint64(1)) * _PRIMES[1]
    mixed ^= (second.astype(np.uint64) + np.uint64(7)) * _PRIMES[2]
    mixed ^= mixed >> np.uint64(17)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(40)).astype(np.int64) % COLUMNS


NOISES = (0.7, 2.0)
SCALINGS = ("auto-lists", "none", "standard")
PENALTIES = (1.0, 3.0, 10.0, 30.0)


def ridge(data: Rounds, test: Rounds) -> float:
    """NDCG@10 of ridge regression with the penalty that is best on the test queries."""
    from sklearn.linear_model import Ridge

    X, other = (sparse.csr_matrix((r.X.written_values(), r.X.columns, r.X.starts), r.X.shape) for r in (data, test))
    fitted = (Ridge(alpha=alpha, solver="sparse_cg", tol=1e-4).fit(X, data.labels) for alpha in PENALTIES)
    return max(evaluate(test, model.predict(other)).means["ndcg@10"] for model in fitted)


def main(seeds: int) -> None:
    """Prints a table."""
    from scipy.stats import t

    print("| noise | scaling | hinge | ridge | hinge - ridge |\n|---|---|---|---|---|")
    for noise in NOISES:
        values = np.empty((seeds, len(SCALINGS) + 1))
        for seed in range(seeds):
            stream = UserItemCrosses(noise=noise, seed=100 + seed)  # others than the length of rows was chosen on
            data, test = stream.rounds(3000), stream.rounds(600, skip=3000)
            for j, scaling in enumerate(SCALINGS):
                model = train(TrainingPlan("hinge", schedule=Schedule(10), scaling=scaling), data).model
                values[seed, j] = evaluate(test, model.score_rounds(test)).means["ndcg@10"]
            values[seed, -1] = ridge(data, test)
        for j, scaling in enumerate(SCALINGS):
            apart = values[:, j] - values[:, -1]
            half = t.ppf(0.975, seeds - 1) * apart.std(ddof=1) / np.sqrt(seeds)
            hinge, other = values[:, j].mean(), values[:, -1].mean()
            print(f"| {noise} | {scaling} | {hinge:.4f} | {other:.4f} | {apart.mean():+.4f} ± {half:.4f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
