"""Puts faults into the package and counts how many the tests notice: `make mutants`.

    python tests/mutation/run.py map             which tests run which line, and how long they take
    python tests/mutation/run.py run [options]   a sample of faults, each against the tests of its line
    python tests/mutation/run.py report          the score, and the faults that nobody noticed

Kernels run as plain Python: nothing is compiled, and coverage sees inside them. All tests are imported once; then every
fault gets a process of its own, forked from there, in which the code of one function is exchanged. No file is changed.
Answers are kept in out/mutants/, so that a run can be stopped and taken up again.

A fault is *killed* when a test fails or does not end, and *survives* when all tests that run its line pass: the quick
ones first and, where it survives those, all that end within seconds. Faults outside of functions (constants, defaults)
are put in by importing the package anew.
"""

from __future__ import annotations

import argparse
import gc
import importlib.machinery
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "mutants"
PACKAGES = ("surrogates", "learners", "training", "metrics", "papers/theory")
TESTS = ("surrogates", "learners", "training", "metrics", "papers/theory", "estimators")
LEFT_OUT = ("training/figures",)  # pictures: looked at, not computed with
LONGEST = 5.0  # seconds of processor time that a test may take in plain Python
ENOUGH, ALL = 3.0, 40.0  # seconds of tests for the first look at a fault, and for the second
PYTEST = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no", "-m",
          "not slow and not timed and not data", "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # fmt: skip


def sources() -> list[Path]:
    """The files that get faults."""
    found = [path for package in PACKAGES for path in sorted((ROOT / "ranktron" / package).rglob("*.py"))]
    return [path for path in found if not any(part in str(path) for part in LEFT_OUT)]


def test_files() -> list[str]:
    """The files whose tests look for them, doctests of the package included."""
    files = [path for folder in TESTS for path in sorted((ROOT / "tests" / folder).rglob("test_*.py"))]
    return [str(path.relative_to(ROOT)) for path in [*files, *sources()]]


