"""The roles of a table's columns (label, query, document, features), chosen by the caller or recognised by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ranktron.data.io.formats import is_number
from ranktron.errors import DataError

# Common names of each role, compared by their letters and digits. Names on one line have the same precedence: two of
# them in a table are an error. A later line counts if no name of an earlier one occurs. `write` uses the first name.
COMMON_NAMES = {
    "label": (
        ("label",),
        ("labels", "relevance", "relevance_label", "relevance_grade", "rel", "grade", "judgment", "judgement"),
        ("target", "y"),
    ),
    "query": (
        ("qid",),
        ("query_id", "search_id", "srch_id", "session_id", "request_id", "topic_id", "group_id"),
        ("query", "session", "topic", "group", "groups", "q"),
    ),
    "doc": (
        ("docid",),
        ("docno", "document_id", "item_id", "product_id", "prop_id"),
        ("doc", "document", "item", "id"),
    ),
}
CLICK_NAMES = ("click", "clicked", "is_clicked", "is_click", "click_bool")
POSITION_NAMES = ("position", "pos", "rank")
POSSIBLE_LABELS = ("rating", "ratings", "gain", "gains", "score", "scores", "stars", "reward", "utility")
"""Names of labels that are as often those of features: one of them is taken with a warning, two are an error."""
CLICKS = (*CLICK_NAMES, *POSITION_NAMES)
"""Columns of click logs whose values are known only after the documents were shown."""
UNNAMED = ("", "Unnamed: 0")
"""Names of a data frame's index in a CSV file."""
_ID = re.compile(r"(^|[^A-Za-z])(?i:id|uuid|guid|timestamp)$|[a-z]I[dD]$")
"""Ends of the names of ids and times, whose magnitude means nothing: user_id, brandId, timestamp."""
AUTO = "auto"
"""Takes the columns of text with few different texts for categories."""
ROLES = {"label": "the label", "query": "the query id", "doc": "the document id"}


class Columns(NamedTuple):
    """The caller's choice of columns; None where their names decide."""

    label: str | None = None
    query: str | None = None
    doc: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    categorical: str | tuple[str, ...] | None = None  # "auto", names, or none: text is then refused


class Roles(NamedTuple):
    """The role of each column; `guessed` has the roles that were recognised by name."""

    label: str | None
    query: str
    doc: str | None
    features: tuple[str, ...]
    dropped: tuple[str, ...]
    guessed: tuple[str, ...]
    categorical: tuple[str, ...] = ()  # those of the features that hold categories


def as_columns(
    label: str | None,
    query: str | None,
    doc: str | None,
    features: str | Iterable[str] | None,
    drop: str | Iterable[str] | None,
    categorical: str | Iterable[str] | None = None,
) -> Columns:
    """The caller's choice, with lists of names, or a comma-separated text, as tuples.

    >>> as_columns(None, "session", None, "price, age", None)
    Columns(label=None, query='session', doc=None, features=('price', 'age'), drop=(), categorical=None)
    """
    kept = _names(features)
    if kept is not None and drop:
        raise DataError("features= names the columns to keep and drop= those to leave out: give one of them")
    if kept == ():
        raise DataError("features= names no column")
    chosen = AUTO if categorical == AUTO else _names(categorical)
    return Columns(label, query, doc, kept, _names(drop) or (), chosen)


def _names(names: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str):
        return tuple(name.strip() for name in names.split(",") if name.strip())
    return tuple(map(str, names))


