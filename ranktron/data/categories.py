"""Categorical columns of a table: one feature for each category, as sparse rows; stored in the model.

Data frames are those of pandas or polars, recognised by their methods: neither library is imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.frames import arrange_columns
from ranktron.data.option_names import IMPUTATIONS
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.types import Matrix

MOST_CATEGORIES = 50
"""A column of text with more different texts than this is no category by itself."""
CATEGORY, TEXT = ("category", "Categorical", "Enum"), ("str", "string", "String", "Utf8")


@dataclass(frozen=True, eq=False)
class Encoder:
    """One-hot encoding: a numeric column is one feature, a categorical one has a feature for each category seen at fit.

    The feature `colour=red` is 1 if `colour` is `red` and 0 otherwise. An unseen category is 0 in all of them. So is a
    missing one, which is an error with `nan="error"`; with `indicator` it is a category of its own, `colour is
    missing`, if one occurred at fit.

    Parameters
    ----------
    columns : tuple of str
        All columns of the frame.
    categories : dict of str to tuple
        The categories of each categorical column, as texts; None stands for a missing one.
    nan : "error", "mean", "zero" or "indicator"
        How missing categories are treated.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"price": [3.0, 4.0], "colour": ["red", "blue"]})
    >>> encoder = fit_encoder(frame, ["colour"])
    >>> encoder.names, encoder(frame).dense().tolist()
    (('price', 'colour=blue', 'colour=red'), [[3.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    """

    columns: tuple[str, ...]
    categories: Mapping[str, tuple[str | None, ...]]
    nan: str = "error"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(name for column in self.columns for name in self._names(column))

    def _names(self, column: str) -> list[str]:
        if column not in self.categories:
            return [column]
        return [f"{column} is missing" if each is None else f"{column}={each}" for each in self.categories[column]]

    def __call__(self, frame: Any) -> Sparse:
        """Encodes a frame that has these columns, in any order."""
        if not hasattr(frame, "columns"):
            names = ", ".join(self.columns)
            raise DataError(f"the model has categorical features and takes a data frame with the columns {names}")
        arrange_columns(frame, self.columns)
        columns = [self._codes(frame, c) if c in self.categories else _numbers(frame, c) for c in self.columns]
        return self._rows(columns)

    def encode_table(self, table: Matrix, texts: Mapping[str, Sequence[str | None]]) -> Sparse:
        """Encodes a table of numbers, in which each category is its index among the texts of its column.

        Parameters
        ----------
        table : matrix
            The columns of the encoder, in this order.
        texts : mapping of str to sequence of str
            The texts of each categorical column; None stands for a missing one.

        Examples
        --------
        >>> encoder = Encoder(("price", "colour"), {"colour": ("blue", "red")})
        >>> encoder.encode_table(np.array([[3.0, 0.0], [4.0, 1.0]]), {"colour": ["red", "green"]}).dense().tolist()
        [[3.0, 0.0, 1.0], [4.0, 0.0, 0.0]]
        """
        columns = []
        for column, values in zip(self.columns, table.T, strict=True):
            if column in self.categories:
                known = {category: place for place, category in enumerate(self.categories[column])}
                codes = np.array([known.get(text, -1) for text in texts[column]], np.int64)
                values = codes[values.astype(np.int64)]
            columns.append(values)
        return self._rows(columns)

    def _rows(self, columns: Sequence[npt.NDArray[Any]]) -> Sparse:
        """Sparse rows from the numbers of each numeric column and the codes of each categorical one, -1 if unknown."""
        shape = len(columns[0]), len(columns)
        places, values = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        width = 0
        for c, (column, numbers) in enumerate(zip(self.columns, columns, strict=True)):
            if column in self.categories:
                places[:, c], values[:, c] = width + np.maximum(numbers, 0), numbers >= 0
            else:
                places[:, c], values[:, c] = width, numbers
            width += len(self._names(column))
        held = values != 0.0
        starts = np.concatenate(([0], np.cumsum(held.sum(axis=1)))).astype(np.int64)
        return Sparse(starts, places[held], values[held], width)

    def _codes(self, frame: Any, column: str) -> npt.NDArray[Any]:
        """The index of each row's category among those of the column; -1 for an unknown one."""
        known = {category: place for place, category in enumerate(self.categories[column])}
        texts = _texts(frame, column)
        if self.nan == "error" and None in texts:
            raise DataError(
                f"column {column!r} has no category (None, NaN, NA) in row {texts.index(None)}; a ranker with "
                "nan='mean', 'zero' or 'indicator' takes it as missing"
            )
        return np.array([known.get(text, -1) for text in texts], np.int64)


def fit_encoder(frame: Any, categorical: str | Sequence[str] | None = "auto", nan: str = "error") -> Encoder | None:
    """Learns the categories of a data frame's columns; returns None if no column is categorical.

    Parameters
    ----------
    frame : data frame
        Anything else has no categories.
    categorical : "auto", sequence of str or None
        "auto" takes the columns of a categorical type: pandas' `category`, polars' `Categorical` and `Enum`. Names take
        these columns, whatever their type; None takes none.
    nan : str
        How missing categories are treated.
    """
    named = categorical is not None and not isinstance(categorical, str)
    if not named and categorical not in (None, "auto"):
        raise DataError(f"categorical must be 'auto', None or the names of columns, not {categorical!r}")
    if not hasattr(frame, "columns") or not hasattr(frame, "dtypes"):
        if named:
            raise DataError("categorical= names columns of a data frame, and X is none: leave it out, or give a frame")
        return None
    columns, kinds = list(frame.columns), _kinds(frame)
    chosen = list(categorical or ()) if named else [c for c in columns if categorical and kinds[c] in CATEGORY]
    unknown = [name for name in chosen if name not in columns]
    if unknown:
        raise DataError(
            f"categorical= names {unknown[0]!r}, which is no column; there are {', '.join(map(str, columns))}"
        )
    for column in columns:
        if column not in chosen and kinds[column] in (*TEXT, *CATEGORY, "object"):
            _numbers(frame, column)  # raises
    if not chosen:
        return None
    if not all(isinstance(column, str) for column in columns) or len(set(columns)) < len(columns):
        raise DataError("a frame with categorical columns needs a name for each column, all of them different")
    return Encoder(tuple(columns), {column: _collect_categories(_texts(frame, column), nan) for column in chosen}, nan)


def why_no_category(counts: Mapping[str | None, int]) -> str | None:
    """Why a column of text is not taken for categories without being named; None if it is.

    Parameters
    ----------
    counts : mapping of str to int
        How often each text occurs; None stands for a missing one.

    Examples
    --------
    >>> why_no_category({"red": 3, "blue": 2})
    >>> why_no_category({"a red shoe": 1, "a blue shoe": 1, "a hat": 1})
    '3 different texts'
    """
    different, rows = len([text for text in counts if text is not None]), sum(counts.values())
    if len(counts) < 2:
        return f"always {next(iter(counts))!r}" if different else "always missing"
    return f"{different:,} different texts" if different > min(MOST_CATEGORIES, rows / 2) else None


def encoder_of_counts(columns: Sequence[str], counts: Mapping[str, Counter[str | None]], nan: str) -> Encoder:
    """The encoder of a table's columns, from how often each text of the categorical ones occurs.

    Parameters
    ----------
    columns : sequence of str
        All columns.
    counts : mapping of str to Counter
        The texts of each categorical column; None stands for a missing one.
    nan : str
        How missing categories are treated.

    Examples
    --------
    >>> encoder_of_counts(["price", "colour"], {"colour": Counter(["red", None])}, "indicator").names
    ('price', 'colour=red', 'colour is missing')
    """
    return Encoder(tuple(columns), {c: _collect_categories(list(texts), nan) for c, texts in counts.items()}, nan)


def _collect_categories(texts: list[str | None], nan: str) -> tuple[str | None, ...]:
    own = (None,) if nan == "indicator" and None in texts else ()
    return (*sorted({text for text in texts if text is not None}), *own)


def _kinds(frame: Any) -> dict[Any, str]:
    """The name of each column's type, without its parameters."""
    types = frame.schema if hasattr(frame, "schema") else dict(zip(frame.columns, frame.dtypes, strict=True))
    return {column: str(kind).partition("(")[0].partition("[")[0] for column, kind in types.items()}


def _texts(frame: Any, column: str) -> list[str | None]:
    """The categories of a column as texts; None for a missing one."""
    series = frame[column]
    values = series.to_list() if hasattr(series, "to_list") else list(series)
    texts: dict[Any, str | None] = {}
    try:
        for value in set(values):
            missing = value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
            texts[value] = None if missing else str(value)
        return [texts[value] for value in values]
    except TypeError as error:
        raise DataError(f"column {column!r} cannot be categorical: {error}") from None


def _numbers(frame: Any, column: Any) -> npt.NDArray[np.float32]:
    """A numeric column; missing values are NaN."""
    series = frame[column]
    try:
        numbers = series.to_numpy(np.float64, na_value=np.nan) if hasattr(frame, "iloc") else series.to_numpy()
        with np.errstate(over="ignore"):
            return np.asarray(numbers).astype(np.float64).astype(np.float32)
    except (TypeError, ValueError):
        values = series.to_list()
        row, text = next((i, v) for i, v in enumerate(values) if isinstance(v, str) or i + 1 == len(values))
        raise DataError(
            f"column {column!r} holds {text!r} in row {row}, which is no number: name it in categorical=[...] to make "
            "a feature of each category, or leave it out"
        ) from None


def encoder_to_dict(encoder: Encoder) -> dict[str, Any]:
    """The encoder as a model file stores it."""
    categories = [list(encoder.categories.get(column, ())) for column in encoder.columns]
    is_categorical = [column in encoder.categories for column in encoder.columns]
    return {
        "columns": list(encoder.columns),
        "categories": categories,
        "categorical": is_categorical,
        "nan": encoder.nan,
    }


def encoder_from_dict(stored: Mapping[str, Any] | None, n_features: int) -> Encoder | None:
    """The encoder that a model file stores."""
    if stored is None:
        return None
    rows = list(zip(stored["columns"], stored["categories"], stored["categorical"], strict=True))
    texts = all(isinstance(column, str) for column, _, _ in rows)
    texts = texts and all(each is None or isinstance(each, str) for _, values, _ in rows for each in values)
    encoder = Encoder(
        tuple(stored["columns"]), {c: tuple(v) for c, v, is_categorical in rows if is_categorical}, str(stored["nan"])
    )
    names = encoder.names if texts and encoder.nan in IMPUTATIONS else ()
    if len(names) != n_features or len(set(names)) < len(names):
        raise DataError(f"the model does not hold the categories of {n_features} features")
    return encoder
