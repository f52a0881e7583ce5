"""The report of the experiments: one page, its charts, and pictures for the documentation."""
