"""Learning from clicks: while showing (PDGD), and from a log of what others have shown."""

from ranktron.learners.clicks.em import em_examination
from ranktron.learners.clicks.estimating import estimate_examination
from ranktron.learners.clicks.examination import Examination, power_law
from ranktron.learners.clicks.harvesting import harvested_examination
from ranktron.learners.clicks.randomised import randomised_examination, update_examination
from ranktron.learners.clicks.weighting import click_lists, click_weights, propensities

__all__ = [
    "Examination",
    "click_lists",
    "click_weights",
    "em_examination",
    "estimate_examination",
    "harvested_examination",
    "power_law",
    "propensities",
    "randomised_examination",
    "update_examination",
]
