"""Puts faults into the package and counts how many the tests notice: `make mutants`.

    python tests/mutation/run.py run [options]   a sample of faults, each against the tests that are nearest to it
    python tests/mutation/run.py report          the score so far
    python tests/mutation/run.py chosen          the faults of chosen.toml, each against the tests that it names
    python tests/mutation/run.py recheck         the faults of sample.json, each against the test that noticed it

Kernels run as plain Python, so that nothing is compiled. All tests are imported once; then every fault gets a process
of its own, forked from there, in which the code of one function is exchanged. Faults outside of functions (constants,
defaults) are put in by importing the package anew. No file is changed.

Tests that name the function come first, then those that name something else of its file, then those of its folder;
they run until one fails or their time is over. A fault is *killed* when a test fails, or does not end, that passes
without it; otherwise it *survives*. Answers are kept in out/mutants/, so that a run can be stopped and taken up again.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.machinery
import inspect
import json
import os
import random
import re
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "mutants"
CODE = (str(ROOT / "ranktron"), str(ROOT / "reproduction"))
PACKAGES = ("ranktron/surrogates", "ranktron/learners", "ranktron/training", "ranktron/metrics", "ranktron/theory",
            "reproduction/theory")  # fmt: skip
LEFT_OUT = ("training/figures",)  # pictures: looked at, not computed with
LONGEST = 2.0  # seconds of processor time that a test may take
PYTEST = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no", "-m",
          "not slow and not timed and not data", "-W", "ignore::pytest.PytestAssertRewriteWarning",
          "-W", "ignore::RuntimeWarning"]  # fmt: skip  # compiled kernels do not warn of overflow


def sources() -> list[Path]:
    """The files that get faults."""
    found = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in found if not any(part in str(path) for part in LEFT_OUT)]


def prepare() -> None:
    """Kernels become plain Python, and the large libraries are imported."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ.pop("RANKTRON_DATA", None)
    os.chdir(ROOT)
    for path in (str(ROOT), str(Path(__file__).parent)):
        if path not in sys.path:
            sys.path.insert(0, path)
    import numba
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401

    numba.njit = _plain  # what NUMBA_DISABLE_JIT gives, and `py_func`, which some tests ask a kernel for


def _plain(function: Any = None, **options: Any) -> Any:
    if function is None:
        return _plain
    function.py_func = function
    return function


# --- running tests


class Limit:
    """A plugin of pytest: a test that computes too long fails; `failed` is the last one that did not pass."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = report.nodeid

    def pytest_runtest_setup(self, item: Any) -> None:
        def late(*_: Any) -> None:
            raise TimeoutError(f"more than {LONGEST} s")

        signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, LONGEST)

    def pytest_runtest_teardown(self, item: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def first_failure(session: Any, items: Sequence[Any], seconds: float) -> str:
    """The first of the tests that fails, "" if none does within so many seconds of processor time."""
    limit, stop = Limit(), time.process_time() + seconds
    session.config.pluginmanager.register(limit)
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if limit.failed or time.process_time() > stop:
            break
    return limit.failed


def in_child(work: Callable[[], str], seconds: float) -> str:
    """What some work in a forked process gives; "?" if that process breaks or does not end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            os.write(write, f"={work()}".encode())
        finally:
            os._exit(0)
    os.close(write)
    stop = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > stop:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.01)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    return answer[1:] if answer else "?"


