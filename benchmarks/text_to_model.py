"""From LETOR text to a saved model: seconds and memory of whole programs, and NDCG@10 on queries they have not seen.

    python -m benchmarks.text_to_model [LISTS]

6,000 simulated lists of 120 documents with 136 features, a GB of text. Every program is a process of its own that is
started, reads the file, trains and saves; then it scores the test queries, which is not timed. LightGBM (which reads no
query ids) and Vowpal Wabbit get the same numbers in the format that they read; writing it is not timed either.
Ranktron's kernels are compiled already, as from the second command on. It also reads the same numbers from other
formats. A program that takes more than two minutes is stopped, and has that as its time and no NDCG.
"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from ranktron.data import io
from ranktron.data.synthetic import WebSearch
from ranktron.metrics import evaluate

LISTS, TEST, WITHIN = 6_000, 1_000, 0.005
GOAL = 2.5  # seconds, for the fastest of ours that is as good as the best linear ranker
PATIENCE = 120.0  # seconds after which a program is stopped
FORMATS = {".csv": "CSV", ".parquet": "Parquet", ".rounds": "a store"}

HEAD = """
import json, sys, time
import numpy as np
train, test, out, started = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])

def saved():
    seconds = time.time() - started
    with open("/proc/self/status") as file:
        used = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    print(json.dumps({"seconds": seconds, "megabytes": used / 1024}))
"""

OURS = """
import contextlib, io
from ranktron.cli import main
sys.argv = ["ranktron", "train", train.removesuffix(".txt") + ENDING, "--model", out, *OPTIONS]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
saved()
import ranktron
np.save(out + ".npy", ranktron.load(out).predict(np.load(test), qid=np.load(test + ".queries.npy")))
"""

XGBOOST = """
import xgboost
data = xgboost.DMatrix(train + "?format=libsvm")
model = xgboost.train({"objective": "rank:ndcg", **OPTIONS}, data, ROUNDS)
model.save_model(out + ".json")
saved()
X = np.load(test)
np.save(out + ".npy", model.predict(xgboost.DMatrix(np.hstack([np.zeros((len(X), 1), np.float32), X]))))
"""

LIGHTGBM = """
import lightgbm
data = lightgbm.Dataset(train + ".groups", params={"verbose": -1})
model = lightgbm.train({"objective": "lambdarank", "verbose": -1, **OPTIONS}, data, ROUNDS)
model.save_model(out)
saved()
X = np.load(test)
np.save(out + ".npy", model.predict(np.hstack([np.zeros((len(X), 1), np.float32), X])))
"""

SKLEARN = """
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
import pickle
X, y, qid = load_svmlight_file(train, query_id=True)
X, rng = X.toarray().astype(np.float32), np.random.default_rng(0)
starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]])
sizes = np.diff(np.r_[starts, len(y)])
which = np.repeat(np.arange(len(starts)), sizes)
other = starts[which] + (rng.random(len(y)) * sizes[which]).astype(int)  # one random partner for every document
keep = np.flatnonzero(y != y[other])
spread = X.std(axis=0)
sign = np.sign(y[keep] - y[other[keep]])
model = SGDClassifier(loss="hinge", average=True, fit_intercept=False, random_state=0)
model.fit((X[keep] - X[other[keep]]) / np.where(spread > 0, spread, 1.0), sign)
weights = model.coef_[0] / np.where(spread > 0, spread, 1.0)
with open(out, "wb") as file:
    pickle.dump(weights, file)
