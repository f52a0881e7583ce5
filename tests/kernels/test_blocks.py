import pytest

from ranktron.kernels import blocks
from ranktron.kernels.blocks import Blocks


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("stop", [0, 1, 4, 11])
def test_blocks_cover_the_range_once(monkeypatch, cores, stop):
    monkeypatch.setattr(blocks.os, "cpu_count", lambda: cores)
    met = []
    Blocks(blocks.LARGE)(lambda name, first, last: met.extend((name, i) for i in range(first, last)), stop, "x")
    assert sorted(met) == [("x", i) for i in range(stop)]


def test_an_error_of_a_thread_is_an_error_of_the_call(monkeypatch):
    monkeypatch.setattr(blocks.os, "cpu_count", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        Blocks(blocks.LARGE)(lambda first, last: 1 / 0, 4)
