"""Learning from clicks: what is shown is drawn, and what is learnt undoes the bias of its place."""

from ranktron.learners.clicks.pdgd import PDGD, pdgd_ranker

__all__ = ["PDGD", "pdgd_ranker"]
