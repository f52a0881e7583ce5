"""What the experiments share: cells to compute, the cache of finished ones, verdicts, the report."""
