"""A model file of which any number was changed, its checksum right, is refused or works: it never ends the process.

The forging runs in a process of its own (this file as a program), so that a crash in machine code is a failed test.
"""

import copy
import subprocess
import sys
import warnings

import numpy as np
import pytest

WHOLE = (-1, 0, 2**31, 2**56, -(2**56), 2**63 - 1)
REAL = (np.nan, np.inf, -np.inf, 1e308, -1.0, 2.0**56)
MOST = 30  # numbers of one array that are changed
KINDS = [
    *[(name, {}) for name in ("slam", "minimax", "listnet", "hinge", "topk", "pdgd", "predtron", "committee")],
    *[("pairwise", {"output": output}) for output in ("last", "pocket", "average", "voted")],
    *[
        ("ranksvm", {}),
        ("smoothrank", {}),
        ("rankboost", {"n_rounds": 5}),
        ("lightgbm", {"n_rounds": 2, "min_data_in_leaf": 3}),
        ("rankmm", {"max_iter": 3}),
        ("kernel", {"budget": 9}),
    ],
    ("kernel", {"update": "pairwise", "average": True, "budget": 9}),
]
MAPS = ("bins:4", "bins-linear:4", "rff:4", "nystroem:4", "products:2", "leaves:2")
SCALINGS = ("standard", "minmax", "minmax-query")


@pytest.mark.slow
def test_no_number_of_a_model_file_ends_the_process():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 0, f"{last} ended it with {done.returncode}: {done.stderr[-2000:]}"
    assert last.endswith("forged")


def models():
    from ranktron.data.synthetic import WebSearch
    from ranktron.learners.schedule import Schedule
    from ranktron.training.fit import TrainingPlan, train

    lists = WebSearch(features=3, documents=6).rounds(12)
    for name, parameters in KINDS:
        yield f"{name} {parameters}", train(TrainingPlan(name, parameters, Schedule(2)), lists).model
    for map in MAPS:
        yield f"hinge, {map}", train(TrainingPlan("hinge", map=map), lists).model
    for scaling in SCALINGS:
        yield f"hinge, {scaling}", train(TrainingPlan("hinge", scaling=scaling), lists).model


def places(tree, path=()):
    """The way to every number of a nested content; of an array, to the first ones."""
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(value, (*path, key))
    elif isinstance(tree, np.ndarray):
        yield from ((*path, slice(i, i + 1)) for i in range(min(tree.size, MOST)))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield path


def forged(content, path, value):
    """A copy with another number there; None where it cannot be written."""
    changed = copy.deepcopy(content)
    node = changed
    for key in path[:-1]:
        node = node[key]
    try:
        if isinstance(path[-1], slice):
            node.reshape(-1)[path[-1]] = value
        else:
            node[path[-1]] = value
    except (OverflowError, ValueError):
        return None
    return changed


def use(data):
    """Does with a model what a service does."""
    from ranktron.training.model import Model
    from ranktron.types import Feedback

    model = Model.from_bytes(data)
    if model.n_features > 1000:
        return
    X = np.random.default_rng(0).normal(size=(5, model.n_features)).astype(np.float32)
    model.predict(X, np.zeros(5))
    learner, X = model.learner(), X if model.map is None else model.map(X)
    for _ in range(3):
        ranking = learner.rank(X, learner.rounds)
        if model.kind not in ("ranksvm", "smoothrank", "rankboost", "rankmm", "lightgbm"):
            learner.learn(X, ranking, Feedback(ranking.order[:2].copy(), np.array([1.0, 0.0])))
    Model.from_bytes(model.after(learner).to_bytes())


def main():
    from ranktron.data.serialization import deserialize, serialize
    from ranktron.errors import DataError

    count = 0
    for name, model in models():
        content = deserialize(model.to_bytes())
        for path in places(content):
            for value in (*WHOLE, *REAL):
                print(name, path, value, flush=True)
                changed = forged(content, path, value)
                try:
                    if changed is not None:
                        use(serialize(changed))
                        count += 1
                except DataError:
                    count += 1
                except ValueError as error:
                    if "JSON" not in str(error):  # NaN cannot stand in the header
                        raise
    print(count, "forged")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