def prepare() -> None:
    """Kernels become plain Python, and everything that no fault touches is imported."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ.pop("RANKTRON_DATA", None)
    os.chdir(ROOT)
    for path in (str(ROOT), str(Path(__file__).parent)):
        if path not in sys.path:
            sys.path.insert(0, path)
    import numba
    import pytest  # noqa: F401
    import scipy.optimize  # noqa: F401
    import scipy.stats  # noqa: F401

    numba.njit = _plain  # what NUMBA_DISABLE_JIT gives, and `py_func`, which some tests ask a kernel for


def _plain(function: Any = None, **options: Any) -> Any:
    if function is None:
        return _plain
    function.py_func = function
    return function


class Limit:
    """A plugin of pytest: a test that computes too long fails; it knows how long the others took."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.durations, self.failed = seconds, dict[str, float](), False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed
        if report.when == "call" and report.passed:
            self.durations[report.nodeid] = round(time.process_time() - self.began, 4)

    def pytest_runtest_setup(self, item: Any) -> None:
        def late(*_: Any) -> None:
            raise TimeoutError(f"more than {self.seconds} s")

        self.began = time.process_time()
        signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def pytest_runtest_teardown(self, item: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def collected(plugin: Any, files: Sequence[str]) -> None:
    """Imports the tests once; what then happens is up to the plugin's `pytest_runtestloop`."""
    import pytest

    pytest.main([*PYTEST, *files], plugins=[plugin])


def run_items(session: Any, items: Sequence[Any], limit: Limit, stop: bool) -> None:
    """Runs some of the collected tests in this process; up to the first that fails, where `stop`."""
    session.config.pluginmanager.register(limit)
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if stop and limit.failed:
            return


def in_child(work: Any, seconds: float = 3600.0) -> int | None:
    """The exit code of a forked process that does some work in silence; None if it does not end."""
    child = os.fork()
    if child == 0:
        try:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            os._exit(work())
        except BaseException:
            os._exit(2)
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


# --- which test runs which line


class Lines:
    """Runs every file of tests once under coverage, in a process of its own."""

    def pytest_runtestloop(self, session: Any) -> bool:
        (OUT / "map").mkdir(parents=True, exist_ok=True)
        groups: dict[str, list[Any]] = {}
        for item in session.items:
            groups.setdefault(item.nodeid.partition("::")[0], []).append(item)
        for name, items in groups.items():
            answer = OUT / "map" / (name.replace("/", "__") + ".json")
            if not answer.exists() or answer.stat().st_mtime < (ROOT / name).stat().st_mtime:
                began = time.process_time()
                code = in_child(lambda items=items, answer=answer: self.watch(session, items, answer))
                print(f"{name}: {len(items)} tests, {time.process_time() - began:.1f} s, {code}", flush=True)
        return True

    def watch(self, session: Any, items: Sequence[Any], answer: Path) -> int:
        import coverage

        limit = Limit(LONGEST)
        watch = coverage.Coverage(data_file=None, source=[str(ROOT / "ranktron")], config_file=False)

        class Context:
            def pytest_runtest_call(self, item: Any) -> None:
                watch.switch_context(item.nodeid)

        watch.start()
        session.config.pluginmanager.register(Context())
        run_items(session, items, limit, stop=False)
        watch.stop()
        lines: dict[str, dict[int, list[str]]] = {}
        for path in sources():
            contexts = watch.get_data().contexts_by_lineno(str(path))
            own = {n: [test for test in tests if test in limit.durations] for n, tests in contexts.items()}
            lines[str(path.relative_to(ROOT))] = {n: tests for n, tests in own.items() if tests}
        answer.write_text(json.dumps({"durations": limit.durations, "lines": lines}))
        return 0


def read_map() -> tuple[dict[str, float], dict[str, dict[int, set[str]]]]:
    durations: dict[str, float] = {}
    lines: dict[str, dict[int, set[str]]] = {}
    for path in sorted((OUT / "map").glob("*.json")):
        kept = json.loads(path.read_text())
        durations |= kept["durations"]
        for source, own in kept["lines"].items():
            for n, tests in own.items():
                lines.setdefault(source, {}).setdefault(int(n), set()).update(tests)
    return durations, lines


# --- faults


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of the functions of a module and of its classes, not of those inside functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inside = "<locals>" in constant.co_qualname or constant.co_name.startswith("<")
            if not inside and constant.co_flags & 0x2:  # a function: its names are known beforehand
                yield constant
            elif not inside:
                yield from codes(constant)


def function_of(mutant: Any, path: Path, text: bytes) -> tuple[str, int, CodeType] | None:
    """The function a fault is in, and its code with the fault; None outside of functions."""
    before = {(c.co_qualname, c.co_firstlineno): c for c in codes(compile(text, str(path), "exec", dont_inherit=True))}
    after = compile(mutant.apply(text), str(path), "exec", dont_inherit=True)
    changed = [c for c in codes(after) if before.get((c.co_qualname, c.co_firstlineno)) != c]
    if len(changed) != 1:
        return None
    return changed[0].co_qualname, changed[0].co_firstlineno, changed[0]


def exchange(path: Path, name: str, line: int, code: CodeType) -> bool:
    """Gives every living function of that name in that file the code; whether there is one."""
    found = [
        thing
        for thing in gc.get_objects()
        if isinstance(thing, FunctionType)
        and (thing.__code__.co_filename, thing.__code__.co_qualname) == (str(path), name)
        and thing.__code__.co_firstlineno == line
    ]
    for function in found:
        function.__code__ = code
    return bool(found)


class Judging:
    """Tries one fault after the other on the collected tests."""

    def __init__(self, work: Iterable[tuple[str, Path, bytes, Any]], minutes: float) -> None:
        self.work, self.stop = work, time.monotonic() + 60.0 * minutes
        self.durations, self.lines = read_map()

    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()
        kept_at = OUT / "answers.json"
        kept = json.loads(kept_at.read_text()) if kept_at.exists() else {}
        for source, path, text, mutant in self.work:
            key = f"{source}:{mutant.line}: {mutant.old} -> {mutant.new}"
            if key in kept:
                continue
            if time.monotonic() > self.stop:
                break
            kept[key] = self.judge(session, items, source, path, text, mutant)
            kept_at.write_text(json.dumps(kept, indent=0, ensure_ascii=False))
            if kept[key] in ("survived", "uncovered"):
                print(kept[key], key, flush=True)
        return True

    def judge(self, session: Any, items: dict[str, Any], source: str, path: Path, text: bytes, mutant: Any) -> str:
        found = function_of(mutant, path, text)
        tried = 0
        for seconds in (ENOUGH, ALL):
            tests = [test for test in self.tests_of(source, mutant, seconds) if test in items]
            if len(tests) == tried:
                break
            if found is None:
                code = in_child(lambda tests=tests: anew(path, mutant.apply(text), tests), 10.0 * seconds + 60.0)
            else:
                chosen = [items[test] for test in tests[tried:]]
                code = in_child(lambda chosen=chosen: self.exchanged(session, path, found, chosen), 10.0 * seconds + 30.0)
            if code is None:
                return "timeout"
            if code != 0:
                return "killed"
            tried = len(tests)
        return "survived" if tried else "uncovered"

    @staticmethod
    def exchanged(session: Any, path: Path, found: tuple[str, int, CodeType], items: Sequence[Any]) -> int:
        if not exchange(path, *found):
            return 0
        limit = Limit(4.0 * LONGEST)
        run_items(session, items, limit, stop=True)
        return int(limit.failed)

    def tests_of(self, source: str, mutant: Any, seconds: float) -> list[str]:
        """The tests that run the line of a fault (or the file, where only importing runs it), those nearby first."""
        own = self.lines.get(source, {})
        tests = set().union(*(own.get(n, set()) for n in range(mutant.line, mutant.line + mutant.old.count("\n") + 1)))
        if not tests and own:
            tests = set().union(*own.values())
        folder = str(Path(source).parent).replace("ranktron/", "tests/", 1)
        ordered = sorted(tests, key=lambda test: (self.durations[test] > 1.0, not test.startswith((folder, source)),
                                                  self.durations[test], test))  # fmt: skip
        chosen, total = [], 0.0
        for test in ordered:
            total += self.durations[test] + 0.01
            if total > seconds and chosen:
                break
            chosen.append(test)
        return chosen


def anew(path: Path, mutated: bytes, tests: Sequence[str]) -> int:
    """Runs tests with the package imported anew, one of its files with other content."""
    import pytest

    for name in [name for name in sys.modules if name.partition(".")[0] in ("ranktron", "tests")]:
        del sys.modules[name]
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> Any:
        if loader.path == str(path):
            return compile(mutated, str(path), "exec", dont_inherit=True)
        return original(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    return int(pytest.main([*PYTEST, "-x", *tests], plugins=[Limit(4.0 * LONGEST)]))


def sample(per_file: int, share: float, seed: int, only: Sequence[str]) -> list[tuple[str, Path, bytes, Any]]:
    """Some faults of every file: at least `per_file`, or that share; a little of each file first."""
    from mutants import mutants

    work = []
    for path in sources():
        source = str(path.relative_to(ROOT))
        if only and not any(part in source for part in only):
            continue
        text = path.read_bytes()
        every = mutants(text)
        count = min(len(every), max(per_file, round(share * len(every))))
        chosen = random.Random(f"{seed} {source}").sample(every, count)
        work += [(at / count, source, path, text, mutant) for at, mutant in enumerate(chosen)]
    return [row[1:] for row in sorted(work, key=lambda row: row[:2])]


def report() -> None:
    kept = json.loads((OUT / "answers.json").read_text())
    packages: dict[str, Counter[str]] = {}
    for key, answer in kept.items():
        package = next(name for name in PACKAGES if key.startswith(f"ranktron/{name}/"))
        packages.setdefault(package, Counter())[answer] += 1
    total: Counter[str] = sum(packages.values(), Counter())
    for package, counts in [*sorted(packages.items()), ("all", total)]:
        killed = counts["killed"] + counts["timeout"]
        print(f"{package}: {killed} of {counts.total()} noticed, {100.0 * killed / counts.total():.1f} %  {dict(counts)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["map", "run", "report"])
    parser.add_argument("--only", nargs="*", default=[], help="parts of the paths of files to put faults into")
    parser.add_argument("--per-file", type=int, default=8)
    parser.add_argument("--share", type=float, default=0.0, help="of all faults of a file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9)
    options = parser.parse_args()
    if options.verb == "report":
        return report()
    prepare()
    if options.verb == "map":
        return collected(Lines(), test_files())
    work = sample(options.per_file, options.share, options.seed, options.only)
    return collected(Judging(work, options.minutes), test_files())


if __name__ == "__main__":
    main()
