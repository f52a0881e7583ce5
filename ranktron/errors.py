"""What can go wrong, in words for people.

Every error the library raises on purpose is a `RanktronError`: one sentence that says what was wrong, where, and what
to do. The command line prints that sentence and nothing else.
"""


class RanktronError(Exception):
    """The base of every error that the library raises on purpose."""


class DataError(RanktronError, ValueError):
    """The data, a file or an argument is not what it has to be; nothing was changed."""


class MissingExtra(RanktronError, ImportError):
    """An optional dependency is not installed; the message says what to install."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'ranktron[{extra}]'")
