"""Learning from clicks: while showing (PDGD), and from a log of what others have shown."""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.learners.clicks.browsing import browsing_examination, compare_click_models, held_out_log_likelihood
    from ranktron.learners.clicks.em import em_examination
    from ranktron.learners.clicks.estimating import estimate_examination
    from ranktron.learners.clicks.examination import Examination, power_law
    from ranktron.learners.clicks.harvesting import harvested_examination
    from ranktron.learners.clicks.randomised import randomised_examination, update_examination
    from ranktron.learners.clicks.weighting import click_lists, click_weights, propensities

_HOMES = {
    "Examination": "examination",
    "browsing_examination": "browsing",
    "click_lists": "weighting",
    "click_weights": "weighting",
    "compare_click_models": "browsing",
    "em_examination": "em",
    "estimate_examination": "estimating",
    "harvested_examination": "harvesting",
    "held_out_log_likelihood": "browsing",
    "power_law": "examination",
    "propensities": "weighting",
    "randomised_examination": "randomised",
    "update_examination": "randomised",
}

__getattr__ = lazy_names(__name__, homes={name: f"{__name__}.{home}" for name, home in _HOMES.items()})

__all__ = [
    "Examination",
    "browsing_examination",
    "click_lists",
    "click_weights",
    "compare_click_models",
    "em_examination",
    "estimate_examination",
    "harvested_examination",
    "held_out_log_likelihood",
    "power_law",
    "propensities",
    "randomised_examination",
    "update_examination",
]
