"""The loss bounds of Predtron, the margins they speak of, and certificates that a run kept to them.

R bounds the inputs (|||X||| of the link: ‖x‖_2 or ‖X‖_op for the Euclidean norm), γ is the margin of a comparator of
norm 1, c_L and C_L are the smallest loss above 0 and the largest. Where the paper's print is wrong, the formula here
is the one that its proof gives, and the docstring says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log, log2
from typing import Any

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.predtron.loop import MistakeRound, Predtron
from ranktron.learners.predtron.positions import Places
from ranktron.learners.predtron.problem import Enumerated, PredictionProblem, similarity
from ranktron.learners.steps import Constant
from ranktron.types import Floats


def theorem_1(R: float, gamma: float, smallest: float = 1.0, largest: float = 1.0) -> float:
    """Bounds the total loss of Algorithm 1 with η = c_L/(4R²): Σ L <= 4 R² C_L²/(c_L γ²).

    >>> theorem_1(R=1.0, gamma=0.5)
    16.0
    """
    return 4.0 * R**2 * largest**2 / (smallest * gamma**2)


def theorem_14(R: float, gamma: float, largest: float = 1.0) -> float:
    """Bounds the total loss of the loss-driven Algorithm 2, whatever its step: Σ L <= 4 R² C_L/γ².

    >>> theorem_14(R=1.0, gamma=0.5, largest=3.0)
    48.0
    """
    return 4.0 * R**2 * largest / gamma**2


def theorem_15(R: float, gamma: float, alpha: float, smallest: float = 1.0, largest: float = 1.0) -> float:
    """Bounds the total loss of Algorithm 3 with η = α c_L/(4R²): Σ L <= 4 R² C_L²/(α c_L γ²).

    >>> theorem_15(R=1.0, gamma=0.5, alpha=0.25)
    64.0
    """
    return theorem_1(R, gamma, smallest, largest) / alpha


def perceptron(R: float, gamma: float) -> float:
    """Bounds the mistakes of the binary perceptron by its classical margin min y <w, x>: R²/γ².

    >>> perceptron(R=1.0, gamma=0.5)
    4.0
    """
    return R**2 / gamma**2


def corollary_2(R: float, gamma: float, alpha_1: float, alpha_2: float) -> float:
    """Bounds the weighted loss of two classes, α_1 >= α_2: 4 R² α_1²/(α_2 γ²).

    The paper prints α_2² below; Theorem 1 gives the first power, and streams with α_2 > 1 break the printed form.

    >>> corollary_2(R=1.0, gamma=1.0, alpha_1=10.0, alpha_2=10.0)
    40.0
    """
    return theorem_1(R, gamma, alpha_2, alpha_1)


def reject_bound(R: float, gamma: float, beta_2: float) -> float:
    """Bounds the total loss with a REJECT option whose cheapest rejection costs β_2 > 0: 4 R²/(β_2 γ²).

    The paper prints 4 R² β_1²/(γ² β_2²); but the largest loss is that of a wrong class, 1, not β_1.

    >>> reject_bound(R=1.0, gamma=1.0, beta_2=0.25)
    16.0
    """
    return theorem_1(R, gamma, beta_2, 1.0)


def ordinal_bound(R: float, gamma: float, classes: int) -> float:
    """Bounds the total distance of ordered classes: 4 (l − 1)² R²/γ².

    >>> ordinal_bound(R=1.0, gamma=1.0, classes=5)
    64.0
    """
    return theorem_1(R, gamma, 1.0, classes - 1.0)


def smallest_ndcg_loss(documents: int, highest: int) -> float:
    """A lower bound of the smallest NDCG loss above 0: 1/(2 (2^Y − 1) m² log2²(m + 1)).

    >>> round(1.0 / smallest_ndcg_loss(documents=7, highest=1), 6)
    882.0
    """
    return 1.0 / (2.0 * (2.0**highest - 1.0) * documents**2 * log2(documents + 1.0) ** 2)


def corollary_5(R: float, gamma: float, documents: int, highest: int) -> float:
    """Bounds the NDCG loss of subset ranking, ‖X‖_op <= R: 2^(Y+3) m² log2²(2m) R²/γ².

    >>> corollary_5(R=1.0, gamma=1.0, documents=2, highest=1)
    256.0
    """
    return float(2.0 ** (highest + 3) * documents**2 * log2(2.0 * documents) ** 2 * R**2 / gamma**2)


def corollary_6(R: float, gamma: float, documents: int, highest: int, features: int) -> float:
    """Bounds the NDCG loss with the l1 link, columns of norm at most R: 9 log(p) times Corollary 5.

    >>> round(corollary_6(R=1.0, gamma=1.0, documents=2, highest=1, features=8))
    4791
    """
    return 9.0 * log(features) * corollary_5(R, gamma, documents, highest)


def corollary_7(R: float, gamma: float, labels: int, highest: int) -> float:
    """Bounds the NDCG loss of multilabel ranking, ‖x‖_2 <= R: as Corollary 5.

    >>> corollary_7(R=1.0, gamma=1.0, labels=2, highest=1)
    256.0
    """
    return corollary_5(R, gamma, labels, highest)


def corollary_8(R: float, gamma: float, labels: int, highest: int, features: int) -> float:
    """Bounds the NDCG loss of multilabel ranking with the group link, ‖x‖_∞ <= R: as Corollary 6.

    >>> round(corollary_8(R=1.0, gamma=1.0, labels=2, highest=1, features=8))
    4791
    """
    return corollary_6(R, gamma, labels, highest, features)


def any_step(R: float, gamma: float, eta: float, largest: float = 1.0) -> float:
    """Bounds the *mistakes* of Algorithm 1 for any step: (4 R² + 2 C_L/η)/γ². Ours, not the paper's.

    <W*, W> grows by at least η γ on a mistake and ‖W‖² by at most 2 η C_L + 4 η² R².

    >>> any_step(R=1.0, gamma=1.0, eta=2.0)
    5.0
    """
    return (4.0 * R**2 + 2.0 * largest / eta) / gamma**2


def weak_margin(problem: PredictionProblem, scores: Floats, label: Any, correct: Any) -> float:
    """By how much a round's own σ_y leads all predictions with a loss, −∞ if anything at all leads it.

        <rep(σ_y), t> >= <rep(σ), t> for all σ,    <rep(σ_y), t> >= <rep(σ), t> + γ for σ ∉ Σ_y

    This is all that the theorems need. The paper's own condition asks in addition that all of Σ_y tie, which scores
    of lists with repeated grades hardly ever do.

    >>> from ranktron.learners.predtron import multiclass
    >>> weak_margin(multiclass(3), np.array([2.0, 0.5, 0.0]), 0, 0)
    1.5
    """
    own = similarity(problem, correct, scores)
    top = similarity(problem, problem.pred(scores), scores)
    if own < top - 1e-9 * (1.0 + abs(top)):
        return float("-inf")
    rival = problem.rival(scores, label)
    return float("inf") if rival is None else own - similarity(problem, rival, scores)


def literal_margin(problem: Enumerated, scores: Floats, label: int) -> float:
    """The margin as the paper defines it: −∞ unless the predictions that tie at the top are exactly Σ_y.

    >>> from ranktron.learners.predtron import multiclass
    >>> literal_margin(multiclass(3), np.array([2.0, 0.5, 0.0]), 0)
    1.5
    """
    values = problem.reps @ scores
    right = problem.losses[:, label] == 0.0
    wrong = values[~right]
    gap = values[right].min() - (wrong.max() if len(wrong) else -np.inf)
    tied = np.ptp(values[right]) <= 1e-9 * (1.0 + np.abs(values).max())
    return float(gap) if tied and gap > 0.0 else -np.inf


def lemma_4(scores: Floats, labels: Floats, representation: Places) -> float:
    """The margin of a list: the least of (t_upper − t_lower)(f(i − 1) − f(i))/Z over the drops of grade at place i.

    −∞ unless equal grades have equal scores and higher grades higher ones. Without any drop there is nothing to lose.

    >>> round(lemma_4(np.array([5.0, 0.0]), np.array([1.0, 0.0]), Places("-i")) ** 2, 6)
    5.0
    """
    order = np.lexsort((-scores, -labels))
    t, y, f = scores[order], labels[order], representation(len(scores))
    drops = y[:-1] > y[1:]
    steps = t[:-1] - t[1:]
    if not ((steps > 0.0) == drops).all() or (steps[~drops] != 0.0).any():
        return -np.inf
    return float(np.min((steps * (f[:-1] - f[1:]))[drops], initial=np.inf))  # Lemma 4


def stream_radius(learner: Predtron, inputs: Iterable[Any]) -> float:
    """The R of a stream in the norm of the learner's link."""
    return max(learner.link.radius(X) for X in inputs)


