import subprocess
import sys

import numpy as np
import pytest

from ranktron.errors import DataError
from ranktron.metrics import Evaluation, compare, permutation_test, t_test


def an_evaluation(values, name="map", qids=None):
    values = np.asarray(values, float)
    qids = np.arange(len(values)) if qids is None else np.asarray(qids)
    return Evaluation({name: float(values.mean())}, {name: values}, qids, 0)


@pytest.fixture
def systems():
    rng = np.random.default_rng(0)
    base = rng.random(40)
    return [an_evaluation(base + rng.normal(shift, 0.2, 40)) for shift in (0.15, 0.0, 0.05)]


class TestTTest:
    def test_equals_scipy(self, systems):
        from scipy import stats

        a, b, _ = systems
        x, y = a.per_query["map"], b.per_query["map"]
        assert t_test(a, b, "map") == pytest.approx(stats.ttest_rel(x, y).pvalue)
        assert t_test(a, b, "ap", tails=1) == pytest.approx(stats.ttest_rel(x, y, alternative="greater").pvalue)
        assert t_test(b, a, "map", tails=1) == pytest.approx(1 - t_test(a, b, "map", tails=1))

    def test_lower_may_be_better(self):
        few, many = an_evaluation([1, 2, 3, 1], "inversions"), an_evaluation([5, 7, 6, 9], "inversions")
        assert t_test(few, many, "inversions", tails=1) < 0.05 < t_test(many, few, "inversions", tails=1)

    def test_equal_systems_and_constant_differences(self):
        a, b = an_evaluation([0.0, 0.5, 1.0]), an_evaluation([1.0, 1.5, 2.0])
        assert t_test(a, a, "map") == 1.0
        assert t_test(a, b, "map") == 0.0
        assert t_test(a, b, "map", tails=1) == 1.0


class TestPermutationTest:
    def test_exact_on_few_queries_equals_scipy(self):
        from scipy import stats

        rng = np.random.default_rng(3)
        x, y = rng.random(8), rng.random(8) + 0.2
        for tails, alternative in ((2, "two-sided"), (1, "greater")):
            expected = stats.permutation_test(
                (x, y),
                lambda a, b, axis: np.mean(a - b, axis=axis),
                permutation_type="samples",
                alternative=alternative,
                n_resamples=np.inf,
            ).pvalue
            # scipy doubles the smaller tail for two sides; by symmetry of the signs that is the same.
            assert permutation_test(an_evaluation(x), an_evaluation(y), "map", tails=tails) == pytest.approx(expected)

    def test_near_the_t_test_on_many(self, systems):
        a, b, _ = systems
        assert permutation_test(a, b, "map") == pytest.approx(t_test(a, b, "map"), abs=0.01)
        assert permutation_test(b, a, "map", tails=1) == pytest.approx(t_test(b, a, "map", tails=1), abs=0.02)

    def test_repeatable_and_never_zero(self, systems):
        a, b, c = systems
        assert permutation_test(c, b, "map", seed=1) == permutation_test(c, b, "map", seed=1)
        assert permutation_test(c, b, "map", seed=1) != permutation_test(c, b, "map", seed=2)
        far = an_evaluation(b.per_query["map"] + 10.0)
        assert permutation_test(far, b, "map", resamples=999) == 1 / 1000
        assert permutation_test(a, a, "map") == 1.0


def test_other_queries_cannot_be_paired():
    a, b = an_evaluation([1, 2, 3]), an_evaluation([1, 2, 3], qids=[0, 1, 7])
    for test in (t_test, permutation_test):
        with pytest.raises(DataError, match="different queries"):
            test(a, b, "map")
    with pytest.raises(DataError, match="different queries"):
        compare({"a": a, "b": b})
    with pytest.raises(DataError, match="different queries"):
        compare({"a": a, "b": an_evaluation([1, 2])})
    with pytest.raises(DataError, match="at least two queries"):
        t_test(an_evaluation([1]), an_evaluation([2]), "map")
    with pytest.raises(DataError, match="one tail or two"):
        t_test(a, a, "map", tails=3)


