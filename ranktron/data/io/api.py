"""`read`, `stream` and `write`, for all formats."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ranktron.data.categories import Encoder
from ranktron.data.files import Paths, from_standard_input
from ranktron.data.io.columns import Columns, Roles, as_columns, assign_roles, is_frame, join_names, unlikely_features
from ranktron.data.io.formats import COMPRESSED, TABLES, InputFile, list_inputs
from ranktron.data.io.grouping import fit_width, in_file, placeholder
from ranktron.data.io.judgments import Judgments, read_judgments
from ranktron.data.io.letor import check_feature_range, read_text, text_width
from ranktron.data.io.ltr_logs import read_ltr_log
from ranktron.data.io.store import read_store, store_runs, write_store
from ranktron.data.io.streaming import QueryRun, join_runs, text_runs
from ranktron.data.io.table_sources import FrameSource, TableSource, index_columns, open_table
from ranktron.data.io.tables import count_texts, find_categories, numbered_from, read_table, table_roles, table_runs
from ranktron.data.io.writing import write_arrow, write_csv, write_jsonl, write_parquet, write_text, write_tsv
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError, RankingWarning, warn
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dense import first_non_finite
from ranktron.kernels.dispatch import with_layout
from ranktron.types import Round

WRITERS = {
    ".txt": write_text,
    ".letor": write_text,
    ".svm": write_text,
    ".csv": write_csv,
    ".tsv": write_tsv,
    ".jsonl": write_jsonl,
    ".ndjson": write_jsonl,
    ".parquet": write_parquet,
    ".arrow": write_arrow,
    ".feather": write_arrow,
    ".rounds": write_store,
}
COLUMNS = ("label", "query", "doc", "features", "drop", "categorical")
BINARY = (write_parquet, write_arrow, write_store)


class FeatureSpace(Protocol):
    """An object that has features: `Rounds` or a `Model`."""

    @property
    def n_features(self) -> int: ...
    @property
    def first_index(self) -> int: ...
    @property
    def feature_names(self) -> tuple[str, ...] | None: ...


def read(
    source: Any,
    *,
    label: str | None = None,
    query: str | None = None,
    doc: str | None = None,
    features: str | Iterable[str] | None = None,
    drop: str | Iterable[str] | None = None,
    categorical: str | Iterable[str] | None = None,
    judgments: str | os.PathLike[str] | None = None,
    format: str | None = None,
    null: str = "error",
    n_features: int | None = None,
    first_index: int | None = None,
    feature_names: tuple[str, ...] | None = None,
    like: FeatureSpace | None = None,
    strict: bool = False,
    sparse: bool | None = None,
) -> Rounds:
    """Reads queries with their documents from a file of any supported format, or from a data frame.

    Parameters
    ----------
    source : path, several paths, a directory of parts, or a data frame
        LETOR text, CSV, TSV or JSON lines, each plain or compressed (gzip, zstd, bzip2, xz), Parquet, an Arrow file, a
        feature log of Elasticsearch or OpenSearch, or a `.rounds` store; a frame of pandas, polars or pyarrow. "-" is
        standard input. All rows of a query must be in the same file, in any order.
    label, query, doc : str, optional
        The columns of a table with the label, the query id and the document id. By default they are found by their
        usual names (relevance, query_id, doc_id, ...); a missing or ambiguous one is an error that lists the columns.
    features, drop : sequence of str, or a comma-separated str, optional
        The columns that are features, or those that are not. By default every column without another role is a feature.
    categorical : "auto", sequence of str, or a comma-separated str, optional
        The columns of a table whose values are categories: each becomes a feature, `colour=red`, which is 1 or 0.
        "auto" takes the columns of text that have at most 50 different values, and no more than half as many as rows,
        and leaves out other columns that hold no numbers, with a `RankingWarning`. An empty text is a missing value.
    judgments : path, optional
        A file with the grades (`grade qid:Q # document`, TREC's qrels, or a table). They become the labels, and
        documents without one are left out.
    format : {"letor", "csv", "tsv", "jsonl", "parquet", "arrow", "rounds", "ltrlog"}, optional
        By default it is recognised by the file's first bytes, and by its name where these are not enough.
    null : {"error", "zero", "min", "mean", "nan"}
        How to treat missing values (NULL): raise an error, replace by 0, or by the smallest or mean value of the
        feature within the query (0 where the whole query has none). "min" is what LETOR's own "minimum" version does.
        "nan" keeps them for the model, which has learnt how to replace them.
    n_features : int >= 1, optional
        The number of features: a higher index is an error, features that no line names are 0. By default the
        largest index in the data.
    first_index : {0, 1}, optional
        The index of the first feature. By default 1, unless an index 0 occurs.
    feature_names : tuple of str, optional
        The order in which to put named features; a missing or additional name is an error.
    like : Model or Rounds, optional
        Reads the features of these, by name where both have names. Numbered features that the file lacks are 0, and
        unknown columns are left out; both cases give a `RankingWarning`.
    strict : bool
        Raise an error where `like` would warn.
    sparse : bool, optional
        Whether to keep the features as `Sparse` rows. By default as a store has them; for text, if it has 1,000
        features or more and lines name at most a twentieth of them.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5 2:1 # docid = A\\n0 qid:7 2:3 # docid = B\\n1 qid:8 1:1\\n")
    >>> rounds = read(path)
    >>> rounds.X.tolist(), rounds.labels.tolist()
    ([[0.5, 1.0], [0.0, 3.0], [1.0, 0.0]], [2.0, 0.0, 1.0])
    >>> rounds.qids.tolist(), rounds.docids.tolist()
    (['7', '8'], ['A', 'B', ''])
    >>> import pandas
    >>> frame = pandas.DataFrame({"relevance": [1, 0], "query": ["shoes"] * 2, "price": [3.0, 4.0]})
    >>> read(frame).feature_names
    ('price',)
    """
    columns = as_columns(label, query, doc, features, drop, categorical)
    options = ReadOptions(null, n_features, first_index, feature_names, sparse, columns, format, like, strict)
    grades = None if judgments is None else read_judgments(judgments)
    return _read_source(source, options, grades, labelled=True)


def read_documents(source: Any, **options: Any) -> Rounds:
    """Reads documents to be scored: like `read`, but a table may have no label column; its labels are then NaN.

    Parameters
    ----------
    source : path, several paths, a directory of parts, or a data frame
        As in `read`.
    **options
        The options of `read`, except `judgments`.

    Examples
    --------
    >>> import pandas
    >>> path = getfixture("tmp_path") / "new.parquet"
    >>> pandas.DataFrame({"qid": [7, 7], "price": [3.0, 4.0]}).to_parquet(path)
    >>> read_documents(path).labels
    array([nan, nan])
    """
    columns = as_columns(*(options.pop(name, None) for name in COLUMNS))
    return _read_source(source, ReadOptions(columns=columns, **options), None, labelled=False)


def read_roles(
    source: Any, *, format: str | None = None, like: FeatureSpace | None = None, labelled: bool = False, **columns: Any
) -> Roles | None:
    """Tells which columns of a table are read as label, query, document and features; None for other formats.

    Parameters
    ----------
    source : path, several paths, or a data frame
        As in `read`; of several files the first one counts.
    format : str, optional
        As in `read`.
    like : Model or Rounds, optional
        As in `read`.
    labelled : bool
        Whether a label is required.
    **columns
        The options of `read` that name columns: `label`, `query`, `doc`, `features`, `drop`, `categorical`.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "train.csv"
    >>> _ = path.write_text("relevance,query_id,price\\n1,7,0.5\\n")
    >>> read_roles(path)
    Roles(label='relevance', query='query_id', doc=None, features=('price',), dropped=(), guessed=..., categorical=())
    """
    options = ReadOptions(columns=as_columns(*(columns.pop(name, None) for name in COLUMNS)), like=like)
    if is_frame(source):
        return _roles_like(FrameSource(source), options, labelled)[0]
    with from_standard_input(source) as paths:
        first = list_inputs(paths, format)[0]
        return _roles_like(open_table(first, whole=False), options, labelled)[0] if first.format in TABLES else None


def read_labels(source: Any, **options: Any) -> Rounds:
    """Reads labels, query ids and document ids: like `read`, but the features of a table are left out.

    Parameters
    ----------
    source : path, several paths, a directory of parts, or a data frame
        As in `read`.
    **options
        The options of `read`; those about features do not count for a table.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "test.csv"
    >>> _ = path.write_text("label,qid,title\\n1,7,red shoes\\n0,7,hats\\n")
    >>> read_labels(path).labels.tolist()
    [1.0, 0.0]
    """
    grades = options.pop("judgments", None)
    columns = as_columns(*(options.pop(name, None) for name in COLUMNS))
    columns = columns._replace(features=(), drop=(), categorical=None)
    grades = None if grades is None else read_judgments(grades)
    return _read_source(source, ReadOptions(columns=columns, **options), grades, labelled=True)


class TextColumns(NamedTuple):
    """The columns of a table that hold text: how often each value occurs (None: missing), and why some are left out.

    `left_out` also has columns that are neither numbers nor text, such as dates; `roles` has those of numbers only.
    """

    counts: dict[str, Counter[str | None]]
    left_out: dict[str, str]
    roles: Roles


def read_text_columns(
    source: Any, *, labelled: bool = False, format: str | None = None, **columns: Any
) -> TextColumns | None:
    """The columns of a table that would be features and hold no numbers; None for other formats.

    Parameters
    ----------
    source : path, several paths, or a data frame
        As in `read`; of several files the first one counts.
    labelled : bool
        Whether a table without a label is refused.
    format : str, optional
        As in `read`.
    **columns
        The options of `read` that name columns.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "train.csv"
    >>> _ = path.write_text("label,qid,colour,title\\n1,7,red,A\\n0,7,red,B\\n0,8,blue,C\\n0,8,blue,D\\n")
    >>> texts = read_text_columns(path)
    >>> dict(texts.counts["colour"]), texts.left_out
    ({'red': 2, 'blue': 2}, {'title': '4 different texts'})
    """
    selected = as_columns(*(columns.pop(name, None) for name in COLUMNS))
    with from_standard_input(source) as paths:
        first = source if is_frame(source) else list_inputs(paths, format)[0]
        if not is_frame(source) and first.format not in TABLES:
            return None
        table = FrameSource(source) if is_frame(source) else open_table(first, whole=True)
        with in_file(table.name):
            roles = assign_roles(table.schema.names, index_columns(table.schema), selected, labelled)
            counts, left_out = count_texts(table, roles), find_categories(table, roles)[1]
            numbers = tuple(name for name in roles.features if name not in counts and name not in left_out)
            return TextColumns(counts, left_out, roles._replace(features=numbers))


class ReadOptions(NamedTuple):
    """The options of `read` that apply to all files."""

    null: str = "error"
    n_features: int | None = None
    first_index: int | None = None
    feature_names: tuple[str, ...] | None = None
    sparse: bool | None = None
    columns: Columns = Columns()
    format: str | None = None
    like: FeatureSpace | None = None
    strict: bool = False


def _read_source(source: Any, options: ReadOptions, judgments: Judgments | None, labelled: bool) -> Rounds:
    check_feature_range(options.n_features, options.first_index)
    placeholder(options.null)
    if is_frame(source):
        rounds = _read_one(source, options, judgments, labelled and judgments is None)
    else:
        with from_standard_input(source) as paths:
            rounds = _read_files(list_inputs(paths, options.format), options, judgments, labelled and judgments is None)
    if judgments is not None:
        return judgments.applied_to(rounds, "the table" if is_frame(source) else str(source))
    if labelled and np.isnan(rounds.labels).any():
        raise DataError(
            "a document has no grade: give the judgments with judgments= (--judgments FILE), or a grade beside each "
            'hit as "label"'
        )
    return rounds


def _read_files(files: list[InputFile], options: ReadOptions, judgments: Judgments | None, labelled: bool) -> Rounds:
    if all(file.format == "letor" for file in files):
        return _read_text(files, options)
    each = [_read_one(file, options, judgments, labelled) for file in files]
    return each[0] if len(each) == 1 else Rounds.concat(each)


def _read_text(files: list[InputFile], options: ReadOptions) -> Rounds:
    like = options.like
    n_features = options.n_features if like is None else like.n_features
    first_index = options.first_index if like is None else like.first_index
    name = ", ".join(map(str, files))
    try:
        rounds = read_text(
            files, null=options.null, n_features=n_features, first_index=first_index, sparse=options.sparse
        )
    except DataError:
        width = 0 if like is None else text_width(files, like.first_index)
        if like is not None and width > like.n_features:
            raise DataError(f"{name}: {_describe_widths(width, like.n_features)}") from None
        raise
    if like is not None and not isinstance(rounds.X, Sparse) and not rounds.X[:, -1].any():
        _compare_widths(text_width(files, like.first_index), options, name)
    return rounds


def _describe_widths(found: int, expected: int) -> str:
    return f"expected the {expected} features of the model or of the training data, found {found}"


def _compare_widths(found: int, options: ReadOptions, name: str) -> None:
    """Warns of missing features; an error if the caller is strict."""
    like = options.like
    if like is not None and found < like.n_features:
        text = f"{name}: {_describe_widths(found, like.n_features)}"
        warn_or_raise(text if options.strict else f"{text}; those that are missing count as 0", options.strict)


def warn_or_raise(text: str, strict: bool) -> None:
    """Issues a warning, or an error if the caller is strict."""
    if strict:
        raise DataError(text)
    warnings.warn(text, RankingWarning, stacklevel=2)


def _read_one(source: Any, options: ReadOptions, judgments: Judgments | None, labelled: bool) -> Rounds:
    format = source.format if isinstance(source, InputFile) else None
    if format == "letor":
        return _read_text([source], options)
    if format == "rounds":
        rounds, name = read_store(source), str(source)
    elif format == "ltrlog":
        rounds, name = read_ltr_log(source, options.null, judgments), str(source)
    else:
        table = FrameSource(source) if format is None else open_table(source, whole=True)
        name = table.name
        roles, encoder = _roles_like(table, options, labelled)
        rounds = read_table(table, roles, options.null, encoder)
    with in_file(name):
        rounds, width = _as_expected(rounds, options)
    _compare_widths(width, options, name)
    return replace(rounds, X=with_layout(rounds.X, options.sparse))


def _roles_like(table: TableSource, options: ReadOptions, labelled: bool) -> tuple[Roles, Encoder | None]:
    """The roles of a table's columns; with `like`, the features are its columns, and categories have its encoder."""
    like, own = options.like, set(table.schema.names)
    encoder: Encoder | None = getattr(like, "encoder", None)
    if encoder is not None and like is not None and set(like.feature_names or ()) <= own:
        encoder = None  # the table was written after its categories had become features
    names = None if like is None else like.feature_names if encoder is None else encoder.columns
    if names is None or options.columns.features is not None:
        roles = table_roles(table, options.columns, labelled)
        warning = None if options.columns.features is not None else unlikely_features(roles.features)
        if warning is not None:
            warn(f"{table.name}: {warning} (--drop, --features)")
        return roles, None
    missing = [name for name in names if name not in own]
    if missing:
        found = assign_roles(table.schema.names, index_columns(table.schema), options.columns, labelled)
        if numbered_from(found.features) is not None:  # features without names are matched by their numbers
            return table_roles(table, options.columns, labelled), None
        raise DataError(
            f"{table.name}: columns of the model or of the training data are missing: {join_names(missing)}; the "
            f"columns are {join_names(table.schema.names)}"
        )
    categorical = None if encoder is None else tuple(encoder.categories)
    columns = options.columns._replace(features=names, drop=(), categorical=categorical)
    roles = table_roles(table, columns, labelled)
    unknown = [name for name in roles.dropped if name not in options.columns.drop]
    if unknown:
        warn_or_raise(
            f"{table.name}: columns that the model or the training data lack are ignored: {join_names(unknown)}",
            options.strict,
        )
    return roles, encoder


def _as_expected(rounds: Rounds, options: ReadOptions) -> tuple[Rounds, int]:
    """Rounds with the expected features, and the number of those that the data has itself."""
    like = options.like
    if like is None:
        rounds = fit_width(rounds.ordered_by(options.feature_names), options.n_features, options.first_index)
        return rounds, rounds.n_features
    rounds = rounds.ordered_by(like.feature_names)
    width = fit_width(rounds, None, like.first_index).n_features
    return fit_width(rounds, like.n_features, like.first_index), width


def stream(
    paths: Paths,
    *,
    label: str | None = None,
    query: str | None = None,
    doc: str | None = None,
    features: str | Iterable[str] | None = None,
    drop: str | Iterable[str] | None = None,
    format: str | None = None,
    null: str = "error",
    n_features: int | None = None,
    first_index: int | None = None,
    sparse: bool | None = None,
) -> Iterator[Round]:
    """Yields the queries of files of any size one after the other, in bounded memory.

    Yields the same rounds as `read`. The rows of a query must be adjacent. Text is read twice, the first time to find
    the number of features, and only once if `n_features` and `first_index` are given. Feature logs of search engines
    are read into memory as a whole.

    Parameters
    ----------
    paths : path, several paths, or a directory of parts
        As in `read`; not a data frame.
    label, query, doc : str, optional
        The columns of a table with the label, the query id and the document id.
    features, drop : sequence of str, or a comma-separated str, optional
        The columns of a table that are features, or those that are not.
    format : str, optional
        As in `read`; by default it is recognised by the file's first bytes and its name.
    null : {"error", "zero", "min", "mean", "nan"}
        How to treat missing values, as in `read`.
    n_features : int >= 1, optional
        The number of features; by default the largest index in the data.
    first_index : {0, 1}, optional
        The index of the first feature; by default 1, unless an index 0 occurs.
    sparse : bool, optional
        Whether to keep the features as `Sparse` rows; chosen as in `read` by default.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5\\n0 qid:7 1:3\\n1 qid:8 1:1\\n")
    >>> [(round.qid, round.labels.tolist()) for round in stream(path)]
    [('7', [2.0, 0.0]), ('8', [1.0])]
    """
    columns = as_columns(label, query, doc, features, drop)
    options = ReadOptions(null, n_features, first_index, None, sparse, columns, format)
    check_feature_range(n_features, first_index)
    placeholder(null)
    return _stream(paths, options)


def _stream(paths: Paths, options: ReadOptions) -> Iterator[Round]:
    with from_standard_input(paths) as paths:
        files = list_inputs(paths, options.format)
        if all(file.format == "letor" for file in files):
            runs = text_runs(files, options.null, options.n_features, options.first_index, options.sparse)
        else:
            runs = chain.from_iterable(_runs(file, options) for file in files)
        yield from join_runs(runs, options.null)


def _runs(file: InputFile, options: ReadOptions) -> Iterator[QueryRun]:
    null, n_features, first_index = options.null, options.n_features, options.first_index
    if file.format == "letor":
        return text_runs([file], null, n_features, first_index, options.sparse)
    if file.format == "rounds":
        runs = store_runs(file, n_features, first_index)
    elif file.format == "ltrlog":
        rounds = _read_one(file, options, None, labelled=True)
        runs = (QueryRun(round.qid, round.X, round.labels, file, str(file).__str__) for round in rounds)
    else:
        table = open_table(file, whole=False)
        runs = table_runs(table, table_roles(table, options.columns), null, n_features, first_index)
    return (run._replace(X=with_layout(run.X, options.sparse)) for run in runs)


def write(rounds: Rounds, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Writes rounds to a file, in the format given by its name; reading the file gives the same numbers back.

    `.txt`, `.letor`, `.svm` are LETOR text; `.csv`, `.tsv` and `.jsonl` are tables in text, and all of these are
    compressed with a further `.gz`, `.zst`, `.bz2` or `.xz`. `.parquet` is Parquet, `.arrow` or `.feather` an Arrow
    file, and `.rounds` is the library's own store, which opens in milliseconds whatever its size.

    Parameters
    ----------
    rounds : Rounds
        The queries to write.
    path : path
        The file to write; "-" is standard output.
    format : {"letor", "csv", "tsv", "jsonl", "parquet", "arrow", "rounds"}, optional
        The format, where the name does not tell; required for standard output.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[0.1], [2.0]], [1, 0], qid=["a", "b"])
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> write(rounds, path)
    >>> print(path.read_text(), end="")
    1 qid:a 1:0.1
    0 qid:b 1:2
    """
    path = Path(path)
    endings = path.suffixes[-2:] if path.suffix in COMPRESSED else path.suffixes[-1:]
    ending = f".{format}" if format is not None else endings[0] if endings else ""
    writer = WRITERS.get(ending)
    if writer is None or (len(endings) == 2 and writer in BINARY):
        raise DataError(
            f"{path}: cannot tell the format; end the name in {', '.join(WRITERS)}, or name it (format=, --format); "
            "text and tables in text may be compressed, as in .txt.gz or .csv.zst"
        )
    if rounds.X.size == 0:
        raise DataError(f"{path}: there is nothing to write: no document or no feature")
    if isinstance(rounds.X, Sparse) and writer not in (write_text, write_store):
        raise DataError(
            f"{path}: a table has a column for every feature, and these features are sparse: end the name in .rounds "
            "for a store, or in .txt"
        )
    numbers = rounds.X.values if isinstance(rounds.X, Sparse) else rounds.X.reshape(-1)
    if first_non_finite(numbers) >= 0 or first_non_finite(rounds.labels) >= 0 or np.any(rounds.labels < 0):
        raise DataError("features and labels must be finite and labels >= 0; build the rounds with Rounds.from_arrays")
    writer(rounds, path)