@dataclass(frozen=True)
class RegretCertificate:
    """Both sides of the regret inequality, from an actual run and for one comparator.

    Σ L(W_τ) <= Σ f_τ(W_τ) <= Σ f_τ(W) + η/(2α) Σ ‖∇_τ‖_*² + ‖W‖²/(2η)
    """

    losses: float
    learner: float
    comparator: float
    gradients: float
    penalty: float

    @property
    def bound(self) -> float:
        """The right side."""
        return self.comparator + self.gradients + self.penalty

    @property
    def holds(self) -> bool:
        """Whether both inequalities hold, up to rounding."""
        slack = 1e-9 * (1.0 + abs(self.bound))
        return self.losses <= self.learner + slack and self.learner <= self.bound + slack


def certify_regret(learner: Predtron, mistakes: Sequence[MistakeRound], W: Floats) -> RegretCertificate:
    """Certifies a run, given its mistakes from the first round on, against the weights W.

    f_τ is the surrogate of round τ with that round's own σ_y, 0 where there was no mistake. The step must be constant.

    >>> from ranktron.learners.predtron import binary, walk
    >>> learner = Predtron(binary(), (1, 2), Constant(0.25))
    >>> stream = [(np.array([1.0, 0.0]), 1), (np.array([0.0, 1.0]), 0)]
    >>> mistakes = [mistake for mistake in walk(learner, stream) if mistake]
    >>> certificate = certify_regret(learner, mistakes, np.array([[0.5, -0.5]]))
    >>> certificate.losses, certificate.bound, certificate.holds
    (2.0, 2.0, True)
    """
    if not isinstance(learner.step, Constant):
        raise DataError("only a run with a constant step can be certified")
    problem, variant, link, eta = learner.problem, learner.variant, learner.link, learner.step.eta
    own = other = squares = 0.0
    for mistake in mistakes:
        label, correct, loss = mistake.label, mistake.correct, mistake.loss
        own += variant.charge(problem, mistake.scores, label, correct, loss)
        there = W @ mistake.X if W.ndim == 2 else mistake.X.astype(float) @ W
        other += variant.charge(problem, there, label, correct, loss)
        squares += link.dual(gradient(learner, mistake)) ** 2
    return RegretCertificate(
        losses=sum(mistake.loss for mistake in mistakes),
        learner=own,
        comparator=other,
        gradients=eta / (2.0 * link.alpha) * squares,  # Eq. (3), (7)
        penalty=link.norm(W) ** 2 / (2.0 * eta),
    )


