"""The targets of an export, and the engine of each: the one list of them."""

TARGETS = {
    "solr": "ranktron.export.solr:Solr",
    "elasticsearch": "ranktron.export.elasticsearch:LearningToRankPlugin",
    "opensearch": "ranktron.export.elasticsearch:LearningToRankPlugin",
    "lucene-expression": "ranktron.export.lucene_expression:LuceneExpression",
    "vespa": "ranktron.export.vespa:Vespa",
    "vespa-inputs": "ranktron.export.vespa:VespaInputs",
    "vespa-weights": "ranktron.export.vespa:VespaWeights",
    "onnx": "ranktron.export.onnx:Onnx",
    "json": "ranktron.export.json:PlainJson",
}
TREES = {
    "solr": "ranktron.export.stumps:SolrTrees",
    "elasticsearch": "ranktron.export.stumps:PluginTrees",
    "opensearch": "ranktron.export.stumps:PluginTrees",
    "vespa": "ranktron.export.stumps:VespaTrees",
    "onnx": "ranktron.export.stumps:OnnxTrees",
    "json": "ranktron.export.stumps:JsonTrees",
}
"""Targets of RankBoost's thresholded features."""
CURVES = ("lucene-expression",)
"""Targets of sums of curves: linear models, bins, bins-linear and RankBoost."""
LUCENE = ("solr", "elasticsearch", "opensearch", "lucene-expression")
