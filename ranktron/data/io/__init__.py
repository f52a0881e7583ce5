"""Reading and writing lists of documents: LETOR text, CSV, JSON lines, Parquet, data frames, a store, TREC files.

Nothing heavy is imported before a function is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktron.data.io.api import read, read_documents, read_roles, stream, write
    from ranktron.data.io.judgments import read_judgments
    from ranktron.data.io.store import verify
    from ranktron.data.io.trec import read_qrels, read_run, write_qrels, write_run

__all__ = [
    "read",
    "read_documents",
    "read_judgments",
    "read_qrels",
    "read_roles",
    "read_run",
    "stream",
    "verify",
    "write",
    "write_qrels",
    "write_run",
]

_HOMES = {
    "read": "api",
    "read_documents": "api",
    "read_judgments": "judgments",
    "read_roles": "api",
    "stream": "api",
    "write": "api",
    "verify": "store",
    "read_qrels": "trec",
    "read_run": "trec",
    "write_qrels": "trec",
    "write_run": "trec",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
