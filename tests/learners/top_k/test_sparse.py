"""RTop-kF on sparse rows.

Given the same ranking it learns the same to the bit: each column adds up in the same order, and zeros add nothing. The
scores of a ranking may differ in the last bit (sums of products are added in any order), so that whole runs agree as
closely as their scores do.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktron import DataError, Feedback, Rounds, TopKRanker
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.csr import ONES
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners import TopK, feedback, top_k_ranker
from ranktron.learners.checks import check_learner, same
from ranktron.learners.steps import Constant
from ranktron.surrogates import KL, PairwiseHinge, SmoothDCG, Squared

SURROGATES = [Squared(), Squared(residual=True), PairwiseHinge(), KL(), KL(printed=True), SmoothDCG(0.3)]
SETTINGS = [{"radius": 0.7}, {"adaptive": True, "shortlist": 5, "floor": 0.05, "weighted_average": True}]


class Plain:
    """A loss of one's own that only decomposes: its pending is the whole shortlist."""

    coordinates = 1

    def __repr__(self):
        return "Plain()"

    def __call__(self, scores, labels):
        return Squared()(scores, labels)

    def known(self, scores):
        return Squared().known(scores)

    def term(self, scores, items, labels):
        return Squared().term(scores, items, labels)


def learner_of(surrogate, d, **more):
    return TopK(d, surrogate, 3, explore=Constant(0.4), step=Constant(0.01), **more)


def random_list(rng, d, ones=False):
    m = int(rng.integers(1, 12))
    density = rng.choice([0.0, 0.1, 0.6])
    X = (rng.random((m, d)) < density).astype(np.float32)
    X = X if ones else X * rng.normal(size=(m, d)).astype(np.float32)
    rows = Sparse.from_matrix(X)
    return X, Sparse(rows.starts, rows.columns, ONES, d) if ones else rows, rng.integers(0, 4, m).astype(float)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), d=st.sampled_from([1, 5, 90]), ones=st.booleans())
@pytest.mark.parametrize("more", SETTINGS, ids=str)
@pytest.mark.parametrize("surrogate", [*SURROGATES, Plain()], ids=repr)
def test_the_same_ranking_teaches_the_same_to_the_bit(surrogate, more, seed, d, ones):
    rng = np.random.default_rng(seed)
    dense, sparse, briefly = (learner_of(surrogate, d, **more) for _ in range(3))
    for number in range(8):
        X, rows, labels = random_list(rng, d, ones)
        ranking = dense.rank(X, number)
        shown = sparse.rank(rows, number)
        assert shown.explored == ranking.explored
        assert shown.scores == pytest.approx(ranking.scores, rel=1e-12, abs=1e-12)
        assert sparse.predict(rows) == pytest.approx(dense.predict(X), rel=1e-12, abs=1e-12)
        places = np.sort(rng.permutation(min(3, len(X)))[: rng.integers(0, 4)])
        heard = ranking.order[places]
        kept = briefly.pending(rows, ranking, 3)
        losses = [
            dense.learn(X, ranking, Feedback(heard, labels[heard])),
            sparse.learn(rows, ranking, Feedback(heard, labels[heard])),
            briefly.learn_pending(kept, Feedback(places, labels[heard])),
        ]
        assert len(set(losses)) == 1 or np.isnan(losses).all()
        assert same(dense.state(), sparse.state())
        assert same(dense.state(), briefly.state())


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
def test_all_checks_of_a_learner(surrogate):
    source = WebSearch(features=6, documents=8).rounds(40)
    X = source.X * (np.random.default_rng(0).random(source.X.shape) < 0.5)
    rounds = Rounds.from_arrays(Sparse.from_matrix(X), source.labels, group=np.diff(source.offsets))
    check_learner(lambda: learner_of(surrogate, 6, radius=2.0), rounds, feedback.top(3))


def size_of(pending):
    arrays = [
        pending.rows.starts,
        pending.rows.columns,
        pending.rows.values,
        pending.shown,
        pending.drift,
        pending.columns,
    ]
    return sum(array.nbytes for array in arrays)


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
def test_a_pending_round_grows_neither_with_the_list_nor_with_the_features(surrogate):
    rng, sizes = np.random.default_rng(1), []
    for m, d in ((40, 1000), (4000, 1000), (40, 1_000_000)):
        columns = np.argsort(rng.random((m, 1000)), axis=1)[:, :10].astype(np.int32)
        X = Sparse(np.arange(m + 1) * 10, columns.reshape(-1), rng.normal(size=10 * m).astype(np.float32), d)
        X.check()
        learner = learner_of(surrogate, d, shortlist=30)
        sizes.append(size_of(learner.pending(X, learner.rank(X, 0), 3)))
    assert max(sizes) <= 3 * (10 * 8 + 8) + 8 + 3 * 8 + 30 * 10 * 12  # 3 rows, 3 scores, a drift of 30 documents
    assert max(sizes) < 1.3 * min(sizes)


def test_lists_of_another_width_are_refused():
    learner = learner_of(Squared(), 5)
    with pytest.raises(DataError, match="has 5 features, the query has 6"):
        learner.rank(Sparse.from_matrix(np.ones((2, 6), np.float32)), 0)


@pytest.mark.parametrize("surrogate", ["ranksvm", "squared", "kl", "smooth-dcg"])
def test_whole_runs_agree_as_their_scores_do(surrogate):
    source = WebSearch(features=20, documents=15).rounds(120)
    X = source.X * (np.random.default_rng(2).random(source.X.shape) < 0.4)
    learners = [top_k_ranker(20, surrogate, 5, "recommended", 1.0, floor=0.0) for _ in range(2)]
    for learner, features in zip(learners, (X, Sparse.from_matrix(X)), strict=True):
        rounds = Rounds.from_arrays(features, source.labels, group=np.diff(source.offsets))
        for number, round in enumerate(rounds):
            ranking = learner.rank(round.X, number)
            learner.learn(round.X, ranking, learner.simulated_feedback(round, ranking))
    assert learners[1].coef == pytest.approx(learners[0].coef, rel=1e-9, abs=1e-12)


def test_the_estimator_takes_scipy_matrices_and_bins():
    from scipy.sparse import csr_array

    from ranktron.data.maps import LinearBins

    lists = WebSearch(features=10, documents=20).rounds(60)
    group = np.diff(lists.offsets)
    X = lists.X * (np.random.default_rng(3).random(lists.X.shape) < 0.3)
    fitted = [
        TopKRanker(k=5, scale="none", random_state=0).fit(Z, lists.labels, group=group) for Z in (X, csr_array(X))
    ]
    assert fitted[1].predict(csr_array(X)) == pytest.approx(fitted[0].predict(X), rel=1e-9, abs=1e-12)
    bent = TopKRanker(k=5, map=LinearBins(4), random_state=0).fit(lists.X, lists.labels, group=group)
    assert bent.model_.learner().w.shape == (10 * 5,)
