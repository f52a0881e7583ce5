"""Reading and writing data: LETOR text, CSV, JSON lines, Parquet, data frames, the `.rounds` store, TREC files.

Heavy libraries are imported only when a function is used.
"""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.data.io.api import read, read_documents, read_labels, read_roles, read_text_columns, stream, write
    from ranktron.data.io.click_logs import read_click_log, read_impressions, read_ubi
    from ranktron.data.io.judgments import read_judgments
    from ranktron.data.io.store import verify
    from ranktron.data.io.trec import read_qrels, read_run, write_qrels, write_run

__all__ = [
    "read",
    "read_click_log",
    "read_documents",
    "read_impressions",
    "read_judgments",
    "read_labels",
    "read_qrels",
    "read_roles",
    "read_run",
    "read_text_columns",
    "read_ubi",
    "stream",
    "verify",
    "write",
    "write_qrels",
    "write_run",
]

_HOMES = {
    "read": "api",
    "read_click_log": "click_logs",
    "read_impressions": "click_logs",
    "read_ubi": "click_logs",
    "read_documents": "api",
    "read_judgments": "judgments",
    "read_labels": "api",
    "read_roles": "api",
    "read_text_columns": "api",
    "stream": "api",
    "write": "api",
    "verify": "store",
    "read_qrels": "trec",
    "read_run": "trec",
    "write_qrels": "trec",
    "write_run": "trec",
}

__getattr__ = lazy_names(__name__, homes={name: f"{__name__}.{home}" for name, home in _HOMES.items()})


def __dir__() -> list[str]:
    return __all__