def gradient(learner: Predtron, mistake: MistakeRound) -> Floats:
    """∇_τ of a mistake, in the shape of the weights.

    >>> from ranktron.learners.predtron import binary
    >>> learner = Predtron(binary(), (1, 2))
    >>> x = np.array([1.0, 2.0])
    >>> gradient(learner, learner.learn(x, learner.scores(x), 1))
    array([[-2., -4.]])
    """
    problem = learner.problem
    g = learner.variant.weight(mistake.loss) * (problem.rep(mistake.rival) - problem.rep(mistake.correct))
    if learner.W.ndim == 2:
        return np.outer(g, mistake.X)
    pulled: Floats = mistake.X.astype(float).T @ g
    return pulled


def graceful_bound(certificate: RegretCertificate, R: float, eta: float, smallest: float, alpha: float = 1.0) -> float:
    """Bounds the loss of Algorithms 1 and 3 without separability, for a step below α c_L/(2R²).

        (1 − 2 η R²/(α c_L)) Σ L <= Σ f_τ(W) + ‖W‖²/(2η)

    >>> graceful_bound(RegretCertificate(2.0, 2.0, 1.0, 0.5, 1.0), R=1.0, eta=0.25, smallest=1.0)
    4.0
    """
    left = 1.0 - 2.0 * eta * R**2 / (alpha * smallest)
    if left <= 0.0:
        raise DataError("this bound needs a step below alpha c_L / (2 R^2)")
    return (certificate.comparator + certificate.penalty) / left
