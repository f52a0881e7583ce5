"""What holds for the package as a whole: it is quick to import and compiles once."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

import ranktron

ROOT = Path(__file__).parent.parent
HEAVY = ("numba", "scipy", "sklearn", "matplotlib", "starlette", "pyarrow")


def python(code, *arguments, cwd=ROOT, **environment):
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **environment}, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def loaded_by(code, *arguments, cwd=ROOT):
    """The top-level modules that a piece of code has imported by its end."""
    ending = "\nimport sys; print('\\n' + '\\n'.join({m.split('.')[0] for m in sys.modules}))"
    return set(python(code + ending, *arguments, cwd=cwd).split())


def in_process(*arguments):
    return f"from ranktron.cli import main\ntry: main({list(map(str, arguments))!r})\nexcept SystemExit: pass"


@pytest.mark.parametrize("code", ["import ranktron", in_process("--help"), in_process("train", "--help")])
def test_importing_and_helping_load_nothing_heavy(code):
    assert not loaded_by(code) & set(HEAVY)


def test_learning_and_measuring_do_not_need_scikit_learn(tmp_path):
    python(in_process("simulate", "separable", "d.txt", "--queries", 5), cwd=tmp_path)
    commands = [("train", "d.txt", "--model", "m"), ("evaluate", "m", "d.txt"), ("rank", "m", "d.txt", "-o", "s")]
    for command in commands:
        loaded = loaded_by(in_process(*command), cwd=tmp_path)
        assert "numba" in loaded
        assert "sklearn" not in loaded
        assert "matplotlib" not in loaded
    assert (tmp_path / "s").exists()


COUNT_MISSES = """
import ast
import json
from numba.core.dispatcher import Dispatcher
import gc
stats = [d.stats for d in gc.get_objects() if isinstance(d, Dispatcher)]
hits = sum(sum(s.cache_hits.values()) for s in stats)
misses = {str(d): dict(d.stats.cache_misses) for d in gc.get_objects() if isinstance(d, Dispatcher)}
print(json.dumps([hits, sum(sum(m.values()) for m in misses.values())]))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    python(in_process("simulate", "separable", "d.txt", "--queries", 5), cwd=tmp_path)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for command in [("train", "d.txt", "--valid", "d.txt", "--model", "m"), ("evaluate", "m", "d.txt")]:
        code = in_process(*command, "--json") + COUNT_MISSES
        first, second = (json.loads(python(code, cwd=tmp_path, **cache).strip().splitlines()[-1]) for _ in range(2))
        assert first[1] > 0 or command[0] == "evaluate"
        assert second[0] > 0
        assert second[1] == 0, "kernels were compiled again"


def test_every_public_name_exists_and_is_documented():
    for name in ranktron.__all__:
        thing = getattr(ranktron, name)
        assert name == "__version__" or (thing.__doc__ or "").strip(), f"{name} has no docstring"
    assert set(dir(ranktron)) == set(ranktron.__all__)
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = ranktron.nothing_like_this


def test_a_missing_extra_says_what_to_install(monkeypatch, tmp_path):
    from ranktron.training.figures.plots import curves

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ranktron.MissingExtra, match=r"pip install 'ranktron\[plot\]'"):
        curves(tmp_path / "c.png", {}, {}, title="", x="", y="")


def test_the_version_is_one():
    assert f'version = "{ranktron.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {Version(ranktron.__version__).base_version}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_tree_does_not_name_this_machine():
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True).stdout.split()
    for name in files:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml"} and path.is_file():
            assert not re.search(r"/(home|root|work)/\w", path.read_text()), f"{name} names a path of one machine"


def test_public_functions_are_not_shadowed_by_modules():
    python(
        "import ranktron.learners.loop, ranktron.training.fit, ranktron.training.tune, ranktron;"
        "assert callable(ranktron.play) and ranktron.play.__doc__;"
        "assert callable(ranktron.tune) and ranktron.tune.__doc__"
    )
    for name in ranktron._HOMES:
        assert not (ROOT / "ranktron" / f"{name}.py").exists(), f"{name} would be hidden by the module of the same name"
        assert not (ROOT / "ranktron" / name).exists(), f"{name} would be hidden by the package of the same name"


def definitions():
    """Every function and class at the top of a module, with the path of the module."""
    for path in sorted(path for name in ("ranktron", "reproduction") for path in (ROOT / name).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node, path.relative_to(ROOT)


def test_a_public_name_is_defined_once():
    homes = {}
    for node, path in definitions():
        if not node.name.startswith("_") and path.parts[1] != "cli":
            homes.setdefault(node.name, []).append(str(path))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_functions_fit_on_a_screen():
    long = {}
    for top, path in definitions():
        for node in ast.walk(top):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                told = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
                if node.end_lineno - node.lineno + 1 - told > 60:
                    long[f"{path}: {node.name}"] = node.end_lineno - node.lineno + 1 - told
    assert long == {}
