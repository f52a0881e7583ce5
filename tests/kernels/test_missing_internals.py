"""With any name missing that only speed needs, and with an unknown numba, results are the same to the bit."""

import ast
import builtins
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ranktron
from ranktron.kernels.jit import internals

pytestmark = pytest.mark.skipif(internals is None, reason="the inside of this version of numba is not known")
PACKAGE = Path(ranktron.__file__).parent
INTERNALS = PACKAGE / "kernels" / "numba_internals.py"
DOCUMENTED = ("numba", "numba.extending")  # and `numba.types`

# A numba that lacks a name, for this file alone: numba itself goes on with its own.
WITHOUT = """
import builtins, types

def remove(module, owner, name):
    real = builtins.__import__

    def find(imported, scope=None, locals=None, names=(), level=0):
        found = real(imported, scope, locals, names, level)
        if (scope or {}).get("__name__") != "ranktron.kernels.numba_internals" or imported != module:
            return found
        if owner is None and name in (names or ()):
            raise ImportError(f"cannot import name {name!r} from {module!r}")
        if owner not in (names or ()):
            return found
        lacking, whole = types.SimpleNamespace(__name__=owner), getattr(found, owner)
        vars(lacking).update((each, getattr(whole, each)) for each in dir(whole) if each not in (name, "__name__"))
        return types.SimpleNamespace(**{each: getattr(found, each) for each in names} | {owner: lacking})

    builtins.__import__ = find
    return real
"""
RUN = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np
    import ranktron
    rng = np.random.default_rng(3)
    X, qid = rng.normal(size=(60, 4)).astype(np.float32), np.repeat(np.arange(12), 5)
    model = ranktron.HingePerceptron(random_state=0).fit(X, rng.integers(0, 3, 60), qid=qid)
    sparse = ranktron.Sparse.from_matrix(np.where(X > 0, X, 0))
    from ranktron.kernels.dispatch import rank_by_weights
    print(model.predict(X).tobytes().hex(), rank_by_weights(sparse, np.ones(4))[1].tobytes().hex())
print(*[str(each.message) for each in caught if issubclass(each.category, ranktron.RankingWarning)], sep="\\n")
"""


def names_in_use():
    """What the file takes from numba: (module, None, name), and (module, owner, name) for attributes of an import."""
    imported = {}
    for node in ast.walk(ast.parse(INTERNALS.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("numba"):
            imported |= {alias.name: node.module for alias in node.names}
    yield from ((module, None, name) for name, module in imported.items() if name != "types")
    for owner, names in internals.ATTRIBUTES:
        short = owner.__name__.rpartition(".")[2]
        yield from ((imported[short], short, name) for name in names)


NAMES = list(names_in_use())


@pytest.mark.parametrize(("module", "owner", "name"), NAMES, ids=[name for *_, name in NAMES])
def test_the_file_is_not_imported_without_a_name_that_it_uses(monkeypatch, module, owner, name):
    monkeypatch.setattr(builtins, "__import__", builtins.__import__)  # so that it is restored
    scope = {}
    exec(WITHOUT, scope)
    scope["remove"](module, owner, name)
    spec = importlib.util.spec_from_file_location("ranktron.kernels.numba_internals", INTERNALS)
    with pytest.raises(ImportError, match=name):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def run(program, cache=None):
    """Runs a program and then a small training: the bits of what it predicts, and the warnings."""
    environment = os.environ if cache is None else {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", program + RUN], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    results, *warned = done.stdout.strip().split("\n")
    return results, warned


def test_the_bits_are_the_same_without_a_name_and_with_an_unknown_version(tmp_path):
    expected, warned = run("")
    assert warned == []
    unknown = "import numba; numba.version_info = (0, 99, 0); numba.__version__ = '0.99.0'\n"
    removed = f"{WITHOUT}\nremove('numba.core.compiler', None, 'compile_result')\n"
    for program, reason in ((unknown, "numba 0.99.0 "), (removed, "cannot import name 'compile_result'")):
        results, (warning,) = run(program, tmp_path)
        assert results == expected
        assert reason in warning
        assert "compiling on first runs takes half as long again" in warning


def test_no_other_file_uses_what_numba_does_not_document():
    for path in PACKAGE.rglob("*.py"):
        if path in (INTERNALS, PACKAGE / "data" / "io" / "letor_simd.py"):  # the other checks its own names
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert all(each in DOCUMENTED for each in modules if each.split(".")[0] in ("numba", "llvmlite")), path
