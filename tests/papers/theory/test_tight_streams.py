"""How nearly the bounds are reached: a constant a few times too small would be broken by one of these streams.

The table of docs/theory.md is made of ROWS (`--write-docs`).
"""

import re
from math import log2, sqrt
from pathlib import Path

import numpy as np
import pytest

from ranktron import DataError, Rounds, metric, play
from ranktron.data.rounds import largest_row_norm
from ranktron.data.synthetic import Adversary, Separable
from ranktron.learners import (
    classification_perceptron,
    feedback,
    minimax_perceptron,
    slam_perceptron,
)
from ranktron.learners.predtron import LossDriven, Predtron, Standard, binary, theoretical_step, walk
from ranktron.learners.steps import Constant
from ranktron.learners.top_k.learner import TopK
from ranktron.papers.theory import predtron_bounds
from ranktron.papers.theory.bounds import (
    active_weight_bound,
    best_margin,
    bound_at,
    bound_for_any_eta,
    largest_weight_ratio,
    lower_bound,
    margin,
    shared_bound,
    slam_constant,
)
from ranktron.papers.theory.certificates import certify
from ranktron.papers.theory.tight_streams import (
    Spiral,
    growing_loss,
    misleading_average,
    orthogonal_lists,
)
from ranktron.papers.theory.top_k_bounds import Limits, regret_bound, theorem_settings
from ranktron.papers.theory.top_k_games import losses
from ranktron.surrogates import SLAM, PairwiseHinge
from ranktron.training.fit import TrainingPlan, train
from ranktron.types import Round

claim = pytest.mark.claim
PAGE = Path(__file__).parents[3] / "docs" / "theory.md"


def total_loss(learner, rounds, measure):
    return sum(1.0 - turn.values[0] for turn in play(learner, rounds, feedback.full, [metric(measure)]))


def spiral_run(measure, documents, gamma=0.1, eta=None):
    """What Algorithm 2 loses on a spiral, at η = 1/K or another, and K; the margin and the radius are verified."""
    spiral = Spiral(measure, gamma, 1.0, documents)
    shape = Rounds.from_arrays(np.zeros((documents, 2)), spiral.labels)
    surrogate = SLAM(measure)
    K = slam_constant(surrogate.k or documents, 1.0, largest_weight_ratio(shape, surrogate))
    learner, seen = slam_perceptron(2, metric=measure, eta=eta or 1.0 / K), []

    def watched():
        for round in spiral.against(learner):
            seen.append(round)
            yield round

    lost = total_loss(learner, watched(), measure)
    X, labels = np.concatenate([r.X for r in seen]), np.concatenate([r.labels for r in seen])
    data = Rounds.from_arrays(X, labels, group=[documents] * len(seen))
    assert largest_row_norm(data) <= 1.0
    assert best_margin(data).margin == pytest.approx(gamma, rel=1e-5)
    assert learner.mistakes == learner.rounds
    return lost, K


def perceptron_stream(count):
    return Rounds.from_arrays(np.eye(count), np.ones(count), group=[1] * count)


def algorithm_1():
    learner = classification_perceptron(400)
    mistakes = sum(turn.loss > 0.0 for turn in play(learner, perceptron_stream(400), feedback.full))
    return mistakes / shared_bound(0.0, sqrt(400.0), 1.0)


def algorithm_1_not_separated():
    """A comparator of half the length: its hinge is 1/2 on each of the mistakes."""
    learner, u = classification_perceptron(400), np.full(400, 0.5)
    mistakes = sum(turn.loss > 0.0 for turn in play(learner, perceptron_stream(400), feedback.full))
    return mistakes / shared_bound(400 * 0.5, np.linalg.norm(u), 1.0)


def corollary_11(L=0.0, length=1.0):
    lists = orthogonal_lists(100)
    lost = total_loss(minimax_perceptron(100), lists, "ndcg@1")
    gamma = margin(np.ones(100), lists)
    assert gamma == pytest.approx(2.0 / sqrt(100.0))
    return lost / shared_bound(100 * L, length / gamma, 4.0)


def adversary():
    against = Adversary(radius=1.0, margin=0.1, documents=2)
    learner = minimax_perceptron(against.features)
    return lower_bound(1.0, 0.1) / total_loss(learner, against.against(learner), "ndcg")


def theorem(measure, documents, gamma=0.1):
    lost, K = spiral_run(measure, documents, gamma)
    assert bound_at(1.0 / K, 0.0, 1.0 / gamma, K) == pytest.approx(shared_bound(0.0, 1.0 / gamma, K))
    return lost / shared_bound(0.0, 1.0 / gamma, K)


