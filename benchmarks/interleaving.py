"""How many impressions it takes to find the better of two rankers: a split of the traffic, interleaving, old logs.

python -m benchmarks.interleaving DATA: DATA holds mq2008. Prints three tables and draws docs/pictures/comparing.svg;
some minutes. The rankers are RankSVM trained on all training queries of the first fold, on eight of them, and, for the
table of three rankers, on the next eight. They are shown to simulated users on the test queries. Outcomes of
impressions are drawn once, and runs resample them. An outcome lies between -1 and 1: of a team draft it is the sign of
the difference in credit, of other methods the difference itself over the largest that clicks can make, since random
clicks tie in the mean and not in the sign. The credit of `PairwisePreference` has no useful bound: it has a fixed size
only. `Balanced` ties in neither; it has the sign.
"""

import sys
from pathlib import Path

import numpy as np

from benchmarks.online_clicks import answerable
from ranktron import Ranking, RankSVM, evaluate, feedback, metric, read
from ranktron.metrics.always_valid import BETS
from ranktron.metrics.interleaving import (
    Balanced,
    Optimized,
    PairwisePreference,
    Probabilistic,
    SampleScored,
    TeamDraft,
)
from ranktron.metrics.off_policy import RankingPolicy
from ranktron.training.figures.plots import panels

K, PAGES, CLICKS, RUNS, HORIZON = 10, 2_000, 3, 200, 20_000
DISCOUNT = 1.0 / np.log2(np.arange(2.0, K + 2.0))
USERS = {
    "perfect": feedback.cascade("perfect", 3, seed=1),
    "navigational": feedback.cascade("navigational", 3, seed=1),
    "informational": feedback.cascade("informational", 3, seed=1),
    "position-based": feedback.position_based(eta=1.0, noise=0.1, grades=3, seed=1),
}
METHODS = [Balanced(K), TeamDraft(K), Probabilistic(K), Optimized(K), SampleScored(K), PairwisePreference(K)]
CHUNK = 1_000
PLACES = np.arange(1.0, K + 1.0)
LARGEST = {Probabilistic: float(K), Optimized: (1.0 / PLACES).sum(), SampleScored: (PLACES**-3.0).sum()}
MANY = [TeamDraft(K), Probabilistic(K), SampleScored(K), PairwisePreference(K)]
EACH = {"split by user": 2}  # impressions of one outcome
SIZES = np.unique(np.geomspace(10, HORIZON, 24).astype(int))
PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "comparing.svg"


def rankers(folder):
    """The test queries, and for each of them the scores of the three rankers, the best one first."""
    train, test = (answerable(read(folder / "Fold1" / f"{part}.txt.gz")) for part in ("train", "test"))
    sizes = np.diff(train.offsets)
    scores = []
    for first, last in ((0, len(train)), (0, 8), (8, 16)):
        rows = slice(train.offsets[first], train.offsets[last])
        model = RankSVM().fit(train.X[rows], train.labels[rows], group=sizes[first:last])
        scores.append(model.predict(test.X))
        value = evaluate(test, scores[-1], metric("ndcg@10")).means["ndcg@10"]
        print(f"RankSVM on queries {first} to {last}: NDCG@10 {value:.4f}", flush=True)
    cuts = [slice(a, b) for a, b in zip(test.offsets[:-1], test.offsets[1:], strict=True)]
    return list(test), [[each[cut] for each in scores] for cut in cuts]


def clicks_of(user, round, items, number):
    """One user's clicks on a page."""
    return user(round, Ranking(np.asarray(items), np.zeros(len(round.labels)), number)).labels


def outcome(method, difference):
    """What a difference in credit counts."""
    if isinstance(method, TeamDraft | Balanced):
        return np.sign(np.round(difference, 9))
    return difference / LARGEST.get(type(method), 1.0)


def interleaved(method, rounds, scores, rng):
    """For each user the outcomes of the first ranker against each other one, for many impressions."""
    found = {name: [] for name in USERS}
    for number in range(PAGES):
        q = int(rng.integers(len(rounds)))
        shown = method.combine([np.argsort(-each, kind="stable") for each in scores[q]], rng)
        for name, user in USERS.items():
            for draw in range(CLICKS):
                one, *others = method.credit(shown, clicks_of(user, rounds[q], shown.items, CLICKS * number + draw))
                found[name].append([outcome(method, one - other) for other in others])
    return {name: np.array(values) for name, values in found.items()}