def anew(path: Path, mutated: bytes, tests: Sequence[str]) -> str:
    """The first test that fails with the package imported anew, one of its files with other content."""
    import pytest

    for name in [name for name in sys.modules if name.partition(".")[0] in ("ranktron", "reproduction", "tests")]:
        del sys.modules[name]
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> Any:
        if loader.path == str(path):
            return compile(mutated, str(path), "exec", dont_inherit=True)
        return original(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    limit = Limit()
    code = pytest.main([*PYTEST, "-x", *tests], plugins=[limit])
    return limit.failed or ("" if code == 0 else tests[0])


# --- faults


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of the functions of a module and of its classes, not of those inside functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inside = "<locals>" in constant.co_qualname or constant.co_name.startswith("<")
            if not inside and constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant
            elif not inside:
                yield from codes(constant)


def function_of(mutant: Any, path: Path, text: bytes) -> tuple[str, int, CodeType] | None:
    """The function a fault is in, and its code with the fault; None outside of functions."""
    before = {(c.co_qualname, c.co_firstlineno): c for c in codes(compile(text, str(path), "exec", dont_inherit=True))}
    after = compile(mutant.apply(text), str(path), "exec", dont_inherit=True)
    changed = [c for c in codes(after) if before.get((c.co_qualname, c.co_firstlineno)) != c]
    return (changed[0].co_qualname, changed[0].co_firstlineno, changed[0]) if len(changed) == 1 else None


class Suite:
    """The collected tests, the functions of the package, and which tests pass without a fault."""

    def __init__(self, session: Any) -> None:
        self.session, self.passes = session, dict[str, bool]()
        self.texts = {item: _text(item) for item in session.items}  # its words, and those around it
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(CODE):
                code = thing.__code__
                self.functions.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(thing)

    def nearest(self, path: Path, name: str) -> list[Any]:
        """The tests, those first that have most to do with a function; none that have nothing to do with its file."""
        source = str(path.relative_to(ROOT))
        folder = f"tests/{Path(source).parent}".replace("tests/ranktron/", "tests/", 1)
        parts = [part for part in name.split(".") if part.strip("_")]
        words = dict.fromkeys(parts[-1:], 8.0) | dict.fromkeys(parts[:-1], 4.0)
        for other in _names(path.read_text()):
            words.setdefault(other, 1.0)

        def score(item: Any) -> float:
            own, around = self.texts[item]
            value = sum(weight * ((word in own) + (word in around) / 4.0) for word, weight in words.items())
            value += 2.0 * item.nodeid.startswith((folder, source)) + 8.0 * item.nodeid.endswith(f"{path.stem}.{name}")
            return value + 6.0 * (item.path.stem.removeprefix("test_") in path.stem)  # its own file of tests

        ranked = {item: score(item) for item in self.session.items}
        return sorted((item for item in ranked if ranked[item] >= 2.0), key=lambda item: -ranked[item])

    def judge(self, path: Path, text: bytes, mutant: Any, items: Sequence[Any], seconds: float) -> str:
        """The test that notices a fault; "" if none does."""
        found = function_of(mutant, path, text)
        place = (str(path), found[0], found[1]) if found else None
        items = [item for item in items if self.passes.get(item.nodeid, True)]
        while items:
            if found and place in self.functions:

                def exchanged(items: Sequence[Any] = items) -> str:
                    for function in self.functions[place]:
                        function.__code__ = found[2]
                    return first_failure(self.session, items, seconds)

                failed = in_child(exchanged, 20.0 * seconds + 60.0)
            else:
                few = [item.nodeid for item in items[:8]]
                failed = in_child(lambda few=few: anew(path, mutant.apply(text), few), 20.0 * seconds + 120.0)
            if failed == "?" or not failed or self.undisturbed(failed):
                return failed
            items = [item for item in items if item.nodeid != failed]
        return ""

    def undisturbed(self, name: str) -> bool:
        """Whether a test passes without any fault."""
        if name not in self.passes:
            items = [item for item in self.session.items if item.nodeid == name]
            self.passes[name] = bool(items) and not in_child(lambda: first_failure(self.session, items, 1.0), 300.0)
        return self.passes[name]


def _names(text: str) -> set[str]:
    """What a file defines at its top level, names too short to tell left out."""
    tree = ast.parse(text)
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and len(node.name) > 3}


def _text(item: Any) -> tuple[set[str], set[str]]:
    """The words of a test, and those of its file, where its helpers are."""
    function = getattr(item, "function", None)
    if function is None:  # a doctest
        return _words("".join(e.source for e in item.dtest.examples) + " " + item.name.rpartition(".")[2]), set()
    lines = _lines(item.path)
    code = getattr(getattr(function, "hypothesis", None), "inner_test", function).__code__
    last = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
    return _words("\n".join(lines[code.co_firstlineno - 1 : last])), _words("\n".join(lines))


@cache
def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@cache
def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


# --- what one can ask for


