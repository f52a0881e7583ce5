"""All outcomes of whatever draws at random, with their probabilities: for exact expectations of small cases."""

from functools import cache
from itertools import permutations, product

import numpy as np


class Choices:
    """Stands where a random generator stands and takes the branches it is told to; beyond them, the first possible."""

    def __init__(self, path):
        self.path, self.taken, self.others, self.probability = path, [], [], 1.0

    def integers(self, n):
        return self.choice(n, np.full(n, 1.0 / n))

    def choice(self, n, p):
        possible = [int(i) for i in np.flatnonzero(p)]
        taken = self.path[len(self.taken)] if len(self.taken) < len(self.path) else possible[0]
        self.taken.append(taken)
        self.others.append([i for i in possible if i > taken])
        self.probability *= p[taken]
        return taken


def outcomes(draw):
    """(outcome, probability) of every way that `draw(rng)` can go."""
    path = []
    while path is not None:
        rng = Choices(path)
        yield draw(rng), rng.probability
        last = next((i for i in reversed(range(len(rng.taken))) if rng.others[i]), None)
        path = None if last is None else [*rng.taken[:last], rng.others[last][0]]


@cache
def pages(method, rankings):
    """The distinct pages of a method for some rankings, with their probabilities; teams are part of a page."""
    found = {}
    for shown, p in outcomes(lambda rng: method.combine(rankings, rng)):
        key = shown.items.tobytes(), None if shown.teams is None else shown.teams.tobytes()
        found[key] = shown, p + (found[key][1] if key in found else 0.0)
    total = sum(p for _, p in found.values())
    assert abs(total - 1.0) < 1e-9, total
    return list(found.values())


@cache
def _credit(method, rankings, page, clicks):
    return method.credit(pages(method, rankings)[page][0], clicks)


def sign_apart(credit):
    """The sign of the first ranker's credit minus that of the second."""
    return np.sign(np.round(credit[0] - credit[1], 9))


def expected_credit(method, rankings, click_probabilities, of=np.array):
    """The expected credit of each ranker, or of something `of` it, for clicks that are independent given the page.

    `click_probabilities(items)` gives that of each document shown.
    """
    total = 0.0
    for page, (shown, p) in enumerate(pages(method, rankings)):
        chances = np.asarray(click_probabilities(shown.items), float)
        for clicks in product(*[[0.0] if c == 0.0 else [1.0] if c == 1.0 else [0.0, 1.0] for c in chances]):
            q = np.prod(np.where(np.array(clicks) > 0.0, chances, 1.0 - chances))
            total = total + p * q * of(_credit(method, rankings, page, clicks))
    return total


def dominating(m):
    """(better, worse, relevant) of m documents: none of the relevant stands lower in the first, and one higher."""
    better = tuple(range(m))
    for worse in permutations(range(m)):
        for relevant in product([False, True], repeat=m):
            falls = [worse.index(d) - d for d in range(m) if relevant[d]]
            if falls and min(falls) >= 0 and max(falls) > 0:
                yield better, worse, np.array(relevant, float)
