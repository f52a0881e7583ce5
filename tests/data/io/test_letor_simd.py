"""Vector instructions are optional: without a name that they need, loops give the same bits."""

import importlib.util
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from llvmlite import ir
from numba import extending
from numba.core.base import BaseContext

from ranktron.data import io
from ranktron.data.io import letor_simd

NAMES = [
    (ir, "VectorType"),
    (ir.types.Type, "as_pointer"),
    *((ir.IRBuilder, name) for name in letor_simd._BUILDER),
    (BaseContext, "make_array"),
    (extending, "lower_builtin"),
    (extending, "type_callable"),
]
READ = """
import sys, warnings
{change}
warnings.simplefilter("error")
warnings.filterwarnings("ignore", "text is read without vector instructions")
from ranktron.data import io
from ranktron.data.io import letor_simd
rounds = io.read(sys.argv[1])
print(letor_simd.VECTORS, rounds.X.tobytes().hex(), rounds.qids.tolist(), rounds.docids.tolist())
"""


@pytest.fixture
def load_without(monkeypatch, tmp_path):
    """Loads the module once more, without a name that it needs."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # that of the package is for the module's own name

    def load(owner, name):
        spec = importlib.util.spec_from_file_location("letor_simd_without", letor_simd.__file__)
        module = importlib.util.module_from_spec(spec)
        with monkeypatch.context() as patch:
            patch.delattr(owner, name)
            with pytest.warns(RuntimeWarning, match=f"text is read without vector instructions, .*{name}"):
                spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.parametrize(("owner", "name"), NAMES, ids=[name for _, name in NAMES])
def test_a_missing_name_switches_the_instructions_off_with_a_warning(load_without, owner, name):
    assert not load_without(owner, name).VECTORS


def test_loops_give_the_masks_of_the_instructions(load_without):
    plain = load_without(ir.IRBuilder, "shuffle_vector")
    data = np.random.default_rng(0).choice(np.frombuffer(b"0123456789:/.x\xff", np.uint8), 200)
    for p in range(150):
        mask = letor_simd.non_digits(data, p)
        assert plain.non_digits(data, p) == mask
        assert plain.bytes_equal(data, p, 58) == letor_simd.bytes_equal(data, p, 58)
        assert plain.bytes_above(data, p, 53) == letor_simd.bytes_above(data, p, 53)
        assert plain.lowest_bit(mask) == letor_simd.lowest_bit(mask)
        assert plain.count_bits(mask) == letor_simd.count_bits(mask)
    assert (plain.lowest_bit(np.uint64(0)), plain.count_bits(np.uint64(0))) == (64, 0)


@pytest.mark.slow
def test_without_the_instructions_the_bits_are_the_same(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{i % 3} qid:{i // 5} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1)) + f" # docid = d{i}"
        for i, row in enumerate((rng.normal(size=(200, 12)) * 10.0 ** rng.integers(-8, 8, (200, 12))).tolist())
    ]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines))
    rounds = io.read(path)
    change = "import llvmlite.ir; del llvmlite.ir.IRBuilder.shuffle_vector"
    found = subprocess.run(
        [sys.executable, "-c", READ.format(change=change), path],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
    ).stdout
    assert found == f"False {rounds.X.tobytes().hex()} {rounds.qids.tolist()} {rounds.docids.tolist()}\n"
