from dataclasses import replace

import numpy as np
import pytest

from ranktron.data.io import write
from ranktron.data.synthetic import Separable
from reproduction.harness.experiment import Plan
from reproduction.harness.reproduce import reproduce


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """A folder of data sets in LETOR's layout, all with the same lists; a third is relevant, in two grades."""
    root = tmp_path_factory.mktemp("generated")
    lists = Separable(documents=12, features=6, grades=6).rounds(100)
    lists = replace(lists, labels=np.maximum(lists.labels - 3.0, 0.0))
    parts = [lists[20 * i : 20 * i + 20] for i in range(5)]
    for name in ("ohsumed-letor2", "ohsumed-letor3", "mq2008"):
        for i in range(5):
            folder = root / name / f"Fold{i + 1}"
            folder.mkdir(parents=True)
            for part, which in (("train", i), ("vali", (i + 1) % 5), ("test", (i + 2) % 5)):
                write(parts[which], folder / f"{part}.txt")
    return root


@pytest.fixture
def verdicts_of(tmp_path, generated, monkeypatch):
    """Runs one experiment in this process, with other arguments and few seeds, judged as if they were all of them."""
    monkeypatch.setattr("reproduction.harness.reproduce.judge_few", lambda rule, values, _same_runs: rule(values))

    def run(paper, experiment, seeds=3, data=generated, **arguments):
        series = [
            replace(s, arguments={**s.arguments, **{k: v for k, v in arguments.items() if k in s.arguments}})
            for s in experiment.series
        ]
        small = replace(paper, experiments=[replace(experiment, series=series)])
        out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        found = reproduce([small], out, data=data, plan=Plan(seeds=seeds), workers=0)
        return {row["item"]: row["verdict"] for row in found.rows}

    return run
