import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from ranktron import DataError, Rounds, evaluate, metric
from ranktron.dask.mixed_pass import MixedPass
from ranktron.data.rounds import largest_row_norm
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners import feedback, hinge_perceptron, slam_perceptron
from ranktron.learners.loop import play
from ranktron.learners.schedule import Fit, Schedule
from ranktron.surrogates import SLAM
from ranktron.theory.bounds import largest_weight_ratio, shared_bound, slam_constant
from ranktron.theory.certificates import CertificateLine, certify
from ranktron.training.algorithms import algorithm
from ranktron.training.fit import TrainingPlan, make_untrained, play_schedule, train
from ranktron.training.shards import Division, record_division
from tests.plans import evenly, run_in

EASY = Separable(documents=6, features=5, grades=3, margin=0.3).rounds(60)
NOISY = WebSearch(features=5, documents=9).rounds(60)


def certificate(name, parameters, lists, **options):
    """Of a run with what the papers print, but for some parameters."""
    chosen = {**algorithm(name).preset("paper"), **parameters}
    return certify(train(TrainingPlan(name, chosen, Schedule(2, 1), **options), lists).model, lists)


def by_statement(found):
    return {line.statement.split(" at eta")[0]: line for line in found.lines}


@pytest.mark.parametrize("lists", [EASY, NOISY], ids=["separable", "noisy"])
@pytest.mark.parametrize("name", ["slam", "minimax", "listnet", "hinge"])
@pytest.mark.parametrize("scaling", ["none", "standard"])
def test_no_run_violates_its_certificate(name, lists, scaling):
    found = certificate(name, {}, lists, scaling=scaling)
    assert found.rounds == 120
    assert all(line.holds is not False for line in found.lines)
    assert found.lines[0].holds is True
    assert found.lines[0].observed > 0.0


def turns_of(learner, lists, schedule, metrics=()):
    """Every round of a training run, played one by one."""
    epochs = (schedule.epoch(lists, epoch) for epoch in range(schedule.epochs))
    return [turn for rounds in epochs for turn in play(learner, rounds, feedback.full, metrics)]


def test_the_sums_are_those_of_the_run():
    model = train(TrainingPlan("slam", {**algorithm("slam").preset("paper"), "eta": 0.5}, Schedule(2, 1)), NOISY).model
    watched = turns_of(slam_perceptron(NOISY.n_features, eta=0.5), NOISY, Schedule(2, 1))
    found = certify(model, NOISY)
    assert found.surrogate_loss == pytest.approx(sum(turn.loss for turn in watched))
    assert found.mistakes == sum(turn.loss > 0 for turn in watched)
    assert found.radius == largest_row_norm(NOISY)


def test_theorem_and_corollary_are_claimed_at_their_own_eta_alone():
    K = slam_constant(10, largest_row_norm(EASY), largest_weight_ratio(EASY, SLAM("ndcg@10")))
    at = by_statement(certificate("slam", {"eta": 1.0 / K}, EASY))
    assert at["Theorem 8"].holds
    assert at["Corollary 7"].holds
    assert at["Corollary 7"].bound >= at["Theorem 8"].observed
    beside = by_statement(certificate("slam", {"eta": 3.0 / K}, EASY))
    assert "eta < 2/K" in beside["Theorem 8"].why_not
    assert "eta = 1/K" in beside["Corollary 7"].why_not
    whole = by_statement(certificate("slam", {"metric": "ndcg", "eta": 1e-9}, EASY))
    assert whole["Theorem 6"].holds


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"fraction": 0.3}, "does not bound"), ({"margin": 2.0}, "margin is not 1"), ({"step": "sqrt"}, "not constant")],
)
def test_a_bound_whose_condition_fails_is_not_claimed(parameters, words):
    found = by_statement(certificate("slam", parameters, EASY))
    assert words in found["our own bound for any eta"].why_not
    assert found["our own bound for any eta"].holds is None


