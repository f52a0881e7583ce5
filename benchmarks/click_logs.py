"""Learning from a click log: a race against LightGBM with `position=`, and how often intervals hold what they should.

python -m benchmarks.click_logs race|coverage|useless|truncated|queries|table RESULTS [SEEDS]: writes one JSON line per
run to the file RESULTS, goes on where it stopped, and prints the tables.
python -m benchmarks.click_logs sessions DATA: the examination of DATA/yandex-clicks, with and without the query that
has more than half of the sessions, as a table and as docs/pictures/click-sessions.svg.
"""

import json
import sys
import warnings
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

import ranktron
from ranktron.data.impressions import Impressions
from ranktron.data.io import read_impressions
from ranktron.learners.clicks import em_examination, harvested_examination, power_law, randomised_examination

M, D, TEST = 10, 10, 1000
GRADES = (0.5, 0.7, 0.85, 0.95)  # the shares of documents below grades 1, 2, 3 and 4
FIRST = 100  # the first seed: others were for choosing candidates
USELESS = 0  # the feature that says nothing, and that production sorts by


@dataclass(frozen=True)
class Cell:
    """One kind of log: what is true, who ranked, how users look and err, and how many sessions there are."""

    truth: str = "linear"
    production: str = "useless"
    eta: float = 1.0
    noise: float = 0.1
    sessions: int = 1000


OTHERS = (
    {}, {"eta": 0.5}, {"eta": 2.0}, {"noise": 0.0}, {"noise": 0.2}, {"production": "several"},
    {"sessions": 300}, {"sessions": 3000}, {"sessions": 30_000},
)  # fmt: skip
CELLS = [Cell(truth, **other) for other in OTHERS for truth in ("linear", "nonlinear")]


def truth_of(kind, X):
    if kind == "linear":
        return X @ np.array([0, 1.0, -1.0, 0.8, -0.6, 0.5, 0.3, 0, 0, 0])
    return X[..., 1] * X[..., 2] + np.abs(X[..., 3]) + np.sin(2.0 * X[..., 4]) + 0.5 * X[..., 5] - X[..., 6] ** 2 / 2.0


def lists(rng, n, kind):
    """Features and grades of n lists; the grades are by the quantiles of what is true over a fixed sample."""
    sample = truth_of(kind, np.random.default_rng(7).normal(size=(20_000, D)))
    X = rng.normal(size=(n, M, D)).astype(np.float32)
    return X, np.digitize(truth_of(kind, X), np.quantile(sample, GRADES))


def positions(rng, X, grades, production):
    """Where each document stood, and which ranker put it there."""
    noise = 0.2 * rng.normal(size=grades.shape)
    useless, better = X[..., USELESS] + noise, 0.5 * X[..., USELESS] + 0.5 * X[..., 1] + noise
    which = rng.integers(3, size=len(X)) * (production == "several")
    scores = np.choose(which[:, None], [useless, better, -X[..., 2] + noise])
    return np.argsort(np.argsort(-scores, axis=1), axis=1) + 1, which


def draw(cell, seed):
    rng = np.random.default_rng((seed, cell.sessions))
    X, grades = lists(rng, cell.sessions, cell.truth)
    place, which = positions(rng, X, grades, cell.production)
    chance = power_law(cell.eta, M).at(place) * (cell.noise + (1.0 - cell.noise) * grades / 4.0)
    return X, grades, place, (rng.random(chance.shape) < chance).astype(float), which


def ndcg(scores, X, grades):
    test = ranktron.Rounds.from_arrays(X.reshape(-1, D), grades.ravel(), group=[M] * len(X))
    return ranktron.evaluate(test, scores, [ranktron.metric("ndcg@5")]).means["ndcg@5"]


def judged(scores, place, clicks, theta):
    """How well scores rank held-out clicks, each worth 1 / examination: what both sides are tuned by."""
    order = np.argsort(-scores.reshape(place.shape), axis=1)
    worth = np.take_along_axis(clicks / theta.at(place), order, axis=1)
    return float((worth[:, :5] / np.log2(np.arange(2, 7))).sum())


