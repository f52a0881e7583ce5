import pickle
import subprocess
import sys
from itertools import combinations
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktron.errors import DataError
from ranktron.metrics import CONVENTIONS, MEASURES, Metric, binary, compiled, gain, metric, pairs, sklearn_ties
from ranktron.metrics.conventions import DISCOUNTS, GAINS, SHORT

labels_of_a_list = st.lists(st.one_of(st.integers(0, 4), st.sampled_from([0.5, 1.25, 3.75])), min_size=1, max_size=40)


class TestText:
    @pytest.mark.parametrize(
        ("text", "printed"),
        [
            ("ndcg@10", "ndcg@10"),
            ("ndcg", "ndcg"),
            ("ndcg@10:paper", "ndcg@10"),
            ("ndcg@10:letor", "ndcg@10:letor"),
            ("ap", "map"),
            ("rr:trec", "mrr:trec"),
            ("AP:XGBoost", "map:lightgbm"),
            ("q", "inversions"),
            (" p@5 ", "p@5"),
        ],
    )
    def test_prints_in_one_form(self, text, printed):
        assert str(Metric.parse(text)) == printed
        assert Metric.parse(printed) == Metric.parse(text)

    def test_every_metric_parses_back_from_its_own_text(self):
        for convention, choices in CONVENTIONS.items():
            for name, measure in MEASURES.items():
                if choices.only and name not in choices.measured:
                    continue
                m = Metric(name, None if measure.cut == "none" else 7, convention)
                assert Metric.parse(str(m)) == m
                assert hash(Metric.parse(str(m))) == hash(m)

    def test_is_a_value(self):
        m = metric("ndcg@10")
        assert m == Metric("ndcg", 10)
        assert metric(m) is m
        assert len({m, Metric.parse("ndcg@10:paper"), metric("ndcg@5")}) == 2
        m([1.0])
        assert pickle.loads(pickle.dumps(m)) == m
        with pytest.raises(AttributeError):
            m.k = 3

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("ndgc@10", r"'ndgc' \(did you mean ndcg\?\); there are: ndcg, dcg, map"),
            ("ndcg:leter", r"'leter' \(did you mean letor\?\); there are: paper, letor, trec"),
            ("", "there is no metric ''"),
            ("ndcg:", "there is no convention ''"),
            ("ndcg@0", "whole number from 1"),
            ("ndcg@-1", "whole number from 1"),
            ("ndcg@", "whole number from 1"),
            ("ndcg@1.5", "whole number from 1"),
            ("ndcg@\u0663", "whole number from 1"),
            ("ndcg@99999999999999999999", "whole number from 1"),
            ("map@5", "map takes no cut-off.*these do: ndcg@5, dcg@5, err@5, p@5, recall@5"),
            ("p", "p needs to know how many positions count: p@10"),
            ("mrr:sklearn", "conventions for mrr: paper, letor, trec, lightgbm, ranklib"),
        ],
    )
    def test_errors_say_what_there_is(self, text, says):
        with pytest.raises(DataError, match=says):
            Metric.parse(text)

    @pytest.mark.parametrize("k", [0, -3, 1.0, True, "5"])
    def test_cut_off_is_checked_without_text_too(self, k):
        with pytest.raises(DataError, match="whole number from 1"):
            Metric("ndcg", k)

    def test_only_text_names_a_metric(self):
        with pytest.raises(DataError, match="a metric is a name"):
            metric(10)

    def test_direction(self):
        assert [
            name for name in MEASURES if not Metric(name, 3 if name in ("p", "recall") else None).higher_is_better
        ] == ["inversions"]

    def test_names_are_checked_without_a_compiler(self):
        program = (
            "import sys, ranktron.metrics as m; m.metric('ndcg@10:letor');"
            "print([x for x in ('numba', 'scipy', 'sklearn') if x in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestLabels:
    @pytest.mark.parametrize("bad", [[1.0, -1.0], [1.0, np.nan], [np.inf, 0.0], [0.0, 1001.0]])
    def test_out_of_range(self, bad):
        with pytest.raises(DataError, match=r"ndcg@1 is defined for labels from 0 to 1000; position \d has"):
            metric("ndcg@1")(np.array(bad))

    def test_the_message_says_what_to_use_instead(self):
        with pytest.raises(DataError, match=r"use lower grades, or ndcg@1:trec, whose gain is the label itself$"):
            metric("ndcg@1:letor")([2000.0])
        with pytest.raises(DataError, match=r"has 5\.0: use lower grades$"):
            metric("err")([5.0])

    def test_exponential_gain_up_to_its_limit(self):
        assert metric("ndcg")([0.0, 1000.0]) == pytest.approx(1.0 / log2(3))
        assert metric("ndcg:trec")([0.0, 1001.0]) == pytest.approx(1.0 / log2(3))

    def test_err_has_grades_up_to_four(self):
        assert metric("err@10")([4.0]) == 15 / 16
        with pytest.raises(DataError, match="labels from 0 to 4"):
            metric("err@10")([4.5])

    def test_any_form_of_labels(self):
        expected = 1.0 / log2(3)
        labels = np.array([0.0, 3.0, 1.0, 1.0, 0.0, 0.0])
        assert metric("ndcg@1")([1, 0, 0]) == 1.0
        for form in (
            [0, 1],
            (0.0, 1.0),
            np.array([0, 1]),
            np.array([0, 1], np.float32),
            labels[::2][[0, 1]],
            labels[4:1:-2],
        ):
            assert metric("ndcg")(form) == expected
        frozen = np.array([0.0, 1.0])
        frozen.flags.writeable = False
        assert metric("ndcg")(frozen) == expected

    @pytest.mark.parametrize("bad", ["ab", [[1.0]], 3.0, [None]])
    def test_not_labels(self, bad):
        with pytest.raises(DataError, match="labels"):
            metric("ndcg")(bad)


def ideal(labels):
    return sorted(labels, reverse=True)


def reference(m, labels):
    """Every metric again, slowly, from its formula."""
    choices, k, n = m.choices, m.k or len(labels), len(labels)
    relevant = [y > 0 for y in labels]
    ranks = [i for i, hit in enumerate(relevant, start=1) if hit]
    R, N = len(ranks), n - len(ranks)

    def discounted(ys):
        total = 0.0
        for i, y in enumerate(ys[:k], start=1):
            weight = 1 / log2(i + 1) if choices.discount == DISCOUNTS[0] else 1 / log2(max(i, 2))
            total += (2**y - 1 if choices.gain == GAINS[0] else y) * weight
        return total

    def expected_reciprocal_rank():
        total, left = 0.0, 1.0
        for i, y in enumerate(labels[:k], start=1):
            total += left * (2**y - 1) / 16 / i
            left *= 1 - (2**y - 1) / 16
        return total

    wrong = sum(a < b for a, b in combinations(labels, 2))
    different = sum(a != b for a, b in combinations(labels, 2))
    others_above = [rank - i for i, rank in enumerate(ranks, start=1)]
    empty = 0.0 if m.name in ("dcg", "inversions") else choices.exceptions.get(m.name, choices.empty)
    if R == 0:
        return empty
    if choices.short == "zero" and m.k and n < m.k and m.name in ("ndcg", "dcg", "p", "recall"):
        return 0.0
    depth = min(k, n) if choices.short == "truncate" else k
    rank_efficiency = 1 - sum(others_above) / (N * R) if N else 1.0
    return {
        "dcg": lambda: discounted(labels),
        "ndcg": lambda: discounted(labels) / discounted(ideal(labels)),
        "map": lambda: sum(i / rank for i, rank in enumerate(ranks, start=1)) / R,
        "mrr": lambda: 1 / ranks[0],
        "err": expected_reciprocal_rank,
        "p": lambda: sum(relevant[:k]) / depth,
        "recall": lambda: sum(relevant[:k]) / R,
        "rprec": lambda: sum(relevant[:R]) / R,
        "bpref": lambda: sum(1 - (min(above, R) / min(N, R) if above else 0) for above in others_above) / R,
        "rankeff": lambda: rank_efficiency,
        "auc": lambda: rank_efficiency,
        "inversions": lambda: wrong,
        "tau": lambda: 1 - 2 * wrong / different if different else 1.0,
    }[m.name]()


ALL = [
    Metric(name, k, convention)
    for convention, choices in CONVENTIONS.items()
    for name, measure in MEASURES.items()
    for k in {"none": [None], "optional": [None, 1, 10], "required": [1, 10]}[measure.cut]
    if name in choices.measured or not choices.only
]


@pytest.mark.parametrize("m", ALL, ids=str)
@given(labels=labels_of_a_list)
@settings(max_examples=30)
def test_equals_its_formula(m, labels):
    assert m(labels) == pytest.approx(reference(m, labels), abs=1e-12)


@pytest.mark.parametrize("m", ALL, ids=str)
def test_perfect_list_is_exactly_best(m):
    value = m([3.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    best = {
        "dcg": value,
        "err": value,
        "p": 1.0 if m.k == 1 else 0.4,
        "recall": 0.25 if m.k == 1 else 1.0,
        "inversions": 0,
    }
    assert value == best.get(m.name, 1.0)


@pytest.mark.parametrize("m", ALL, ids=str)
def test_query_without_relevant_documents(m):
    sums = {"dcg": 0.0, "inversions": 0.0}
    expected = 1.0 if m.convention in ("paper", "lightgbm") else 0.0
    if (m.name, m.convention) == ("p", "lightgbm"):
        expected = 0.0
    assert m([0.0] * 12) == sums.get(m.name, expected)
    assert m([]) == sums.get(m.name, expected)


def test_positions_beyond_the_table_of_discounts():
    deep = np.zeros(1500)
    deep[1199] = 1.0
    assert metric("ndcg")(deep) == pytest.approx(1 / log2(1201))
    assert metric("ndcg:letor")(deep) == pytest.approx(1 / log2(1200))


def machine_code_and_python(function, *arguments):
    return function(*arguments), function.py_func(*arguments)


@given(
    labels=labels_of_a_list,
    k=st.integers(0, 12),
    choice=st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 2)),
)
@settings(max_examples=25, deadline=None)
def test_kernels_equal_their_python(labels, k, choice):
    y = np.array(labels, float)
    g, d, short = choice
    ends = np.append(np.flatnonzero(np.diff(y)) + 1, len(y))[
        np.searchsorted(np.flatnonzero(np.diff(y)) + 1, np.arange(len(y)), side="right")
    ]
    calls = [
        (gain.dcg, y, k, g, d, short),
        (gain.ideal_dcg, y, k, g, d),
        (gain.ndcg, y, k, g, d, 0.5, short),
        (gain.err, y, k, 0.5),
        (gain.compute_gain, y[0], g),
        (gain.discount_at, k, d),
        (gain.discount_at, 2000 + k, d),
        (binary.average_precision, y, 0.5),
        (binary.reciprocal_rank, y, 0.5),
        (binary.precision, y, max(k, 1), 0.5, short),
        (binary.recall, y, max(k, 1), 0.5, short),
        (binary.r_precision, y, 0.5),
        (binary.bpref, y, 0.5),
        (binary.rank_efficiency, y, 0.5),
        (pairs.wrong_and_all_pairs, y),
        (pairs.inversions, y),
        (pairs.tau, y, 0.5),
        (compiled.first_outside, y, 2.0),
        *(
            (compiled.checked_value, y, np.array([(code, max(k, 1), g, d, short, 0.5, 9.0, 0.0, 0.0)], compiled.METRIC))
            for code in compiled.MetricCode
        ),
        *(
            (
                sklearn_ties.tied_value,
                y,
                ends,
                np.array([(code, k, g, d, short, 0.5, 9.0, 0.0, 0.0)], compiled.METRIC)[0],
            )
            for code in map(compiled.MetricCode.__getitem__, ("ndcg", "dcg", "map", "auc"))
        ),
    ]
    for function, *arguments in calls:
        machine, plain = machine_code_and_python(function, *arguments)
        assert machine == pytest.approx(plain, abs=1e-13), function


def test_kernels_know_each_metric():
    assert set(compiled.MetricCode.__members__) == set(MEASURES)


def test_choices_are_known():
    for choices in CONVENTIONS.values():
        assert choices.gain in GAINS
        assert choices.discount in DISCOUNTS
        assert choices.short in SHORT
        assert set(choices.measured) <= set(MEASURES)


@pytest.mark.parametrize("order", [[1, 900_000], [1, -1], [0.5, 1.0], [[1, 0]], ["a", "b"]])
def test_an_order_names_documents_of_the_list(order):
    assert (
        Metric("ndcg").shown([0, 2], [1, 0])
        == Metric("ndcg").shown(np.array([0, 2]), np.array([1, 0], np.int32))
        == 1.0
    )
    with pytest.raises(DataError, match="order"):
        Metric("ndcg").shown(np.array([0.0, 2.0]), np.array(order))