saved()
np.save(out + ".npy", np.load(test) @ weights)
"""

WABBIT = """
import vowpalwabbit
model = vowpalwabbit.Workspace(f"-d {train}.vw --loss_function squared --quiet -b 18 -f {out}")
model.finish()
saved()
model = vowpalwabbit.Workspace(f"-i {out} -t --quiet")
rows = np.load(test).tolist()
score = [model.predict("| " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row))) for row in rows]
np.save(out + ".npy", score)
"""


def program(text, options=None, rounds=0, ending=".txt"):
    return f"{HEAD}\nOPTIONS, ROUNDS, ENDING = {options!r}, {rounds}, {ending!r}\n{text}"


PROGRAMS = {
    "ranktron train (hinge, the default, 10 passes)": ("linear", program(OURS, [])),
    "ranktron train --epochs 2": ("linear", program(OURS, ["--epochs", "2"])),
    "ranktron train --algo listnet --epochs 2": ("linear", program(OURS, ["--algo", "listnet", "--epochs", "2"])),
    **{
        f"ranktron train --epochs 2, from {name}": (ending, program(OURS, ["--epochs", "2"], ending=ending))
        for ending, name in FORMATS.items()
    },
    "XGBoost, gblinear, 20 rounds": ("linear", program(XGBOOST, {"booster": "gblinear"}, 20)),
    "scikit-learn, SGD on a pair a document": ("linear", program(SKLEARN)),
    "Vowpal Wabbit, squared loss of labels": ("linear", program(WABBIT)),
    "XGBoost, trees, 100 rounds": ("trees", program(XGBOOST, {}, 100)),
    "LightGBM, trees, 100 rounds": ("trees", program(LIGHTGBM, {}, 100)),
}


def generate(folder, lists):
    """Writes the text and what the others read beside it; returns its path and the test queries."""
    made = WebSearch().rounds(lists + TEST)
    rounds = replace(made, X=np.round(made.X, 4))
    train, test, path = rounds[:lists], rounds[lists:], folder / "train.txt"
    np.save(folder / "test.npy", test.X)
    np.save(folder / "test.npy.queries.npy", np.repeat(np.arange(len(test)), np.diff(test.offsets)))
    for ending in (".txt", *FORMATS):
        io.write(train, path.with_suffix(ending))
    sizes = "\n".join(map(str, np.diff(train.offsets).tolist())) + "\n"
    Path(f"{path}.groups.query").write_text(sizes, encoding="utf-8")
    with open(path) as text, open(f"{path}.groups", "w") as grouped, open(f"{path}.vw", "w") as wabbit:
        for line in text:
            label, _, features = line.split("#")[0].split(" ", 2)
            grouped.write(f"{label} {features.rstrip()}\n")
            wabbit.write(f"{label} | {features.rstrip()}\n")
    return path, test


def race(folder, path, test):
    """{program: what it took and what its ranking is worth}."""
    found = {}
    for at, (name, (kind, text)) in enumerate(PROGRAMS.items()):
        out = str(folder / f"model{at}")
        asked = [sys.executable, "-W", "ignore", "-c", text, str(path), str(folder / "test.npy"), out]
        try:
            done = subprocess.run([*asked, str(time.time())], capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            found[name] = {"seconds": PATIENCE, "megabytes": None, "kind": kind, "ndcg@10": None}
            print(f"{name}: stopped after {PATIENCE:.0f} s", flush=True)
            continue
        if done.returncode:
            print(f"{name}: {done.stderr.strip().splitlines()[-1]}", flush=True)
            continue
        took = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
        scores = np.load(f"{out}.npy").astype(float)
        found[name] = {**took, "kind": kind, "ndcg@10": evaluate(test, scores, "ndcg@10").means["ndcg@10"]}
        print(f"{name}: {found[name]}", flush=True)
    return found


def run(lists=LISTS):
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path, test = generate(folder, lists)
        size = path.stat().st_size / 1e6
        subprocess.run([sys.executable, "-m", "ranktron", "compile"], check=True, capture_output=True)
        found = race(folder, path, test)
    ended = {name: row for name, row in found.items() if row["ndcg@10"] is not None}
    linear = {name: row for name, row in ended.items() if row["kind"] == "linear"}
    best = max(row["ndcg@10"] for row in linear.values())
    good = [name for name, row in linear.items() if name.startswith("ranktron") and row["ndcg@10"] > best - WITHIN]
    fastest = min(good, key=lambda name: linear[name]["seconds"], default=None)
    least = linear[fastest]["seconds"] if fastest else float("nan")
    return [table_row(name, row, size, fastest, least) for name, row in found.items()]


def table_row(name, row, size, fastest, least):
    kind = "linear" if row["kind"] in FORMATS else row["kind"]
    said, holds = f"{kind}, stopped after {PATIENCE:.0f} s", None
    if row["ndcg@10"] is not None:
        said = f"{kind}, NDCG@10 {row['ndcg@10']:.4f}, {row['megabytes']:.0f} MB"
    peer = None if name.startswith("ranktron") else row["seconds"]
    if peer is not None:
        said, holds = f"{said}; at least twice as fast", peer >= 2.0 * least
    elif name == fastest:
        said, holds = f"{said}; at most {GOAL:g} s", least <= GOAL
    what = "the same numbers" if row["kind"] in FORMATS else f"{size:.0f} MB of text"
    return {
        "what": f"{what} to a model: seconds; {name}", "ours": row["seconds"] if peer is None else least, "peer": peer,
        "ratio": None if peer is None else peer / least, "bar": said, "holds": holds,
    }  # fmt: skip


if __name__ == "__main__":
    for result in run(*map(int, sys.argv[1:2])):
        print(f"{result['what']}: {result['ours']:.3g} against {result['peer']}")
