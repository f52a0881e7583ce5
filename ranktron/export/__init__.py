"""Export of models to search engines: a file in the engine's own format, verified before it is written.

    engine          file
    --------------  ----------------------------------------------------------------------
    solr            a LinearModel (or additive trees, for stumps) for the model store
    elasticsearch   the body of `_createmodel` of the LTR plugin
    opensearch      the same
    lucene-expression  a script over fields, `"lang": "expression"` of Elasticsearch and OpenSearch
    vespa           a rank profile, weights as constants
    vespa-inputs    a rank profile, weights as query inputs: deployed once
    vespa-weights   the query parameters that give that profile its weights
    onnx            a graph from features to scores
    json            names, weights and constant, for any other program

Each engine is one object: `write` encodes the file, and `scores` reads the file and scores documents by the engine's
documented rules, in its arithmetic. A file whose scores differ from the model's is not written.
"""

from typing import TYPE_CHECKING

from ranktron.export.targets import TARGETS
from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.export.exporting import Export, check_exportable, export, exportable_to
    from ranktron.export.verifying import Check

__all__ = ["TARGETS", "Check", "Export", "check_exportable", "export", "exportable_to"]

_HOMES = dict.fromkeys(__all__[2:], "exporting") | {"Check": "verifying"}

__getattr__ = lazy_names(__name__, homes={name: f"{__name__}.{home}" for name, home in _HOMES.items()})


def __dir__() -> list[str]:
    return __all__
