"""The verdicts follow the learners: whoever learns backwards is not reproduced."""

import numpy as np
import pytest

from ranktron.learners.pairwise.outputs import Ensemble
from reproduction import committee, predtron, rank_mm, slam, top_k
from reproduction.harness import online_cells, rank_mm_cells, top_k_cells
from reproduction.harness.verdicts import CANNOT_TELL, DIFFERS, HOLDS, REPRODUCED
from reproduction.theory import predtron_games


def backwards(make):
    """The same learner with the sign of its steps flipped."""

    def made(*arguments):
        learner = make(*arguments)
        forward = learner.step
        learner.step = lambda number: -forward(number)
        return learner

    return made


def test_slam(verdicts_of, monkeypatch):
    rows = ("Figure 1, Algorithm 2", "Figure 1, Algorithm 3")
    before = verdicts_of(slam.PAPER, slam.FIGURE_1, T=400)
    assert [before[row] for row in rows] == [REPRODUCED, REPRODUCED]
    learners = {n: backwards(m) if n.startswith("Algorithm 2") else m for n, m in online_cells.LEARNERS.items()}
    monkeypatch.setattr(online_cells, "LEARNERS", learners)
    after = verdicts_of(slam.PAPER, slam.FIGURE_1, T=400)
    assert [after[row] for row in rows] == [DIFFERS, REPRODUCED]


def test_top_k(verdicts_of, monkeypatch):
    experiment = top_k.figure_1_experiment("mq2008", 400)
    chance = next(claim.item for claim in experiment.claims if claim.item.endswith("chance"))
    assert verdicts_of(top_k.PAPER, experiment)[chance] == REPRODUCED
    learners = {name: backwards(make) for name, make in top_k_cells.LEARNERS.items()}
    monkeypatch.setattr(top_k_cells, "LEARNERS", learners)
    assert verdicts_of(top_k.PAPER, experiment)[chance] == DIFFERS


def test_impossible_without_loss_is_noticed(verdicts_of, monkeypatch):
    """A learner that hears what it must not hear breaks the bound, and the row says so."""
    rows = ("Theorem 5.2, RTop-1F", "Theorem 5.2, all labels")
    before = verdicts_of(top_k.PAPER, top_k.THEOREM_5_2, T=2000)
    assert [before[row] for row in rows] == [HOLDS, HOLDS]
    monkeypatch.setattr(top_k_cells, "rtop_1f", lambda T, seed: top_k_cells.full_feedback)
    assert verdicts_of(top_k.PAPER, top_k.THEOREM_5_2, T=2000)[rows[0]] == DIFFERS


def test_predtron(verdicts_of, monkeypatch):
    rows = ("Figure 1 (a), f = -i^1.1", "Figure 1 (a), f = -i^2")
    assert {verdicts_of(predtron.PAPER, predtron.PLOT_A)[row] for row in rows} == {REPRODUCED}
    monkeypatch.setattr(predtron_games, "section_6_learner", backwards(predtron_games.section_6_learner))
    assert {verdicts_of(predtron.PAPER, predtron.PLOT_A)[row] for row in rows} == {DIFFERS}


def test_rank_mm(verdicts_of, monkeypatch):
    small = {"Cs": (1.0, 10.0), "etas": (1e-2,), "Ts": (100,)}
    rows = [f"Figure 1, RankMM-{i}, MAP, {reading}" for i in (1, 3) for reading in ("T steps", "T passes")]
    assert {verdicts_of(rank_mm.PAPER, rank_mm.FIGURE_1, 2, **small)[row] for row in rows} == {REPRODUCED}
    forward = rank_mm_cells.score
    monkeypatch.setattr(rank_mm_cells, "score", lambda X, w: -forward(X, w))
    after = verdicts_of(rank_mm.PAPER, rank_mm.FIGURE_1, 2, **small)
    assert {after[row] for row in rows} == {DIFFERS}
    assert after["Figure 1, RankMM-1 and the direct methods, T steps"] == DIFFERS


@pytest.mark.data
def test_committee(verdicts_of, monkeypatch, data_dir):
    experiment = committee.table_4_experiment("ohsumed-letor2")
    rows = [f"Table 4, OHSUMED, LETOR 2.0, Com 30 {how}, MAP" for how in "AB"]
    before = verdicts_of(committee.PAPER, experiment, 2, data_dir, epochs=3)
    assert {before[row] for row in rows} <= {REPRODUCED, CANNOT_TELL}  # MAP's column is narrow
    forward = Ensemble.of_rounds
    monkeypatch.setattr(Ensemble, "of_rounds", lambda self, rounds: -forward(self, rounds))
    after = verdicts_of(committee.PAPER, experiment, 2, data_dir, epochs=3)
    assert {after[row] for row in rows} == {DIFFERS}
    assert after["Table 4, OHSUMED, LETOR 2.0: nothing above the committee"] == DIFFERS


@pytest.mark.claim("SLAM", "34 Thm9")
@pytest.mark.claim("SLAM", "35 Thm9")
@pytest.mark.claim("SLAM", "36 Thm9")
def test_the_adversary_needs_to_see_the_ranking(verdicts_of, monkeypatch):
    rows = ("Theorem 9, NDCG", "Theorem 9, AP", "Theorem 9, rounds", "Theorem 9, separable", "Theorem 9, length")
    assert {verdicts_of(slam.PAPER, slam.THEOREM_9)[row] for row in rows} == {HOLDS}

    def blind(self, learner):
        for round in forward(self, learner):
            yield round._replace(labels=np.eye(self.documents)[0])  # always the first document

    forward = online_cells.Adversary.against
    monkeypatch.setattr(online_cells.Adversary, "against", blind)
    assert verdicts_of(slam.PAPER, slam.THEOREM_9)["Theorem 9, NDCG"] == DIFFERS
