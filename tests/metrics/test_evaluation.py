import numpy as np
import pytest

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.metrics import CONVENTIONS, MEASURES, Metric, arrange, evaluate, metric

EVERY = [
    Metric(name, None if measure.cut == "none" else 5, convention)
    for convention, choices in CONVENTIONS.items()
    for name, measure in MEASURES.items()
    if choices.ties != "average"
]


@pytest.mark.parametrize("lists", ["tied_lists", "distinct_lists"])
def test_equals_each_list_arranged_and_measured(lists, request):
    scores, rounds = request.getfixturevalue(lists)
    measured = evaluate(rounds, scores, EVERY)
    for q, (a, b) in enumerate(zip(rounds.offsets[:-1], rounds.offsets[1:], strict=True)):
        for m in EVERY:
            ranked = arrange(scores[a:b], rounds.labels[a:b], m.choices.ties, rounds.docids[a:b])
            assert measured.per_query[str(m)][q] == m(ranked), (q, m)


def test_averaged_ties_equal_plain_code_where_there_are_none(distinct_lists):
    scores, rounds = distinct_lists
    names = ["ndcg@5", "ndcg", "dcg@5", "map", "auc"]
    with_tie = Rounds.concat([rounds, Rounds.from_arrays([[0.0], [0.0]], [1, 0], qid=["tied", "tied"])])
    plain = evaluate(rounds, scores, [f"{name}:sklearn" for name in names])
    averaged = evaluate(with_tie, np.append(scores, [1.0, 1.0]), [f"{name}:sklearn" for name in names])
    for name in plain.per_query:
        np.testing.assert_allclose(averaged.per_query[name][:-1], plain.per_query[name], atol=1e-12)


def test_shape_of_the_answer(tied_lists):
    scores, rounds = tied_lists
    answer = evaluate(rounds, scores, ["ap", "map", metric("ndcg@10:xgboost")])
    assert list(answer.means) == ["map", "ndcg@10:lightgbm"]
    assert answer.qids is rounds.qids
    assert answer.per_query["map"].shape == (len(rounds),)
    assert answer.means["map"] == answer.per_query["map"].mean()
    assert answer.empty_queries == sum(not round.labels.any() for round in rounds)
    assert evaluate(rounds, scores, "map").means["map"] == answer.means["map"]
    assert (answer.values("ap") == answer.per_query["map"]).all()


def test_inputs_are_not_changed_and_may_be_read_only(tied_lists):
    scores, rounds = tied_lists
    scores = scores.copy()
    before = scores.copy(), rounds.labels.copy()
    scores.flags.writeable = False
    rounds.labels.flags.writeable = False
    rounds.offsets.flags.writeable = False
    evaluate(rounds, scores, ["ndcg@10", "ndcg@10:trec", "ndcg@10:sklearn"])
    assert (scores == before[0]).all()
    assert (rounds.labels == before[1]).all()


def test_errors(tied_lists):
    scores, rounds = tied_lists
    missing = scores.copy()
    missing[7] = np.nan
    with pytest.raises(DataError, match="scores contain NaN, first in row 7"):
        evaluate(rounds, missing, "map")
    with pytest.raises(DataError, match="one number per document"):
        evaluate(rounds, scores[:-1], "map")
    with pytest.raises(DataError, match="scores must be numbers"):
        evaluate(rounds, ["x"] * len(scores), "map")
    with pytest.raises(DataError, match="did you mean"):
        evaluate(rounds, scores, ["mpa"])
    with pytest.raises(DataError, match="no metric"):
        evaluate(rounds, scores, [])
    with pytest.raises(DataError, match="no queries"):
        evaluate(rounds[:0], np.empty(0), "map")
    with pytest.raises(DataError, match="was not evaluated; there are: map"):
        evaluate(rounds, scores, "map").interval("ndcg")
    for wrong in ({"resamples": 0}, {"resamples": 2.5}, {"seed": -1}):
        with pytest.raises(DataError, match="must be a whole number"):
            evaluate(rounds, scores, "map").interval("map", **wrong)
    with pytest.raises(DataError, match="there are no query ids"):
        evaluate(list(rounds), scores, "map")


def test_labels_out_of_range_name_the_query():
    rounds = Rounds.from_arrays(np.zeros((3, 1)), [1, 0, 5], qid=["a", "a", "b"])
    with pytest.raises(DataError, match=r"err@10 is defined for labels from 0 to 4; query b has 5.0 \(document 2\)"):
        evaluate(rounds, np.arange(3.0), ["map", "err@10"])


@pytest.mark.filterwarnings("ignore::ranktron.RankingWarning")
def test_lists_of_no_documents_count_as_empty():
    rounds = Rounds(np.zeros((2, 1), np.float32), np.array([1.0, 0.0]), np.array([0, 0, 2, 2]), np.arange(3))
    answer = evaluate(rounds, np.zeros(2), ["mrr", "mrr:trec", "map:sklearn"])
    assert answer.empty_queries == 2
    assert [row.tolist() for row in answer.per_query.values()] == [[1, 0.5, 1], [0, 1, 0], [0, 0.5, 0]]


