"""How often off-policy intervals hold the value, and how wide they are beside the gamma interval for weighted counts.

python -m benchmarks.off_policy [LOGS]: prints a table from so many simulated logs a row (2,000 unless given), of
single items at three places. Policies and click rates by item are those of the Open Bandit Dataset where RANKTRON_DATA
holds it, otherwise drawn; rates are scaled to a mean of .3, 3 and 30 %.

Intervals: `normal` (value ± 1.96 standard errors), `gamma` (Fay and Feuer 1997), `ips` and `self` (empirical
likelihood, what `ips` and `self_normalised` return), and `difference` (of `ips` to what was shown). Widths are relative
to the normal one, of a difference to the normal one of it.
"""

import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from ranktron.metrics.off_policy.likelihood import likelihood_interval

PLACES, CHUNK = 3, 50
RATES, SIZES = (0.003, 0.03, 0.3), (3_000, 10_000)


class World(NamedTuple):
    """What a log is drawn from: the share of rows of each cell (item and place), the other policy's, and its clicks."""

    name: str
    logging: np.ndarray
    target: np.ndarray
    clicks: np.ndarray

    @property
    def value(self):
        return float(self.target @ self.clicks)

    @property
    def shown(self):
        return float(self.logging @ self.clicks)


def drawn_policies(m=80, seed=0):
    """(peaked policy, click rates by cell): a softmax of the rate and noise, another one at each place."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(2.0, 0.5, m)
    scores = 0.8 * np.log(rates) + 0.9 * rng.normal(size=(PLACES, m))
    peaked = np.exp(scores)
    return (peaked / peaked.sum(axis=1, keepdims=True) / PLACES).ravel(), np.tile(rates, PLACES)


def real_policies(campaign):
    """The same, counted in the logs of the Open Bandit Dataset: smoothed rates of items, and Thompson sampling."""
    import pandas as pd

    folder = Path(os.environ["RANKTRON_DATA"]) / "open-bandit"
    uniform, bts = (pd.read_csv(folder / policy / campaign / f"{campaign}.csv.gz") for policy in ("random", "bts"))
    both = pd.concat([uniform, bts])
    m = int(both.item_id.max()) + 1
    shown, clicked = np.bincount(both.item_id, minlength=m), np.bincount(both.item_id, both.click, minlength=m)
    rates = (clicked + 1.0) / (shown + shown.sum() / clicked.sum())
    cells = (bts.position - 1) * m + bts.item_id
    counts = np.bincount(cells, minlength=PLACES * m).astype(float)
    least = bts.groupby(cells).propensity_score.min().reindex(range(PLACES * m), fill_value=1e-4)
    peaked = np.where(counts >= 3, counts * PLACES / len(bts), least).reshape(PLACES, m)
    return (peaked / peaked.sum(axis=1, keepdims=True) / PLACES).ravel(), np.tile(rates, PLACES)


def worlds(peaked, rates):
    """Uniform and peaked logging, each asked about two other policies; `another` prefers what `peaked` does not."""
    uniform = np.full(len(peaked), 1.0 / len(peaked))
    another = np.roll(peaked.reshape(PLACES, -1), 7, axis=1).ravel()
    for mean in RATES:
        clicks = np.minimum(rates * mean / rates.mean(), 1.0)
        yield mean, World("uniform, asked about peaked", uniform, peaked, clicks)
        yield mean, World("uniform, asked about another", uniform, another, clicks)
        yield mean, World("peaked, asked about uniform", peaked, uniform, clicks)
        yield mean, World("peaked, asked about another", peaked, another, clicks)


def draw_logs(world, n, logs, rng):
    """Counts of rows and of clicks by cell, for each log."""
    shown = rng.multinomial(n, world.logging, size=logs)
    return shown, rng.binomial(shown, world.clicks)


def normal_interval(shown, clicked, weights):
    n = shown.sum(axis=1)
    value = clicked @ weights / n
    error = np.sqrt((clicked @ weights**2 / n - value**2) / (n - 1))
    return value - 1.959964 * error, value + 1.959964 * error


def gamma_interval(shown, clicked, weights):
    """Fay and Feuer's interval of a weighted sum of Poisson counts; its upper end counts a click of the top weight."""
    n = shown.sum(axis=1)
    value, variance = clicked @ weights / n, clicked @ weights**2 / n**2
    top = np.where(shown > 0, weights, 0.0).max(axis=1) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(value > 0, variance / value * gammaincinv(value**2 / variance, 0.025), 0.0)
    value, variance = value + top, variance + top**2
    return low, variance / value * gammaincinv(value**2 / variance, 0.975)


