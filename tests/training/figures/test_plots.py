"""The history of a fit as a picture."""

import pytest

from ranktron import DataError
from ranktron.data.synthetic import Separable
from ranktron.learners.schedule import Schedule
from ranktron.metrics import metric
from ranktron.training.figures.plots import draw_history
from ranktron.training.fit import TrainingPlan, train

LISTS = Separable(documents=6, features=4).rounds(40)


def test_a_line_for_each_value_of_the_passes_and_of_what_was_shown(tmp_path):
    shown = [metric("map")]
    history = train(TrainingPlan("hinge", schedule=Schedule(4), metrics=shown), LISTS[:30], valid=LISTS[30:]).history
    draw_history(history, tmp_path / "both.svg", shown, title="how it went")
    drawn = (tmp_path / "both.svg").read_text()
    for text in ("how it went", "map, time average", "ndcg@10, validation", "map, validation", "metric"):
        assert f">{text}<" in drawn or f"<!-- {text} -->" in drawn
    draw_history(history, tmp_path / "valid.svg")
    assert "time average" not in (tmp_path / "valid.svg").read_text()


def test_nothing_to_draw_is_said(tmp_path):
    history = train(TrainingPlan("hinge", schedule=Schedule(2)), LISTS).history
    with pytest.raises(DataError, match="give a validation set"):
        draw_history(history, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()