def test_corollaries_need_separable_data():
    assert by_statement(certificate("minimax", {}, NOISY))["Corollary 11"].why_not == "the data are not separable"
    line = by_statement(certificate("minimax", {}, EASY))["Corollary 11"]
    assert line.bound == pytest.approx(
        shared_bound(0.0, 1.0 / certificate("minimax", {}, EASY).margin, 4 * largest_row_norm(EASY) ** 2)
    )


def test_a_given_comparator_is_the_one_that_is_used():
    model = train(TrainingPlan("minimax", schedule=Schedule(2, 1)), NOISY).model
    zero = certify(model, NOISY, comparator=np.zeros(5))
    assert not zero.comparator.any()
    free = certify(model, NOISY)
    assert free.lines[0].bound <= zero.lines[0].bound + 1e-9


def test_what_has_no_run_or_other_data_has_no_certificate():
    model = train(TrainingPlan("slam", schedule=Schedule(2, 1)), EASY).model
    with pytest.raises(DataError, match="not the data"):
        certify(model, EASY[::-1])
    with pytest.raises(DataError, match="no run recorded"):
        certify(replace(model, record={}), EASY)
    with pytest.raises(DataError, match="not for linear"):
        certify(model.folded(), EASY)
    with pytest.raises(DataError, match="has 4"):
        certify(model, Separable(features=4).rounds(5))


def test_a_violation_would_be_seen():
    assert CertificateLine("x", 1.1, 1.0).holds is False
    model = train(TrainingPlan("slam", schedule=Schedule(2, 1)), EASY).model
    forged = {**model.state, "sums": model.state["sums"] * 0.5}
    with pytest.raises(DataError, match="other weights"):
        certify(replace(model, state=forged), EASY)


def test_the_commands(tmp_path, monkeypatch, capsys):
    from ranktron.cli import main
    from ranktron.data.io import write

    monkeypatch.chdir(tmp_path)
    write(EASY, "d.txt")

    def run(*arguments):
        with pytest.raises(SystemExit) as exit:
            main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return exit.value.code, out, err

    assert run("train", "d.txt", "--algo", "minimax", "--scale", "standard", "--model", "m")[0] == 0
    code, out, _ = run("certify", "m", "d.txt")
    assert code == 0
    assert "Corollary 11" in out
    assert "VIOLATED" not in out
    content = json.loads(run("certify", "m", "d.txt", "--json")[1])
    assert content["separable"] is True
    assert all(line["holds"] is not False for line in content["lines"])

    code, out, _ = run("sweep", "d.txt", "--set", "eta=1e-2:1e2:5", "--set", "margin=0.5", "--valid", "d.txt")
    assert code == 0
    assert "best by ndcg@10 on the validation set" in out
    swept = json.loads(run("sweep", "d.txt", "--algo", "hinge", "--set", "eta=0.1,1", "--curve", "c.png", "--json")[1])
    assert [row["value"] for row in swept["rows"]] == [0.1, 1.0]
    assert swept["best"] in (0.1, 1.0)
    assert (tmp_path / "c.png").exists()
    for wrong in ("eta=3", "eta=1:2", "eta=5:1:3", "eta=a,b", "speed=1,2", "eta=-1,2"):
        code, _, err = run("sweep", "d.txt", "--set", wrong)
        assert (code, err.count("\n")) == (2, 1), err


def test_a_sweep_is_the_single_runs():
    from ranktron import metric, play
    from ranktron.learners import feedback, slam_perceptron
    from ranktron.training.sweep import sweep

    ndcg = metric("ndcg@10")
    rows = sweep(
        TrainingPlan("slam", algorithm("slam").preset("paper"), Schedule(2, 4), metrics=[ndcg]),
        "eta",
        [0.1, 3.0],
        EASY,
        valid=EASY,
    )
    for row in rows:
        learner = slam_perceptron(5, eta=row.value)
        values = [
            turn.values[0]
            for epoch in range(2)
            for turn in play(learner, Schedule(2, 4).epoch(EASY, epoch), feedback.full, [ndcg])
        ]
        assert row.online["ndcg@10"] == pytest.approx(np.mean(values))
        assert row.mistakes == learner.mistakes
    with pytest.raises(DataError, match="does not learn online"):
        sweep(TrainingPlan("ranksvm", metrics=[ndcg]), "C", [1.0], EASY)


