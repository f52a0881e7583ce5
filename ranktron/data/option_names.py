"""Names that users choose from; nothing is imported here, so that `--help` is quick."""

SCALINGS = ("auto", "none", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard")

IMPUTATIONS = ("error", "mean", "zero", "indicator")

FORMATS = ("letor", "csv", "tsv", "jsonl", "parquet", "arrow", "rounds", "ltrlog")