def split(rounds, scores, rng):
    """For each user the reciprocal rank of the first click of the first ranker minus that of the second: two pages."""
    found = {name: [] for name in USERS}
    for number in range(2 * PAGES * CLICKS):
        for name, user in USERS.items():
            gains = []
            for arm in range(2):
                q = int(rng.integers(len(rounds)))
                items = np.argsort(-scores[q][arm], kind="stable")[:K]
                clicked = np.flatnonzero(clicks_of(user, rounds[q], items, 2 * number + arm))
                gains.append(1.0 / (clicked[0] + 1.0) if len(clicked) else 0.0)
            found[name].append(gains[0] - gains[1])
    return {name: np.array(values) for name, values in found.items()}


def logged(rounds, scores, rng, temperature=0.5):
    """For each user and estimator the difference of both rankers' terms, from pages that softened scores have drawn.

    The logging ranker is the second one with noise: its scores, standardised for each query, divided by 0.5.
    """
    found = {(name, kind): [] for name in USERS for kind in ("item position", "reward interaction")}
    policies = []
    for _, weaker, *_ in scores:
        policies.append(RankingPolicy((weaker - weaker.mean()) / max(weaker.std(), 1e-9), temperature))
    places = [policy.at_places(np.arange(len(policy.scores)), K) for policy in policies]
    for number in range(PAGES * CLICKS):
        q = int(rng.integers(len(rounds)))
        noisy = policies[q].scores / temperature + rng.gumbel(size=len(policies[q].scores))
        items = np.argsort(-noisy)[:K]
        place, drawn = np.arange(len(items)), policies[q].draws(items)
        at = places[q][items, place]
        weights = []
        for each in scores[q][:2]:
            same = (items == np.argsort(-each, kind="stable")[: len(items)]).astype(float)
            weights.append((same / at, np.cumprod(same / drawn)))
        for name, user in USERS.items():
            gains = clicks_of(user, rounds[q], items, number) * DISCOUNT[: len(items)] / DISCOUNT.sum()
            for kind, (one, other) in zip(
                ("item position", "reward interaction"), zip(*weights, strict=True), strict=True
            ):
                found[name, kind].append((one - other) @ gains)
    return {key: np.array(values) for key, values in found.items()}


def stopping_times(values, rng, level=0.05):
    """For each run after how many values the always-valid test decides, and for whom; 0 where it does not."""
    times, sides = np.zeros(RUNS, int), np.zeros(RUNS)
    gains = [np.log1p(BETS[:, None] * sign * values) for sign in (1.0, -1.0)]  # by bet and outcome
    for run in range(RUNS):
        logs = np.zeros((2, len(BETS), 1))
        for start in range(0, HORIZON, CHUNK):
            drawn = rng.integers(len(values), size=CHUNK)
            path = logs + np.cumsum([each[:, drawn] for each in gains], axis=-1)
            capital = np.exp(path).mean(axis=1)
            reached = np.flatnonzero(capital.max(axis=0) >= 2 / level)
            if len(reached):
                times[run], sides[run] = start + reached[0] + 1, 1 - 2 * capital[:, reached[0]].argmax()
                break
            logs = path[:, :, -1:]
    return times, sides