def peer(X, place, clicks, held, theta):
    """LightGBM's best of six, chosen on held-out clicks with the true examination, then fitted to all sessions."""
    import lightgbm

    def fitted(which, leaves, rounds):
        data = lightgbm.Dataset(
            X[which].reshape(-1, D), clicks[which].ravel().astype(int), group=[M] * int(which.sum()),
            position=place[which].ravel(),
        )  # fmt: skip
        settings = {"objective": "lambdarank", "num_leaves": leaves, "learning_rate": 0.1, "verbose": -1}
        settings |= {"num_threads": 1, "deterministic": True, "seed": 0, "lambdarank_truncation_level": M}
        return lightgbm.train(settings, data, num_boost_round=rounds)

    best = (-np.inf,)
    for leaves in (4, 15):
        model = fitted(~held, leaves, 150)
        for rounds in (25, 75, 150):
            scores = model.predict(X[held].reshape(-1, D), num_iteration=rounds)
            best = max(best, (judged(scores, place[held], clicks[held], theta), leaves, rounds))
    return fitted(np.full(len(X), True), *best[1:])


PRODUCTS = PolynomialFeatures(2, interaction_only=True, include_bias=False).fit(np.zeros((1, D)))
CANDIDATES = [(False, None, 1.0), (True, "bins-linear:3", 100.0)]


def features(X, multiplied):
    """The rows as they are, or with the products of every two features beside them."""
    rows = X.reshape(-1, D)
    return PRODUCTS.transform(rows).astype(np.float32) if multiplied else rows


def ours(X, place, clicks, held, examination, Z):
    """RankSVM's best of two, chosen on held-out clicks with its own examination, then fitted to all sessions."""
    qid = np.repeat(np.arange(len(X)), M).reshape(len(X), M)

    def fitted(which, multiplied, recipe, C):
        return ranktron.RankSVM(C=C, map=recipe, tol=1e-3, scale=None).fit(
            features(X[which], multiplied), clicks[which].ravel(), qid=qid[which].ravel(),
            position=place[which].ravel(), examination=examination,
        )  # fmt: skip

    best = (-np.inf,)
    for number, candidate in enumerate(CANDIDATES):
        scores = fitted(~held, *candidate).predict(features(X[held], candidate[0]))
        best = max(best, (judged(scores, place[held], clicks[held], examination), number))
    chosen = CANDIDATES[best[1]]
    return fitted(np.full(len(X), True), *chosen).predict(features(Z, chosen[0])), chosen


def race(cell, seed):
    X, _, place, clicks, _ = draw(cell, seed)
    Z, grades = lists(np.random.default_rng((seed, 99)), TEST, cell.truth)
    held = np.random.default_rng((seed, 5)).random(len(X)) < 0.2
    theta = power_law(cell.eta, M)
    row = {"lightgbm": ndcg(peer(X, place, clicks, held, theta).predict(Z.reshape(-1, D)), Z, grades)}
    log = Impressions.from_arrays(clicks.ravel(), np.repeat(np.arange(len(X)), M), place.ravel())
    for name, curve in (("known", theta), ("estimated", em_examination(log, X.reshape(-1, D), tol=1e-4))):
        scores, chosen = ours(X, place, clicks, held, curve, Z)
        row[name], row[f"chosen, {name}"] = ndcg(scores, Z, grades), chosen
    plain = ranktron.RankSVM(tol=1e-3, scale=None).fit(X.reshape(-1, D), clicks.ravel(), group=[M] * len(X))
    row["clicks as labels"] = ndcg(plain.predict(Z.reshape(-1, D)), Z, grades)
    return row


def useless_weight(cell, seed, replicates=50):
    """The weight of the useless feature with a 95 % interval from resampled sessions: t times their deviation."""
    from scipy.stats import t

    reach = t.ppf(0.975, replicates - 1)
    X, _, place, clicks, _ = draw(cell, seed)
    rng, found = np.random.default_rng((seed, 11)), {}
    for name in ("known", "estimated", "clicks as labels"):
        drawn = []
        for replicate in range(replicates + 1):
            taken = np.arange(len(X)) if replicate == 0 else rng.integers(len(X), size=len(X))
            rows, qid = X[taken].reshape(-1, D), np.repeat(np.arange(len(X)), M)
            how = {} if name == "clicks as labels" else {"position": place[taken].ravel()}
            if name == "known":
                how["examination"] = power_law(cell.eta, M)
            elif name == "estimated":
                log = Impressions.from_arrays(clicks[taken].ravel(), qid, place[taken].ravel())
                how["examination"] = em_examination(log, rows, tol=1e-4)
            ranker = ranktron.RankSVM(tol=1e-3, scale=None).fit(rows, clicks[taken].ravel(), qid=qid, **how)
            drawn.append(float(ranker.coef_[USELESS] / np.linalg.norm(ranker.coef_)))
        found[name] = [drawn[0], reach * float(np.std(drawn[1:], ddof=1))]
    return found


QUERIES, RANKERS = 100, 3


