"""The report of the experiments: one page and its charts."""