def power(values, each, rng):
    """How often a test of a fixed size finds the first ranker better (z > 1.96), by the number of impressions."""
    found = []
    for size in SIZES:
        drawn = rng.choice(values, size=(RUNS, max(2, size // each)))
        spread = drawn.std(axis=1, ddof=1)
        z = drawn.mean(axis=1) / np.maximum(spread, 1e-12) * np.sqrt(drawn.shape[1])
        found.append(float(np.mean((z > 1.96) & (spread > 0.0))))
    return found


def row(name, user, values, each, rng):
    """A row of the first table: fixed size for 80 % power, always-valid median and 80th percentile, wrong decisions."""
    values = values.reshape(len(values), -1)[:, 0]
    mean, spread, error = values.mean(), values.std(), values.std() / np.sqrt(len(values))
    fixed = f"{each * 7.849 * spread**2 / mean**2:,.0f}" if mean > 2 * error else "–"
    marks, wrong = ["–", "–"], "–"
    if name != "PairwisePreference":
        times, sides = stopping_times(values, rng)
        marks, wrong = quantiles(np.where(sides > 0, times, np.inf), each), f"{np.mean(sides < 0):.1%}"
    cells = [user, name, f"{mean:+.3f} ± {1.96 * error:.3f}", fixed, *marks, wrong]
    print(f"| {' | '.join(cells)} |", flush=True)


def quantiles(ended, each=1):
    """After how many impressions half and 80 % of the runs have found the best ranker."""
    return [
        f"{each * t:,.0f}" if np.isfinite(t) else f"> {each * HORIZON:,}"
        for t in np.quantile(ended, [0.5, 0.8], method="higher")
    ]


def row_of_three(name, user, values, rng):
    """A row of the table of three rankers: until the best one is found to be better than both others.

    Each of the three pairs has a third of the level: a two-sided z-test then needs (2.394 + 0.842)² σ² / μ² values for
    80 % power, and the harder pair decides. Runs draw whole impressions, so that both pairs see the same ones.
    """
    mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))
    sizes = 10.47 * values.var(axis=0) / mean**2
    fixed = f"{sizes.max():,.0f}" if (mean > 2 * error).all() else "–"
    marks = ["–", "–"]
    if name != "PairwisePreference":
        seed, ended = int(rng.integers(1 << 30)), []
        for pair in values.T:
            times, sides = stopping_times(pair, np.random.default_rng(seed), 0.05 / 3)
            ended.append(np.where(sides > 0, times, np.inf))
        marks = quantiles(np.maximum(*ended))
    means = [f"{m:+.3f} ± {1.96 * e:.3f}" for m, e in zip(mean, error, strict=True)]
    print(f"| {' | '.join([user, name, *means, fixed, *marks])} |", flush=True)


def outcomes_of(name, rounds, scores):
    """The outcomes of one way to compare two rankers, by user; each has its own seed."""
    scores = [both[:2] for both in scores]
    ways = {"split by user": split, "old log": logged}
    if name in ways:
        return ways[name](rounds, scores, np.random.default_rng((0, list(ways).index(name))))
    method = next(method for method in METHODS if type(method).__name__ == name)
    return interleaved(method, rounds, scores, np.random.default_rng((0, 2 + METHODS.index(method))))


def report(outcomes, logs):
    """Prints the tables and draws the picture."""
    rng = np.random.default_rng(1)
    print("| user | method | mean outcome | fixed size | always-valid: median | 80 % of runs | wrong |")
    print("|---|---|---|---|---|---|---|")
    for user in USERS:
        for name, values in outcomes.items():
            row(name, user, values[user], EACH.get(name, 1), rng)
    print("\n| user | estimator | mean difference | fixed size |\n|---|---|---|---|")
    for (user, kind), values in logs.items():
        mean, spread = values.mean(), values.std()
        error = spread / np.sqrt(len(values))
        size = f"{7.849 * spread**2 / mean**2:,.0f}" if abs(mean) > 2 * error else "not found"
        print(f"| {user} | {kind} | {mean:+.4f} ± {1.96 * error:.4f} | {size} |")
    grid = {}
    for user in ("navigational", "informational", "position-based"):
        drawn = {name: outcomes[name][user].ravel() for name in ("split by user", "TeamDraft", "Optimized")}
        drawn["old log, item position"] = logs[user, "item position"]
        lines = {name: (SIZES.tolist(), power(values, EACH.get(name, 1), rng)) for name, values in drawn.items()}
        grid[f"{user} users"] = lines
    title = "How often the better ranker is found (fixed size, 5 %)"
    panels(PICTURE, grid, {}, 3, title, "impressions", log=True)


def main(folder):
    rounds, scores = rankers(folder)
    names = ["split by user", *(type(method).__name__ for method in METHODS)]
    outcomes = {name: outcomes_of(name, rounds, scores) for name in names}
    report(outcomes, outcomes_of("old log", rounds, scores))
    print("\n| user | method | best − second | best − third | fixed size | always-valid: median | 80 % of runs |")
    print("|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(2)
    for method in MANY:
        found = interleaved(method, rounds, scores, np.random.default_rng((0, 100 + MANY.index(method))))
        for user in USERS:
            row_of_three(type(method).__name__, user, found[user], rng)


if __name__ == "__main__":
    main(Path(sys.argv[1]) / "mq2008")