def test_a_certificate_computes_the_constants_of_the_bounds():
    lists = Separable(documents=8, features=4).rounds(30)
    found = certificate("slam", {"metric": "ndcg"}, lists)
    ratios = [v[v > 0.0].max() / v[v > 0.0].min() for v in (SLAM("ndcg").weights(r.X[:, 0], r.labels) for r in lists)]
    assert found.v_max == pytest.approx(max(ratios))
    assert found.radius == pytest.approx(np.linalg.norm(lists.X.astype(float), axis=1).max())


def sparse_of(lists):
    return Rounds.from_arrays(Sparse.from_matrix(lists.X), lists.labels, group=np.diff(lists.offsets))


@pytest.mark.parametrize("name", ["slam", "minimax", "listnet", "hinge"])
@pytest.mark.parametrize("scaling", ["none", "minmax"])
def test_the_certificate_of_sparse_features_is_that_of_the_written_ones(name, scaling):
    dense = certificate(name, {}, EASY, scaling="none")
    sparse = certificate(name, {}, sparse_of(EASY), scaling=scaling)
    assert all(line.holds is not False for line in sparse.lines)
    assert [line.statement for line in sparse.lines]
    if scaling == "none":
        assert sparse.radius == pytest.approx(dense.radius, rel=1e-12)
        assert sparse.mistakes == dense.mistakes
        assert sparse.margin == pytest.approx(dense.margin, rel=1e-6)
        assert sparse.surrogate_loss == pytest.approx(dense.surrogate_loss, rel=1e-9)
        for one, two in zip(dense.lines, sparse.lines, strict=True):
            assert (two.observed is None) == (one.observed is None)
            assert two.observed is None or two.observed == pytest.approx(one.observed, rel=1e-9)


@pytest.mark.parametrize("map", ["bins:4", "bins-linear:3", "products:3"])
def test_a_run_is_replayed_through_its_map(map):
    found = certificate("slam", {"metric": "ndcg"}, EASY, map=map)
    assert len(found.comparator) == {"bins:4": 20, "bins-linear:3": 20, "products:3": 11}[map]
    assert all(line.holds is not False for line in found.lines)
    if map == "bins:4":
        assert found.radius == pytest.approx(5**0.5)  # a one for each feature
    with pytest.raises(DataError, match="other weights"):
        certify(train(TrainingPlan("slam", map=map), EASY[:20]).model, EASY[20:])


def test_a_sweep_of_mapped_and_of_sparse_features_is_the_single_runs():
    from ranktron.training.sweep import sweep

    ndcg = metric("ndcg@10")
    for lists, options in ((EASY, {"map": "bins:4"}), (sparse_of(EASY), {}), (EASY, {"map": "products:3"})):
        plan = TrainingPlan("slam", {}, Schedule(2, 4), metrics=[ndcg], **options)
        for row in sweep(plan, "eta", [0.1, 3.0], lists, valid=lists):
            trained = train(replace(plan, parameters={"eta": row.value}), lists)
            assert row.mistakes == trained.model.state["mistakes"]
            means = evaluate(lists, trained.model.score_rounds(lists), [ndcg]).means
            assert row.valid["ndcg@10"] == pytest.approx(means["ndcg@10"], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "parameters", "measure"), [("slam", {"metric": "ndcg@3"}, "ndcg@3"), ("minimax", {}, "ndcg")]
)
def test_a_certificate_adds_up_what_every_shown_ranking_lost(name, parameters, measure):
    lists = Separable(documents=8, features=4, margin=0.01).rounds(30)
    trained = train(TrainingPlan(name, parameters, Schedule(3)), lists)
    turns = turns_of(trained.model.blank_learner(), lists, Schedule(3), [metric(measure)])
    lost = certify(trained.model, lists).metric_loss
    assert 0.0 < lost == pytest.approx(sum(1.0 - turn.values[0] for turn in turns))
    first = train(TrainingPlan(name, parameters), lists).model
    resumed = train(TrainingPlan("", schedule=Schedule(2)), lists, start=first).model
    assert resumed.to_bytes() == trained.model.to_bytes()
    assert certify(resumed, lists).metric_loss == lost


