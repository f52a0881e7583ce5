"""Weights of users' own: the same as crossed features, for those who gave feedback; everybody's for the others."""

import numpy as np
import pytest

from ranktron import DataError, Feedback, learners, play
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.checks import check_learner
from ranktron.learners.per_user import PerUser, per_user
from ranktron.learners.start import Start
from ranktron.training.model import Model

WIDTH, USERS = 5, ["ann", "bob", "cy"]
LISTS = WebSearch(features=WIDTH, documents=7).rounds(60)
KINDS = {
    "pdgd": lambda d: learners.pdgd_ranker(d, eta=0.5),
    "pdgd, averaged": lambda d: learners.pdgd_ranker(d, eta=0.5, average=True),
    "hinge": lambda d: learners.hinge_perceptron(d, eta=0.5, average=True),
    "listnet": lambda d: learners.online_listnet(d),
    "slam": lambda d: learners.slam_perceptron(d, step="sqrt"),
    "minimax": lambda d: learners.minimax_perceptron(d),
}


def turns(seed=0):
    """A user for each list; the last list is nobody's."""
    rng = np.random.default_rng(seed)
    users = [USERS[int(i)] for i in rng.integers(3, size=len(LISTS))]
    users[-1] = ""
    return list(zip(users, LISTS, strict=True))


def crossed(X, user, share):
    """The features, and again, times √share, at the user's place."""
    wide = np.zeros((len(X), WIDTH * (1 + len(USERS))), np.float32)
    wide[:, :WIDTH] = X
    if user:
        at = WIDTH * (1 + USERS.index(user))
        wide[:, at : at + WIDTH] = np.sqrt(share) * X
    return Sparse.from_matrix(wide)


@pytest.mark.parametrize("share", [1.0, 0.25])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_learner_over_crossed_features(kind, share):
    ours, wide = PerUser(KINDS[kind](WIDTH), share=share), KINDS[kind](WIDTH * (1 + len(USERS)))
    late = []
    for number, (user, round) in enumerate(turns()):
        X, me = crossed(round.X, user, share), ours.of(user)
        mine, theirs = me.rank(round.X, number), wide.rank(X, number)
        assert mine.scores == pytest.approx(theirs.scores, rel=1e-5, abs=1e-5)
        assert (mine.order == theirs.order).all()
        late.append((me, round.X, mine, X, theirs, me.simulated_feedback(round, mine)))
        if len(late) > 3:  # feedback comes three rounds late
            me, X, mine, wide_X, theirs, received = late.pop(0)
            assert me.learn(X, mine, received) == pytest.approx(wide.learn(wide_X, theirs, received), rel=1e-5)
    assert ours.rounds == wide.rounds
    assert ours.coef == pytest.approx(wide.coef[:WIDTH], rel=1e-4, abs=1e-6)
    for number, user in enumerate(USERS, 1):
        theirs = np.sqrt(share) * wide.coef.reshape(-1, WIDTH)[number]
        assert ours.of(user).coef - ours.coef == pytest.approx(theirs, rel=1e-4, abs=1e-6)
        assert np.abs(theirs).max() > 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_user_without_feedback_has_everybodys_weights_to_the_bit(kind):
    ours = PerUser(KINDS[kind](WIDTH))
    for number, (user, round) in enumerate(turns()):
        me = ours.of(user)
        ranking = me.rank(round.X, number)
        me.learn(round.X, ranking, me.simulated_feedback(round, ranking))
    new, X = ours.of("dan"), LISTS[0].X
    assert (new.ranking_weights == ours.shared.w).all()
    assert (new.coef == ours.shared.coef).all()
    assert (new.predict(X) == ours.shared.predict(X)).all()
    assert (new.rank(X, 7).order == ours.rank(X, 7).order).all()
    assert sorted(ours.own) == USERS
    assert ours.of("") is ours


def test_users_beyond_the_bound_go_by_their_last_feedback():
    ours = PerUser(learners.hinge_perceptron(1), max_users=2)
    X = np.array([[1.0], [3.0]], np.float32)

    def learn(user, better=1):
        me = ours.of(user)
        labels = np.eye(2)[better]
        ranking = me.rank(X, ours.rounds)._replace(scores=np.zeros(2))  # a mistake
        me.learn(X, ranking, Feedback(np.arange(2), labels))

    for user in ("ann", "bob", "ann", "cy"):
        learn(user)
    assert list(ours.own) == ["ann", "cy"]
    assert ours.forgotten == 1
    assert (ours.of("bob").ranking_weights == ours.shared.w).all()
    learn("bob", better=0)
    assert list(ours.own) == ["cy", "bob"]
    assert ours.forgotten == 2


@pytest.mark.parametrize("kind", KINDS)
def test_all_checks_of_a_learner(kind):
    check_learner(lambda: PerUser(KINDS[kind](WIDTH)), LISTS, KINDS[kind](WIDTH).simulated_feedback)
    check_learner(lambda: PerUser(KINDS[kind](WIDTH)).of("ann"), LISTS, KINDS[kind](WIDTH).simulated_feedback)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pending_round_teaches_the_same(kind):
    ends = []
    for pending in (False, True):
        ours = PerUser(learners.pdgd_ranker(WIDTH, k=3) if kind == "pdgd" else KINDS[kind](WIDTH))
        for number, (user, round) in enumerate(turns()):
            me = ours.of(user)
            ranking, k = me.rank(round.X, number), me.labels_received or len(round.X)
            first = ranking.order[:k]
            labels = (round.labels[first] > 0).astype(float)
            if pending:
                me.learn_pending(me.pending(round.X, ranking, k), Feedback(np.arange(len(first)), labels))
            else:
                me.learn(round.X, ranking, Feedback(first, labels))
        ends.append(np.array([ours.of(user).ranking_weights for user in USERS]))
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


