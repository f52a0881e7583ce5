"""Starting from given weights, and staying near them: what holds for the weights, and the bounds that remain."""

from itertools import permutations, product
from math import inf

import numpy as np
import pytest

from ranktron import DataError, Feedback, learners, play
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dispatch import with_layout
from ranktron.learners import feedback
from ranktron.learners.checks import check_learner
from ranktron.learners.start import Start, keep_within, stored_start
from ranktron.learners.steps import Constant, InversePower
from ranktron.learners.top_k.learner import TopK
from ranktron.surrogates import KL, PairwiseHinge, SmoothDCG, Squared
from ranktron.theory.bounds import bound_at
from ranktron.training.algorithms import algorithm
from ranktron.training.model import Model
from reproduction.theory.top_k_bounds import Limits, largest_loss, regret_bound, second_moment

WIDTH = 6
LISTS = WebSearch(features=WIDTH, documents=8).rounds(60)
CENTRE = np.array([1.0, -1.0, 0.5, 0.0, 0.0, 2.0])
KINDS = {
    "pdgd": lambda d=WIDTH: learners.pdgd_ranker(d, eta=0.5),
    "hinge": lambda d=WIDTH: learners.hinge_perceptron(d, average=True),
    "slam": lambda d=WIDTH: learners.slam_perceptron(d),
    "listnet": lambda d=WIDTH: learners.online_listnet(d, average=True),
    "minimax": lambda d=WIDTH: learners.minimax_perceptron(d),
    "topk": lambda d=WIDTH: TopK(d, PairwiseHinge(), 2, InversePower(0.5, 1 / 3), InversePower(0.5), radius=50.0),
    "topk, adaptive": lambda d=WIDTH: learners.top_k_ranker(d, preset="recommended"),
    "topk, kl": lambda d=WIDTH: TopK(d, KL(), 2, InversePower(0.5, 1 / 3), InversePower(0.2), radius=50.0),
}


def started(kind, trust=inf):
    learner = KINDS[kind]()
    learner.begin(Start(CENTRE, trust))
    return learner


@pytest.mark.parametrize("kind", KINDS)
def test_a_started_learner_ranks_by_its_start_and_counts_from_0(kind):
    learner = started(kind)
    assert (learner.rounds, learner.mistakes) == (0, 0)
    for weights in (learner.w, learner.coef, learner.ranking_weights):
        assert (weights == CENTRE).all()
    X = LISTS[0].X
    assert learner.scores(X) == pytest.approx(X @ CENTRE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trust", [0.3, inf])
def test_all_checks_of_a_learner(kind, trust):
    check_learner(lambda: started(kind, trust), LISTS, started(kind).simulated_feedback)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_stay_in_the_ball_and_use_it(kind, sparse):
    learner, free = started(kind, 0.3), started(kind)
    lengths = []
    for each in (learner, free):
        for round in LISTS:
            given = round._replace(X=with_layout(round.X, sparse))
            list(play(each, [given], each.simulated_feedback))
            lengths.append(np.linalg.norm(each.w - CENTRE))
    near, far = np.array(lengths).reshape(2, -1)
    assert near.max() <= 0.3 * (1.0 + 1e-12)
    assert (near > 0.3 * (1.0 - 1e-9)).sum() > 3
    assert far.max() > 0.3
    free_until = int(np.argmax(far > 0.3))
    assert near[:free_until] == pytest.approx(far[:free_until], rel=1e-12)  # inside the ball nothing changes


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "adaptive" not in kind])
def test_dense_and_sparse_rows_give_the_same_weights(kind):
    ends = []
    for sparse in (False, True):
        learner = started(kind, 0.3)
        for round in LISTS:
            for _ in play(learner, [round._replace(X=with_layout(round.X, sparse))], learner.simulated_feedback):
                pass
        ends.append(learner.w)
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


