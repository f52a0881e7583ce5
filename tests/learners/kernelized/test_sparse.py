"""Kernel learners on sparse features: the same as on dense ones, in the room that the entries need."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from ranktron import DataError, KernelPerceptron, Rounds, Sparse, load, play
from ranktron.data.maps import Bins
from ranktron.data.maps.protocols import map_rounds
from ranktron.data.serialization import deserialize, same, serialize
from ranktron.data.synthetic import WebSearch
from ranktron.learners import (
    Average,
    Descent,
    Gaussian,
    KernelLearner,
    Last,
    LinearKernel,
    Oldest,
    PairSteps,
    Polynomial,
    Projection,
    Random,
    Smallest,
    feedback,
)
from ranktron.learners.kernelized.budget import Budget
from ranktron.learners.kernelized.rows import DenseRows, SparseRows, entries, products, squares
from ranktron.learners.kernelized.support import Support
from ranktron.learners.mistakes import Misordered
from ranktron.learners.steps import Constant
from ranktron.surrogates import MeanPairwiseHinge, WorstPair

RULES = [Oldest(), Random(), Smallest(), Projection()]
HINGE = Descent(MeanPairwiseHinge(), Constant(0.5), Misordered())


def both(density=0.3, queries=50, width=30):
    source = WebSearch(features=width, documents=10).rounds(queries)
    X = source.X * (np.random.default_rng(2).random(source.X.shape) < density)
    X[3] = 0.0  # a document without any entry
    sizes = np.diff(source.offsets)
    return Rounds.from_arrays(X, source.labels, group=sizes), Rounds.from_arrays(
        scipy.sparse.csr_array(X), source.labels, group=sizes
    )


DENSE, SPARSE = both()
KERNELS = {"linear": (LinearKernel(), 1e-9), "poly": (Polynomial(2, 0.1), 1e-9), "rbf": (Gaussian(0.05), 1e-6)}


def played(learner, rounds):
    return [turn.loss for turn in play(learner, rounds, feedback.full)]


def served(learner, rounds):
    return np.concatenate([learner.predict(round.X) for round in rounds])


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_sparse_documents_are_those_of_dense_ones(name):
    kernel, close = KERNELS[name]
    X, S = DENSE.X[:20].astype(kernel.dtype), DENSE.X[20:50].astype(kernel.dtype)
    sparse = kernel(entries(SPARSE.X[:20]), entries(SPARSE.X[20:50].copy()))
    assert sparse == pytest.approx(kernel(X, S), rel=close, abs=close)
    # the formulas
    inner = DENSE.X[:20].astype(float) @ DENSE.X[20:50].astype(float).T
    distance = ((DENSE.X[:20, None].astype(float) - DENSE.X[None, 20:50]) ** 2).sum(axis=2)
    formula = {"linear": inner, "poly": (0.1 * inner + 1.0) ** 2, "rbf": np.exp(-0.05 * distance)}[name]
    assert sparse == pytest.approx(formula, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("output", [Last(), Average()], ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_learning_from_sparse_lists_is_learning_from_dense_ones(name, output):
    kernel = KERNELS[name][0]
    for update in (PairSteps(), HINGE):
        close = KERNELS[name][1]
        one, two = (KernelLearner(30, update, kernel, output=output) for _ in range(2))
        for _ in range(2):
            assert played(two, SPARSE) == pytest.approx(played(one, DENSE), rel=10.0 * close, abs=10.0 * close)
        close *= max(1.0, np.abs(one.support.alpha).sum())  # a score adds up so many kernel values
        assert (one.mistakes, len(one.support)) == (two.mistakes, len(two.support))
        assert two.support.table == pytest.approx(one.support.table, rel=close, abs=close)
        assert served(two, SPARSE) == pytest.approx(served(one, DENSE), rel=close, abs=close)
        # either learner takes the other's lists
        assert served(one, SPARSE) == pytest.approx(served(one, DENSE), rel=close, abs=close)
        assert served(two, DENSE) == pytest.approx(served(two, SPARSE), rel=close, abs=close)


@pytest.mark.parametrize("removal", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize(("update", "output"), [(HINGE, Last()), (PairSteps(), Average())], ids=["hinge", "pairs"])
def test_every_rule_on_a_budget_does_the_same(removal, update, output):
    kernel = Polynomial(2, 0.1)
    one, two = (KernelLearner(30, update, kernel, 60, removal, output) for _ in range(2))
    assert played(two, SPARSE) == pytest.approx(played(one, DENSE), rel=1e-6, abs=1e-9)
    assert len(one.support) == len(two.support) == 60
    assert np.sort(two.support.born).tolist() == np.sort(one.support.born).tolist()
    assert served(two, SPARSE) == pytest.approx(served(one, DENSE), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("removal", RULES, ids=lambda rule: type(rule).__name__)
def test_a_saved_learner_goes_on_to_the_bit(removal):
    def make():
        return KernelLearner(30, PairSteps(), Gaussian(0.05), 60, removal, Average(), 0, 40e3)

    through, first, then = make(), make(), make()
    played(through, SPARSE)
    played(first, SPARSE[:25])
    then.restore(deserialize(serialize(first.state())))
    played(then, SPARSE[25:])
    assert same(through.state(), then.state())
    assert through.support.stored > len(through.support) or isinstance(removal, Projection)
    for part in ("columns", "starts", "values"):
        with pytest.raises(DataError, match="30 features"):
            make().restore({**through.state(), part: through.state()[part][:-1]})
    with pytest.raises(DataError, match="30 features"):
        make().restore({**through.state(), "columns": through.state()["columns"] + 30})


def test_ones_of_bins_are_written_out():
    lists = WebSearch(features=6, documents=10).rounds(30)
    binned = map_rounds(lists, Bins(4).fit(lists))
    assert len(binned.X.values) == 0
    dense = Rounds.from_arrays(binned.X.dense(), lists.labels, group=np.diff(lists.offsets))
    one, two = (KernelLearner(binned.n_features, HINGE, Gaussian(0.1)) for _ in range(2))
    assert played(two, binned) == pytest.approx(played(one, dense), rel=1e-6, abs=1e-6)
    assert two.support.documents.values.max() == 1.0
    for learner, its in ((one, dense), (two, binned)):
        played(learner, its)  # what is there already is not stored again
    assert two.support.count == one.support.count <= len(lists.labels)


def test_rows_close_their_gaps():
    """Documents of all lengths come and go; what is kept is what was written."""
    rng = np.random.default_rng(0)
    support, dense = (Support(200, LinearKernel(), Budget(20)) for _ in range(2))
    for number in range(60):
        X = (rng.normal(size=(5, 200)) * (rng.random((5, 200)) < 0.01 * (1 + number % 7))).astype(np.float32)
        X[:, 0] = np.arange(5 * number, 5 * number + 5) + 1  # no two are the same
        steps = rng.normal(size=(2, 5))
        for one, rows in ((support, Sparse.from_matrix(X)), (dense, X)):
            if one.fitting(rows) == 5:
                one.add(rows, steps)
            else:
                one.exchange(one.born, rows, steps)
        assert support.state()["starts"][-1] == np.count_nonzero(dense.documents)
        assert products(support.documents, support.documents) == pytest.approx(dense.documents @ dense.documents.T)
        assert squares(support.documents) == pytest.approx((dense.documents**2).sum(axis=1))
        assert len(support._slots) == len(support) == len(dense)
    assert isinstance(support._rows, SparseRows)
    assert isinstance(dense._rows, DenseRows)
    assert len(support._rows._columns) < 2000  # in all, some 4,000 entries came in


@pytest.mark.parametrize("removal", RULES, ids=lambda rule: type(rule).__name__)
def test_a_budget_in_bytes_counts_entries(removal):
    """Ten times as sparse, about ten times as many documents; the count never exceeds the budget."""
    held = []
    for density in (0.2, 0.02):
        rng = np.random.default_rng(1)
        learner = KernelLearner(2000, Descent(WorstPair(), Constant(1.0)), LinearKernel(), removal=removal, bytes=2e5)
        square = isinstance(removal, Projection)
        for number in range(150):
            X = scipy.sparse.random_array((4, 2000), density=density, rng=rng, dtype=np.float32)
            lists = Rounds.from_arrays(X.tocsr(), [0, 1, 2, 1])
            learner.learn(lists.X, learner.rank(lists.X, number), feedback.full(lists[0], None))
            n, size = len(learner.support), 12.0 * learner.support.documents.length.sum()
            assert size + 250.0 * n + (8.0 * n * n if square else 0.0) <= 2e5
            assert 8.0 * len(learner.support._rows._columns) <= 2e5
        held.append(n)
    assert held[0] >= 30
    assert held[1] > (2 if square else 3) * held[0]


def test_a_list_longer_than_the_budget_in_bytes_leaves_its_heaviest_documents():
    X = np.zeros((6, 1000), np.float32)
    X[:, :100] = np.random.default_rng(0).normal(size=(6, 100))
    lists = Rounds.from_arrays(scipy.sparse.csr_array(X), [5, 4, 3, 2, 1, 0])
    alpha = []
    for bytes in (np.inf, 3 * (1200.0 + 250.0)):
        learner = KernelLearner(1000, PairSteps(), LinearKernel(), bytes=bytes)
        learner.learn(lists.X, learner.rank(lists.X, 0), feedback.full(lists[0], None))
        alpha.append(np.sort(np.abs(learner.support.alpha)))
    assert len(alpha[0]) > 3
    assert alpha[1].tolist() == alpha[0][-3:].tolist()
    tiny = KernelLearner(1000, PairSteps(), LinearKernel(), bytes=10.0)
    tiny.learn(lists.X, tiny.rank(lists.X, 0), feedback.full(lists[0], None))
    assert len(tiny.support) == 1  # one document always fits


def test_estimators_take_sparse_matrices(tmp_path):
    X, sizes = scipy.sparse.csr_array(DENSE.X), np.diff(DENSE.offsets)
    options = {"kernel": "poly", "update": "pairwise", "average": True, "n_epochs": 1, "scale": None}
    one, two = (
        KernelPerceptron(**options, random_state=0).fit(given, DENSE.labels, group=sizes) for given in (DENSE.X, X)
    )
    assert two.predict(X) == pytest.approx(one.predict(DENSE.X), rel=1e-9, abs=1e-9)
    assert two.predict(DENSE.X) == pytest.approx(two.predict(X), rel=1e-9, abs=1e-9)
    two.save(tmp_path / "m")
    assert load(tmp_path / "m").predict(X).tolist() == two.predict(X).tolist()
    assert "X" not in two.learner_.state()


RESIDENT = """
import resource, sys
import numpy as np
from ranktron import Round, Sparse, feedback, play
from ranktron.learners import kernel_perceptron

