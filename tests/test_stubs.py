"""The stubs say what the code says, for editors and type checkers; `--write-docs` writes them."""

import inspect
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Literal, Union, get_args, get_origin

import pytest

import ranktron
from ranktron import estimators
from ranktron.types import FeedbackModel

ROOT = Path(__file__).parent.parent
HEAD = "# Written by `pytest tests/test_stubs.py --write-docs` from the code: do not edit.\n"
CLASSES = [name for name, home in ranktron._HOMES.items() if home == "ranktron.estimators"]


def spelled(kind):
    """A type as source code writes it."""
    if kind is type(None):
        return "None"
    if kind == FeedbackModel:
        return "FeedbackModel"
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(json.dumps(value) for value in get_args(kind))}]"
    if get_origin(kind) in (Union, types.UnionType):
        return " | ".join(map(spelled, get_args(kind)))
    if get_args(kind):
        return f"{get_origin(kind).__name__}[{', '.join(map(spelled, get_args(kind)))}]"
    return f"np.random.{kind.__name__}" if kind.__name__ == "RandomState" else kind.__name__


def base_of(cls):
    """The base of a class of the stub: that of a derived estimator, or the class itself under another name."""
    return (cls.__bases__[0], "") if cls.__module__ == estimators.__name__ else (cls, f" as _{cls.__name__}")


def value(default):
    return json.dumps(default) if isinstance(default, str) else repr(default)


def estimators_stub():
    """Every estimator with the parameters of its signature; the rest it has from its base class."""
    lines = ["from collections.abc import Sequence", "from typing import Any, Literal", "", "import numpy as np", ""]
    bases = {name: base_of(getattr(ranktron, name)) for name in CLASSES}
    imports = {f"from {base.__module__} import {base.__name__}{alias}" for base, alias in bases.values()}
    imports |= {
        "from ranktron.data.maps import FeatureMap",
        "from ranktron.estimators.base import BaseRanker",
        "from ranktron.metrics import Metric",
        "from ranktron.training.model import Model",
        "from ranktron.types import FeedbackModel, Floats",
    }
    lines += sorted(imports)
    for name in sorted(CLASSES):
        cls, (base, alias) = getattr(ranktron, name), bases[name]
        lines += ["", f"class {name}({alias.removeprefix(' as ') or base.__name__}):"]
        lines += ["    def __init__(", "        self,", "        *,"]
        for p in inspect.signature(cls).parameters.values():
            lines.append(f"        {p.name}: {spelled(p.annotation)} = {value(p.default)},")
        lines.append("    ) -> None: ...")
        for compute in cls._algorithm.attributes if hasattr(cls, "_algorithm") else ():
            kind = inspect.signature(compute).return_annotation
            lines += ["    @property", f"    def {compute.__name__}(self) -> {kind}: ..."]
    return HEAD + "\n".join([*lines, "", "def as_estimator(model: Model) -> BaseRanker: ...", ""])


def package_stub():
    """Every public name from where it is defined."""
    found = [f"from ranktron.errors import {name} as {name}" for name in errors()]
    found += [f"from {home} import {name} as {name}" for name, home in ranktron._HOMES.items()]
    for name, module in ranktron._MODULES.items():
        package, _, own = module.rpartition(".")
        found.append(f"from {package} import {own} as {name}")
    return HEAD + "\n".join([*sorted(found), "", "__version__: str", ""])


def errors():
    return [name for name in ranktron.__all__ if name not in {*ranktron._HOMES, *ranktron._MODULES, "__version__"}]


@pytest.mark.parametrize(
    ("path", "wanted"),
    [("ranktron/estimators/__init__.pyi", estimators_stub), ("ranktron/__init__.pyi", package_stub)],
)
def test_stubs_are_made_from_the_code(path, wanted, request):
    if request.config.getoption("--write-docs"):
        (ROOT / path).write_text(wanted())
    assert (ROOT / path).read_text() == wanted(), "run: python -m pytest tests/test_stubs.py --write-docs"


def test_the_stub_of_estimators_has_all_of_them():
    assert sorted(CLASSES) == sorted(estimators.__all__)


@pytest.mark.slow
def test_a_type_checker_knows_the_parameters(tmp_path):
    lines = {
        'ranktron.SLAMPerceptron(metric="ndcg@5", eta=0.5, scale="standard").fit([[1.0]], [1], qid=0)': "",
        "ranktron.SLAMPerceptron(etta=0.5)": 'Unexpected keyword argument "etta"',
        "ranktron.SLAMPerceptron(0.5)": "Too many positional arguments",
        'ranktron.RankSVM(loss="hinges")': 'Argument "loss" to "RankSVM" has incompatible type',
        'ranktron.PredtronClassifier(eta="theory", reject=0.1)': "",
        "ranktron.HingePerceptron(eta=None)": 'Argument "eta" to "HingePerceptron" has incompatible type',
        "ranktron.nonsense": "has no attribute",
        'ranktron.read("a.txt").X': "",
        "ranktron.feedback.top(5)": "",
    }
    path = tmp_path / "usage.py"
    path.write_text("\n".join(["import ranktron", *lines, ""]))
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--config-file", "pyproject.toml", str(path)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    for number, (line, wanted) in enumerate(lines.items(), start=2):
        said = [each for each in told.splitlines() if f"usage.py:{number}: error: " in each]
        assert bool(said) == bool(wanted), (line, told)
        assert not wanted or wanted in said[0], (line, told)