def test_labels_too_high_for_the_measure_can_still_be_learnt_from():
    lists = Rounds.from_arrays([[1.0], [2.0]], [0.0, 5000.0])
    assert train(TrainingPlan("minimax"), lists).model.learner().rounds == 1


def orthogonal_pairs(count=12, length=0.25):
    """Lists of two documents, ± length along an axis of their own: no list says anything about another."""
    X = np.zeros((2 * count, count))
    X[np.arange(0, 2 * count, 2), np.arange(count)] = length
    X[np.arange(1, 2 * count, 2), np.arange(count)] = -length
    return Rounds.from_arrays(X, [1, 0] * count, group=[2] * count)


@pytest.mark.parametrize(
    ("name", "parameters"), [("slam", {}), ("slam", {"step": "sqrt"}), ("minimax", {}), ("hinge", {})]
)
def test_the_regret_inequality_is_an_equation_against_the_last_weights(name, parameters):
    """Losses are linear between w_t and w_T+1 here, and descent ends there: nothing is given away anywhere."""
    lists = orthogonal_pairs()
    trained = train(TrainingPlan(name, {"eta": 0.5, **parameters}), lists).model
    line = certify(trained, lists, comparator=trained.learner().w).lines[0]
    assert line.observed > 1.0
    assert line.bound == pytest.approx(line.observed, rel=1e-9)


@pytest.mark.parametrize("step", ["constant", "sqrt"])
def test_the_right_side_of_the_regret_inequality_is_added_up_by_hand(step):
    """Weights frozen at the run's own scores, losses and squares weighted by the steps, for any comparator."""
    trained = train(TrainingPlan("slam", {"metric": "ndcg", "eta": 0.7, "step": step}), NOISY).model
    learner, u = trained.blank_learner(), np.random.default_rng(0).normal(size=NOISY.n_features)
    frozen = moving = squares = 0.0
    for number, round in enumerate(Schedule(1).epoch(NOISY, 0)):
        scores, there = learner.scores(round.X), round.X.astype(float) @ u
        before, eta = learner.w.copy(), learner.step(number)
        (turn,) = play(learner, [round], feedback.full)
        if turn.loss > 0.0:
            v = learner.surrogate.weights(scores, round.labels)
            frozen += eta * learner.surrogate.at(there, round.labels, v)[0]
            moving += eta * learner.surrogate(there, round.labels)[0]
            squares += ((learner.w - before) ** 2).sum()
    line = certify(trained, NOISY, comparator=u).lines[0]
    scale = 0.7 if step == "constant" else 1.0
    assert line.bound == pytest.approx((frozen + u @ u / 2.0 + squares / 2.0) / scale)
    assert moving < 0.999 * frozen  # the lists can tell the two apart


def mixed_prefixes(name, parameters, lists, shards, mixes=3):
    """The model after every mix of a run of two passes in shards."""
    models, division = [], evenly(len(lists), shards, mixes)
    blank = make_untrained(TrainingPlan(name, parameters, scaling="none"), lists)
    learner, fit = blank.blank_learner(), Fit(lists, Schedule(2, 1))

    def keep(_):
        record = {"epoch": fit.history.epoch, "position": fit.history.position, "seed": 1, "shuffle": True}
        models.append(replace(blank, state=learner.state(), record=record | {"division": record_division(division)}))

    fit.progress = keep
    with ThreadPoolExecutor(1) as executor:
        run = run_in(executor, blank.blank_learner, lists, division)
        play_schedule(learner, fit, (), MixedPass(division, run))
    return models


@pytest.mark.parametrize("lists", [EASY, NOISY], ids=["separable", "noisy"])
@pytest.mark.parametrize(
    ("name", "parameters"), [("slam", {"eta": 0.3}), ("minimax", {}), ("hinge", {}), ("listnet", {})]
)
def test_weighted_losses_of_mixed_shards_keep_every_bound_at_every_prefix(name, parameters, lists):
    models = mixed_prefixes(name, parameters, lists, shards=4)
    assert len(models) == 6
    for model in models:
        found = certify(model, lists)
        assert found.shards == 4
        assert all(line.holds is not False for line in found.lines)
        assert found.lines[0].holds
        assert found.weighted_loss == pytest.approx(found.metric_loss / 4)  # shards of the same size
    total = found.lines[-1]
    assert total.statement.startswith("total loss of all shards")
    assert total.observed == found.metric_loss


