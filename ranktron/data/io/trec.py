"""TREC's two file formats: relevance judgements (`qrels`) and rankings (`run`).

Both are read as `{query: {document: value}}`, the form that pytrec_eval, ranx and ir_measures take.
"""

from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path

from ranktron.data.files import open_compressed
from ranktron.data.io.formats import blocks
from ranktron.errors import DataError

Values = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]


def read_qrels(path: str | Path) -> Grades:
    """Reads judgements, `query 0 document grade` on each line.

    Grades are returned unchanged: TREC uses negative ones for documents that were not judged or are spam, and
    metrics count them as not relevant.

    Parameters
    ----------
    path : path
        The file; it may be compressed.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> write_qrels({"q1": {"d1": 2, "d2": 0}}, folder / "qrels")
    >>> read_qrels(folder / "qrels")
    {'q1': {'d1': 2, 'd2': 0}}
    """
    qrels: Grades = {}
    for place, (query, _, document, grade) in _rows(Path(path), 4, "query 0 document grade"):
        documents = qrels.setdefault(query, {})
        if document in documents:
            raise DataError(f"{place}: document {document!r} is judged twice for query {query!r}")
        try:
            documents[document] = int(grade)
        except ValueError:
            raise DataError(f"{place}: expected a whole number as the grade, found {grade!r}") from None
    return qrels


def write_qrels(qrels: Mapping[str, Mapping[str, int]], path: str | Path) -> None:
    """Writes judgements, `query 0 document grade` on each line.

    Parameters
    ----------
    qrels : {query: {document: grade}}
        The judgements; ids must not be empty or contain blanks.
    path : path
        The file to write; compressed if its name ends in `.gz`, `.zst`, `.bz2` or `.xz`.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "qrels"
    >>> write_qrels({"q1": {"d1": 2}}, path)
    >>> path.read_text()
    'q1 0 d1 2\\n'
    """
    with open_compressed(Path(path)) as file:
        for query, documents in qrels.items():
            for document, grade in documents.items():
                file.write(f"{_word(query)} 0 {_word(document)} {int(grade)}\n".encode())


def read_run(path: str | Path) -> Values:
    """Reads a ranking, `query Q0 document rank score tag` on each line; as in trec_eval only the scores count.

    Parameters
    ----------
    path : path
        The file; it may be compressed.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> write_run({"q1": {"d1": 0.5, "d2": 2.0}}, folder / "run")
    >>> print((folder / "run").read_text(), end="")
    q1 Q0 d2 1 2.0 ranktron
    q1 Q0 d1 2 0.5 ranktron
    >>> read_run(folder / "run")
    {'q1': {'d2': 2.0, 'd1': 0.5}}
    """
    run: Values = {}
    for place, (query, _, document, _, score, _) in _rows(Path(path), 6, "query Q0 document rank score tag"):
        documents = run.setdefault(query, {})
        if document in documents:
            raise DataError(f"{place}: document {document!r} is ranked twice for query {query!r}")
        try:
            documents[document] = float(score)
        except ValueError:
            raise DataError(f"{place}: expected a number as the score, found {score!r}") from None
        if not isfinite(documents[document]):
            raise DataError(f"{place}: expected a finite score, found {score!r}")
    return run


def write_run(run: Mapping[str, Mapping[str, float]], path: str | Path, tag: str = "ranktron") -> None:
    """Writes a ranking, best first; equal scores are ordered as in trec_eval, by document id descending.

    Parameters
    ----------
    run : {query: {document: score}}
        The scores; ids must not be empty or contain blanks.
    path : path
        The file to write; compressed if its name ends in `.gz`, `.zst`, `.bz2` or `.xz`.
    tag : str
        The name of the system, the last word of each line.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "run"
    >>> write_run({"q1": {"d1": 0.5}}, path, tag="mine")
    >>> path.read_text()
    'q1 Q0 d1 1 0.5 mine\\n'
    """
    with open_compressed(Path(path)) as file:
        for query, documents in run.items():
            ordered = sorted(documents.items(), key=lambda item: (item[1], item[0]), reverse=True)
            for rank, (document, score) in enumerate(ordered, start=1):
                line = f"{_word(query)} Q0 {_word(document)} {rank} {float(score)!r} {_word(tag)}\n"
                file.write(line.encode())


def _word(name: object) -> str:
    word = str(name)
    if not word or word.split() != [word]:
        raise DataError(f"{word!r} cannot be written to a TREC file: it is empty or has blanks in it")
    return word


def _rows(path: Path, n: int, form: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the words of each line with its place; lines that are blank are skipped."""
    content = b"".join(blocks(path)).decode("utf-8", "replace")
    for number, line in enumerate(content.split("\n"), start=1):
        words = line.split()
        if words and len(words) != n:
            raise DataError(f"{path}, line {number}: expected '{form}', found {len(words)} words")
        if words:
            yield f"{path}, line {number}", words
