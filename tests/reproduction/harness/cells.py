"""Cells for the tests: named functions that a worker process can import."""

import os
import time
from pathlib import Path


def square(x, seed):
    return {"value": x * x + seed, "process": os.getpid(), "threads": os.environ.get("NUMBA_NUM_THREADS")}


def slow(x, seed):
    time.sleep(0.05)
    return x + seed


def broken(x, seed):
    raise ValueError(f"x is {x}\nand that is wrong")


def not_json(seed):
    return {"value": float("nan")}


def lines(folder, seed):
    return len((Path(folder) / "train.txt").read_text().splitlines())