def repeated(rng, sessions, how, eta=1.0, noise=0.1):
    """A log over a hundred queries: shuffled, or shown by three rankers in turn."""
    relevance = noise + (1.0 - noise) * rng.random((QUERIES, M)) ** 2
    query = rng.integers(QUERIES, size=sessions)
    ranker = rng.integers(RANKERS, size=sessions)
    if how == "randomised":
        order = np.argsort(rng.random((sessions, M)), axis=1)
    else:
        order = np.argsort(-(relevance + 0.4 * rng.normal(size=(RANKERS, QUERIES, M))), axis=2)[ranker, query]
    chance = power_law(eta, M).values * np.take_along_axis(relevance[query], order, axis=1)
    clicks, rows = rng.random(chance.shape) < chance, np.repeat(np.arange(sessions), M)
    return Impressions.from_arrays(
        clicks.ravel(), rows, np.tile(np.arange(1, M + 1), sessions), query=query[rows], item=order.ravel(),
        ranker=ranker[rows], exploration=np.full(sessions * M, 1.0 / M) if how == "randomised" else None,
    )  # fmt: skip


def coverage(cell, seed):
    """For each estimator which of the intervals of ranks 2 to 10 hold the true examination."""
    found = {}
    theta = power_law(cell["eta"], M).values[1:]
    for how in ("randomised", "harvested", "em"):
        if how == "em" and seed % 10:
            continue
        log = repeated(np.random.default_rng((seed, 3)), cell["sessions"], how, cell["eta"])
        estimate = {"randomised": randomised_examination, "harvested": harvested_examination, "em": em_examination}[how]
        more = {"tol": 1e-4, "replicates": 40} if how == "em" else {"replicates": 100}
        curve = estimate(log, seed=seed, **more)
        found[how] = [bool(low <= t <= high) for low, t, high in zip(curve.low[1:], theta, curve.high[1:], strict=True)]
        found[f"{how}: log ratio"] = np.log(curve.values[1:] / theta).tolist()
    return found


SHOPS, CANDIDATE_DOCUMENTS = 60, 12


def truncated_log(cell, seed):
    """Pages with the best of twelve candidates by a noisy popularity, which users do not want, or by it and text."""
    rng = np.random.default_rng((seed, 7))
    X = rng.normal(size=(SHOPS, CANDIDATE_DOCUMENTS, 3)).astype(np.float32)  # popularity, text, freshness
    relevance = 1.0 / (1.0 + np.exp(X[..., 2] - 2.0 * X[..., 1]))
    query = rng.integers(SHOPS, size=cell["sessions"])
    sorted_by = X[..., 0] + X[..., 1] * (cell["logged by"] == "popularity and text")
    noisy = sorted_by[query] + 0.5 * rng.normal(size=(cell["sessions"], CANDIDATE_DOCUMENTS))
    item = np.argsort(-noisy, axis=1)[:, : cell["shown"]]
    place = np.tile(np.arange(1, cell["shown"] + 1), (cell["sessions"], 1))
    wanted = np.take_along_axis(relevance[query], item, axis=1)
    clicks = rng.random(wanted.shape) < wanted * power_law(0.9, CANDIDATE_DOCUMENTS).at(place)
    rows = np.repeat(np.arange(cell["sessions"]), cell["shown"])
    shown = {"qid": rows, "position": place.ravel(), "query": query[rows], "item": item.ravel()}
    return X[query[rows], item.ravel()], clicks.ravel().astype(float), wanted.ravel(), shown


def truncated(cell, seed):
    """The weight of popularity over that of text: of true relevance on the same pages, and of clicks."""
    X, clicks, wanted, shown = truncated_log(cell, seed)
    given = {
        "true relevance": (wanted, {"propensity": np.ones(len(wanted)), **shown}),
        "known curve": (clicks, {"examination": power_law(0.9, CANDIDATE_DOCUMENTS), **shown}),
        "harvested curve": (clicks, {"examination": "harvested", **shown}),
        "clicks as labels": (clicks, {"qid": shown["qid"]}),
    }
    found = {}
    for name, (y, more) in given.items():
        coef = ranktron.RankSVM(tol=1e-3, scale="standard").fit(X, y, **more).coef_
        found[name] = float(coef[0] / coef[1])
    return found


def keep(path, kind, cells, seeds, run):
    """Runs what is not in the file yet, and adds it, line by line."""
    path = Path(path)
    done = {json.dumps(row["key"]) for row in read(path, kind)}
    for seed, cell in product(range(FIRST, FIRST + seeds), cells):
        key = [cell, seed]
        if json.dumps(key) not in done:
            given = Cell(**cell) if "truth" in cell else cell
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = run(given, seed)
            with path.open("a") as file:
                file.write(json.dumps({"kind": kind, "key": key, "found": found}) + "\n")


