import json
import os
import subprocess
import sys
from threading import Thread

import pytest
from numba.core.sigutils import normalize_signature

from ranktron.kernels import first_run
from ranktron.training.algorithms import ALGORITHMS

LISTED = json.loads(first_run.LIST.read_text())
CALLS = {"pass": {"step", "score"}, "step": {"score"}, "score": set(), "loss": set()}


def test_every_algorithm_and_kernel_of_the_list_exists():
    assert LISTED["groups"].keys() == {"reading", *ALGORITHMS}
    named = {kernel for roots in LISTED["groups"].values() for kernel in roots}
    named |= {kernel for called in LISTED["kernels"].values() for kernel in called}
    assert named <= LISTED["kernels"].keys()
    for kernel in LISTED["kernels"]:
        arguments = normalize_signature(kernel[kernel.index("(") :])[0]
        function = first_run._find(kernel)
        assert function is not None, f"{kernel} is gone: run tests/first_run.py"
        assert len(arguments) == function.py_func.__code__.co_argcount, f"{kernel}: run tests/first_run.py"


def test_kernels_are_handed_out_after_those_that_they_call():
    schedule, order = first_run._Schedule(CALLS), []
    while (kernel := schedule.take()) is not None:
        order.append(kernel)
        schedule.finish(kernel)
    assert order == ["score", "step", "pass", "loss"]  # the longest chain first


def test_a_kernel_that_is_given_back_is_handed_out_again():
    schedule = first_run._Schedule(CALLS)
    taken = [schedule.take(), schedule.take()]
    assert taken == ["score", "loss"]
    Thread(target=lambda: schedule.give_back("score")).start()
    assert schedule.take() == "score"  # it waited for that: nothing else was ready


@pytest.mark.parametrize("program", ["import sys; sys.exit(1)", "input(); import os; os._exit(1)"])
def test_what_a_process_that_dies_did_not_compile_is_compiled_here(monkeypatch, program):
    started, compiled, start = [], [], subprocess.Popen

    def popen(command, **options):
        started.append(start([sys.executable, "-c", program], **options))
        return started[-1]

    monkeypatch.setattr(first_run.subprocess, "Popen", popen)
    monkeypatch.setattr(first_run, "_processors", lambda: 3)
    monkeypatch.setattr(first_run, "_WORTH", 2)
    monkeypatch.setattr(first_run, "_compile", compiled.append)
    first_run.compile_together(CALLS)
    assert sorted(compiled) == sorted(CALLS)
    assert len(started) == 2
    assert all(each.poll() is not None for each in started)


def test_nothing_is_done_where_there_is_nothing_to_compile_or_no_second_processor(monkeypatch):
    monkeypatch.setattr(first_run, "_processors", lambda: 2)
    monkeypatch.setattr(first_run, "_is_compiled", lambda kernel: True)
    assert first_run.kernels_to_compile(["reading", "hinge"]) == {}
    monkeypatch.setattr(first_run, "_is_compiled", lambda kernel: False)
    missing = first_run.kernels_to_compile(["reading", "hinge"])
    assert LISTED["groups"]["hinge"][0] in missing
    assert all(called <= missing.keys() for called in missing.values())
    monkeypatch.setattr(first_run, "_processors", lambda: 1)
    assert first_run.kernels_to_compile(["reading", "hinge"]) == {}


def test_a_program_that_contains_python_starts_no_processes(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert first_run._processors() == 1


def test_other_processes_fill_the_cache_of_this_one(tmp_path):
    program = """
import threading
from ranktron.kernels import first_run

class Waits(first_run._Schedule):
    def take(self):  # this process compiles nothing
        if threading.current_thread() is not threading.main_thread():
            return super().take()
        with self._news:
            self._news.wait_for(lambda: not self._before, 300)

first_run._Schedule, first_run._processors, first_run._WORTH = Waits, lambda: 2, 1
listed = first_run.json.loads(first_run.LIST.read_text())["kernels"]
calls = {kernel: set() for kernel in listed if "fenwick" in kernel}
assert calls and not any(map(first_run._is_compiled, calls))
first_run.compile_together(calls)
assert all(map(first_run._is_compiled, calls))
"""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