def ours(eta, measure="ndcg@2", documents=4, gamma=0.1):
    return spiral_run(measure, documents, gamma, eta)[0] / bound_for_any_eta(eta, 0.0, 1.0 / gamma, 1.0)


def ours_on_orthogonal_lists(eta):
    lists = orthogonal_lists(100)
    lost = total_loss(slam_perceptron(100, metric="ndcg@1", eta=eta), lists, "ndcg@1")
    return lost / bound_for_any_eta(eta, 0.0, 1.0 / margin(np.ones(100), lists), 1.0)


def metric_against_surrogate():
    """Theorem 4 and Eq. (15): one relevant document at the end of 60, nothing learnt yet."""
    labels = np.eye(60)[0]
    return (1.0 - metric("map")(labels[::-1])) / SLAM("map")(np.zeros(60), labels)[0]


def self_bounding():
    """Eq. (18): nine of ten relevant documents lead by just under 1, and cost nothing but the length of the step."""
    scores, labels = np.full(11, 1.0 - 1e-6), np.append(np.ones(10), 0.0)
    scores[[9, 10]] = 0.0
    loss, gradient = SLAM("map")(scores, labels)
    z = np.where(labels > 0, 1.0, -1.0) @ gradient  # rows ± 1 in one feature; a second, long weight gives the scores
    return z**2 / (slam_constant(11, 1.0, 1.0) * loss)


def regret_inequality():
    lists = orthogonal_lists(40, R=0.25)
    trained = train(TrainingPlan("slam", {"eta": 0.5}), lists).model
    line = certify(trained, lists, comparator=trained.learner().w).lines[0]
    return line.observed / line.bound


def predtron(variant, alpha, formula):
    problem, stream = binary((alpha, alpha)), [(row, 1) for row in np.eye(100)]
    learner = Predtron(
        problem, (1, 100), theoretical_step(problem, variant, Predtron(problem, (1, 100)).link, 1.0), variant
    )
    lost = sum(mistake.loss for mistake in walk(learner, stream) if mistake)
    return lost / formula(1.0, 2.0 / sqrt(100.0))


def top_k_regret():
    """One round of two documents at w = 0: whatever is shown loses 1 on average, the best weights in the ball 0."""
    game = Limits(m=2, U=0.5)
    gamma, eta = theorem_settings(PairwiseHinge(), game, 1)
    one = Round(np.array([[1.0], [-1.0]], np.float32), np.array([1.0, 0.0]), "q")
    lost = [
        loss
        for seed in range(2000)
        for learner in [TopK(1, PairwiseHinge(), 2, Constant(gamma), Constant(eta), radius=0.5, seed=seed)]
        for loss in losses(learner, [one], PairwiseHinge())
    ]
    assert np.mean(lost) == pytest.approx(1.0, abs=0.03)
    return 1.0 / regret_bound(PairwiseHinge(), game, 1, gamma, eta)


ROWS = {
    "SLAM, Corollary 2 (Algorithm 1)": ("400 orthogonal cases", algorithm_1),
    "SLAM, Theorem 1 (Algorithm 1), L > 0": ("the same, a comparator of half the length", algorithm_1_not_separated),
    "SLAM, Theorem 4 and Eq. (15)": ("one relevant document at the end of 60", metric_against_surrogate),
    "SLAM, Lemma 5, Eq. (18)": ("nine of ten relevant documents just short of the margin", self_bounding),
    "SLAM, the regret inequality, Eq. (17)": ("40 orthogonal lists, against the last weights", regret_inequality),
    "SLAM, Theorem 6 and Corollary 7, AP": ("a spiral of lists of 20", lambda: theorem("map", 20, 0.15)),
    "SLAM, Theorem 6 and Corollary 7, NDCG": ("a spiral of lists of 60", lambda: theorem("ndcg", 60, 0.25)),
    "SLAM, Theorem 8, NDCG@2": ("a spiral of lists of 4", lambda: theorem("ndcg@2", 4)),
    "SLAM, Theorem 9 (from below)": ("the adversary with lists of 2", adversary),
    "SLAM, Corollary 11 (Algorithm 3)": ("100 orthogonal lists, NDCG@1", corollary_11),
    "SLAM, Theorem 10 (Algorithm 3), L > 0": (
        "the same, a comparator of half the length",
        lambda: corollary_11(L=0.5, length=0.5),
    ),
    "ours, η = 0.005/R²": ("a spiral of lists of 4, NDCG@2", lambda: ours(0.005)),
    "ours, η = 0.1/R²": ("a spiral of lists of 4, NDCG@2", lambda: ours(0.1)),
    "ours, η = 0.25/R²": ("100 orthogonal lists, NDCG@1", lambda: ours_on_orthogonal_lists(0.25)),
    "ours, η ≥ 0.5/R²": ("100 orthogonal lists, NDCG@1", lambda: ours_on_orthogonal_lists(3.0)),
    "TOPK, Theorem 4.1": ("one round of two documents, RankSVM", top_k_regret),
    "PREDTRON, Theorem 1": (
        "100 orthogonal cases of two classes",
        lambda: predtron(Standard(), 1.0, predtron_bounds.theorem_1),
    ),
    "PREDTRON, Corollary 2, α_1 = α_2 = 10": (
        "100 orthogonal cases of two classes",
        lambda: predtron(Standard(), 10.0, lambda R, gamma: predtron_bounds.corollary_2(R, gamma, 10.0, 10.0)),
    ),
    "PREDTRON, Theorem 14": (
        "100 orthogonal cases of two classes",
        lambda: predtron(LossDriven(), 10.0, lambda R, gamma: predtron_bounds.theorem_14(R, gamma, 10.0)),
    ),
}