def assign_roles(names: Sequence[str], index: Sequence[str], columns: Columns, labelled: bool) -> Roles:
    """Finds label, query, document and features among the names of a table's columns.

    Parameters
    ----------
    names : sequence of str
        The columns of the table.
    index : sequence of str
        Those that only number the rows.
    columns : Columns
        The caller's choice.
    labelled : bool
        Whether a label is required.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"two columns are called {twice[0]!r}: give each its own name{_ask_for_names(names)}")
    chosen = {role: getattr(columns, role) for role in COMMON_NAMES}
    categorical = () if columns.categorical in (None, AUTO) else columns.categorical
    for name in (*filter(None, chosen.values()), *(columns.features or ()), *columns.drop, *(categorical or ())):
        if name not in names:
            raise DataError(f"there is no column {name!r}; the columns are {join_names(names)}")
    free = [name for name in names if name not in columns.drop and name not in chosen.values()]
    open_names = [name for name in free if name not in (columns.features or ())]
    found = {role: chosen[role] or _guess(role, open_names, names) for role in COMMON_NAMES}
    if labelled and found["label"] is None:
        found["label"] = _possible_label([name for name in open_names if name not in found.values()])
    for role in ("label",) * labelled + ("query",):
        if found[role] is None:
            raise DataError(
                f"found no {COMMON_NAMES[role][0][0]!r} or the like among the columns {join_names(names)}: "
                f"say which one is {ROLES[role]} with {role}='NAME' (--{role} NAME){_ask_for_names(names)}"
            )
    query = str(found["query"])
    taken = [name for name in found.values() if name is not None]
    rest = [name for name in free if name not in taken and name not in index and name not in UNNAMED]
    features = tuple(rest) if columns.features is None else columns.features
    _check(features, taken, columns)
    unused = [name for name in categorical or () if name not in features]
    if unused:
        raise DataError(f"column {unused[0]!r} is named in categorical= (--categorical) and is not among the features")
    dropped = tuple(name for name in names if name not in features and name not in taken)
    guessed = tuple(role for role in COMMON_NAMES if found[role] is not None and chosen[role] is None)
    return Roles(found["label"], query, found["doc"], features, dropped, guessed, tuple(categorical or ()))


def _ask_for_names(names: Sequence[str]) -> str:
    """A question for tables whose first line holds numbers and so, perhaps, no names at all; "" for others."""
    numbers = [name for name in names if is_number(name.encode())]
    return f"; {numbers[0]!r} is a number: is the line with the names of the columns missing?" if numbers else ""


def _guess(role: str, free: Sequence[str], names: Sequence[str]) -> str | None:
    """The column whose name has the highest precedence; two of the same precedence are an error."""
    for line in COMMON_NAMES[role]:
        found = [name for name in free if plain(name) in map(plain, line)]
        if len(found) > 1:
            raise DataError(
                f"{' and '.join(map(repr, found))} may each be {ROLES[role]} (the columns are {join_names(names)}): "
                f"say which one is, with {role}={found[0]!r} (--{role} {found[0]}), and drop the other"
            )
        if found:
            return found[0]
    return None


def _possible_label(free: Sequence[str]) -> str | None:
    """The column whose name may be that of a label; two of them are an error."""
    found = [name for name in free if plain(name) in POSSIBLE_LABELS]
    if len(found) > 1:
        raise DataError(
            f"{' and '.join(map(repr, found))} may each be the label or a feature: say which one is the label, with "
            f"label={found[0]!r} (--label {found[0]})"
        )
    return found[0] if found else None


def doubtful_label(roles: Roles) -> str | None:
    """The warning about a label whose name may as well be that of a feature; None if there is no doubt.

    >>> doubtful_label(Roles("rating", "qid", None, ("price",), (), ("label", "query")))
    "column 'rating' is taken for the label: say so with label='rating' (--label rating), or name the label's column"
    """
    name = roles.label
    if name is None or "label" not in roles.guessed or plain(name) not in POSSIBLE_LABELS:
        return None
    say = f"say so with label={name!r} (--label {name}), or name the label's column"
    return f"column {name!r} is taken for the label: {say}"


def other_role(roles: Roles, name: str) -> str | None:
    """The error about a column of text that has the usual name of a role for which another column was given.

    >>> other_role(Roles("label", "product_id", None, ("query", "price"), (), ("label",)), "query")[:66]
    "column 'query' holds text, and is usually the query id, for which "
    """
    for role, lines in COMMON_NAMES.items():
        if role not in roles.guessed and plain(name) in {plain(each) for line in lines for each in line}:
            given = getattr(roles, role)
            return (
                f"column {name!r} holds text, and is usually {ROLES[role]}, for which {role}={given!r} (--{role} "
                f"{given}) was given: leave that out, or leave the column out with drop={name!r} (--drop {name})"
            )
    return None


def _check(features: Sequence[str], taken: Sequence[str], columns: Columns) -> None:
    both = [name for name in features if name in taken]
    if both:
        raise DataError(f"column {both[0]!r} is named twice: as a feature, and as a label or an id")
    likely = [name for name in features if plain(name) in CERTAIN]
    if likely and columns.features is None:
        raise DataError(
            f"column {likely[0]!r} would be learnt from as a feature, and by its name it is a label or an id: leave it "
            f"out with drop={likely[0]!r} (--drop {likely[0]}), or name the features with features= (--features)"
        )


def plain(name: str) -> str:
    """A column's name in lower case, with letters and digits only.

    >>> plain("Query-ID"), plain("query_id"), plain("queryId")
    ('queryid', 'queryid', 'queryid')
    """
    return "".join(filter(str.isalnum, name.lower()))


CERTAIN = {plain(name) for lines in COMMON_NAMES.values() for line in lines[:2] for name in line}
"""Names of labels and ids: a column with one of these that has no role is an error, not a feature by accident."""
QUERY_NAMES = {plain(name) for line in COMMON_NAMES["query"] for name in line}
UNLIKELY_FEATURES = {plain(name) for lines in COMMON_NAMES.values() for line in lines[:3] for name in line} | set(
    map(plain, CLICKS)
)
"""Names that a feature may have, but rarely does: a column with one of these gives a warning."""


def unlikely_features(names: Iterable[str]) -> str | None:
    """The warning about features whose names suggest that they are none; None without such names.

    >>> unlikely_features(["bm25", "Position", "user_id", "paid"])
    "'Position', 'user_id' are learnt as features: drop what is not a feature, or name the features with features=[...]"
    """
    found = [name for name in names if plain(name) in UNLIKELY_FEATURES or _ID.search(name)]
    if not found:
        return None
    shown = ", ".join(map(repr, found[:10])) + (", ..." if len(found) > 10 else "")
    are = "is learnt as a feature" if len(found) == 1 else "are learnt as features"
    return f"{shown} {are}: drop what is not a feature, or name the features with features=[...]"


def join_names(names: Sequence[str], most: int = 20) -> str:
    """Names for an error message, shortened if there are many."""
    shown = ", ".join(map(str, names[:most]))
    return f"{shown}, ... ({len(names)} in all)" if len(names) > most else shown


def is_frame(source: object) -> bool:
    """Whether an object is a table in memory: of pandas, polars, pyarrow or another library that supports Arrow."""
    return (
        hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__") or hasattr(source, "collect_schema")
    )
