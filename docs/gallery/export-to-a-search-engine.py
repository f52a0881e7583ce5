"""Export to a search engine

A trained ranker becomes a file that a search engine reads: here the body that the learning-to-rank plugin of
Elasticsearch and OpenSearch takes, and an ONNX graph. Before Ranktron gives a file away it reads it back and scores
documents by the engine's rules; a file that scores otherwise is refused. Here we look ourselves: the JSON is
computed with as the plugin documents it, the graph is run by onnxruntime.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime

import ranktron

lists = ranktron.synthetic.WebSearch(features=4, documents=20).rounds(100)
ranker = ranktron.RankSVM(scale="standard").fit(lists.X, lists.labels, group=np.diff(lists.offsets))
ours = ranker.predict(lists.X)

# Elasticsearch: weights of normalised features, added up in 32-bit floats
names = ["title", "body", "clicks", "age"]
exported = ranker.model_.export("elasticsearch", name="shop", feature_names=names, data=lists)
body = json.loads(exported.content)["model"]["model"]
print("weights:", {name: round(weight, 3) for name, weight in body["definition"].items()})
elasticsearch = np.zeros(len(lists.X), np.float32)
for column, name in zip(lists.X.T, names, strict=True):
    norm = body["feature_normalizers"][name]["standard"]
    scaled = (column - np.float32(norm["mean"])) / np.float32(norm["standard_deviation"])
    elasticsearch += np.float32(body["definition"][name]) * scaled

graph = onnxruntime.InferenceSession(ranker.model_.export("onnx", name="shop", data=lists).content)
onnx = graph.run(None, {graph.get_inputs()[0].name: lists.X})[0].ravel()


def same_orders(theirs):
    """In how many queries these scores order the documents as ours do."""
    ends = list(zip(lists.offsets, lists.offsets[1:], strict=False))
    return sum(np.array_equal(np.argsort(-ours[a:b]), np.argsort(-theirs[a:b])) for a, b in ends)


plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
engines = {"Elasticsearch, OpenSearch (JSON)": elasticsearch, "ONNX": onnx}
for (name, theirs), size in zip(engines.items(), [9, 3.5], strict=True):
    apart = np.abs(theirs - ours).max()
    print(f"{name}: the same order in {same_orders(theirs)} of {len(lists)} queries, scores within {apart:.0e}")
    plt.plot(ours[::20], theirs[::20], "o", markersize=size, label=name)
plt.suptitle(f"Exported, and the same order in {same_orders(elasticsearch)} of {len(lists)} queries", x=0.01, ha="left")
plt.xlabel("score of a document, by the model (every twentieth is shown)")
plt.ylabel("its score, by the exported file")
plt.legend()
plt.savefig("export-to-a-search-engine.svg")