@pytest.mark.parametrize("kind", ["hinge", "listnet", "pdgd"])
def test_the_average_is_that_of_all_weights_the_projected_ones(kind):
    learner = learners.pdgd_ranker(WIDTH, eta=0.5, average=True) if kind == "pdgd" else KINDS[kind]()
    learner.begin(Start(CENTRE, 0.3))
    seen = []
    for round in LISTS:
        seen.append(learner.w.copy())
        for _ in play(learner, [round], learner.simulated_feedback):
            pass
    assert learner.coef == pytest.approx(np.mean(seen, axis=0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trust", [0.3, inf])
def test_a_compiled_pass_equals_rounds_one_by_one(kind, trust):
    from ranktron.learners.fused import can_fuse, play_pass

    one, other = started(kind, trust), started(kind, trust)
    for number, round in enumerate(LISTS):
        ranking = one.rank(round.X, number)
        one.learn(round.X, ranking, one.simulated_feedback(round, ranking))
    order = np.arange(len(LISTS))
    compiled = other.compiled_pass(LISTS)
    if compiled is not None:
        compiled(LISTS, order, ())
    elif can_fuse(other):
        assert trust == inf
        play_pass(other, LISTS, order, ())
    else:
        list(play(other, LISTS, other.simulated_feedback))
    assert (one.w == other.w).all()
    assert (one.coef == other.coef).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_start_is_in_the_state(kind):
    learner = started(kind, 0.3)
    list(play(learner, [LISTS[i] for i in range(20)], learner.simulated_feedback))
    twin = KINDS[kind]()
    twin.restore(learner.state())
    for each in (learner, twin):
        list(play(each, [LISTS[i] for i in range(20, 40)], each.simulated_feedback))
    assert (learner.w == twin.w).all()
    assert stored_start(twin.state(), WIDTH).trust == 0.3
    assert "trust" not in started(kind).state()
    twin.restore(KINDS[kind]().state())
    assert twin.start is None
    assert "start" not in twin.state()


@pytest.mark.parametrize("name", ["pdgd", "topk", "hinge"])
def test_the_start_is_in_the_model_file(name):
    learner = algorithm(name).learner(WIDTH, {})
    learner.begin(Start(CENTRE, 0.3))
    model = Model.from_bytes(Model(name, {}, learner.state(), WIDTH).to_bytes())
    assert (model.learner().w == CENTRE).all()
    assert model.learner().start.trust == 0.3


@pytest.mark.parametrize("surrogate", [Squared(), PairwiseHinge(), KL(), SmoothDCG(0.01)], ids=repr)
def test_a_ball_around_0_is_that_of_the_radius(surrogate):
    ends = []
    for radius, start in ((0.3, None), (inf, Start(np.zeros(WIDTH), 0.3)), (0.3, Start(np.zeros(WIDTH), 7.0))):
        learner = TopK(WIDTH, surrogate, 2, Constant(0.5), Constant(0.1), radius=radius)
        if start is not None:
            learner.begin(start)
        list(play(learner, LISTS, learner.simulated_feedback))
        ends.append(learner.w)
    assert (ends[0] == ends[1]).all()
    assert (ends[0] == ends[2]).all()


def test_a_radius_is_around_the_start():
    learner = learners.top_k_ranker(WIDTH, radius=0.1, eta=1.0)
    learner.begin(Start(CENTRE))
    list(play(learner, LISTS, learner.simulated_feedback))
    assert 0.09 < np.linalg.norm(learner.w - CENTRE) <= 0.1 * (1 + 1e-12)


def test_the_projection_by_hand():
    for project in (keep_within, keep_within.py_func):
        w, lagged_sum = np.array([4.0, 6.0]), np.zeros(2)
        project(w, lagged_sum, np.array([1.0, 2.0]), 2.5, 3.0)
        assert w == pytest.approx([2.5, 4.0])
        assert lagged_sum == pytest.approx([-4.5, -6.0])
        project(w, lagged_sum, np.array([1.0, 2.0]), 9.0, 4.0)
        assert w == pytest.approx([2.5, 4.0])


@pytest.mark.parametrize(
    ("weights", "trust"), [([np.nan], 1.0), ([[1.0]], 1.0), ([1.0], 0.0), ([1.0], -1.0), ([1.0], np.nan)]
)
def test_impossible_starts_are_refused(weights, trust):
    with pytest.raises(DataError):
        Start(np.array(weights), trust)


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_has_a_weight_for_each_feature(kind):
    with pytest.raises(DataError, match="2 weights for 6"):
        KINDS[kind]().begin(Start(np.ones(2)))
    with pytest.raises(DataError):
        KINDS[kind]().restore({**KINDS[kind]().state(), "start": np.ones(2)})


def test_other_learners_say_that_they_cannot_start():
    learner = learners.pairwise_perceptron(WIDTH)
    assert not learner.begins
    with pytest.raises(DataError, match="cannot start"):
        learner.begin(Start(CENTRE))


def test_what_changes_the_meaning_of_weights_is_refused_or_known():
    learner = started("minimax")
    assert not learner.scale_free
    assert learners.minimax_perceptron(WIDTH).scale_free
    with pytest.raises(DataError, match="scaling of its start"):
        learner.rescale(np.ones(WIDTH))


# The bounds that remain, with |u − w_1| for |u|, for u in the ball: docs/theory.md, "Ours: from a start".


def near(rng, trust):
    """Comparators: the start, and others in the ball, on its surface as well."""
    directions = rng.normal(size=(8, WIDTH))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return [CENTRE, *(CENTRE + trust * direction for direction in directions)]


@pytest.mark.parametrize("kind", ["hinge", "slam", "listnet", "minimax"])
@pytest.mark.parametrize("trust", [0.2, 1.0, 5.0])
def test_the_regret_inequality_holds_from_a_start(kind, trust):
    """Σ f_t(w_t) ≤ Σ f_t(u) + |u − w_1|²/(2η) + (η/2) Σ |z_t|² for u in the ball, the weights v_t of SLAM frozen."""
    eta, comparators = 0.2, near(np.random.default_rng(0), trust)
    make = {"hinge": learners.hinge_perceptron, "slam": learners.slam_perceptron, "listnet": learners.online_listnet,
            "minimax": learners.minimax_perceptron}[kind]  # fmt: skip
    learner = make(WIDTH, eta=eta, **({"step": "constant"} if kind in ("slam", "listnet") else {}))
    learner.begin(Start(CENTRE, trust))
    losses = np.zeros(len(comparators))
    suffered = 0.0
    for turn, round in zip(play(learner, LISTS, feedback.full), LISTS, strict=True):
        suffered += turn.loss
        if turn.loss > 0.0:
            scores = [round.X @ u for u in comparators]
            if kind == "slam":
                v = learner.surrogate.weights(turn.ranking.scores, round.labels)
                losses += [learner.surrogate.at(s, labels=round.labels, v=v)[0] for s in scores]
            else:
                losses += [learner.surrogate(s, round.labels)[0] for s in scores]
    distances = np.array([np.linalg.norm(u - CENTRE) for u in comparators])
    right = losses + distances**2 / (2.0 * eta) + learner.sums[2] / (2.0 * eta)
    assert learner.sums[0] == pytest.approx(suffered)
    assert (suffered <= right + 1e-9).all()
    assert np.linalg.norm(learner.w - CENTRE) > 0.05


@pytest.mark.parametrize("trust", [0.5, 3.0])
def test_the_bound_on_mistakes_holds_from_a_start(trust):
    """Algorithm 3: Σ RML ≤ (L + |u − w_1|²/(2η)) / (1 − ηK/2), K = 4R², η < 2/K, the margin 1."""
    R = max(np.linalg.norm(round.X, axis=1).max() for round in LISTS)
    eta = 1.0 / (4.0 * R * R)
    learner = learners.minimax_perceptron(WIDTH, eta=eta)
    learner.begin(Start(CENTRE, trust))
    turns = list(play(learner, LISTS, feedback.full, ["ndcg"]))
    lost = sum(1.0 - turn.values[0] for turn in turns)
    wrong = [round for turn, round in zip(turns, LISTS, strict=True) if turn.loss > 0.0]
    for u in near(np.random.default_rng(1), trust):
        L = sum(learner.surrogate(round.X @ u, round.labels)[0] for round in wrong)
        assert lost <= bound_at(eta, L, float(np.linalg.norm(u - CENTRE)), 4.0 * R * R)


def enumerated_regret(surrogate, rounds, start, gamma, eta):
    """The expected loss of RTop-kF beyond that of each comparator, over all orders that could be drawn: no sampling."""
    k, comparators = surrogate.coordinates, near2(start)
    expected = np.zeros(len(comparators))
    orders = list(permutations(range(len(rounds[0].X))))
    for drawn in product([None, *orders], repeat=len(rounds)):
        chance = 1.0
        learner = TopK(2, surrogate, k, Constant(gamma), Constant(eta))
        learner.begin(start)
        beyond = np.zeros(len(comparators))
        for number, (round, order) in enumerate(zip(rounds, drawn, strict=True)):
            ranking = learner.rank(round.X, number)
            best = np.argsort(-ranking.scores, kind="stable")
            chance *= 1.0 - gamma if order is None else gamma / len(orders)
            shown = best if order is None else np.array(order)
            labels = round.labels
            own = surrogate(ranking.scores, labels)[0]
            # an exploring round suffers at most B
            suffered = own if order is None else largest_loss(surrogate, LIMITS)
            beyond += [suffered - surrogate(round.X @ u, labels)[0] for u in comparators]
            ranking = ranking._replace(
                order=shown, explored=order is not None, propensities=propensities(best, shown, gamma, k)
            )
            learner.learn(round.X, ranking, Feedback(shown[:k], labels[shown[:k]]))
            assert np.linalg.norm(learner.w - start.weights) <= start.trust * (1 + 1e-12)
        expected += chance * beyond
    return expected, comparators


LIMITS = Limits(m=2, R_D=1.0, U=1.5, R_max=1.0)  # U: the longest weights in the ball


def near2(start):
    angles = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
    return [start.weights + start.trust * np.array([np.cos(a), np.sin(a)]) for a in angles] + [start.weights]


def propensities(best, shown, gamma, k):
    """P(i among the first k), or that of both documents: here k is 1, or all documents are labelled."""
    if k == 1:
        return np.array([(1.0 - gamma) * (shown[0] == best[0]) + gamma / len(best)])
    return np.ones((2, 2))


@pytest.mark.parametrize("surrogate", [Squared(), PairwiseHinge(), KL()], ids=repr)
def test_the_expected_regret_of_feedback_at_the_top_is_bounded_from_a_start(surrogate):
    """E Σ φ(w_t) − φ(u) ≤ |u − w_1|²/(2η) + η T C/(2γ) + γ T B for u in the ball, over every course of the game."""
    rng, gamma, eta, start = np.random.default_rng(0), 0.4, 0.3, Start(np.array([0.6, 0.8]), 0.5)
    lists = WebSearch(features=2, documents=2).rounds(4)
    rounds = []
    for round in lists:
        X = rng.normal(size=(2, 2))
        X *= 0.99 / np.linalg.norm(X, axis=1)[:, None]
        rounds.append(round._replace(X=X.astype(np.float32), labels=rng.permutation([0.0, 1.0])))
    expected, comparators = enumerated_regret(surrogate, rounds, start, gamma, eta)
    for beyond, u in zip(expected, comparators, strict=True):
        distance = float(np.linalg.norm(u - start.weights))
        assert beyond <= regret_bound(surrogate, LIMITS, len(rounds), gamma, eta, distance)
    # the two terms without B bound what the rounds that do not explore add to it
    assert second_moment(surrogate, LIMITS, gamma) > 0.0


def test_sparse_rows_need_no_more_than_their_columns():
    learner = learners.pdgd_ranker(1000)
    learner.begin(Start(np.zeros(1000), 0.5))
    X = Sparse.from_matrix(np.eye(3, 1000, dtype=np.float32))
    ranking = learner.rank(X, 0)
    learner.learn(X, ranking, Feedback(ranking.order[:3], np.array([0.0, 1.0, 0.0])))
    assert np.count_nonzero(learner.w) == 3