@pytest.fixture(scope="module")
def reached():
    return {name: compute() for name, (_, compute) in ROWS.items()}


@claim("SLAM", "6 Cor2")
@claim("SLAM", "20 Lem5 Eq.18")
@claim("SLAM", "22 Thm6 Eq.19")
@claim("SLAM", "24 Cor7")
@claim("SLAM", "31 Eq.22")
@claim("SLAM", "32 Eq.23")
@claim("SLAM", "40 Thm10 Eq.30")
@claim("SLAM", "42 Cor11")
@claim("TOPK", "24 Thm4.1")
@claim("PREDTRON", "8 Thm1")
@claim("PREDTRON", "43 Thm14")
def test_every_bound_holds_and_is_reached_within_a_factor_of_three(reached):
    for name, ratio in reached.items():
        assert 1.0 / 3.0 <= ratio <= 1.0 + 1e-6, f"{name}: {ratio}"


def test_the_page_has_the_ratios_that_come_out(reached, request):
    lines = [f"| {name} | {ROWS[name][0]} | {ratio:.2f} |" for name, ratio in reached.items()]
    wanted = "\n".join(
        ["<!-- tight -->", "| bound | stream | share reached |", "|---|---|---|", *lines, "<!-- /tight -->"]
    )
    text = PAGE.read_text(encoding="utf-8")
    made = re.sub(r"<!-- tight -->.*?<!-- /tight -->", lambda _: wanted, text, flags=re.DOTALL)
    if request.config.getoption("--write-docs"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == PAGE.read_text(encoding="utf-8"), "run: python -m pytest tests/papers/theory --write-docs"


def test_our_bound_is_the_root_of_its_two_inequalities():
    """(S − L)² ≤ |u|² (2(S − M)/η + 4 R² S) and M ≤ S: the largest M, searched for on a fine grid of S."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        eta, L, n, R = np.exp(rng.normal(size=4) * 1.5) * [1.0, rng.integers(2), 1.0, 1.0]
        K = 4.0 * R * R + 2.0 / eta
        S = np.linspace(L, 1.001 * shared_bound(L, n, K) + 1e-9, 200_001)
        M = np.minimum(S, S - (eta / 2.0) * (((S - L) / n) ** 2 - 4.0 * R * R * S))
        assert bound_for_any_eta(eta, L, n, R) == pytest.approx(M.max(), rel=1e-4, abs=1e-9)
        assert bound_for_any_eta(eta, L, n, R) <= active_weight_bound(eta, L, n, R) * (1.0 + 1e-12)
        assert bound_for_any_eta(eta, L, n, R) >= L


def test_for_long_steps_our_bound_is_that_of_algorithm_3_and_never_above_it():
    for gamma in (0.5, 0.01):
        for eta in (0.5, 1.0, 100.0):
            assert bound_for_any_eta(eta, 0.0, 1.0 / gamma, 1.0) == pytest.approx(4.0 / gamma**2)
        assert bound_for_any_eta(0.4, 0.0, 1.0 / gamma, 1.0) > 4.0 / gamma**2
    assert bound_for_any_eta(10.0, 3.0, 2.0, 1.5) <= shared_bound(3.0, 2.0, 4 * 1.5**2)
    with pytest.raises(DataError, match="R must be"):
        bound_for_any_eta(1.0, 0.0, 1.0, -1.0)


def test_our_bound_loses_little_at_any_step():
    """The better of the two kinds of streams is within max(4x, 1)/(1 + x)² ≥ 0.64 of it, x = 2 η R², as γ goes to 0."""
    for x in np.linspace(0.01, 2.0, 100):
        eta = x / 2.0
        streams = max(4.0, 1.0 / (2.0 * eta))  # orthogonal lists; a spiral at its limit
        assert streams / bound_for_any_eta(eta, 0.0, 1.0, 1.0) >= 0.64 - 1e-9


def test_documents_that_pay_add_up_to_at_most_their_own_bound():
    """S = Σ V_t; on the spiral as much of (4 R² + 2/η)/γ² as the weight of the misranked document leaves."""
    eta, gamma = 0.02, 0.1
    learner, spiral, S, M = slam_perceptron(2, metric="ndcg@2", eta=eta), Spiral("ndcg@2", gamma), 0.0, 0.0
    v = np.array([1.0, 1.0 / log2(3.0)]) / (1.0 + 1.0 / log2(3.0))
    for round in spiral.against(learner):
        scores = learner.scores(round.X)
        leads = scores[:2] - scores[2:].max()
        S += v[leads < 1.0].sum()
        M += v[leads <= 0.0].sum()
        next(play(learner, [round], feedback.full))
    limit = active_weight_bound(eta, 0.0, 1.0 / gamma, 1.0)
    assert 0.55 * limit <= S <= limit
    assert bound_for_any_eta(eta, 0.0, 1.0 / gamma, 1.0) >= M
    assert (gamma * S * eta) ** 2 <= (2.0 * eta * (S - M) + 4.0 * eta**2 * S) * (1.0 + 1e-3)


@pytest.mark.parametrize("eta", [0.1, 5.0])
def test_the_mean_of_the_weights_has_no_such_bound(eta):
    """However long the stream: the weights err twice, their mean in two rounds of three, at the same R and γ."""
    for rounds in (100, 1000):
        lists = misleading_average(rounds)
        gamma = best_margin(lists).margin
        learner, wrong = slam_perceptron(2, metric="ndcg", eta=eta, average=True), 0
        for round in lists:
            served = learner.predict(round.X)
            wrong += served[0] <= served[1] and learner.rounds > 0
            next(play(learner, [round], feedback.full))
        assert learner.mistakes == 2
        assert wrong > 0.65 * rounds
        assert gamma > 0.1
        assert largest_row_norm(lists) < 1.0
    assert wrong > bound_for_any_eta(eta, 0.0, 1.0 / gamma, largest_row_norm(lists))


@claim("SLAM", "28 s5.1.1")
@pytest.mark.parametrize("make", [slam_perceptron, minimax_perceptron])
@pytest.mark.parametrize("alpha", [0.25, 0.6])
def test_where_the_comparators_loss_grows_like_a_power_so_does_the_learners(make, alpha):
    data, horizons = Separable(documents=6, features=4, grades=3, margin=0.5, seed=1), np.array([1250, 5000, 20_000])
    lists, learner, u = data.rounds(50), make(4, eta=1.0), data.ranker / data.margin
    lost, comparator, sums = 0.0, 0.0, {}
    for t, round in enumerate(growing_loss(alpha, horizons[-1], lists), start=1):
        scores = learner.scores(round.X)
        (turn,) = play(learner, [round], feedback.full, [metric("ndcg@10")])
        lost += 1.0 - turn.values[0]
        if turn.loss > 0.0:
            there, surrogate = round.X.astype(float) @ u, learner.surrogate
            at = (
                surrogate.at(there, round.labels, surrogate.weights(scores, round.labels))
                if make is slam_perceptron
                else surrogate(there, round.labels)
            )
            comparator += at[0]
            assert lost <= bound_for_any_eta(1.0, comparator, 2.0, largest_row_norm(lists)) + 1e-9
        if t in horizons:
            sums[t] = lost, comparator
    for which in (0, 1):
        slope = np.polyfit(np.log(horizons), np.log([sums[t][which] for t in horizons]), 1)[0]
        assert slope == pytest.approx(alpha, abs=0.05)


def test_streams_that_cannot_be():
    with pytest.raises(DataError, match="quarter of R"):
        Spiral(gamma=0.5)
    with pytest.raises(DataError, match="3"):
        Spiral(documents=2)
    with pytest.raises(DataError, match="not for p"):
        next(Spiral("p@3").against(slam_perceptron(2)))
    with pytest.raises(DataError, match="alpha"):
        next(growing_loss(1.5, 10, orthogonal_lists(2)))