def read(path, kind):
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []
    return [row for row in rows if row["kind"] == kind]


def holm(values):
    """Holm's adjusted p values."""
    order, adjusted, most = np.argsort(values), np.empty(len(values)), 0.0
    for place, which in enumerate(order):
        most = max(most, min(1.0, (len(values) - place) * values[which]))
        adjusted[which] = most
    return adjusted


def race_table(path):
    from scipy.stats import ttest_rel

    rows = read(path, "race")
    for name in ("known", "estimated"):
        lines, tests = [], []
        for cell in map(asdict, CELLS):
            runs = [row["found"] for row in rows if row["key"][0] == cell]
            if len(runs) < 3:
                continue
            theirs, own = (np.array([run[who] for run in runs]) for who in ("lightgbm", name))
            plain = np.mean([run["clicks as labels"] for run in runs])
            tests.append(float(ttest_rel(own, theirs).pvalue))
            lines.append((cell, len(runs), plain, theirs.mean(), own.mean(), (own - theirs).mean()))
        print(f"\n{name} examination\n")
        print("| truth | production | eta | noise | sessions | seeds | as labels | LightGBM | ours | difference | p |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for (cell, n, plain, theirs, own, apart), p in zip(lines, holm(tests), strict=True):
            cells = " | ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in cell.values())
            print(f"| {cells} | {n} | {plain:.3f} | {theirs:.3f} | {own:.3f} | {apart:+.4f} | {p:.2g} |")


def useless_table(path):
    rows = read(path, "useless")
    print("\n| log | fitted with | mean weight of the useless feature | intervals that cover 0 |\n|---|---|---|---|")
    for cell in {json.dumps(row["key"][0]) for row in rows}:
        runs = [row["found"] for row in rows if row["key"][0] == json.loads(cell)]
        for name in runs[0]:
            weights, widths = np.array([run[name] for run in runs]).T
            print(f"| {cell} | {name} | {weights.mean():+.3f} | {(np.abs(weights) <= widths).sum()} of {len(runs)} |")


def coverage_table(path):
    rows = read(path, "coverage")
    print("\n| eta | sessions | estimator | simulations | intervals that hold θ | by rank | bias of log θ |")
    print("|---|---|---|---|---|---|---|")
    for cell in SIMULATIONS:
        for how in ("randomised", "harvested", "em"):
            runs = [row["found"] for row in rows if row["key"][0] == cell and how in row["found"]]
            if runs:
                held = np.array([run[how] for run in runs])
                bias = np.mean([run[f"{how}: log ratio"] for run in runs], axis=0)
                ranks = f"{held.mean(axis=0).min():.3f} to {held.mean(axis=0).max():.3f}"
                biases = f"{bias.min():+.3f} to {bias.max():+.3f}"
                cells = (cell["eta"], cell["sessions"], how, len(runs), f"{100 * held.mean():.1f} %", ranks, biases)
                print(f"| {' | '.join(map(str, cells))} |")


SESSIONS = (20102, 5452, 2654, 1541, 1247, 1140, 597, 532, 459, 244, 226, 220, 128, 128, 104, 90, 70, 63, 44, 23)
SIZES = {"20 equal": (1,) * 20, "as Yandex": SESSIONS, "as Yandex, without the largest": SESSIONS[1:]}


def query_coverage(cell, seed, replicates=60):
    """Whether intervals over impressions and over queries hold the mean of θ_2, which differs between queries."""
    rng = np.random.default_rng((seed, 13))
    shares = np.array(SIZES[cell["sizes"]], float)
    query = rng.choice(len(shares), size=3000, p=shares / shares.sum())
    uniform, normal = rng.uniform(0.2, 0.8, size=len(shares)), rng.normal(size=len(shares))
    second = uniform if cell["theta"] == "uniform" else np.minimum(0.5 * np.exp(0.4 * normal - 0.08), 1.0)
    item = rng.permuted(np.tile([0, 1], (3000, 1)), axis=1)
    clicks = rng.random((3000, 2)) < 0.4 * np.column_stack([np.ones(3000), second[query]])
    rows, place = np.repeat(np.arange(3000), 2), np.tile([1, 2], 3000)
    log = Impressions.from_arrays(clicks.ravel().astype(float), rows, place, query=query[rows], item=item.ravel())
    found = {}
    for unit in ("impressions", "queries"):
        curve = harvested_examination(log, replicates, seed=seed, resample=unit)
        found[unit] = bool(curve.low[1] <= 0.5 <= curve.high[1]), float(curve.high[1] / curve.low[1])
    return found


def query_table(path):
    rows = read(path, "queries")
    print("\n| sizes of queries | θ_2 | logs | over impressions | high / low | over queries | high / low |")
    print("|---|---|---|---|---|---|---|")
    for cell in UNEVEN:
        runs = [row["found"] for row in rows if row["key"][0] == cell]
        if runs:
            cells = [
                f"{np.mean([run[unit][0] for run in runs]):.3f} | {np.median([run[unit][1] for run in runs]):.2f}"
                for unit in ("impressions", "queries")
            ]
            print(f"| {cell['sizes']} | {cell['theta']} | {len(runs)} | {' | '.join(cells)} |")


UNEVEN = [{"sizes": sizes, "theta": theta} for sizes in SIZES for theta in ("uniform", "lognormal")]
PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "click-sessions.svg"


def without_queries(log, left_out):
    """The impressions of all queries but some."""
    rows = ~np.isin(log.query, left_out)
    qid = log.ids[log.impression_of_rows][rows]
    return Impressions.from_arrays(log.gains[rows], qid, log.position[rows], query=log.query[rows], item=log.item[rows])


def sessions(folder, replicates=400):
    """Examination harvested from real sessions, with intervals over impressions and over queries."""
    from ranktron.training.figures.plots import draw_examination

    log = read_impressions(Path(folder) / "yandex-clicks" / "sessions.csv.gz")
    queries, counts = np.unique(log.query[log.offsets[:-1]], return_counts=True)
    largest = queries[counts.argmax()]
    print(f"{len(log):,} sessions of {len(queries)} queries, {counts.max() / len(log):.0%} of them of one query")
    others = without_queries(log, [largest])
    curves = {
        "impressions resampled": harvested_examination(log, replicates),
        "queries resampled": harvested_examination(log, replicates, resample="queries"),
        "without the largest query, queries resampled": harvested_examination(others, replicates, resample="queries"),
        "the largest query alone": harvested_examination(without_queries(log, queries[queries != largest]), replicates),
    }
    print(f"| position | click-through | {' | '.join(curves)} |\n|---|---|{'---|' * len(curves)}")
    for k, rate in enumerate(log.click_through()):
        cells = [f"{curve.values[k]:.3f} ({curve.low[k]:.3f}–{curve.high[k]:.3f})" for curve in curves.values()]
        print(f"| {k + 1} | {rate:.4f} | {' | '.join(cells)} |")
    drawn = ("queries resampled", "without the largest query, queries resampled")
    draw_examination(PICTURE, log.click_through(), {name: curves[name] for name in drawn})


def truncated_table(path):
    rows = read(path, "truncated")
    print("\n| logged by | shown | seeds | true relevance | known curve | harvested curve | clicks as labels |")
    print("|---|---|---|---|---|---|---|")
    for cell in TRUNCATED:
        runs = [row["found"] for row in rows if row["key"][0] == cell]
        if not runs:
            continue
        truth = np.array([run["true relevance"] for run in runs])
        cells = [f"{truth.mean():+.3f}"]
        for name in ("known curve", "harvested curve", "clicks as labels"):
            apart = np.array([run[name] for run in runs]) - truth
            cells.append(f"{apart.mean():+.3f} ± {apart.std(ddof=1) / len(apart) ** 0.5:.3f}")
        where = f"{cell['logged by']} | {cell['shown']} of {CANDIDATE_DOCUMENTS} | {len(runs)}"
        print(f"| {where} | {' | '.join(cells)} |")


TRUNCATED = [
    {"logged by": how, "shown": shown, "sessions": 3000}
    for how in ("popularity", "popularity and text")
    for shown in (12, 10, 8, 5)
]
SIMULATIONS = [{"eta": 1.0, "sessions": 2000}]

if __name__ == "__main__":
    what, results = sys.argv[1:3]
    if what == "sessions":
        sessions(results)
        sys.exit()
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    if what == "race":
        keep(results, "race", list(map(asdict, CELLS)), count, race)
    elif what == "useless":
        keep(results, "useless", [asdict(Cell())], count, useless_weight)
    elif what == "coverage":
        keep(results, "coverage", SIMULATIONS, count, coverage)
    elif what == "truncated":
        keep(results, "truncated", TRUNCATED, count, truncated)
    elif what == "queries":
        keep(results, "queries", UNEVEN, count, query_coverage)
    for table in (race_table, useless_table, coverage_table, truncated_table, query_table):
        table(results)
