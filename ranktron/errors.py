"""The errors and warnings of the library.

Every error that the library raises on purpose is a `RanktronError`: one sentence that says what was wrong, where, and
what to do. The command line prints that sentence and nothing else.
"""

import sys
import warnings


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

    Parameters
    ----------
    what : str
        What needs the dependency.
    extra : str
        The extra of this package that installs it, as in `pip install 'ranktron[plot]'`.

    Examples
    --------
    >>> str(MissingExtra("drawing a picture", "plot"))
    "drawing a picture needs an optional dependency: pip install 'ranktron[plot]'"
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'ranktron[{extra}]'")


class RankingWarning(UserWarning):
    """Well-formed data that a ranker is unlikely to learn from as intended; the command line prints it.

    >>> import warnings
    >>> import ranktron
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = ranktron.HingePerceptron().fit([[1.0], [3.0], [2.0]], [0, 1, 2], qid=["a", "b", "c"])
    >>> print(caught[0].message)
    nothing can be learnt from 3 of 3 queries: 3 have a single document
    """


def warn(message: str) -> None:
    """Issues a `RankingWarning` that points to the line outside the library from which it was called."""
    level, frame = 1, sys._getframe().f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ranktron":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, RankingWarning, stacklevel=level + 1)