WIDTH, HELD = 50_000, 60

def endless():
    rng = np.random.default_rng(0)
    number = 0
    while True:
        columns = np.sort(rng.integers(WIDTH // HELD, size=(40, HELD)), axis=1) + np.arange(HELD) * (WIDTH // HELD)
        X = Sparse(
            np.arange(41) * HELD, columns.ravel().astype(np.int32), rng.normal(size=40 * HELD).astype("f4"), WIDTH
        )
        yield Round(X, rng.integers(3, size=40).astype(float), number)
        number += 1

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6

options = {"update": "pairwise", "average": True, "removal": sys.argv[2]}
for warm in play(kernel_perceptron(WIDTH, budget=50, **options), endless(), feedback.full):
    if warm.number == 20:
        break  # machine code is loaded and the work space of one list is there
learner = kernel_perceptron(WIDTH, budget=0, megabytes=float(sys.argv[1]), **options)
start = resident()
marks = []
for turn in play(learner, endless(), feedback.full):
    if turn.number in (int(sys.argv[3]), int(sys.argv[4])):
        marks.append(resident())
    if len(marks) == 2:
        break
print(start, *marks, len(learner.support), learner.support.stored)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("removal", ["oldest", "random", "smallest", "projection"])
def test_resident_memory_of_a_sparse_learner_stays_under_the_budget(removal):
    """Not counted but measured: 50,000 features, of which a document has 60; dense, five documents would fill it."""
    megabytes = 2.0
    command = [sys.executable, "-c", RESIDENT, str(megabytes), removal, "100", "400"]
    numbers = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    start, full, later, held, stored = map(float, numbers)
    room = 40 * held * 8 * 3 / 1e6  # kernel values of one list, and copies of them
    assert full - start < megabytes + room + 4.0
    assert later - full < 2.0
    assert held > 250
    assert stored > held if removal != "projection" else stored == held


def test_one_long_document_takes_the_place_of_several_short_ones():
    """Documents of one entry each, one of which is a name; those that stay keep their coefficients and are found."""
    support = Support(100, LinearKernel(), Budget(bytes=12 * (250.0 + 12.0)))
    short = Sparse(np.arange(13), np.arange(12, dtype=np.int32), np.ones(12, np.float32), 100)
    support.add(short, np.array([np.arange(12.0) + 1.0, -np.arange(12.0)]))
    assert support.fitting(short[:1]) == 0
    long = Sparse(np.array([0, 85]), np.arange(12, 97, dtype=np.int32), np.ones(85, np.float32), 100)
    gone = support.exchange(np.array([9.0, 1, 9, 9, 2, 9, 9, 3, 9, 4, 9, 9]), long, np.array([[50.0], [60.0]]))
    assert gone == 5  # 1270 bytes more, 262 bytes for each of those that go; of equal keys the first goes
    weights = np.arange(12.0) + 1.0
    weights[[1, 4, 7, 9, 0]] = 0.0
    one_each = Sparse.from_matrix(np.eye(100, dtype=np.float32))
    assert support.scores(one_each, support.alpha).tolist() == [*weights, *[50.0] * 85, *[0.0] * 3]
    assert support.scores(one_each, support.lagged_sum).tolist() == [
        *(-(weights - 1.0) * (weights > 0)),
        *[60.0] * 85,
        *[0.0] * 3,
    ]
    assert support.state()["starts"][-1] == 7 + 85
    assert support.born.tolist() == [12 if at == 50.0 else int(at) - 1 for at in support.alpha]
    new, _ = support.merge(short, np.ones((2, 12)))  # those that are here are found where they are now
    assert sorted(new.columns.tolist()) == [0, 1, 4, 7, 9]
    assert support.scores(one_each[:12], support.alpha).tolist() == (weights + (weights > 0)).tolist()
