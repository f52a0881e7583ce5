import numpy as np
import pytest
from scipy.optimize import minimize

from ranktron import DataError
from ranktron.data.io import read_impressions
from ranktron.learners.clicks.harvesting import bradley_terry, harvested_examination
from ranktron.learners.clicks.identification import Swaps

CURVE = np.array([1.0, 0.5, 0.25])


def test_documents_that_moved_give_the_curve_whatever_their_relevance_and_traffic(counted):
    log = counted(
        [
            ("q", "a", 1, 20, 16), ("q", "a", 2, 40, 16), ("q", "b", 2, 20, 4), ("q", "b", 3, 80, 8),
            ("r", "a", 1, 10, 5), ("r", "a", 3, 80, 10), ("r", "c", 1, 100, 99),
        ]
    )  # fmt: skip
    assert harvested_examination(log, replicates=0).values == pytest.approx(CURVE)
    naive = log.click_through() / log.click_through()[0]
    assert np.abs(naive - CURVE).max() > 0.1


def agarwal(log):
    """All pairs of positions, literally: a relevance for each pair, fitted with the examination (slow)."""
    size, documents = log.n_positions, log.documents()
    clicked, missed = np.zeros((size, size)), np.zeros((size, size))
    cells = {}
    for row in range(len(documents)):
        cell = cells.setdefault((documents[row], log.position[row] - 1), [0, 0])
        cell[0] += 1
        cell[1] += log.clicks[row]
    for (document, k), (shown, clicks) in cells.items():
        for (other, j), (shown_there, _) in cells.items():
            if document == other and k != j:
                weight = shown_there / (shown + shown_there)
                clicked[k, j] += weight * clicks
                missed[k, j] += weight * (shown - clicks)
    pairs = [(k, j) for k in range(size) for j in range(k + 1, size)]

    def loss(parameters):
        theta = np.concatenate([[1.0], np.exp(parameters[: size - 1])])
        relevance = 1.0 / (1.0 + np.exp(-parameters[size - 1 :]))
        total = 0.0
        for (k, j), r in zip(pairs, relevance, strict=True):
            for one, other in ((k, j), (j, k)):
                chance = min(max(theta[one] * r, 1e-9), 1 - 1e-9)
                total -= clicked[one, other] * np.log(chance) + missed[one, other] * np.log(1.0 - chance)
        return total

    found = minimize(loss, np.zeros(size - 1 + len(pairs)), method="L-BFGS-B")
    return np.exp(found.x[: size - 1])


def test_it_agrees_with_the_likelihood_that_fits_the_relevance_of_each_pair_of_positions(simulated):
    log, theta = simulated(3, 4000, shuffled=False, m=4)
    ours, theirs = harvested_examination(log, replicates=0).values[1:], agarwal(log)
    assert ours == pytest.approx(theirs, rel=0.05)
    assert ours == pytest.approx(theta[1:], rel=0.1)


def test_the_fit_of_all_pairs_has_a_score_of_zero():
    won = np.random.default_rng(0).random((6, 6)) + 0.1
    np.fill_diagonal(won, 0.0)
    theta = bradley_terry(won)
    expected = ((won + won.T) * (theta[:, None] / (theta[:, None] + theta))).sum(axis=1)
    assert won.sum(axis=1) == pytest.approx(expected)
    assert theta[0] == 1.0


@pytest.mark.data
def test_real_sessions_give_the_curve_of_the_page(data_dir):
    path = data_dir / "yandex-clicks" / "sessions.csv.gz"
    if not path.exists():
        pytest.skip("the sessions are not there")
    log = read_impressions(path)
    curve = harvested_examination(log, 30, resample="queries")
    expected = [1.0, 0.726, 0.600, 0.492, 0.368, 0.325, 0.302, 0.240, 0.250, 0.238]
    assert curve.values == pytest.approx(expected, abs=5e-4)
    assert Swaps(log).documents == 538
    over_impressions = harvested_examination(log, 30)
    assert (np.log(curve.high / curve.low) > 2.0 * np.log(over_impressions.high / over_impressions.low))[1:].all()


def test_a_log_in_which_nothing_moved_is_refused(counted):
    log = counted([("q", "a", 1, 5, 3), ("q", "b", 2, 5, 3), ("q", "b", 3, 5, 3)])
    with pytest.raises(
        DataError, match=r"both sides of positions 1 \| 2, 3: there is nothing to harvest.*a second ranker"
    ):
        harvested_examination(log)