def likelihood_intervals(shown, clicked, weights, self_normalised):
    """As `ips` and `self_normalised` compute them, from counts."""
    both = np.concatenate([weights, weights])
    counts = np.concatenate([clicked, shown - clicked], axis=1).astype(float)
    terms = np.concatenate([weights, np.zeros_like(weights)])
    return likelihood_interval(
        np.broadcast_to(terms, counts.shape), both if self_normalised else np.ones_like(both), 0.0 * both, both, counts
    )


def difference_intervals(shown, clicked, weights):
    """Those of the difference of `ips` to what was shown, and the normal ones."""
    apart = weights - 1.0
    counts = np.concatenate([clicked, shown - clicked], axis=1).astype(float)
    both, terms = np.concatenate([apart, apart]), np.concatenate([apart, 0.0 * apart])
    found = likelihood_interval(
        np.broadcast_to(terms, counts.shape), np.ones_like(both), np.minimum(both, 0.0), np.maximum(both, 0.0), counts
    )
    return found, normal_interval(shown, clicked, apart)


def measure(world, n, logs, seed=0):
    """{name: (coverage, mean width)} of each interval, and the mean effective size."""
    rng, weights, chunks = np.random.default_rng(seed), world.target / world.logging, []
    sizes = []
    for start in range(0, logs, CHUNK):
        shown, clicked = draw_logs(world, n, min(CHUNK, logs - start), rng)
        sizes.append((shown @ weights) ** 2 / (shown @ weights**2))
        difference, normal_difference = difference_intervals(shown, clicked, weights)
        chunks.append({
            "difference": difference,
            "normal difference": normal_difference,
            "normal": normal_interval(shown, clicked, weights),
            "gamma": gamma_interval(shown, clicked, weights),
            "ips": likelihood_intervals(shown, clicked, weights, self_normalised=False),
            "self": likelihood_intervals(shown, clicked, weights, self_normalised=True),
        })  # fmt: skip
    found = {}
    for name in chunks[0]:
        low, high = (np.concatenate([chunk[name][end] for chunk in chunks]) for end in (0, 1))
        value = world.value - (world.shown if "difference" in name else 0.0)
        found[name] = float(((low <= value) & (value <= high)).mean()), float((high - low).mean())
    return found, float(np.concatenate(sizes).mean())


def main():
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    sources = {"drawn": drawn_policies}
    if "RANKTRON_DATA" in os.environ:
        sources = {campaign: lambda campaign=campaign: real_policies(campaign) for campaign in ("all", "men")}
    names = ("normal", "gamma", "ips", "self", "difference")
    print("| policies, logging | rate | rows | effective size | " + " | ".join(f"{name}" for name in names) + " |")
    print("|---" * (4 + len(names)) + "|")
    for source, policies in sources.items():
        for mean, world in worlds(*policies()):
            for n in SIZES:
                found, size = measure(world, n, logs)
                against = {name: found["normal difference" if name == "difference" else "normal"][1] for name in names}
                cells = [f"{found[name][0]:.3f}, {found[name][1] / against[name]:.2f}" for name in names]
                start = f"| {source}: {world.name} | {mean:.1%} | {n:,} | {size:,.0f} | "
                print(start + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
