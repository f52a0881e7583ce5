"""A saved model is an estimator again."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import ranktron
from ranktron import DataError
from ranktron.data.synthetic import WebSearch
from ranktron.estimators.base import OnlineRanker
from ranktron.learners.checks import same
from ranktron.learners.loop import play
from ranktron.learners.schedule import Schedule
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.fit import TrainingPlan, train

LISTS = WebSearch(features=6, documents=8).rounds(80)
OLD, NEW = LISTS[:50], LISTS[50:]
CLASSES = {name: getattr(ranktron, each.estimator) for name, each in ALGORITHMS.items()}
ONLINE = [name for name, cls in CLASSES.items() if issubclass(cls, OnlineRanker)]
PLAYED = [name for name in ONLINE if not ALGORITHMS[name].solution]


def sizes(rounds):
    return np.diff(rounds.offsets)


@pytest.fixture
def saved(tmp_path):
    """Saves a model of 50 queries: its path."""

    def save(name, **how):
        trained = train(TrainingPlan(name, {}, Schedule(3, 5), **how), OLD)
        trained.model.save(tmp_path / "my.model")
        return tmp_path / "my.model"

    return save


@pytest.mark.parametrize("how", [{}, {"scaling": "standard"}, {"scaling": "minmax-query"}, {"map": "bins:4"}])
@pytest.mark.parametrize("name", PLAYED)
def test_it_goes_on_to_the_same_bytes_as_training_from_the_file(name, how, saved):
    if name == "kernel" and "map" in how:
        pytest.skip("a kernel in place of a map")
    path = saved(name, **how)
    ranker = ranktron.load(path).estimator().partial_fit(NEW.X, NEW.labels, group=sizes(NEW))
    start = ranktron.load(path)
    expected = train(TrainingPlan(name, schedule=Schedule(1, 5, shuffle=False)), NEW, start=start)
    assert ranker.model_.to_bytes() == expected.model.to_bytes()
    twice = ranker.partial_fit(OLD.X, OLD.labels, group=sizes(OLD))
    expected = train(TrainingPlan(name, schedule=Schedule(1, 5, shuffle=False)), OLD, start=expected.model)
    assert twice.model_.to_bytes() == expected.model.to_bytes()


@pytest.mark.parametrize("name", ["pdgd", "topk", "hinge"])
def test_the_simulated_user_of_the_training_goes_on_answering(name, saved):
    path = saved(name, feedback="navigational")
    ranker = ranktron.load(path).estimator().partial_fit(NEW.X, NEW.labels, group=sizes(NEW))
    order = Schedule(1, 5, shuffle=False)
    expected = train(TrainingPlan(name, schedule=order, feedback="navigational"), NEW, start=ranktron.load(path))
    assert ranker.model_.to_bytes() == expected.model.to_bytes()
    by_labels = train(TrainingPlan(name, schedule=order), NEW, start=ranktron.load(path))
    assert not same(ranker.learner_.state(), by_labels.model.state)


@pytest.mark.parametrize("name", PLAYED)
def test_it_goes_on_query_by_query(name, saved):
    """Whatever the parts, the learner ends with the same state; the record counts the parts."""
    path = saved(name)
    whole, parts = (ranktron.load(path).estimator() for _ in range(2))
    whole.partial_fit(NEW.X, NEW.labels, group=sizes(NEW))
    for round in NEW:
        parts.partial_fit(round.X, round.labels, qid=round.qid)
    assert same(parts.learner_.state(), whole.learner_.state())
    spreads = [ranker.model_.record.get("spread", {}) for ranker in (parts, whole)]
    assert same(*spreads)


@pytest.mark.parametrize("name", ["pairwise", "committee"])
def test_pairs_are_taken_list_by_list(name, saved):
    """`train` mixes the pairs of all lists, which a stream cannot do."""
    path = saved(name)
    ranker = ranktron.load(path).estimator().partial_fit(NEW.X, NEW.labels, group=sizes(NEW))
    learner = ranktron.load(path).learner()
    for _ in play(learner, NEW, learner.simulated_feedback):
        pass
    assert same(ranker.learner_.state(), learner.state())


@pytest.mark.parametrize("name", CLASSES)
def test_it_is_the_estimator_that_was_saved(name, saved):
    path = saved(name, scaling="standard")
    model = ranktron.load(path)
    ranker = model.estimator()
    assert type(ranker) is CLASSES[name]
    assert ranker.predict(LISTS.X).tolist() == model.predict(LISTS.X).tolist()
    if name != "rankmm":  # an estimator does not save the dual variables
        assert ranker.model_.to_bytes() == path.read_bytes()
    assert (ranker.scale, ranker.n_features_in_, ranker.random_state) == ("standard", 6, 5)
    with pytest.raises(DataError, match="no query ids"):
        ranker.score(NEW.X, NEW.labels)
    with pytest.raises(ValueError, match="6 features"):
        ranker.predict(LISTS.X[:, :5])
    ranker.set_params(n_epochs=3).fit(OLD.X, OLD.labels, group=sizes(OLD))
    assert ranker.predict(LISTS.X) == pytest.approx(model.predict(LISTS.X))


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in ONLINE])
def test_what_is_solved_at_once_says_that_it_cannot_go_on(name, saved):
    ranker = ranktron.load(saved(name)).estimator()
    assert not hasattr(ranker, "partial_fit")
    with pytest.raises(AttributeError, match=f"{type(ranker).__name__} solves for all queries at once"):
        ranker.partial_fit(NEW.X, NEW.labels, group=sizes(NEW))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = type(ranker)().coef_


def test_names_come_back_and_fixed_weights_are_refused(tmp_path):
    frame = {"features": ["a", "b"], "random_state": 0}
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0], "qid": [1, 1]})
    ranktron.HingePerceptron(**frame).fit(table, [0, 1]).save(tmp_path / "m")
    ranker = ranktron.load(tmp_path / "m").estimator()
    assert ranker.feature_names_in_.tolist() == ["a", "b"]
    assert ranker.partial_fit(table, [0, 1]).learner_.rounds == 11
    with pytest.raises(DataError, match="fixed weights"):
        ranktron.load(tmp_path / "m").folded().estimator()


def test_the_command_line_goes_on_to_the_same_bytes(run, tmp_path):
    for arguments in (
        ["simulate", "web", "old.txt", "--queries", "40"],
        ["simulate", "web", "new.txt", "--queries", "20", "--skip", "40"],
        ["train", "old.txt", "--model", "my.model"],
        ["train", "new.txt", "--from", "my.model", "--epochs", "1", "--no-shuffle", "--model", "other.model"],
    ):
        code, _, err = run(*arguments)
        assert code == 0, err
    new = ranktron.read("new.txt")
    model = ranktron.load("my.model")
    model.estimator().partial_fit(new.X, new.labels, group=sizes(new)).save("my.model")
    assert (tmp_path / "my.model").read_bytes() == (tmp_path / "other.model").read_bytes()