@pytest.mark.parametrize("lists", [EASY, NOISY], ids=["separable", "noisy"])
@pytest.mark.parametrize(("name", "parameters"), [("slam", {"eta": 0.3}), ("minimax", {}), ("hinge", {})])
def test_shards_that_begin_after_a_pass_of_one_learner_keep_every_bound_at_every_prefix(name, parameters, lists):
    models = mixed_prefixes(name, parameters, lists, shards=6)
    assert len(models) == 6 + 3  # the parts of the first pass, then the mixes
    found = [certify(model, lists) for model in models]
    assert all(line.holds is not False for each in found for line in each.lines)
    assert all(each.weighted_loss == pytest.approx(each.metric_loss) for each in found[:6])
    assert ("the share of a round goes down to 0" in found[-1].lines[-1].why_not) == (name == "minimax")


def test_the_shares_of_a_pass_whose_mean_is_gone_on_from_are_counted_by_hand():
    """The mean of w_1 … w_T as a sum of steps: step t is in T − t of them."""
    models = mixed_prefixes("minimax", {}, NOISY, shards=6)
    first, later = models[5], models[6]
    learner, steps, losses = first.blank_learner(), [], []
    for ((piece,),) in evenly(len(NOISY), 6, 3).pieces(Schedule(2, 1), 0):
        for query in piece.queries + 10 * piece.part:
            before = learner.w.copy()
            (turn,) = play(learner, [NOISY[int(query)]], feedback.full, [metric("ndcg")])
            steps.append(learner.w - before)
            losses.append(1.0 - turn.values[0])
    shares = 1.0 - np.arange(1, 61) / 60
    mean = first.learner().w - first.learner().lagged_sum / 60
    assert mean == pytest.approx(shares @ np.array(steps))
    assert later.state["rounds"] == 60 + 18
    found = certify(later, NOISY)
    assert found.weighted_loss == pytest.approx(shares @ losses + (found.metric_loss - sum(losses)) / 6)


def test_shares_of_shards_that_differ_weigh_their_losses():
    division = Division((45, 15), 2, 2)
    blank = make_untrained(TrainingPlan("minimax", scaling="none"), NOISY)
    learner, fit = blank.blank_learner(), Fit(NOISY, Schedule(1, 1))
    with ThreadPoolExecutor(1) as executor:
        run = run_in(executor, blank.blank_learner, NOISY, division)
        play_schedule(learner, fit, (), MixedPass(division, run))
    record = {"epoch": 1, "position": 0, "seed": 1, "shuffle": True, "division": record_division(division)}
    found = certify(replace(blank, state=learner.state(), record=record), NOISY)
    assert found.metric_loss / 4 < found.weighted_loss < found.metric_loss
    assert all(line.holds is not False for line in found.lines)
    assert found.lines[-1].bound == pytest.approx(4 * min(line.bound for line in found.lines[1:-1] if line.bound))


def test_adding_shards_instead_of_averaging_them_breaks_the_regret_inequality():
    """Sixteen shards that all see the same lists: their sum goes sixteen times as far as any of them."""
    lists, make = NOISY[:4], partial(hinge_perceptron, NOISY.n_features, eta=1.0)
    learner, weighted, squares = make(), 0.0, 0.0
    for _ in range(20):
        own = make()
        own.restore(learner.state())
        turns = list(play(own, lists, feedback.full))
        weighted += sum(turn.loss for turn in turns)
        squares += own.sums[2] - learner.sums[2]
        learner.restore({**own.state(), "w": learner.w + 16 * (own.w - learner.w)})
    at_zero = 20 * sum(turn.loss for round in lists for turn in play(make(), [round], feedback.full))
    assert weighted > at_zero + 0.5 * squares  # the right side for u = 0
