"""Writes a file of every kind that Ranktron stores, as version 0.1.0 did: run it with that version installed.

    python tests/compatibility/write.py FOLDER

The folder `0.1.0` beside this file was made so. It is never made again: later versions have to read it as it is.
"""

import asyncio
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

SCALINGS = ("standard", "minmax", "minmax-query")
MAPS = ("bins:4", "bins-linear:4", "rff:8", "nystroem:8", "products:2")
ONLINE = ("slam", "minimax", "listnet", "hinge", "topk", "predtron", "pairwise", "committee", "kernel")
CHOSEN = {
    "slam-ap": ("slam", {"metric": "ap", "eta": 0.5, "average": True}),
    "topk-paper": ("topk", {"surrogate": "squared", "k": 3, "setting": "paper", "seed": 7}),
}


def lists(count, seed):
    """Lists whose first feature says how good a document is; three features, so that sums have one order only."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        X = rng.normal(size=(6, 3)).astype(np.float32)
        yield X, np.clip(np.round(X[:, 0] + 1.0), 0.0, 4.0)


def write_models(folder):
    from ranktron.algorithms import ALGORITHMS
    from ranktron.model import Model
    from ranktron.rounds import Rounds
    from ranktron.schedule import Schedule

    from ranktron.training import train

    some = list(lists(40, 1))
    X, y = np.concatenate([X for X, _ in some]), np.concatenate([y for _, y in some])
    rounds = Rounds.from_arrays(X, y, np.repeat(np.arange(40), 6))
    asked = {name: (name, {}) for name in ALGORITHMS} | CHOSEN
    models = {name: train(kind, given, rounds, Schedule(2)).model for name, (kind, given) in asked.items()}
    models |= {f"hinge-{each}": train("hinge", {}, rounds, Schedule(2), scaling=each).model for each in SCALINGS}
    for each in MAPS:
        models[f"hinge-{each.replace(':', '-')}"] = train("hinge", {}, rounds, Schedule(2), map=each).model
    models["linear"] = models["hinge"].folded()
    for kind in ONLINE:  # a model made by hand kept just the parameters that it was given
        models[f"{kind}-left-out"] = Model(kind, {}, models[kind].state, 3)
    folder.mkdir()
    expected = {}
    for name, model in models.items():
        model.save(folder / f"{name}.model")
        expected[name] = model.predict(X[:12], np.repeat([0, 1], 6)).tolist()
    (folder / "predictions.json").write_text(json.dumps(expected, indent=0) + "\n")


def write_stores(folder):
    folder.mkdir()
    text = "".join(
        f"{label:g} qid:{q} " + " ".join(f"{j}:{value:g}" for j, value in enumerate(row, 1)) + f" # docid = d{q}-{i}\n"
        for q, (X, y) in enumerate(lists(5, 2))
        for i, (row, label) in enumerate(zip(X, y, strict=True))
    )
    (folder / "lists.txt").write_text(text)
    wide = "".join(f"{i % 3} qid:{i // 4} {1 + i}:0.5 {100_000 + i}:2\n" for i in range(12))
    (folder / "wide.txt").write_text(wide)
    for name in ("lists", "wide"):
        command = ["convert", str(folder / f"{name}.txt"), str(folder / f"{name}.rounds")]
        subprocess.run([sys.executable, "-m", "ranktron", *command], check=True)


def write_estimators(folder):
    import ranktron

    folder.mkdir()
    X, y = next(lists(1, 4))
    for name in ("SLAMPerceptron", "TopKRanker", "RankSVM", "PredtronRanker"):
        ranker = getattr(ranktron, name)().fit(X, y, qid=np.zeros(len(y)))
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(ranker))
        (folder / f"{name}.json").write_text(json.dumps(ranker.predict(X).tolist()) + "\n")


async def write_state(folder):
    from ranktron.model import load
    from ranktron.service.office import Office

    from ranktron.service.types import Definition, Document, FeedbackRequest, FullRequest, RankRequest

    features = ["a", "b", "c"]
    asked = {name: Definition(features, name) for name in ONLINE}
    asked |= {name: Definition(features, kind, given) for name, (kind, given) in CHOSEN.items()}
    asked["trained"] = Definition(features, "hinge")
    expected = {}
    async with Office(folder / "state") as office:
        for name, definition in asked.items():
            await office.create(name, definition)
            for number, (X, y) in enumerate(lists(12, 3)):
                if name == "trained" and number == 4:
                    await office.set_model(name, load(folder / "models" / "hinge-left-out.model").to_bytes())
                documents = [Document(f"d{i}", row) for i, row in enumerate(X.tolist())]
                shown = office.rank(name, RankRequest(documents))
                labels = {each.id: float(y[int(each.id[1:])]) for each in shown.ranking[: office.ranker(name).k]}
                if number % 4 != 3:  # every fourth round stays open
                    await office.feedback(name, FeedbackRequest(shown.round, labels))
                elif not name.startswith("topk"):
                    await office.full(
                        name, FullRequest(documents, {f"d{i}": float(label) for i, label in enumerate(y)})
                    )
            expected[name] = office.ranker(name).version
        await office.create("deleted", asked["hinge"])
        await office.delete("deleted")
        for name in asked:
            (folder / "served").mkdir(exist_ok=True)
            (folder / "served" / f"{name}.model").write_bytes(office.model(name).to_bytes())
    (folder / "versions.json").write_text(json.dumps(expected, indent=0) + "\n")
    (folder / "state" / "lock").unlink()


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_models(folder / "models")
    write_stores(folder / "stores")
    write_estimators(folder / "estimators")
    asyncio.run(write_state(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
