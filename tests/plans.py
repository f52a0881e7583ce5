"""Training plans and shards for tests: options of a run and of its plan in one, and shards that threads play."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np

from ranktron.dask.mixed_pass import play_pieces
from ranktron.dask.training import inspect_parts, train_parts
from ranktron.training.fit import TrainingPlan
from ranktron.training.shards import Division
from ranktron.training.workers import LocalWorkers


def plan_of(options, *arguments, **more):
    """A plan, with the options that belong to it taken out of `options`."""
    own = {field.name: options.pop(field.name) for field in fields(TrainingPlan) if field.name in options}
    return TrainingPlan(*arguments, **{**more, **own})


def evenly(queries, shards, mixes=10):
    """A division into parts of equal size, one for each shard."""
    return Division(tuple(np.diff(np.arange(shards + 1) * queries // shards).tolist()), shards, mixes)


def cut(rounds, division):
    """The parts of a division."""
    return [rounds[a:b] for a, b in itertools.pairwise(division.offsets.tolist())]


def run_in(executor, make, rounds, division):
    """Runs the shards of a `MixedPass` by an executor."""
    parts = cut(rounds, division)

    def run(shard, state, pieces, following, metrics):
        return executor.submit(play_pieces, make, state, pieces, parts.__getitem__, metrics)

    return run


def train_in_shards(plan, rounds, shards, **options):
    """Trains on parts of equal size, one for each shard, on as many threads."""
    with ThreadPoolExecutor(shards) as executor:
        data = inspect_parts(cut(rounds, evenly(len(rounds), shards)), LocalWorkers(executor), shards=shards)
        return train_parts(plan, data, shards=shards, **options)
