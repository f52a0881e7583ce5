"""What can go wrong, in words for people.

Every error the library raises on purpose is a `RanktronError`: one sentence that says what was wrong, where, and what
to do. The command line prints that sentence and nothing else.
"""


class RanktronError(Exception):
    """The base of every error that the library raises on purpose.

    >>> import ranktron
    >>> try:
    ...     ranktron.read("no-such-file.txt")
    ... except RanktronError as error:
    ...     print(error)
    no-such-file.txt: there is no such file
    """


class DataError(RanktronError, ValueError):
    """The data, a file or an argument is not what it has to be; nothing was changed.

    >>> import ranktron
    >>> ranktron.metric("ndgc@10")
    Traceback (most recent call last):
    ranktron.errors.DataError: ...
    """


class MissingExtra(RanktronError, ImportError):
    """An optional dependency is not installed; the message says what to install.

    >>> str(MissingExtra("drawing a picture", "plot"))
    "drawing a picture needs an optional dependency: pip install 'ranktron[plot]'"
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'ranktron[{extra}]'")


class RankingWarning(UserWarning):
    """Data that are well-formed, and from which a ranker hardly learns what was meant; the command line prints it.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RankingWarning)  # for whoever wants an error instead
    """
