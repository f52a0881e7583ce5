"""Compiled leaves: kernels on dense and sparse features, grades and orderings, and the choice between them.

`dense` and `csr` are twins, `dispatch` chooses; `grades` and `sorting` know labels and scores alone.
"""