class TestCompare:
    def test_marks_say_who_is_beaten(self, systems):
        table = compare(dict(zip(["good", "bad", "middle"], systems, strict=True)), correction="none")
        p = t_test(systems[0], systems[1], "map")
        assert table.p_values["map"][0, 1] == table.p_values["map"][1, 0] == p < 0.05
        assert "bad" in table.beats["good"]["map"]
        assert table.beats["bad"]["map"] == ()
        assert table.marks("good", "map")[0] == "b"

    @pytest.mark.parametrize("correction", ["holm", "bonferroni", "none"])
    def test_corrections(self, systems, correction):
        a, b, c = systems
        raw = np.array([t_test(a, b, "map"), t_test(a, c, "map"), t_test(b, c, "map")])
        ordered = np.sort(raw)
        stepped = np.maximum.accumulate(ordered * [3, 2, 1])
        expected = {
            "none": raw,
            "bonferroni": np.minimum(1, 3 * raw),
            "holm": np.minimum(1, stepped[np.argsort(np.argsort(raw))]),
        }[correction]
        table = compare({"a": a, "b": b, "c": c}, correction=correction).p_values["map"]
        np.testing.assert_allclose([table[0, 1], table[0, 2], table[1, 2]], expected)

    def test_one_tail_and_the_other_test(self, systems):
        a, b, _ = systems
        one = compare({"a": a, "b": b}, tails=1).p_values["map"][0, 1]
        assert one == pytest.approx(t_test(a, b, "map") / 2)
        by_chance = compare({"a": b, "b": a}, test="permutation").p_values["map"][0, 1]
        assert by_chance == permutation_test(a, b, "map")

    def test_lower_is_better_for_inversions(self):
        few, many = an_evaluation([1, 2, 3, 1], "inversions"), an_evaluation([5, 7, 6, 9], "inversions")
        table = compare({"many": many, "few": few})
        assert table.beats["few"]["inversions"] == ("many",)
        assert "**1.7500**<sup>a</sup>" in table.markdown()

    def test_forms(self, systems):
        table = compare({"my_system": systems[0], "50%|b": systems[1]})
        means = [f"{system.means['map']:.4f}" for system in systems]
        assert str(table) == table.text()
        assert table.text().splitlines()[1] == f"a  my_system  {means[0]} b"
        assert f"| a | my_system | **{means[0]}**<sup>b</sup> |" in table.markdown()
        assert f"| b | 50%\\|b | {means[1]} |" in table.markdown()
        assert rf"a & my\_system & \textbf{{{means[0]}}}$^{{b}}$ \\" in table.latex()
        assert rf"b & 50\%|b & {means[1]} \\" in table.latex()
        for form in (table.text(), table.markdown(), table.latex()):
            assert "paired t-test, two tails, p < 0.05" in form
            assert "40 queries, 0 of them without relevant documents" in form
        assert all(line.startswith("%") for line in table.latex().split("\\end{tabular}\n")[1].splitlines())

    def test_two_systems_have_a_p_value_and_one_has_no_letters(self, systems):
        a, b, c = systems
        both = compare({"a": a, "b": b})
        assert f"\np = {both.p_values['map'][0, 1]:.2g} (map).\n" in both.text()
        assert "\np = " not in compare({"a": a, "b": b, "c": c}).text()
        alone = compare({"only": a})
        assert alone.note == "40 queries, 0 of them without relevant documents."
        assert alone.text().splitlines()[1].split() == ["only", f"{a.means['map']:.4f}"]

    def test_many_systems_get_numbers(self, systems):
        a, b, _ = systems
        many = {f"s{i}": b for i in range(28)} | {"best": a}
        table = compare(many, correction="none")
        assert table.marks("best", "map").startswith("1,2,3,")
        assert not table.marks("best", "map").endswith(",")

    def test_errors(self, systems):
        a = systems[0]
        with pytest.raises(DataError, match="nothing to compare"):
            compare({})
        with pytest.raises(DataError, match="there is no test 'z'; there are: t, permutation"):
            compare({"a": a}, test="z")
        for level in (5.0, float("nan")):
            with pytest.raises(DataError, match="level of significance"):
                compare({"a": a}, level=level)
        with pytest.raises(DataError, match="there is no correction 'x'; there are: none, bonferroni, holm"):
            compare({"a": a}, correction="x")
        with pytest.raises(DataError, match="mrr was not evaluated"):
            compare({"a": a, "b": an_evaluation([1, 2], "map")}, "mrr")
        assert compare({"a": a}).beats == {"a": {"map": ()}}


def test_evaluating_does_not_import_scipy():
    program = (
        "import sys, numpy as np;"
        "from ranktron.metrics import evaluate, compare; from ranktron.data.rounds import Rounds;"
        "evaluate(np.zeros(2), Rounds.from_arrays(np.zeros((2, 1)), [0, 1]), 'ndcg');"
        "print([x for x in ('scipy.stats', 'scipy.special', 'scipy.optimize', 'sklearn') if x in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
