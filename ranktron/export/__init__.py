"""Exporting models to search engines: a file in the engine's own format, checked before it is written.

    engine          what is written
    --------------  ----------------------------------------------------------------------
    solr            a LinearModel (or additive trees, for stumps) for the model store
    elasticsearch   the body of `_createmodel` of the LTR plugin
    opensearch      the same
    lucene-expression  a script over fields, `"lang": "expression"` of Elasticsearch and OpenSearch
    vespa           a rank profile, weights as constants
    vespa-inputs    a rank profile, weights as query inputs: deployed once
    vespa-weights   the query parameters that give that profile its weights
    onnx            a graph from features to scores
    json            names, weights and constant, for anything else

Every engine is one object with `write`, which makes the file, and `scores`, which reads the file and scores documents
by the engine's documented rules, in its arithmetic. A file that does not score as the model does is not written.
"""

from ranktron.export.exporting import TARGETS, Export, export
from ranktron.export.verifying import Check

__all__ = ["TARGETS", "Check", "Export", "export"]
