from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.metrics import MEASURES, Metric, arrange, evaluate, ties

PAPER = [Metric(name, None if measure.cut == "none" else 3) for name, measure in MEASURES.items()]

scored = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0])), min_size=1, max_size=6)


def one_list(scores, labels):
    return Rounds.from_arrays(np.zeros((len(labels), 1)), labels), np.array(scores, float)


class TestArrange:
    scores = (1.0, 2.0, 2.0, 2.0, 0.5)
    labels = (4.0, 3.0, 0.0, 1.0, 2.0)

    @pytest.mark.parametrize(
        ("ties", "expected"),
        [
            ("worst", [0, 1, 3, 4, 2]),
            ("line", [3, 0, 1, 4, 2]),
            ("docid", [1, 3, 0, 4, 2]),
            ("average", [4 / 3, 4 / 3, 4 / 3, 4, 2]),
        ],
    )
    def test_rules(self, ties, expected):
        docids = ["d1", "d2", "d10", "d9", "d3"]
        np.testing.assert_allclose(arrange(self.scores, self.labels, ties, docids), expected)

    def test_document_ids_are_compared_as_text(self):
        assert arrange([1, 1], [1, 0], "docid", [9, 10]).tolist() == [1, 0]

    def test_line_order_without_document_ids(self):
        assert arrange(self.scores, self.labels, "docid").tolist() == arrange(self.scores, self.labels, "line").tolist()

    def test_scores_equal_in_32_bits_are_equal(self):
        assert arrange([1.0, 1.0 + 1e-12], [1, 0], "line").tolist() == [1, 0]
        assert arrange([0.0, -0.0, 0.0], [2, 0, 1], "worst").tolist() == [0, 1, 2]

    def test_infinite_scores_are_scores(self):
        assert arrange([-np.inf, 0.0, np.inf], [0, 1, 2], "line").tolist() == [2, 1, 0]

    def test_nothing_is_changed(self):
        scores, labels = np.array([1.0, 1.0]), np.array([1.0, 0.0])
        assert arrange(scores, labels).tolist() == [0, 1]
        assert labels.tolist() == [1, 0]
        assert scores.tolist() == [1, 1]

    def test_errors(self):
        with pytest.raises(DataError, match="there are: worst, line, docid, average"):
            arrange([1.0], [1.0], "best")
        with pytest.raises(DataError, match="NaN, first in row 1"):
            arrange([1.0, np.nan], [1.0, 0.0])
        with pytest.raises(DataError, match="2 documents, scores of shape"):
            arrange([1.0], [1.0, 0.0])


@pytest.mark.filterwarnings("ignore::ranktron.RankingWarning")
@given(scored, st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_paper_does_not_depend_on_input_order(documents, random):
    shuffled = random.sample(documents, len(documents))
    values = []
    for given_order in (documents, shuffled):
        scores, labels = zip(*given_order, strict=True)
        rounds, s = one_list(scores, labels)
        values.append(evaluate(rounds, s, PAPER).means)
    assert values[0] == values[1]


@pytest.mark.filterwarnings("ignore::ranktron.RankingWarning")
@given(scored)
@settings(max_examples=60, deadline=None)
def test_paper_is_the_worst_of_all_tie_breakings(documents):
    scores, labels = zip(*documents, strict=True)
    rounds, s = one_list(scores, labels)
    ours = evaluate(rounds, s, PAPER).means
    consistent = [
        np.array([labels[i] for i in order], float)
        for order in permutations(range(len(documents)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    for m in PAPER:
        every = [m(ranked) for ranked in consistent]
        worst = min(every) if m.higher_is_better else max(every)
        assert ours[str(m)] == pytest.approx(worst, abs=1e-12), m


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=8), min_size=1, max_size=4)
)
@settings(max_examples=30, deadline=None)
def test_kernels_equal_their_python(lists):
    documents = np.array([d for one in lists for d in one], float)
    offsets = np.cumsum([0] + [len(one) for one in lists])
    order, ends = np.empty((2, len(documents)), np.int64), np.empty((2, len(documents)), np.int64)
    scores = documents[:, 0].copy()
    tied = [ties.by_score(scores, offsets, order[0], ends[0])]
    tied.append(ties.by_score.py_func(scores, offsets, order[1], ends[1]))
    assert tied[0] == tied[1]
    assert (order[0] == order[1]).all()
    assert (ends[0] == ends[1]).all()
    for kernel in (ties.lowest_label_first, ties.average):
        compiled, plain = documents[order[0], 1], documents[order[0], 1]
        kernel(compiled, ends[0])
        kernel.py_func(plain, ends[0])
        np.testing.assert_allclose(compiled, plain)


def test_ties_never_cross_lists():
    scores, labels = [1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 2.0, 0.0]
    rounds = Rounds.from_arrays(np.zeros((4, 1)), labels, group=[2, 2], docids=["a", "b", "c", "d"])
    expected = {"mrr": [0.5, 0.5], "mrr:letor": [1, 1], "mrr:trec": [0.5, 0.5]}
    measured = evaluate(rounds, np.array(scores), list(expected)).per_query
    assert {name: row.tolist() for name, row in measured.items()} == expected


@pytest.mark.parametrize(
    ("labels", "docids", "words"),
    [
        ([0, 1, 2], ["a"], "one name per document"),
        ([0, 1, 2], 3, "one name per document"),
        (["a", "b", "c"], None, "labels must be numbers"),
        (1.0, None, "one number per document"),
        ([0, 1], None, "one number per document"),
    ],
)
def test_lists_that_do_not_fit_are_not_arranged(labels, docids, words):
    with pytest.raises(DataError, match=words):
        arrange([1, 1, 1], labels, "docid", docids)
