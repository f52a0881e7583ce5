"""Compiled kernels: on dense and sparse features, on grades and orderings, and the dispatch between dense and sparse.

`dense` and `csr` have the same functions for the two kinds of rows, and `dispatch` chooses between them; `grades` and
`sorting` work on labels and scores alone.
"""
