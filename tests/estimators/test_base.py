"""What a ranker refuses, and the query ids that scikit-learn brings it."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ranktron
from ranktron import DataError
from ranktron.data.frames import UNGROUPED
from ranktron.data.synthetic import WebSearch

LISTS = WebSearch(features=6, documents=8).rounds(60)
QID = np.repeat(LISTS.qids, np.diff(LISTS.offsets))
X, Y = LISTS.X.astype(float), LISTS.labels
GROUPS = ["qid=", "group=", "a column qid", "qid=0"]


@pytest.fixture
def ohsumed(data_dir):
    """Train and validation part of a fold of real data: (X, y, query ids)."""
    parts = [ranktron.read(data_dir / "ohsumed-letor3" / "Fold1" / f"{part}.txt.gz") for part in ("train", "vali")]
    rounds = ranktron.Rounds.concat(parts)
    return rounds.X, rounds.labels, np.repeat(rounds.qids, np.diff(rounds.offsets))


@pytest.mark.parametrize("name", ["HingePerceptron", "RankSVM"])
def test_learning_and_scoring_without_query_ids_are_refused(name):
    ranker = getattr(ranktron, name)(random_state=0)
    calls = [lambda: ranker.fit(X, Y)]
    calls += [lambda: ranker.partial_fit(X, Y)] if name == "HingePerceptron" else []
    for call in calls:
        with pytest.raises(DataError) as refused:
            call()
        assert str(refused.value) == UNGROUPED
        assert not hasattr(ranker, "n_features_in_")
    assert all(way in UNGROUPED for way in GROUPS)
    ranker.fit(X, Y, qid=QID)
    with pytest.raises(DataError, match="there are no query ids"):
        ranker.score(X, Y)
    with pytest.raises(DataError, match=r"eval_qid=.*eval_group="):
        ranker.fit(X, Y, qid=0, eval_set=(X, Y))
    assert ranker.predict(X).shape == (len(X),)
    assert sorted(ranker.rank(X)) == list(range(len(X)))


@pytest.mark.filterwarnings("ignore:all queries of the validation set:ranktron.RankingWarning")
@pytest.mark.parametrize("one", [0, "a query", np.int64(3), 1.5])
def test_a_scalar_says_that_all_rows_are_one_list(one):
    ranker = ranktron.HingePerceptron().fit(X, Y, qid=one, eval_set=(X, Y), eval_qid=one)
    same = ranktron.HingePerceptron(ungrouped="one-list").fit(X, Y, eval_set=(X, Y))
    assert ranker.coef_.tolist() == same.coef_.tolist()
    assert ranker.score(X, Y, qid=one) == same.score(X, Y)
    assert ranktron.Rounds.from_arrays(X, Y, one).qids.tolist() == [one]


def test_how_rows_without_ids_are_taken_is_not_stored():
    ranker = ranktron.HingePerceptron(ungrouped="one-list", random_state=0).fit(X, Y)
    plain = ranktron.HingePerceptron(random_state=0).fit(X, Y, qid=0)
    assert ranker.model_.to_bytes() == plain.model_.to_bytes()
    with pytest.raises(DataError, match="ungrouped must be error or one-list"):
        ranktron.HingePerceptron(ungrouped="list").fit(X, Y)


def test_label_estimators_have_no_query_ids():
    for name in ("PredtronClassifier", "PredtronOrdinal", "PredtronMultilabel", "PredtronLabelRanker"):
        assert not {"ungrouped", "features"} & getattr(ranktron, name)().get_params().keys()


@pytest.mark.data
class TestGroups:
    """Cross-validation on real data: the queries count, or nothing does."""

    folds = GroupKFold(5)

    def right(self, X, y, qid):
        """The mean over folds, computed by hand."""
        values = []
        for train, test in self.folds.split(X, y, qid):
            ranker = ranktron.RankSVM(scale="standard").fit(X[train], y[train], qid=qid[train])
            values.append(ranker.score(X[test], y[test], qid=qid[test]))
        return np.array(values)

    def wrong(self, X, y, qid):
        """What comes out where each part is taken for one list."""
        return cross_val_score(
            ranktron.RankSVM(scale="standard", ungrouped="one-list"), X, y, groups=qid, cv=self.folds
        )

    def test_groups_are_the_query_ids_with_routing(self, ohsumed):
        X, y, qid = ohsumed
        wrong = self.wrong(X, y, qid).mean()
        right = self.right(X, y, qid)
        assert wrong > right.mean() + 0.1
        with sklearn.config_context(enable_metadata_routing=True):
            ranker = ranktron.RankSVM(scale="standard")
            found = cross_val_score(ranker, X, y, params={"groups": qid}, cv=self.folds)
            assert found == pytest.approx(right)
            assert cross_val_score(ranker, X, y, params={"qid": qid, "groups": qid}, cv=self.folds) == pytest.approx(
                right
            )
            found = cross_validate(ranker, X, y, params={"groups": qid}, cv=self.folds)["test_score"]
            assert found == pytest.approx(right)
            search = GridSearchCV(ranker, {"C": [1.0]}, cv=self.folds, refit=False).fit(X, y, groups=qid)
            assert search.best_score_ == pytest.approx(right.mean())
            piped = make_pipeline(StandardScaler(), ranktron.RankSVM())
            search = GridSearchCV(piped, {"ranksvm__C": [1.0]}, cv=self.folds).fit(X, y, groups=qid)
            assert search.best_score_ == pytest.approx(right.mean(), abs=1e-4)

    def test_groups_without_routing_are_refused(self, ohsumed):
        X, y, qid = ohsumed
        ranker = ranktron.RankSVM()
        for call in (
            lambda: cross_val_score(ranker, X, y, groups=qid, cv=self.folds),
            lambda: cross_validate(ranker, X, y, groups=qid, cv=self.folds),
            lambda: GridSearchCV(ranker, {"C": [1.0]}, cv=self.folds).fit(X, y, groups=qid),
            lambda: GridSearchCV(make_pipeline(StandardScaler(), ranker), {}, cv=self.folds).fit(X, y, groups=qid),
        ):
            with pytest.raises(ValueError, match="there are no query ids"):
                call()

    def test_query_ids_without_routing_give_no_number(self, ohsumed):
        X, y, qid = ohsumed
        few = np.isin(qid, np.unique(qid)[:20])
        X, y, qid = X[few], y[few], qid[few]
        with pytest.warns(UserWarning, match="Scoring failed"):
            found = cross_val_score(ranktron.RankSVM(), X, y, params={"qid": qid}, groups=qid, cv=self.folds)
        assert np.isnan(found).all()
        with pytest.raises(ValueError, match="enable_metadata_routing"):
            cross_val_score(
                ranktron.RankSVM(), X, y, params={"qid": qid}, groups=qid, cv=self.folds, error_score="raise"
            )


def test_query_ids_come_before_groups():
    first, second = (ranktron.RankSVM().fit(X, Y, qid=QID, groups=groups) for groups in (None, QID[::-1]))
    assert first.coef_.tolist() == second.coef_.tolist()
    assert ranktron.RankSVM().fit(X, Y, groups=QID).coef_.tolist() == first.coef_.tolist()
