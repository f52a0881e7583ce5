"""ONNX: a graph from a matrix of features to scores, verified with onnxruntime before it is written.

The input `features` is a float matrix with one row per document and one column per feature, in the order of the
metadata `feature_names`; the output `scores` has one float per document. NaN is a missing value for models with an
imputer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import MissingExtra
from ranktron.export.engine import shortest_single
from ranktron.export.ranker import LinearRanker
from ranktron.export.solr import why_not_single
from ranktron.types import Floats, Integers, Matrix

Step = tuple[str, list[str], str, dict[str, Any]]
_OPSET, _IR = 13, 8  # supported by every runtime since 2021


class Onnx:
    """A file for any ONNX runtime, Vespa's included."""

    keeps_constant = True
    scales_lists = False
    handles_missing = True
    lucene = False
    double = False

    def why_folded(self, ranker: LinearRanker) -> str:
        return why_not_single(ranker)

    def remarks(self, ranker: LinearRanker) -> list[str]:
        return []

    def write(self, ranker: LinearRanker, name: str, store: str | None) -> bytes:
        arrays: dict[str, Floats] = {"weights": ranker.weights, "constant": np.array(ranker.constant)}
        steps: list[Step] = []
        at, constant = "features", "constant"
        missing = ranker.missing()
        if missing is not None:
            arrays |= {"fill": missing[0], "lack": missing[1]}
            steps += [("IsNaN", [at], "missing", {}), ("Where", ["missing", "fill", at], "filled", {})]
            steps += [("Cast", ["missing"], "lacking", {"to": 1}), ("MatMul", ["lacking", "lack"], "lacks", {})]
            steps += [("Add", ["lacks", constant], "constants", {})]
            at, constant = "filled", "constants"
        if ranker.scaling != "none":
            arrays |= {"shift": ranker.shift, "divisor": ranker.divisor}
            steps += [("Sub", [at, "shift"], "shifted", {}), ("Div", ["shifted", "divisor"], "normalised", {})]
            at = "normalised"
        steps += [("MatMul", [at, "weights"], "sums", {}), ("Add", ["sums", constant], "scores", {})]
        return onnx_file(name, ranker.names, arrays, steps)

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        return onnx_scores(file, X)


def onnx_file(name: str, names: tuple[str, ...], arrays: Mapping[str, Any], steps: Sequence[Step]) -> bytes:
    """A graph from `features` to `scores`: numbers by name, and steps (operator, inputs, output, attributes)."""
    onnx = _onnx()
    initializers = [onnx.numpy_helper.from_array(_singles(array), key) for key, array in arrays.items()]
    nodes = [onnx.helper.make_node(operator, ins, [out], **attributes) for operator, ins, out, attributes in steps]
    floats = onnx.TensorProto.FLOAT
    inputs = [onnx.helper.make_tensor_value_info("features", floats, ["documents", len(names)])]
    outputs = [onnx.helper.make_tensor_value_info("scores", floats, ["documents"])]
    graph = onnx.helper.make_graph(nodes, name, inputs, outputs, initializers)
    opset = [onnx.helper.make_opsetid("", _OPSET)]
    model = onnx.helper.make_model(graph, producer_name="ranktron", opset_imports=opset, ir_version=_IR)
    onnx.helper.set_model_props(model, {"feature_names": json.dumps(list(names))})
    onnx.checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def onnx_scores(file: bytes, X: Matrix) -> Floats:
    """The scores of these features, computed by onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra("checking an ONNX file", "onnx") from None
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    (scores,) = session.run(["scores"], {"features": X})
    result: Floats = scores.astype(np.float64)
    return result


def _singles(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind == "i":
        return array
    return np.array([shortest_single(value) for value in np.ravel(array)], np.float32).reshape(np.shape(array))


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtra("writing an ONNX file", "onnx") from None
    return onnx