def test_trust_is_about_everybodys_weights():
    ours = PerUser(learners.pdgd_ranker(WIDTH, eta=0.5))
    ours.begin(Start(np.ones(WIDTH), 0.1))
    free = PerUser(learners.pdgd_ranker(WIDTH, eta=0.5))
    free.begin(Start(np.ones(WIDTH)))
    for number, (user, round) in enumerate(turns()):
        for each in (ours, free):
            me = each.of(user)
            ranking = me.rank(round.X, number)
            me.learn(round.X, ranking, me.simulated_feedback(round, ranking))
    assert np.linalg.norm(ours.coef - 1.0) <= 0.1 * (1 + 1e-12)
    assert np.linalg.norm(ours.of("ann").coef - 1.0) > 0.15
    assert ours.shared.start.trust == 0.1


@pytest.mark.parametrize("kind", ["pdgd", "hinge"])
def test_the_state_and_the_file_hold_all_users(kind):
    parameters = {"eta": 0.5}
    model = Model(kind, parameters, {}, WIDTH, users=7)
    ours = model.blank_learner()
    names = {"ann": "ann", "bob": "Bö\nb\x00", "cy": "☃" * 50, "": ""}
    for number, (user, round) in enumerate(turns()):
        me = ours.of(names[user])
        ranking = me.rank(round.X, number)
        me.learn(round.X, ranking, me.simulated_feedback(round, ranking))
    model = model.after(ours)
    again = Model.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    twin = again.learner()
    assert list(twin.own) == list(ours.own)
    assert twin.max_users == 7
    for user in names.values():
        assert (twin.of(user).coef == ours.of(user).coef).all()
    assert (model.weights == ours.coef).all()
    blank = Model.from_bytes(Model(kind, parameters, model.blank_learner().state(), WIDTH, users=7).to_bytes())
    assert not blank.learner().own


def test_damaged_states_are_refused():
    ours = PerUser(learners.pdgd_ranker(2))
    X = np.eye(2, dtype=np.float32)
    me = ours.of("ann")
    me.learn(X, me.rank(X, 0), Feedback([0, 1], [0.0, 1.0]))
    me.learn(X, me.rank(X, 1), Feedback([0, 1], [1.0, 0.0]))
    state = ours.state()
    users = state["users"]
    for change in (
        {"own": np.zeros((2, 1, 2))},
        {"own": np.full((1, 1, 2), np.nan)},
        {"lengths": np.array([0])},
        {"lengths": np.array([2])},
        {"ids": np.zeros(0, np.uint8)},
    ):
        with pytest.raises(DataError):
            PerUser(learners.pdgd_ranker(2)).restore({**state, "users": {**users, **change}})
    with pytest.raises(DataError):
        PerUser(learners.pdgd_ranker(2), max_users=1).restore(
            {**state, "users": {**users, "own": np.zeros((2, 1, 2)), "lengths": np.array([1, 2])}}
        )


def test_learners_without_one_vector_of_weights_are_refused():
    for learner in (learners.top_k_ranker(3), learners.pairwise_perceptron(3)):
        with pytest.raises(DataError, match="users' own"):
            per_user(learner)
    for wrong in ({"max_users": 0}, {"share": 0.0}, {"share": np.inf}):
        with pytest.raises(DataError):
            PerUser(learners.pdgd_ranker(2), **wrong)


def taste_game(make, tastes, feedbacks, seed):
    """The mean utility of the document shown first, over the second half of all lists: each user has tastes."""
    rng, users = np.random.default_rng(seed), len(tastes)
    learner, gained = make(tastes.shape[1], seed), []
    for number in range(users * feedbacks):
        user = int(rng.integers(users))
        X = rng.normal(size=(8, tastes.shape[1])).astype(np.float32)
        utility, me = X @ tastes[user], learner.of(f"u{user}")
        ranking = me.rank(X, number)
        clicks = rng.random(8) < 1.0 / (1.0 + np.exp(-3.0 * utility[ranking.order]))
        me.learn(X, ranking, Feedback(ranking.order, clicks.astype(float)))
        gained.append(utility[np.argmax(me.scores(X))])
    return np.mean(gained[len(gained) // 2 :])


def test_tastes_are_learnt_and_nothing_is_lost_where_users_are_alike():
    rng = np.random.default_rng(3)
    alike = np.tile([1.0, 0.0, -1.0, 0.0], (10, 1))
    apart = alike + 1.5 * rng.normal(size=alike.shape)

    def shared(d, seed):
        return learners.pdgd_ranker(d, eta=0.3, seed=seed)

    def own(d, seed):
        return PerUser(shared(d, seed))

    gains = {
        name: [np.mean([taste_game(make, tastes, 60, seed) for seed in range(2)]) for make in (shared, own)]
        for name, tastes in (("alike", alike), ("apart", apart))
    }
    assert gains["apart"][1] > 1.2 * gains["apart"][0]
    assert gains["alike"][1] > 0.98 * gains["alike"][0]


def test_play_takes_it():
    ours = PerUser(learners.pdgd_ranker(WIDTH))
    assert len(list(play(ours.of("ann"), LISTS, ours.simulated_feedback))) == 60
    assert list(ours.own) == ["ann"]
