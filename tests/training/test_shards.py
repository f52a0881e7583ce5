import numpy as np
import pytest

from ranktron import DataError
from ranktron.learners.schedule import Schedule
from ranktron.training.shards import Division


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("parts", "shards", "mixes"), [((7, 3, 5, 1, 9), 2, 3), ((4,) * 6, 4, 10), ((1, 90, 1), 3, 2)])
def test_every_query_is_played_once_in_a_pass_and_never_leaves_its_shard(parts, shards, mixes, shuffle):
    division, homes = Division(parts, shards, mixes), {}
    for epoch in range(3):
        seen = set()
        for played in division.pieces(Schedule(shuffle=shuffle, seed=5), epoch):
            sizes = []
            for shard, pieces in enumerate(played):
                sizes.append(sum(len(piece.queries) for piece in pieces))
                for piece in pieces:
                    assert homes.setdefault(piece.part, shard) == shard
                    new = {(piece.part, q) for q in piece.queries.tolist()}
                    assert len(new) == len(piece.queries)
                    assert not new & seen
                    seen |= new
            for shard, size in enumerate(sizes):
                own = sum(parts[p] for p in division.shard_parts[shard])
                assert abs(size - own / mixes) < 1
        assert len(seen) == sum(parts)
    assert sorted(set(homes.values())) == list(range(shards))


def test_orders_differ_between_passes_and_without_shuffling_they_do_not():
    division = Division((30, 30), 2, 1)

    def order(shuffle, epoch, seed=0):
        (shards,) = division.pieces(Schedule(shuffle=shuffle, seed=seed), epoch)
        return shards[0][0].queries.tolist()

    assert order(False, 0) == order(False, 1) == list(range(30))
    assert len({tuple(order(True, *which)) for which in [(0,), (1,), (0, 1)]}) == 3
    assert order(True, 0) == order(True, 0)


def test_one_part_is_played_as_one_machine_plays_it():
    (((piece,),),) = Division((30,)).pieces(Schedule(seed=3), 2)
    assert np.array_equal(piece.queries, Schedule(seed=3).queries(30, 2))


def test_many_shards_begin_with_a_pass_of_one_learner():
    division = Division((4,) * 6, 6, 2)
    assert (division.sequential, Division((4,) * 6, 4).sequential) == (1, 0)
    first, second = (division.pieces(Schedule(seed=1), epoch) for epoch in range(2))
    assert [len(shards) for shards in first] == [1] * 6
    assert [len(shards) for shards in second] == [6] * 2
    assert sorted(piece.part for ((piece,),) in first) == list(range(6))
    assert len(Division((4,) * 6, 6, 2, sequential=0).pieces(Schedule(), 0)[0]) == 6


def test_shards_have_about_as_many_queries():
    division = Division((10, 10, 40, 10, 10), 3)
    assert [list(parts) for parts in division.shard_parts] == [[0, 1], [2], [3, 4]]
    assert division.weights().tolist() == [20, 40, 20]


def test_more_shards_than_parts_are_refused():
    with pytest.raises(DataError, match="3 shards need as many parts, and there are 2"):
        Division((5, 5), 3)


@pytest.mark.parametrize(
    "parts", [(100, 1, 1, 1), (1, 1, 1, 100), (1, 100, 1, 1), (3, 3, 3, 3, 3), (0, 0, 0, 9)], ids=str
)
@pytest.mark.parametrize("shards", [1, 2, 3, 4])
def test_every_shard_has_a_part_and_every_part_a_shard(parts, shards):
    found = Division(parts, shards).shard_parts
    assert [part for own in found for part in own] == list(range(len(parts)))
    assert min(map(len, found)) >= 1