class Sampled:
    """Tries one fault of the sample after the other."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def pytest_runtestloop(self, session: Any) -> bool:
        suite, kept_at = Suite(session), OUT / "answers.json"
        OUT.mkdir(parents=True, exist_ok=True)
        kept = json.loads(kept_at.read_text()) if kept_at.exists() else {}
        stop = time.monotonic() + 60.0 * self.options.minutes
        for source, path, text, mutant in sample(self.options):
            key = name_in(source, mutant)
            again = self.options.again and kept.get(key) == "survived"
            if (again or key not in kept) and time.monotonic() < stop:
                found = function_of(mutant, path, text)
                near = suite.nearest(path, found[0] if found else "")
                kept[key] = suite.judge(path, text, mutant, near, self.options.seconds) or "survived"
                kept_at.write_text(json.dumps(kept, indent=0, ensure_ascii=False))
                print(f"{kept[key][-60:]:>60}  {key}", flush=True)
        report()
        return True


def name_in(source: str, mutant: Any) -> str:
    """The name under which the answer to a fault is kept: that of the record inside functions, else with its line."""
    from recorded import named_faults

    names = _names_of_faults(named_faults, source)
    return names.get(mutant, f"{source}:{mutant.line}: {mutant.old} -> {mutant.new}")


@cache
def _names_of_faults(named_faults: Callable[[Path, str], dict[str, Any]], source: str) -> dict[Any, str]:
    return {mutant: name for name, mutant in named_faults(ROOT, source).items()}


def sample(options: argparse.Namespace) -> list[tuple[str, Path, bytes, Any]]:
    """Some faults of every file, at least `per_file`, or that share; a little of each file first."""
    from mutants import mutants

    work = []
    for path in sources():
        source = str(path.relative_to(ROOT))
        if not options.only or any(part in source for part in options.only):
            text = path.read_bytes()
            every = mutants(text)
            count = max(options.per_file, round(options.share * len(every)))
            random.Random(f"{options.seed} {source}").shuffle(every)
            fitting = (mutant for mutant in every if not options.functions or function_of(mutant, path, text))
            chosen = list(islice(fitting, count))
            work += [(at, source, path, text, mutant) for at, mutant in enumerate(chosen)]
    random.Random(options.seed).shuffle(work)
    return [row[1:] for row in sorted(work, key=lambda row: row[0])]


def report() -> None:
    """Prints how many faults of each package were noticed."""
    kept = json.loads((OUT / "answers.json").read_text())
    counts: dict[str, Counter[bool]] = {}
    for key, answer in kept.items():
        package = next(name for name in PACKAGES if key.startswith(f"ranktron/{name}/"))
        for name in (package, "all"):
            counts.setdefault(name, Counter())[answer != "survived"] += 1
    for name, count in sorted(counts.items()):
        print(f"{name}: {count[True]} of {count.total()} noticed, {100.0 * count[True] / count.total():.1f} %")


class Chosen:
    """Tries the faults of chosen.toml; `lived` has those that nobody noticed."""

    def __init__(self) -> None:
        self.faults = tomllib.loads((Path(__file__).parent / "chosen.toml").read_text(encoding="utf-8"))["fault"]
        self.lived = ["the tests were not collected: does chosen.toml name some that are gone?"]

    def pytest_runtestloop(self, session: Any) -> bool:
        from mutants import Mutant

        suite, self.lived = Suite(session), []
        for fault in self.faults:
            path = ROOT / ("" if fault["file"].startswith("reproduction/") else "ranktron") / fault["file"]
            text, old = path.read_bytes(), fault["old"].encode()
            start = text.find(old)
            mutant = Mutant(text.count(b"\n", 0, start) + 1, start, start + len(old), fault["old"], fault["new"])
            items = [item for item in session.items if item.nodeid.startswith(tuple(fault["tests"]))]
            if text.count(old) != 1:
                self.lived.append(f"{fault['what']}: {old!r} is not in {fault['file']} exactly once")
            elif fault.get("imported"):
                if not in_child(partial(anew, path, mutant.apply(text), [item.nodeid for item in items]), 300.0):
                    self.lived.append(fault["what"])
            elif not suite.judge(path, text, mutant, items, 30.0):
                self.lived.append(fault["what"])
        return True


def collected(plugin: Any, tests: Sequence[str]) -> None:
    """Imports the tests once; what then happens is up to the plugin's `pytest_runtestloop`."""
    import pytest

    pytest.main([*PYTEST, *tests], plugins=[plugin])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "report", "chosen", "recheck"])
    parser.add_argument("--only", nargs="*", default=[], help="parts of the paths of files to put faults into")
    parser.add_argument("--per-file", type=int, default=8)
    parser.add_argument("--share", type=float, default=0.0, help="of all faults of a file")
    parser.add_argument("--functions", action="store_true", help="no faults outside of functions, which take longer")
    parser.add_argument("--seconds", type=float, default=5.0, help="of tests for a fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    options = parser.parse_args()
    if options.verb == "report":
        return report()
    prepare()
    if options.verb == "chosen":
        chosen = Chosen()
        collected(chosen, sorted({test for fault in chosen.faults for test in fault["tests"]}))
        return sys.exit("\n".join(chosen.lived) or 0)
    folders = [f"tests/{package.removeprefix('ranktron/')}" for package in PACKAGES]
    tests = [*folders, *(str(path.relative_to(ROOT)) for path in sources())]
    if options.verb == "recheck":
        from recorded import Recheck

        recheck = Recheck(ROOT, options.seconds)
        collected(recheck, tests)
        return sys.exit(recheck.verdict() or 0)
    return collected(Sampled(options), tests)


if __name__ == "__main__":
    main()