class TestInterval:
    def test_is_the_percentile_interval_of_resampled_means(self, tied_lists):
        answer = evaluate(*tied_lists[::-1], "ndcg@10")
        sample = answer.per_query["ndcg@10"]
        means = sample[np.random.default_rng(5).integers(0, len(sample), (2000, len(sample)))].mean(axis=1)
        assert answer.interval("ndcg@10", level=0.9, seed=5) == pytest.approx(np.quantile(means, [0.05, 0.95]))

    def test_same_seed_same_interval_and_wider_for_more_certainty(self, tied_lists):
        answer = evaluate(*tied_lists[::-1], "ndcg@10")
        low, high = answer.interval("ndcg@10")
        assert (low, high) == answer.interval(metric("ndcg@10"), seed=0)
        assert (low, high) != answer.interval("ndcg@10", seed=1)
        assert low < answer.means["ndcg@10"] < high
        wider = answer.interval("ndcg@10", level=0.99)
        assert wider[0] < low < high < wider[1]

    def test_near_the_normal_interval(self, tied_lists):
        answer = evaluate(*tied_lists[::-1], "ndcg@10")
        sample = answer.per_query["ndcg@10"]
        half = 1.96 * sample.std(ddof=1) / np.sqrt(len(sample))
        low, high = answer.interval("ndcg@10")
        assert high - low == pytest.approx(2 * half, rel=0.1)

    def test_more_queries_than_fit_in_one_chunk(self):
        rounds = Rounds.from_arrays(np.zeros((6000, 1)), np.tile([1, 0], 3000), group=[2] * 3000)
        answer = evaluate(rounds, np.random.default_rng(0).random(6000), "mrr")
        low, high = answer.interval("mrr")
        assert high - low == pytest.approx(2 * 1.96 * answer.per_query["mrr"].std() / np.sqrt(3000), rel=0.1)

    def test_level_is_checked(self, tied_lists):
        with pytest.raises(DataError, match="between 0 and 1"):
            evaluate(*tied_lists[::-1], "map").interval("map", level=95)


def test_prints_a_table(tied_lists):
    answer = evaluate(*tied_lists[::-1], ["ndcg@10:letor", "map"])
    lines = str(answer).splitlines()
    assert [line.split()[0] for line in lines] == ["metric", "ndcg@10:letor", "map", "80"]
    assert f"{answer.means['map']:.4f}" in lines[2]
    assert lines[-1].endswith(f"{answer.empty_queries} of them without relevant documents")


class TestOrderOfScores:
    """Scores of shuffled rows: a silent mistake of order costs a third of NDCG."""

    X = np.random.default_rng(3).random((400, 4))
    y = np.floor(4 * X[:, 0])
    qid = np.random.default_rng(4).integers(0, 40, 400)
    scores = X[:, 0] + 0.2 * X[:, 1]

    def expected(self):
        ndcg, sizes = metric("ndcg@10"), dict.fromkeys(self.qid.tolist())
        lists = [np.flatnonzero(self.qid == q) for q in sizes]
        return np.mean([ndcg(self.y[rows][np.argsort(-self.scores[rows])]) for rows in lists])

    def test_labels_scores_and_query_ids_have_one_order(self):
        found = evaluate(self.y, self.scores, "ndcg@10", qid=self.qid)
        assert found.means["ndcg@10"] == pytest.approx(self.expected())
        mixed = np.random.default_rng(5).permutation(400)
        again = evaluate(self.y[mixed], self.scores[mixed], qid=self.qid[mixed])
        assert again.means["ndcg@10"] == pytest.approx(self.expected())

    def test_scores_beside_regrouped_rounds_say_their_order(self):
        rounds = Rounds.from_arrays(self.X, self.y, qid=self.qid)
        with pytest.raises(DataError, match=r"regrouped by query.*evaluate\(y, scores, qid=qid\).*order='rounds'"):
            evaluate(rounds, self.scores)
        own = rounds.X[:, 0].astype(float) + 0.2 * rounds.X[:, 1]
        for order, scores in (("input", self.scores), ("rounds", own)):
            assert evaluate(rounds, scores, order=order).means["ndcg@10"] == pytest.approx(self.expected())
        with pytest.raises(DataError, match="order must be 'rounds' or 'input', not 'rows'"):
            evaluate(rounds, self.scores, order="rows")

    def test_rounds_are_known_by_their_type(self):
        rounds = Rounds.from_arrays(self.X, self.y, group=[10] * 40)
        assert evaluate(self.scores, rounds).means == evaluate(rounds, self.scores).means

    @pytest.mark.parametrize(
        ("arguments", "options", "message"),
        [
            ((scores, y), {"qid": qid}, r"the labels seem to be where the scores belong: it is evaluate\(y, scores"),
            ((y - 2, scores), {"qid": qid}, "labels must be finite and >= 0"),
            ((y, scores), {}, r"no query ids: pass qid= .* or group= .*; qid=0 says that all rows are one list"),
            ((y, scores, qid), {}, r"query ids are given by their name: evaluate\(y, scores, metrics, qid=qid\)"),
            ((y, scores[1:]), {"qid": qid}, "400 documents, scores of shape"),
            ((y, scores[qid.argsort()]), {"qid": qid, "order": "input"}, "order= is about scores beside Rounds"),
            ((Rounds.from_arrays(X, y), scores), {"qid": qid}, "Rounds have queries and documents of their own"),
        ],
    )
    def test_wrong_arguments(self, arguments, options, message):
        with pytest.raises(DataError, match=message):
            evaluate(*arguments, **options)
